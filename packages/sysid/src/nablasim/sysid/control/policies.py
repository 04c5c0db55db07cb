"""Policies: torch modules of any of (time, state, picture) that say what actuators do.

A module is called with those of the three that its `forward` names, in the precision of its weights, and gives the
value of its parameter of the model. Arguments with other names are these three in their order.

One that names `time` alone is open loop: it is called once with all times, (steps), and gives (steps, ...). One that
names `state` (tensors by name, "gear.x") or `picture` closes the loop: it is called before every step, with that time.
One that names nothing is a value that is held from the start: an initial velocity, a stiffness.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

SEEN = ("time", "state", "picture")
"""What the `forward` of a policy may name."""


class Waves(nn.Module):
    """The paper's network: n sinusoids of the time, shifted in phase, one linear layer without bias, and tanh.

    scale: the largest value that comes out. frequency: of the sinusoids (Hz). spread: of the first weights.
    """

    def __init__(self, n: int = 8, *, scale: float = 1.0, frequency: float = 1.0, spread: float = 0.1):
        super().__init__()
        if n < 1:
            raise ValueError(f"there is at least one sinusoid, not {n}")
        self.n, self.scale, self.frequency, self.spread = n, scale, frequency, spread
        self.single = False
        self.weight = nn.Parameter(torch.zeros(0, n, dtype=torch.float64))

    def shape_to(self, shape: tuple[int, ...]) -> None:
        """Make room for the values of a parameter of this shape."""
        if len(shape) > 1:
            raise ValueError(f"Waves gives one number per row, and the parameter is of shape {shape}")
        rows = shape[0] if shape else 1
        if self.weight.shape[0] != rows:
            self.weight = nn.Parameter(torch.zeros(rows, self.n, dtype=torch.float64))
        self.single = not shape

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.spread)

    def forward(self, time: torch.Tensor) -> torch.Tensor:
        phase = 2 * torch.pi * torch.arange(self.n, dtype=time.dtype) / self.n
        waves = torch.sin(2 * torch.pi * self.frequency * time[:, None] + phase)
        values = self.scale * torch.tanh(waves @ self.weight.T)
        return values[:, 0] if self.single else values


class Held(nn.Module):
    """One value from the start on: of an initial velocity, a stiffness, whatever the model calls a parameter."""

    first: torch.Tensor

    def __init__(self, value: Any, *, spread: float = 0.0):
        """`spread`: how far the first guess lies from `value`, by the seed."""
        super().__init__()
        self.register_buffer("first", torch.as_tensor(value, dtype=torch.float64))
        self.spread = spread
        self.value = nn.Parameter(torch.as_tensor(value, dtype=torch.float64).clone())

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.value.copy_(self.first + self.spread * torch.randn_like(self.value))

    def forward(self) -> torch.Tensor:
        return self.value


class Random(nn.Module):
    """Activations drawn anew for every step: the paper's naive baseline. Nothing of it can be trained."""

    def __init__(self, *, scale: float = 1.0):
        super().__init__()
        self.scale = scale
        self.shape: tuple[int, ...] = ()
        self.seed = 0

    def shape_to(self, shape: tuple[int, ...]) -> None:
        self.shape = tuple(shape)

    def reset_parameters(self) -> None:
        self.seed = int(torch.randint(2**31, ()))

    def forward(self, time: torch.Tensor) -> torch.Tensor:
        random = torch.Generator().manual_seed(self.seed)
        return self.scale * (2 * torch.rand(len(time), *self.shape, generator=random, dtype=time.dtype) - 1)


def sees(policy: nn.Module) -> tuple[str, ...]:
    """What a policy is to be shown, in the order in which its `forward` names it; other names stand for these three."""
    given = inspect.signature(policy.forward).parameters.values()
    names = tuple(p.name for p in given if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY,
                                                                               p.POSITIONAL_OR_KEYWORD))  # fmt: skip
    if len(names) > len(SEEN):
        raise TypeError(
            f"{type(policy).__name__}.forward takes {', '.join(names)}; a policy is shown {', '.join(SEEN)}: name "
            "those that it needs"
        )
    return names if set(names) <= set(SEEN) else SEEN[: len(names)]


def shown_to(policy: nn.Module, value: Any) -> Any:
    """A tensor, or tensors by name, in the precision of a policy's weights."""
    if isinstance(value, torch.Tensor):
        first = next(iter(policy.parameters()), None)
        return value if first is None else value.to(first.dtype)
    return {name: shown_to(policy, v) for name, v in value.items()}


def draw(policy: nn.Module, seed: int) -> None:
    """First weights by the seed alone, of every module inside that knows how to reset itself."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in policy.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
