"""A linear map between arrays, for NumPy arrays, torch tensors and kernelc arrays alike, with its gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.model import is_kernelc, is_torch

Map = Callable[[NDArray], NDArray]


def apply(value: Any, forward: Map, adjoint: Map) -> Any:
    """forward(value), of the same kind as the value. Its gradient is adjoint(gradient of the result).

    Of a kernelc array, the operation is recorded on the tape that is open.
    """
    if is_torch(value):
        return _operation().apply(value, forward, adjoint)
    if not is_kernelc(value):
        return forward(np.asarray(value))
    out = kc.array(np.ascontiguousarray(forward(value.numpy())))
    tape = kc.Tape.current()
    if tape is None:
        return out

    def run() -> None:
        out.numpy()[...] = forward(value.numpy())

    def back() -> None:
        if value.grad is not None and out.grad is not None:
            value.grad.numpy()[...] += adjoint(out.grad.numpy())

    tape.record(back, reads=[value], writes=[out], forward=run)
    return out


@cache
def _operation() -> Any:
    """The operation of autograd; made when torch is asked for."""
    import torch

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any, forward: Map, adjoint: Map) -> Any:
            ctx.maps = forward, adjoint
            made = np.ascontiguousarray(forward(value.detach().cpu().numpy()))
            return torch.from_numpy(made).to(value.dtype)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            forward, adjoint = ctx.maps
            return Linear.apply(grad, adjoint, forward), None, None  # linear again: it can be differentiated again

    return Linear
