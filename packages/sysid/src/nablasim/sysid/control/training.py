"""Trains the policies of a task: descent by gradients through the whole motion, saved as it goes.

What is saved after an iteration is all that the next one depends on: weights, the optimiser's moments and the rate. A
training that was killed goes on from there and comes to the same bits as one that was not.
"""

from __future__ import annotations

import copy
import hashlib
import io
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from torch import nn

from nablasim.sysid.control.descent import OPTIMISERS
from nablasim.sysid.control.policies import draw
from nablasim.sysid.control.task import Task
from nablasim.sysid.names import nearest
from nablasim.sysid.problem import FAILURES
from nablasim.sysid.progress import shown

GIVE_UP = 20
"""So many steps in a row whose motion fails end a training."""


@dataclass
class Run:
    """A training: the task with the best weights of all iterations, and how it went there."""

    task: Task
    seed: int
    losses: list[float] = field(default_factory=list)
    """Before each step, and of the last weights; NaN where a motion diverged."""
    seconds: list[float] = field(default_factory=list)
    """From the start of the training to each loss."""
    best: int = 0
    """Which of the losses is the smallest."""
    watched: list[Any] = field(default_factory=list)
    """What `watch` says of the motion before each step."""
    first: dict[str, Any] = field(default_factory=dict)
    """The weights before the training."""

    @property
    def loss(self) -> float:
        return self.losses[self.best]

    def motion(self, *, first: bool = False) -> Any:
        """What the policies do with the best weights, or with the first ones; without a gradient."""
        task = self.task
        if first:
            task = copy.copy(task)
            task.policies = copy.deepcopy(task.policies)
            task.policies.load_state_dict(self.first)
        with torch.no_grad():
            return task.motion()

    def report(self, folder: str | Path = "out", *, title: str = "What was learned") -> Path:
        """Write report.html: films before and after, the goal, the loss against iterations."""
        from nablasim.sysid.control.pages import write_report

        return write_report(self, folder, title)

    def video(self, file: str | Path) -> Path:
        """Write a film of the best motion, .mp4 or .gif."""
        from nablasim.sysid.control.pages import write_film

        return write_film(self, file)


def train(task: Task, *, optimiser: str, iterations: int, seed: int, rate: float, clip: float | None,
          grow: int | None, folder: str | Path | None, progress: bool | None,
          watch: Callable[[Any], Any] | None = None, decay: bool = False) -> Run:  # fmt: skip
    """Descend for some iterations.

    clip: no gradient is longer than this: contact makes some slopes steep
    grow: begin with so many steps; their number grows evenly to all of them, which the second half has
    folder: where the training is saved after each iteration, and from where the same one goes on
    watch: what else is to be known of the motions, kept in `run.watched`; the training does not depend on it

    decay: the rate falls to zero along half a cosine, so that the last steps settle

    A motion that diverges is not stepped on: the weights go back to the last ones that worked, and the rate is halved.
    """
    if optimiser not in OPTIMISERS:
        raise ValueError(f"there is no optimiser {optimiser!r}: {nearest(optimiser, OPTIMISERS)}")
    if iterations < 0 or not rate >= 0 or (clip is not None and not clip > 0):
        raise ValueError(f"iterations ({iterations}) and the rate ({rate}) are not negative, and clip ({clip}) positive")
    task = copy.copy(task)
    task.policies = copy.deepcopy(task.policies)
    draw(task.policies, seed)
    weights = [p for p in task.policies.parameters() if p.requires_grad]
    descent = _Descent(task, Run(task, seed, first=_copied(task.policies)), weights,
                       OPTIMISERS[optimiser](weights, lr=rate) if weights else None, clip, watch)  # fmt: skip
    if grow is not None:
        task.shortened(grow)  # Says now what is wrong with it.
    # How many iterations there are counts only where something depends on it: otherwise more may follow.
    settings = {"optimiser": optimiser, "seed": seed, "rate": rate, "clip": clip, "grow": grow,
                "decay": decay, "iterations": iterations if decay or grow is not None else None,
                "watch": watch is not None}  # fmt: skip
    saved = None if folder is None else _Saved(Path(folder) / "training.pt", _mark(task, settings))
    if saved is not None:
        saved.load(descent)
    with shown("training", progress, total=iterations + 1) as bar:
        while len(descent.run.losses) <= iterations and descent.failures < GIVE_UP:
            # The weights after the last step are judged as well, and not stepped on.
            done = len(descent.run.losses)
            if decay:
                descent.slow_down(rate * (1 + math.cos(math.pi * done / max(iterations, 1))) / 2)
            descent.iterate(_horizon(grow, task.steps, done, iterations), step=done < iterations)
            if saved is not None:
                saved.store(descent)
            run = descent.run
            bar.to(len(run.losses), f"iteration {len(run.losses) - 1}: loss {run.losses[-1]:.4g}")
    if not math.isfinite(descent.run.loss):
        raise ArithmeticError(
            f"no motion of this training is finite: after {len(descent.run.losses)} tries every one diverged. Take "
            "more substeps, or policies with smaller first weights"
        )
    task.policies.load_state_dict(descent.best)
    return descent.run


def _horizon(grow: int | None, steps: int, done: int, iterations: int) -> int:
    """How many steps the motion of an iteration has."""
    half = iterations // 2
    return steps if grow is None or done >= half else grow + (steps - grow) * done // half


@dataclass
class _Descent:
    """All that changes in a training."""

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
    began: float = field(default_factory=monotonic)

    def iterate(self, horizon: int, step: bool) -> None:
        whole = horizon == self.task.steps
        if self.optimiser is not None:
            self.optimiser.zero_grad()
        motion, task = None, self.task if whole else self.task.shortened(horizon)
        try:
            motion = task.motion()
            loss = task.loss(motion)
            value = float(loss.detach())
            if step and self.optimiser is not None and math.isfinite(value):
                loss.backward()
        except FAILURES:
            value = math.nan
        self._note(value, whole)
        if self.watch is not None:
            self.run.watched.append(None if motion is None else self.watch(motion))
        if not math.isfinite(value) or not self._slopes_finite():
            self._back()
        else:
            self.before, self.failures = _copied(self.task.policies), 0
            if step and self.optimiser is not None:
                if self.clip is not None:
                    nn.utils.clip_grad_norm_(self.weights, self.clip)
                self.optimiser.step(lambda: value)

    def slow_down(self, rate: float) -> None:
        """To this rate, halved as often as a motion diverged."""
        for group in self.optimiser.param_groups if self.optimiser is not None else ():
            group["lr"] = rate / 2**self.halved

    def _note(self, value: float, whole: bool) -> None:
        """Losses of shorter motions are another thing: the best is one of whole motions, as soon as there are any."""
        run = self.run
        run.losses.append(value)
        run.seconds.append(monotonic() - self.began)
        smallest = run.losses[run.best]
        if not self.best or not math.isfinite(smallest) or (whole and (value < smallest or not self.judged)):
            self.judged = whole
            run.best, self.best = len(run.losses) - 1, _copied(self.task.policies)

    def _slopes_finite(self) -> bool:
        return all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in self.weights)

    def _back(self) -> None:
        self.failures, self.halved = self.failures + 1, self.halved + 1
        if self.before:
            self.task.policies.load_state_dict(self.before)
        if self.optimiser is not None:
            for group in self.optimiser.param_groups:
                group["lr"] /= 2


# -- files
@dataclass(frozen=True)
class _Saved:
    """A file with a training, and whose it is."""

    file: Path
    mark: str

    def store(self, descent: _Descent) -> None:
        run = {k: v for k, v in vars(descent.run).items() if k != "task"}
        kept = {"mark": self.mark, "run": run, "best": descent.best, "before": descent.before,
                "failures": descent.failures, "judged": descent.judged, "halved": descent.halved,
                "weights": descent.task.policies.state_dict(),
                "optimiser": None if descent.optimiser is None else descent.optimiser.state_dict()}  # fmt: skip
        self.file.parent.mkdir(parents=True, exist_ok=True)
        aside = self.file.with_suffix(".part")
        with aside.open("wb") as stream:
            torch.save(kept, stream)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(self.file)

    def load(self, descent: _Descent) -> None:
        if not self.file.exists():
            return
        kept = torch.load(self.file, weights_only=True)
        if kept["mark"] != self.mark:
            raise ValueError(f"{self.file} is of another training: choose another folder, or delete it")
        for name, value in kept["run"].items():
            setattr(descent.run, name, value)
        for name in ("best", "before", "failures", "judged", "halved"):
            setattr(descent, name, kept[name])
        descent.task.policies.load_state_dict(kept["weights"])
        if descent.optimiser is not None:
            descent.optimiser.load_state_dict(kept["optimiser"])
        if descent.run.seconds:
            descent.began = monotonic() - descent.run.seconds[-1]


def _mark(task: Task, settings: dict[str, Any]) -> str:
    """What tells a training from others: the model's numbers, the goal, the policies, how it is trained."""
    parts: list[Any] = [
        sorted(settings.items()),
        task.dt,
        task.steps,
        sorted(task.options.items()),
        type(task.goal).__name__,
    ]
    parts += [(p.name, np.asarray(task.model[p.name]).tolist()) for p in task.model.parameters()]
    words = hashlib.sha256(repr(parts).encode())
    words.update(repr([(n, type(m).__name__) for n, m in task.policies.named_modules()]).encode())
    for name, value in [*task.policies.state_dict().items(), *_goal_values(task.goal)]:
        buffer = io.BytesIO()
        np.save(buffer, np.asarray(value), allow_pickle=False)
        words.update(name.encode() + buffer.getvalue())
    return words.hexdigest()


def _goal_values(goal: Any) -> list[tuple[str, Any]]:
    """The numbers of a goal, by name."""
    found: list[tuple[str, Any]] = []
    for name, value in vars(goal).items():
        value = getattr(value, "frames", value)
        inner = value.items() if isinstance(value, dict) else [(name, value)]
        found += [(f"{name}.{k}", v) for k, v in inner if isinstance(v, (str, int, float, tuple, list, np.ndarray,
                                                                         torch.Tensor))]  # fmt: skip
    return found


def _copied(policies: nn.Module) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in policies.state_dict().items()}
