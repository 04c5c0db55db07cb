"""Values of parameters as users have them: numbers, NumPy arrays, tensors of torch, arrays of kernelc."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np

from nablasim.physics.model.draft import Real


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of a tensor, of a kernelc array in NumPy's eyes, or of an array; None for anything else."""
    if is_torch(value):
        return tuple(value.shape)
    if is_kernelc(value):
        return tuple(value.numpy().shape)
    return tuple(value.shape) if isinstance(value, np.ndarray) else None


def is_torch(value: Any) -> bool:
    return _origin(value.__class__) == "torch"


def is_kernelc(value: Any) -> bool:
    return _origin(value.__class__) == "kernelc"


@cache
def _origin(kind: type) -> str | None:
    """Whose tensors or arrays a type is."""
    if any(base.__module__.partition(".")[0] == "torch" for base in kind.__mro__):
        return "torch" if hasattr(kind, "detach") else None
    return "kernelc" if hasattr(kind, "requires_grad") and not issubclass(kind, np.ndarray) else None


def needs_gradient(value: Any) -> bool:
    """Whether a gradient is asked for; an array of kernelc may have got it from the tape that wrote it."""
    if is_kernelc(value):
        return value.grad is not None
    if not getattr(value, "requires_grad", False):
        return False
    import torch

    return torch.is_grad_enabled()


def between_graphs(function: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.compile` ends a graph before such a function, runs it as it is, and goes on behind it."""
    apart: list[Callable[..., Any]] = []

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        dynamo = sys.modules.get("torch._dynamo")  # only what is compiled has imported it
        if dynamo is None:
            return function(*args, **named)
        if not apart:
            apart.append(dynamo.disable(function))
        return apart[0](*args, **named)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    call._torchdynamo_disable_msg = "nablasim.physics runs Python and kernels"  # type: ignore[attr-defined]
    return call


def plain(value: Any) -> Real:
    """The content as a NumPy array, without its history."""
    if is_torch(value):
        return np.asarray(value.detach().cpu().numpy())
    return np.asarray(value.numpy() if is_kernelc(value) else value)
