"""One start on a growing window of time: as far as the present estimate predicts, and a little farther.

With bounces the misfit of a long video has tens of minima, and that of a short one has one. So the first frames are
fitted first; what they tell predicts the next ones, and the window grows to the first frame that is off by a pixel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nablasim.sysid.problem import Problem, Slopes, Vector
from nablasim.sysid.search.lm import refine

PIXEL = 1.0
"""How far a prediction may be off before the window ends."""
LOST = 4.0
"""A window whose fit is off by so many pixels on average does not lead anywhere."""
PATIENCE = 12
"""Windows that may be fitted badly, one after the other, before a start is given up."""


@dataclass
class Start:
    """One start and its path. `path` has a row for each fitted window: frames, loss and the point."""

    first: Vector
    u: Vector
    loss: float = float("inf")
    frames: int = 0
    damping: float = 1e-2
    done: bool = False
    converged: bool = False
    message: str = ""
    path: list[dict[str, Any]] = field(default_factory=list)
    slopes: Slopes | None = None
    """At the end, on all frames."""

    def to_dict(self) -> dict[str, Any]:
        kept = {k: v for k, v in vars(self).items() if k != "slopes"}
        return {**kept, "first": self.first.tolist(), "u": self.u.tolist()}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Start:
        return cls(**{**kept, "first": np.array(kept["first"]), "u": np.array(kept["u"])})


def follow(
    problem: Problem, start: Start, *, grow: bool = True, tolerance: float, steps: int,
    on_window: Callable[[Start], None] = lambda start: None,
) -> Start:  # fmt: skip
    """Bring a start to its end, from wherever it is. Calls `on_window` after each window."""
    badly = 0
    if start.frames == 0:
        why = problem.simulation.explain(problem.space.values(start.u[None]), problem.frames)
        if why:
            start.message = f"the first simulation fails: {why}"
        start.frames = next_window(problem, start.u, 0) if grow else problem.frames
    while not start.done:
        whole = start.frames >= problem.frames
        # On the way, a hundredth of a pixel is enough.
        refined = refine(
            problem, start.u, frames=start.frames, steps=steps if whole else min(steps, 12),
            tolerance=tolerance if whole else 0.3, good=0.0 if whole else 0.01, damping=start.damping,
        )  # fmt: skip
        if refined.slopes is None:
            # The loss was that of an earlier window: this one has none.
            start.loss = float("inf")
            why = problem.explain(start.u, start.frames)
            return _given_up(start, start.message or f"the simulation fails within {start.frames} frames: {why}")
        start.u, start.damping, start.loss = refined.u, min(refined.damping, 1.0), refined.slopes.loss
        start.path.append({"frames": start.frames, "loss": start.loss, "u": start.u.tolist(), "steps": refined.steps})
        if whole:
            start.done, start.converged, start.message = True, refined.converged, refined.message
            start.slopes = replace(refined.slopes, J=None)
        else:
            off = float(np.sqrt(refined.slopes.squares.sum() / problem.bound.pace[: start.frames].sum()))
            badly = badly + 1 if off > LOST else 0
            if badly > PATIENCE:
                start.loss, lost = problem.loss(start.u), start.frames
                start.frames = problem.frames
                return _given_up(start, f"lost at frame {lost}: fitted frames are {off:.1f} pixels off")
            start.frames = next_window(problem, start.u, start.frames)
        on_window(start)
    return start


def next_window(problem: Problem, u: Vector, frames: int) -> int:
    """The next window: up to the first frame that is off by a pixel more than those that are fitted."""
    off = np.minimum(problem.misfits(u)[0] / problem.bound.pace, 1e300)
    usual = float(np.median(off[:frames])) if frames else float(off.min())
    beyond = np.flatnonzero(off[frames:] > usual + PIXEL**2)
    reach = frames + int(beyond[0]) + 1 if len(beyond) else problem.frames
    return min(problem.frames, max(frames + 1, reach, min(2, problem.frames)))


def _given_up(start: Start, why: str) -> Start:
    start.done, start.converged, start.message = True, False, why
    return start
