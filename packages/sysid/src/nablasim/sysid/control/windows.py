"""Trains closed loops by short windows: back through a few steps of many copies, with a learned value at their end.

The gradient of a long motion with contact explodes; that of a short one does not, and what comes after its end is told
by a network that learns what states are worth (Xu et al., 2022: short-horizon actor-critic). Copies go on where their
last window ended, and begin anew when they have fallen or their time is over.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from nablasim.sysid.control.loop import States, check_timeless, each, start_of, stepped
from nablasim.sysid.control.rewards import Reward
from nablasim.sysid.control.task import Task
from nablasim.sysid.control.value import See, Value, everything

Start = Callable[[np.random.Generator, int], Mapping[str, Any]]
"""Draws values of parameters with so many copies in front, such as {"robot.q": (copies, n)}, for new motions."""
AGREE = 0.2
"""How much of the learned value the one at the end of windows takes on after each."""
MOST = 1000.0
"""Steps that a value looks ahead, at most."""


@dataclass(frozen=True)
class Windows:
    """How a closed loop is trained by windows.

    length: steps of a window. copies: of the model, side by side
    start: how copies begin anew, by default all alike
    noise: is added to what policies say, as a part of the spread of their parameter: a standard deviation
    discount: of what a step later is worth. trace: how far the value trusts what windows saw, from 0 to 1
    see: what the value is shown of a state, by default all of it. hidden: its layers
    value_rate, epochs: of the value's descent after each window
    judge: after so many windows the whole motion is judged, by the loss of the task
    """

    length: int = 16
    copies: int = 32
    start: Start | None = None
    noise: float = 0.0
    discount: float = 0.99
    trace: float = 0.95
    see: See = everything
    hidden: tuple[int, ...] = (64, 64)
    value_rate: float = 1e-3
    epochs: int = 8
    judge: int = 10

    def __post_init__(self) -> None:
        if min(self.length, self.copies, self.epochs, self.judge) < 1:
            raise ValueError("length, copies, epochs and judge are at least 1")
        if not (0 < self.discount <= 1 and 0 <= self.trace <= 1 and self.noise >= 0):
            raise ValueError("the discount is in (0, 1], the trace in [0, 1], and the noise not negative")


@dataclass
class Seen:
    """What a window saw, (steps, copies) and more: for the value to learn from."""

    features: list[torch.Tensor] = field(default_factory=list)
    """Of states, one more than steps."""
    worth: list[torch.Tensor] = field(default_factory=list)
    over: list[torch.Tensor] = field(default_factory=list)
    """Whether a copy was over before the step."""


class Copies:
    """The copies of a task: where they are, for how long they have gone, and what their motions began with."""

    def __init__(self, task: Task, how: Windows, seed: int):
        if not isinstance(task.goal, Reward):
            raise ValueError(
                f"windows need to know what each step is worth, and {type(task.goal).__name__} says something of "
                "motions: give control.Reward(function), or train the whole motion"
            )
        if not task.closed:
            raise ValueError("no policy sees a state or a picture: an open loop is trained through its whole motion")
        check_timeless(task.model)
        self.how, self.goal, self.steps, self.dt = how, task.goal, task.steps, task.dt
        self.model = task.model.batched(how.copies)
        self.random = np.random.default_rng([2, seed])
        self.state = start_of(self.model)
        for name, sees in task.sees.items():
            if not sees and name in self.state:
                raise ValueError(f"{name} is where motions begin, which `start` of the windows says")
        self.clock = torch.zeros(how.copies, dtype=torch.int64)
        self.given: dict[str, torch.Tensor] = {}
        self.begin(torch.ones(how.copies, dtype=torch.bool))
        # Not all at once: each copy is somewhere else in its time.
        self.clock = torch.as_tensor(self.random.integers(0, max(1, self.steps), how.copies))

    def begin(self, which: torch.Tensor) -> None:
        """New motions of some copies. Draws for all, so that the numbers do not depend on which."""
        drawn = {} if self.how.start is None else self.how.start(self.random, self.how.copies)
        fresh = start_of(self.model)
        for name, values in drawn.items():
            value = torch.as_tensor(np.asarray(values))
            if len(value) != self.how.copies:
                raise ValueError(f"`start` draws {name} of shape {tuple(value.shape)}: the {self.how.copies} copies "
                                 "stand in front")  # fmt: skip
            held = fresh if name in fresh else self.given
            held[name] = _chosen(which, value, held.get(name, value)) if held is self.given else value.to(fresh[name])
        self.state = {name: _chosen(which, value, self.state[name]) for name, value in fresh.items()}
        self.clock = torch.where(which, 0, self.clock)

    def window(self, task: Task, value: Value) -> tuple[torch.Tensor, Seen]:
        """Some steps: minus what they and all that comes after are worth, with gradients; and what was seen."""
        held = {name: task.policy(name)() for name, s in task.sees.items() if not s}
        model = self.model.replace({**self.given, **held})
        state, seen = self.state, Seen()
        over = torch.zeros(self.how.copies, dtype=torch.bool)
        sums, factor = torch.zeros(self.how.copies, dtype=torch.float64), 1.0
        seen.features.append(self.features(state))
        for k in range(self.how.length):
            time = (self.clock + k).double() * self.dt
            _, state, actions = stepped(task, model, state, time, self._noise(task))
            worth, ended = self.goal.step(state, actions)
            worth = torch.where(over, torch.zeros_like(worth), worth)
            sums = sums + factor * worth
            seen.worth.append(worth.detach())
            seen.over.append(over)
            seen.features.append(self.features(state))
            over, factor = over | ended, factor * self.how.discount
        left = value(seen.features[-1]).double()
        sums = sums + factor * torch.where(over, torch.zeros_like(left), left)
        seen.over.append(over)
        seen.features = [f.detach() for f in seen.features]
        self.state = {name: v.detach() for name, v in state.items()}
        self.clock = self.clock + self.how.length
        return -sums.mean() / self.how.length, seen

    def go_on(self, over: torch.Tensor) -> None:
        """After a window: those that are over, by falling or by their time, begin anew."""
        self.begin(over | (self.clock >= self.steps))

    def features(self, state: States) -> torch.Tensor:
        return each(self.how.see, state).float()

    def _noise(self, task: Task) -> dict[str, torch.Tensor]:
        if not self.how.noise:
            return {}
        shapes = {n: tuple(task.model.parameter(n).full) for n, s in task.sees.items() if s}
        return {name: torch.as_tensor(self.how.noise * self.random.normal(size=(self.how.copies, *shape)))
                for name, shape in shapes.items()}  # fmt: skip

    def kept(self) -> dict[str, Any]:
        return {"state": self.state, "clock": self.clock, "given": self.given,
                "random": self.random.bit_generator.state}  # fmt: skip

    def take(self, kept: Mapping[str, Any]) -> None:
        self.state, self.clock, self.given = kept["state"], kept["clock"], kept["given"]
        self.random.bit_generator.state = kept["random"]


class Critic:
    """The value that is learned, and the slower one that stands at the end of windows."""

    def __init__(self, inputs: int, how: Windows):
        self.how = how
        self.value = Value(inputs, how.hidden, min(1 / (1 - how.discount), MOST) if how.discount < 1 else MOST)
        self.slow = copy.deepcopy(self.value).requires_grad_(False)
        self.descent = torch.optim.Adam(self.value.parameters(), lr=how.value_rate)

    def learn(self, seen: Seen) -> float:
        """Regress on what the window saw and the slow value adds; returns the last misfit."""
        features = torch.stack(seen.features)
        wanted = self.targets(features, seen)
        alive = ~torch.stack(seen.over[:-1])
        inputs, outputs = features[:-1][alive], wanted[alive]
        self.value.watch(inputs)
        misfit = torch.zeros(())
        for _ in range(self.how.epochs):
            self.descent.zero_grad()
            misfit = ((self.value(inputs) - outputs) / self.value.scale).square().mean()
            misfit.backward()
            nn.utils.clip_grad_norm_(self.value.parameters(), 1.0)
            self.descent.step()
        with torch.no_grad():
            for mine, other in zip(self.slow.parameters(), self.value.parameters()):
                mine.lerp_(other, AGREE)
            for held, new in zip(self.slow.buffers(), self.value.buffers()):
                held.copy_(new)
        return float(misfit.detach())

    def targets(self, features: torch.Tensor, seen: Seen) -> torch.Tensor:
        """(steps, copies): TD(λ), from the last step back: r + γ ((1 - λ) V' + λ G')."""
        with torch.no_grad():
            values = self.slow(features)
        made: list[torch.Tensor] = []
        coming = values[-1]
        for k in reversed(range(len(seen.worth))):
            mixed = (1 - self.how.trace) * values[k + 1] + self.how.trace * coming
            coming = seen.worth[k].float() + self.how.discount * torch.where(seen.over[k + 1], 0.0, mixed)
            made.append(coming)
        return torch.stack(made[::-1])

    def kept(self) -> dict[str, Any]:
        return {"value": self.value.state_dict(), "slow": self.slow.state_dict(), "descent": self.descent.state_dict()}

    def take(self, kept: Mapping[str, Any]) -> None:
        self.value.load_state_dict(kept["value"])
        self.slow.load_state_dict(kept["slow"])
        self.descent.load_state_dict(kept["descent"])


def _chosen(which: torch.Tensor, fresh: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    return torch.where(which.reshape(-1, *[1] * (fresh.ndim - 1)), fresh, old)
