"""Tensors as memory and memory as tensors, on the CPU and on a GPU. Nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ..errors import WrongDtype
from ..runtime import Array
from ..runtime.arrays import device_memory
from ..runtime.cuda.device import device
from ..runtime.memory import Data, is_on_gpu, numpy_of


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
