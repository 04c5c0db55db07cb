"""Runs as operations of torch: a rollout as one node of its graph.

Forward mode and `torch.func` go through others, which `kernelc.torch.follow` makes (transforms.py, looks.py).

Imported only where torch tensors are involved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from kernelc.torch import Followed, once, pulled
from nablasim.physics.time.runs import Run

Forward = Callable[[], dict[str, np.ndarray]]
Pull = Callable[[dict[str, np.ndarray]], list[np.ndarray]]


class _Rollout(torch.autograd.Function):
    """Parameter tensors in, frames of the state columns out."""

    @staticmethod
    def forward(ctx: Any, run: Forward, names: list[str], pull: Pull, op: Any, *leaves: torch.Tensor) -> Any:
        # All that the way back needs is in the run and in `pull`: the graph keeps them, whatever the user drops.
        ctx.names, ctx.pull, ctx.leaves = names, pull, [(x.dtype, x.device) for x in leaves]
        ctx.op = op
        if op is not None:  # for gradients of gradients alone
            ctx.save_for_backward(*leaves)
        ctx.set_materialize_grads(False)
        frames = run()
        return tuple(torch.from_numpy(frames[name]) for name in names)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> tuple[Any, ...]:
        if ctx.op is not None and torch.is_grad_enabled():
            return None, None, None, None, *pulled(ctx.op, ctx.saved_tensors, grads)
        seeds = {name: g.detach().cpu().numpy() for name, g in zip(ctx.names, grads) if g is not None}
        found = [_like(torch.from_numpy(g), *leaf) for g, leaf in zip(ctx.pull(seeds), ctx.leaves)]
        error = TypeError("this has a first derivative only: leave out create_graph=True, or take differences of the "
                          "gradient; ph.energy and ph.rollout can be differentiated twice")  # fmt: skip
        return None, None, None, None, *once(ctx, found, grads, error)


def _like(g: torch.Tensor, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return g if g.dtype == dtype and device.type == "cpu" else g.to(dtype=dtype, device=device)


def differentiable(run: Run, names: list[str], pull: Pull, leaves: list[Any], op: Followed) -> dict[str, Any]:
    """The frames as tensors whose history is the whole rollout; `pull` makes gradients of `leaves` from theirs, and
    `op` those that have gradients themselves."""
    return dict(zip(names, _Rollout.apply(run.forward, names, pull, op, *leaves)))


def operation(run: Forward, names: list[str], pull: Pull, leaves: list[Any]) -> dict[str, Any]:
    """What `run` gives as tensors, with a history where leaves ask for one."""
    return dict(zip(names, _Rollout.apply(run, names, pull, None, *leaves))) if leaves else tensors(run())


def tensors(frames: dict[str, np.ndarray]) -> dict[str, Any]:
    """The frames as tensors without a history."""
    return {name: torch.from_numpy(values) for name, values in frames.items()}
