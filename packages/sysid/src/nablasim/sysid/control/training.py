"""Trains the policies of a task: descent by gradients through the whole motion, or through windows, saved as it goes.

What is saved after an iteration is all that the next one depends on: weights, the optimiser's moments and the rate. A
training that was killed goes on from there and comes to the same bits as one that was not.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nablasim.sysid.control.descent import Descent, copied
from nablasim.sysid.control.optimisers import OPTIMISERS
from nablasim.sysid.control.policies import draw
from nablasim.sysid.control.run import Run
from nablasim.sysid.control.task import Task
from nablasim.sysid.control.windowed import Windowed
from nablasim.sysid.control.windows import Windows
from nablasim.sysid.names import nearest
from nablasim.sysid.progress import shown
from nablasim.sysid.sweep import digest

GIVE_UP = 20
"""So many steps in a row whose motion fails end a training."""


def train(task: Task, *, optimiser: str, iterations: int, seed: int, rate: float, clip: float | None,
          grow: int | None, folder: str | Path | None, progress: bool | None,
          watch: Callable[[Any], Any] | None = None, decay: bool = False, seconds: float | None = None,
          windows: Windows | None = None) -> Run:  # fmt: skip
    """Descend for some iterations.

    clip: no gradient is longer than this: contact makes some slopes steep
    grow: begin with so many steps; their number grows evenly to all of them, which the second half has
    folder: where the training is saved after each iteration, and from where the same one goes on
    watch: what else is to be known of the motions, kept in `run.watched`; the training does not depend on it
    seconds: end when they are over, whatever `iterations` says
    windows: go back through short windows of many copies with a learned value at their end, not the whole motion
    decay: the rate falls to zero along half a cosine, so that the last steps settle

    A motion that diverges is not stepped on: the weights go back to the last ones that worked, and the rate is halved.
    """
    if optimiser not in OPTIMISERS:
        raise ValueError(f"there is no optimiser {optimiser!r}: {nearest(optimiser, OPTIMISERS)}")
    if iterations < 0 or not rate >= 0 or (clip is not None and not clip > 0):
        raise ValueError(
            f"iterations ({iterations}) and the rate ({rate}) are not negative, and clip ({clip}) is positive"
        )
    task = copy.copy(task)
    task.policies = copy.deepcopy(task.policies)
    draw(task.policies, seed)
    weights = [p for p in task.policies.parameters() if p.requires_grad]
    kind = Descent if windows is None else partial(Windowed, how=windows)
    descent = kind(task, Run(task, seed, first=copied(task.policies)), weights,
                   OPTIMISERS[optimiser](weights, lr=rate) if weights else None, clip, watch)  # fmt: skip
    if grow is not None:
        if windows is not None:
            raise ValueError("a motion that grows has no windows: give grow= or windows=")
        task.shortened(grow)  # Says now what is wrong with it.
    # How many iterations there are counts only where something depends on it: otherwise more may follow.
    settings = {"optimiser": optimiser, "seed": seed, "rate": rate, "clip": clip, "grow": grow,
                "decay": decay, "iterations": iterations if decay or grow is not None else None,
                "watch": watch is not None, "windows": windows}  # fmt: skip
    saved = None if folder is None else _Saved(Path(folder) / "training.pt", _mark(task, settings))
    if saved is not None:
        saved.load(descent)
    with shown("training", progress, total=iterations + 1) as bar:
        while descent.done <= iterations and descent.failures < GIVE_UP:
            # The weights after the last step are judged as well, and not stepped on.
            done = descent.done
            last = done == iterations or (seconds is not None and descent.seconds > seconds)
            if decay:
                descent.slow_down(rate * (1 + math.cos(math.pi * done / max(iterations, 1))) / 2)
            descent.iterate(_horizon(grow, task.steps, done, iterations), step=not last)
            bar.to(done + 1, f"iteration {done}: loss {descent.run.losses[-1]:.4g}")
            if last:
                break
            # Not after the last: nothing was stepped on, and a longer training may follow.
            if saved is not None:
                saved.store(descent)
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


# -- files
@dataclass(frozen=True)
class _Saved:
    """A file with a training, and whose it is."""

    file: Path
    mark: str

    def store(self, descent: Descent) -> None:
        kept = {"mark": self.mark, **descent.kept()}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        aside = self.file.with_suffix(".part")
        with aside.open("wb") as stream:
            torch.save(kept, stream)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(self.file)

    def load(self, descent: Descent) -> None:
        if not self.file.exists():
            return
        kept = torch.load(self.file, weights_only=True)
        if kept["mark"] != self.mark:
            raise ValueError(f"{self.file} is of another training: choose another folder, or delete it")
        descent.take(kept)


def _mark(task: Task, settings: dict[str, Any]) -> str:
    """What tells a training from others: the model's numbers, the goal, the policies, how it is trained."""
    model = {p.name: np.asarray(plain(task.model[p.name])) for p in task.model.parameters()}
    return digest([sorted(settings.items()), task.dt, task.steps, sorted(task.options.items()), model,
                   task.model.real, task.goal, task.look, dict(task.policies.items())], "the task")  # fmt: skip


def plain(value: Any) -> Any:
    return value.detach() if hasattr(value, "detach") else value
