"""Operations that torch follows whichever way it asks: reverse and forward mode, and the transforms of `torch.func`.

Whoever has a function of numbers with its derivatives writes them down as a `Followed`; `follow` makes the rest of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch.autograd import forward_ad

Some = Sequence[Any]
"""Arrays, or None where there is none."""
Numbers = np.ndarray[Any, Any]


class Followed(Protocol):
    """A function of numbers with its derivatives: what torch follows through `follow`. All arrays are NumPy's."""

    name: str

    def run(self, values: list[Numbers]) -> list[Numbers]:
        """The results."""

    def pull(self, values: list[Numbers], seeds: Some) -> list[Numbers]:
        """Gradients of Σ seeds·results by the values."""

    def push(self, values: list[Numbers], ways: Some) -> list[Numbers]:
        """How the results move where values do, along k directions in front; integers by integers of that shape."""

    def bend(self, values: list[Numbers], seeds: Some, ways: Some, turns: Some) -> tuple[list[Numbers], list[Numbers]]:
        """How those gradients move where values do by `ways`, and seeds by `turns`; how the results move. Both where
        there is only one direction. Raises `TypeError` where there is no second derivative.
        """


def followed(value: Any) -> bool:
    """Whether forward mode, or a transform of `torch.func`, goes through a tensor."""
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return True
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(value).tangent is not None  # type: ignore[no-untyped-call]


def follow(op: Followed, leaves: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """The results of an operation as tensors that know where they come from, whichever way torch asks."""
    found: tuple[Any, ...] = _Run.apply(op, *leaves)  # type: ignore[no-untyped-call]
    return found


def pulled(op: Followed, leaves: Sequence[torch.Tensor], grads: Some) -> tuple[Any, ...]:
    """The gradients of an operation by its leaves, for the `backward` of a node of one's own: where torch keeps their
    graph (create_graph=True), they are differentiated by `op.bend`.
    """
    found: tuple[Any, ...] = _Pull.apply(op, len(leaves), *leaves, *grads)  # type: ignore[no-untyped-call]
    return found


class _Looped(torch.autograd.Function):
    """Over a batch, one after the other; everything after the head is a tensor or None."""

    HEAD = 1

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, *given: Any) -> Any:
        head, rest, dims = given[: cls.HEAD], given[cls.HEAD :], in_dims[cls.HEAD :]
        each = [
            cls.apply(*head, *[x if d is None else x.select(d, i) for x, d in zip(rest, dims)])  # type: ignore[no-untyped-call]
            for i in range(info.batch_size)
        ]
        made = tuple(torch.stack(some) for some in zip(*each))
        return made, (0,) * len(made)


class _Run(_Looped):
    """What `op` gives."""

    @staticmethod
    def forward(op: Followed, *leaves: Any) -> Any:
        return tuple(torch.from_numpy(a) for a in op.run(_numbers(leaves)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.op = inputs[0]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[x for x in output if not x.dtype.is_floating_point])
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        leaves = ctx.saved_tensors
        return (None, *_Pull.apply(ctx.op, len(leaves), *leaves, *grads))  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, _: Any, *ways: Any) -> Any:
        leaves = ctx.saved_tensors
        return _first(_Push.apply(ctx.op, len(leaves), *leaves, *[None if w is None else w[None] for w in ways]))  # type: ignore[no-untyped-call]


class _Pull(_Looped):
    """Gradients by the leaves, from those by the results."""

    HEAD = 2

    @staticmethod
    def forward(op: Followed, n: int, *given: Any) -> Any:
        leaves, seeds = given[:n], given[n:]
        found = op.pull(_numbers(leaves), _numbers(seeds))
        return tuple(_like(torch.from_numpy(g), x.dtype, x.device) for g, x in zip(found, leaves))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.op, ctx.n = inputs[:2]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[2:])
        ctx.save_for_forward(*inputs[2:])

    @staticmethod
    def backward(ctx: Any, *ways: Any) -> Any:
        given = ctx.saved_tensors
        found = _Bend.apply(ctx.op, ctx.n, *given, *ways, *[None] * (len(given) - ctx.n))  # type: ignore[no-untyped-call]
        return (None, None, *[None if x is None else g for g, x in zip(found, given)])

    @staticmethod
    def jvp(ctx: Any, _op: Any, _n: Any, *ways: Any) -> Any:
        return _Bend.apply(ctx.op, ctx.n, *ctx.saved_tensors, *ways)[: ctx.n]  # type: ignore[no-untyped-call]


class _Push(_Looped):
    """How the results move, along k directions in front of those of the leaves."""

    HEAD = 2

    @staticmethod
    def forward(op: Followed, n: int, *given: Any) -> Any:
        return tuple(torch.from_numpy(a) for a in op.push(_numbers(given[:n]), _numbers(given[n:])))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.op, ctx.n = inputs[:2]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[x for x in output if not x.dtype.is_floating_point])
        ctx.save_for_backward(*inputs[2:])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise _too_often(ctx.op)

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, op: Any, n: Any, *given: Any) -> Any:
        leaves, ways, dims = given[:n], given[n:], in_dims[2:]
        if any(d is not None for d in dims[:n]):
            return super().vmap(info, in_dims, op, n, *given)
        # Directions of one point: all of them in one sweep.
        size = info.batch_size
        front = [w if w is None else w.expand(size, *w.shape) if d is None else w.movedim(d, 0)
                 for w, d in zip(ways, dims[n:])]  # fmt: skip
        each = next(w.shape[1] for w in front if w is not None)
        found = cls.apply(op, n, *leaves, *[None if w is None else w.reshape(-1, *w.shape[2:]) for w in front])  # type: ignore[no-untyped-call]
        return tuple(a.reshape(size, each, *a.shape[1:]) for a in found), (0,) * len(found)


class _Bend(_Looped):
    """How gradients move where leaves and weights of results do; and how results move."""

    HEAD = 2

    @staticmethod
    def forward(op: Followed, n: int, *given: Any) -> Any:
        half = len(given) // 2
        leaves, seeds, ways, turns = given[:n], given[n:half], given[half : half + n], given[half + n :]
        by_leaf, by_seed = op.bend(*map(_numbers, (leaves, seeds, ways, turns)))
        like = leaves[0]
        return (*[_like(torch.from_numpy(g), x.dtype, x.device) for g, x in zip(by_leaf, leaves)],
                *[_like(torch.from_numpy(g), like.dtype, like.device) for g in by_seed])  # fmt: skip

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.op = inputs[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise _too_often(ctx.op)

    @staticmethod
    def jvp(ctx: Any, *ways: Any) -> Any:
        raise _too_often(ctx.op)


def _numbers(given: Sequence[Any]) -> list[Any]:
    return [None if x is None else x.detach().cpu().numpy() for x in given]


def _first(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """The only direction; integers have none."""
    return tuple(a[0] if a.dtype.is_floating_point else None for a in found)


def _like(g: torch.Tensor, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return g if g.dtype == dtype and device.type == "cpu" else g.to(dtype=dtype, device=device)


def _too_often(op: Followed) -> TypeError:
    return TypeError(f"{op.name} has no derivatives of that order: take differences of the last one that there is")
