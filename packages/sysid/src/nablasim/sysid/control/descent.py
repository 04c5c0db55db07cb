"""One descent: the weights of policies, the optimiser's moments, and what came of it so far; all that is saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import torch
from torch import nn

from nablasim.sysid.control.run import Run
from nablasim.sysid.control.task import Task
from nablasim.sysid.problem import FAILURES


@dataclass
class Descent:
    """By gradients through the whole motion: all that changes in a training."""

    task: Task
    run: Run
    weights: list[nn.Parameter]
    optimiser: torch.optim.Optimizer | None
    clip: float | None
    watch: Callable[[Any], Any] | None = None
    best: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    """The weights of the last motion that did not diverge."""
    failures: int = 0
    judged: bool = False
    """Whether the best is of a whole motion."""
    halved: int = 0
    """How often the rate was."""
    done: int = 0
    """Steps so far."""
    began: float = field(default_factory=monotonic)

    @property
    def seconds(self) -> float:
        return monotonic() - self.began

    def iterate(self, horizon: int, step: bool) -> None:
        """Judge the weights, and step on by the gradient of the same motion."""
        whole = horizon == self.task.steps
        value, slopes = self.judge(self.task if whole else self.task.shortened(horizon), whole, slopes=step)
        if step:
            self.done += 1
            self.go_on(value, slopes)

    def judge(self, task: Task, whole: bool, slopes: bool) -> tuple[float, bool]:
        """The loss of a motion, noted; and whether there are slopes to go down by."""
        if self.optimiser is not None:
            self.optimiser.zero_grad()
        motion, slopes = None, slopes and self.optimiser is not None
        try:
            with torch.set_grad_enabled(slopes):
                motion = task.motion()
                loss = task.loss(motion)
            value = float(loss.detach())
            if slopes and math.isfinite(value):
                loss.backward()
        except FAILURES:
            value = math.nan
        self._note(value, whole)
        if self.watch is not None:
            self.run.watched.append(None if motion is None else self.watch(motion))
        return value, slopes

    def go_on(self, value: float, slopes: bool) -> bool:
        """Step down; or back, where the loss or its slopes are not finite."""
        if not math.isfinite(value) or not self._slopes_finite():
            self._back()
            return False
        self.before, self.failures = copied(self.task.policies), 0
        if slopes and self.optimiser is not None:
            if self.clip is not None:
                nn.utils.clip_grad_norm_(self.weights, self.clip)
            self.optimiser.step(lambda: value)
        return True

    def slow_down(self, rate: float) -> None:
        """To this rate, halved as often as a motion diverged."""
        for group in self.optimiser.param_groups if self.optimiser is not None else ():
            group["lr"] = rate / 2**self.halved

    def _note(self, value: float, whole: bool) -> None:
        """Losses of shorter motions are another thing: the best is one of whole motions, as soon as there are any."""
        run = self.run
        run.losses.append(value)
        run.at.append(self.done)
        run.seconds.append(self.seconds)
        smallest = run.losses[run.best]
        if not self.best or not math.isfinite(smallest) or (whole and (value < smallest or not self.judged)):
            self.judged = whole
            run.best, self.best = len(run.losses) - 1, copied(self.task.policies)

    def _slopes_finite(self) -> bool:
        return all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in self.weights)

    def _back(self) -> None:
        self.failures, self.halved = self.failures + 1, self.halved + 1
        if self.before:
            self.task.policies.load_state_dict(self.before)
        if self.optimiser is not None:
            for group in self.optimiser.param_groups:
                group["lr"] /= 2

    def kept(self) -> dict[str, Any]:
        """What the next step depends on, and what came of those before."""
        return {"run": {k: v for k, v in vars(self.run).items() if k != "task"}, "best": self.best,
                "before": self.before, "failures": self.failures, "judged": self.judged, "halved": self.halved,
                "done": self.done, "weights": self.task.policies.state_dict(),
                "optimiser": None if self.optimiser is None else self.optimiser.state_dict()}  # fmt: skip

    def take(self, kept: Mapping[str, Any]) -> None:
        """Go on from there."""
        for name, value in kept["run"].items():
            setattr(self.run, name, value)
        for name in ("best", "before", "failures", "judged", "halved", "done"):
            setattr(self, name, kept[name])
        self.task.policies.load_state_dict(kept["weights"])
        if self.optimiser is not None:
            self.optimiser.load_state_dict(kept["optimiser"])
        if self.run.seconds:
            self.began = monotonic() - self.run.seconds[-1]


def copied(policies: nn.Module) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in policies.state_dict().items()}
