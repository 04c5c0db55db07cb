"""What is still to come: networks that see a state, of a policy (`Feedback`) and of a value that is learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

See = Callable[[Mapping[str, Any]], Any]
"""From the state of one model to the numbers that a network is shown, (n)."""
REMEMBERED = 1e5
"""States that the means of a value's inputs go back to, at most."""


def everything(state: Mapping[str, Any]) -> torch.Tensor:
    """All quantities, one after the other."""
    return torch.cat([value.reshape(-1) for value in state.values()])


class Feedback(nn.Module):
    """A policy of the state: layers of ELU with their norms, one linear layer, and tanh.

    inputs: how many numbers `see` makes of a state; by default it takes all of them
    scale: the largest value that comes out, one number or one for each row
    """

    scale: torch.Tensor

    def __init__(self, inputs: int, *, see: See = everything, hidden: Sequence[int] = (64, 64), scale: Any = 1.0):
        super().__init__()
        self.see = see
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.float32))
        self.body = layers(inputs, hidden)
        self.head = nn.Linear(([inputs, *hidden])[-1], 1)
        self.shape: tuple[int, ...] = ()

    def shape_to(self, shape: tuple[int, ...]) -> None:
        self.shape = tuple(shape)
        first = self.head.weight
        self.head = nn.Linear(first.shape[1], max(1, torch.Size(shape).numel()), dtype=first.dtype)

    def forward(self, state: Mapping[str, Any]) -> torch.Tensor:
        said: torch.Tensor = self.scale * torch.tanh(self.head(self.body(self.see(state))).reshape(self.shape))
        return said


class Value(nn.Module):
    """How much is still to come from a state, (copies), learned; its inputs are shifted and scaled as they come."""

    mean: torch.Tensor
    spread: torch.Tensor
    count: torch.Tensor

    def __init__(self, inputs: int, hidden: Sequence[int] = (64, 64), scale: float = 1.0):
        """`scale`: of what comes out, so that layers need not learn it."""
        super().__init__()
        self.scale = scale
        for name, value in (("mean", torch.zeros(inputs)), ("spread", torch.ones(inputs)), ("count", torch.zeros(()))):
            self.register_buffer(name, value)
        self.body = layers(inputs, hidden)
        self.head = nn.Linear(([inputs, *hidden])[-1], 1)
        # Nothing is expected before something was seen: windows forget a first guess slowly.
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def watch(self, seen: torch.Tensor) -> None:
        """Take note of inputs, (n, inputs)."""
        count = self.count + len(seen)
        part = len(seen) / count
        mean = seen.mean(0)
        self.spread += part * (seen.var(0, unbiased=False) + (1 - part) * (mean - self.mean) ** 2 - self.spread)
        self.mean += part * (mean - self.mean)
        self.count.copy_(count.clamp(max=REMEMBERED))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        shown = ((seen - self.mean) / (self.spread + 1e-6).sqrt()).clamp(-10, 10)
        value: torch.Tensor = self.scale * self.head(self.body(shown))[..., 0]
        return value


def layers(inputs: int, hidden: Sequence[int]) -> nn.Sequential:
    sizes = [inputs, *hidden]
    parts = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ELU(), nn.LayerNorm(b))]
    return nn.Sequential(*parts)
