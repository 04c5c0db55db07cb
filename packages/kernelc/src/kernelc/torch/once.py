"""Operations with a first derivative only: their gradients say so when they are differentiated again."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import torch


def once(
    node: Any, results: Sequence[torch.Tensor | None], grads: Sequence[torch.Tensor | None], error: Exception
) -> list[torch.Tensor | None]:
    """For the `backward` of a torch.autograd.Function: its results as gradients that raise `error` when torch
    differentiates them, which with create_graph=True it would otherwise take for constants.

    node: the context; results: what backward would return; grads: what it was given
    """
    if not torch.is_grad_enabled():
        return list(results)
    # Whatever the gradients depend on: torch then comes by here on its way to any of it.
    anchors = [g for g in grads if g is not None and g.requires_grad] + _leaves(node)
    given = [r for r in results if r is not None]
    made = iter(_Once.apply(error, len(given), *given, *anchors))  # type: ignore[no-untyped-call]
    return [None if r is None else next(made) for r in results]


def _leaves(node: Any) -> list[torch.Tensor]:
    """The leaves of the graph that a node's inputs come from."""
    found, seen, todo = [], set(), [node]
    while todo:
        for inner, _ in todo.pop().next_functions:
            if inner is not None and inner not in seen:
                seen.add(inner)
                todo.append(inner)
                if hasattr(inner, "variable"):
                    found.append(inner.variable)
    return found


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, error: Exception, n: int, *tensors: torch.Tensor) -> Any:
        ctx.error = error
        return tuple(x.view_as(x) for x in tensors[:n])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise copy(ctx.error)  # what is raised refers to the frames that it left, and these to the graph: a circle
