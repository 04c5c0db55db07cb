"""Tensors as memory and memory as tensors, on the CPU and on a GPU. Nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd import forward_ad

from ..errors import WrongDtype
from ..runtime import Array
from ..runtime.content import device_memory
from ..runtime.cuda.device import device
from ..runtime.memory import Data, is_on_gpu, numpy_of

_PLAIN = torch.Tensor.__torch_dispatch__
# Of torch.autograd.grad(is_grads_batched=True) and torch.autograd.functional: the vmap before that of torch.func.
_is_batched = torch._C._functorch.is_legacy_batchedtensor
_transforms, _modes = torch._C._are_functorch_transforms_active, torch._C._len_torch_dispatch_stack
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
_KEYS = torch._C._TorchDispatchModeKey
_TRACERS = (_KEYS.FAKE, _KEYS.PROXY, _KEYS.FUNCTIONAL)


def is_there(tensor: torch.Tensor) -> bool:
    """Whether a tensor is on a GPU."""
    return tensor.is_cuda


def any_there(args: Sequence[Any]) -> bool:
    """Whether one of the tensors among arguments is on a GPU."""
    return any(isinstance(a, torch.Tensor) and is_there(a) for a in args)


def memory_of(tensor: torch.Tensor) -> Data:
    """The memory of a tensor."""
    if not is_there(tensor):
        return numpy_of(tensor)
    if tensor.layout is not torch.strided or tensor.is_neg():
        raise WrongDtype("a tensor that is sparse or lazily negated cannot be used",
                         advice="convert it: .to_dense(), .resolve_neg()")  # fmt: skip
    memory: Data = device_memory(tensor)
    return memory


def tensor_of(a: Array) -> torch.Tensor:
    """The memory of an array, which torch keeps alive."""
    made: torch.Tensor = a.torch() if is_on_gpu(a._data) else torch.from_numpy(a._data)
    return made


def is_seen(args: Sequence[Any]) -> bool:
    """Whether torch has to see an operator: a transform or a mode is active, or a tensor holds no memory of its own."""
    if _transforms() or _modes() or forward_ad._current_level >= 0:
        return True
    for a in args:  # a loop: this runs in every call
        if isinstance(a, torch.Tensor) and (a.__class__.__torch_dispatch__ is not _PLAIN or _is_batched(a)):
            return True
    return False


def has_memory(args: Sequence[Any]) -> bool:
    """Whether the tensors are what they seem: not those of a transform or a tracer, which stand for others."""
    for key in _TRACERS:
        if torch._C._get_dispatch_mode(key) is not None:
            return False
    return not any(
        isinstance(a, torch.Tensor)
        and (a.__class__.__torch_dispatch__ is not _PLAIN or _is_batched(a) or _is_wrapped(a))
        for a in args
    )


@contextmanager
def in_step(args: Sequence[Any]) -> Iterator[None]:
    """Work with tensors on a GPU goes to torch's current stream: it waits for torch, and torch for it.

    In a reverse sweep that is the stream of the forward call, whichever thread torch runs it on.
    """
    if not any_there(args) or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        yield
        return
    gpu = device()
    before, gpu.stream = gpu.stream, torch.cuda.current_stream().cuda_stream
    try:
        yield
    finally:
        gpu.stream = before
