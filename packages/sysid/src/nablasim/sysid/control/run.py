"""What a training gives: the task with its best weights, how it went there, and what people see of it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from nablasim.sysid.control.task import Task


@dataclass
class Run:
    """A training: the task with the best weights of all iterations, and how it went there."""

    task: Task
    seed: int
    losses: list[float] = field(default_factory=list)
    """Before each step, and of the last weights; NaN where a motion diverged."""
    seconds: list[float] = field(default_factory=list)
    """From the start of the training to each loss."""
    at: list[int] = field(default_factory=list)
    """After how many steps of the descent each loss was taken."""
    windows: list[float] = field(default_factory=list)
    """Of a training in windows: minus what a step of each was worth, with what was still to come."""
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
