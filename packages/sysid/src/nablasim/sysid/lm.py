"""Levenberg and Marquardt's method on the first frames of a problem, within bounds.

A step solves (H + λ diag H) δ = -g with H = Jᵀ J and g = Jᵀ r. Three values of λ are tried in one batch of
runs, and the best of them is taken. Runs that blow up count as infinitely bad, so that steps into them are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.parameters import Vector
from nablasim.sysid.problem import Problem, Slopes

FACTORS = np.array([0.1, 1.0, 10.0])
LEAST, MOST = 1e-9, 1e9
LONGEST = 0.4
"""Of the range of a parameter: no step goes farther."""


@dataclass(frozen=True, eq=False)
class Refined:
    """Where the method came to. `slopes` is None if the start itself fails."""

    u: Vector
    slopes: Slopes | None
    damping: float
    steps: int
    converged: bool
    message: str


def refine(
    problem: Problem,
    u: Vector,
    *,
    frames: int | None = None,
    steps: int = 30,
    tolerance: float = 1e-3,
    good: float = 0.0,
    damping: float = 1e-2,
    on_step: Callable[[int, Slopes], None] | None = None,
) -> Refined:
    """Walk downhill on the first `frames` frames until the minimum is nearer than `tolerance` standard deviations.

    good: stop as well where frames are this part of a pixel off, on average
    """
    frames = frames or problem.frames
    u = problem.space.clip(u)
    slopes = problem.slopes(u, frames)
    if slopes is None:
        return Refined(u, None, damping, 0, False, "the simulation fails there")
    enough = good**2 * float(problem.bound.pace[:frames].sum())
    for step in range(steps):
        if on_step is not None:
            on_step(step, slopes)
        if slopes.squares.sum() <= enough:
            return Refined(u, slopes, damping, step, True, f"frames are less than {good:g} pixels off")
        if distance(problem, slopes) <= tolerance:
            return Refined(u, slopes, damping, step, True, f"within {tolerance:g} standard deviations of the minimum")
        moved, damping = _step(problem, slopes, frames, damping)
        if moved is None:
            # Nothing is lower: as near as rounding and kinks allow.
            return Refined(u, slopes, 1e-2, step, True, "no step lowers the loss any more")
        after = problem.slopes(moved, frames)
        if after is None:
            return Refined(u, slopes, damping, step, False, "the simulation fails beside the path")
        u, slopes = moved, after
    return Refined(u, slopes, damping, steps, False, f"stopped after {steps} steps")


def distance(problem: Problem, slopes: Slopes) -> float:
    """How far the minimum is, in standard deviations of the estimate, if the misfit is noise."""
    free = _free(problem, slopes)
    if not free.any() or slopes.squares.sum() == 0:
        return 0.0
    g, H = slopes.gradient.sum(axis=0)[free], _matrix(problem, slopes)[np.ix_(free, free)]
    variance = slopes.squares.sum() / (slopes.count * len(slopes.squares))
    return float(np.sqrt(max(g @ np.linalg.solve(H, g), 0.0) / variance))


def _step(problem: Problem, slopes: Slopes, frames: int, damping: float) -> tuple[Vector | None, float]:
    before = slopes.squares.sum()
    while damping < MOST:
        tried = np.clip(damping * FACTORS, LEAST, MOST)
        points = np.stack([_moved(problem, slopes, d) for d in tried])
        if np.array_equal(points[-1], slopes.u):
            break  # The shortest of the steps is below rounding.
        sums = problem.misfits(points, frames).sum(axis=1)
        best = int(np.argmin(sums))
        if sums[best] < before:
            return points[best], float(tried[best])
        damping *= 1000
    return None, damping


def _moved(problem: Problem, slopes: Slopes, damping: float) -> Vector:
    """The point after a step, within bounds."""
    space, free = problem.space, _free(problem, slopes)
    g, H = slopes.gradient.sum(axis=0), _matrix(problem, slopes)
    H = H + damping * np.diag(np.diag(H))
    way = np.zeros(space.size)
    way[free] = -np.linalg.solve(H[np.ix_(free, free)], g[free])
    room = space.high - space.low
    longest = float(np.max(np.abs(way) / (LONGEST * room)))
    return space.clip(slopes.u + way / max(1.0, longest))


def _matrix(problem: Problem, slopes: Slopes) -> NDArray[np.float64]:
    """H, with what a range of the parameter says beside this much noise: what nothing depends on stays where it is."""
    room = problem.space.high - problem.space.low
    variance = max(slopes.squares.sum() / (slopes.count * len(slopes.squares)), 1e-300)
    H = slopes.normal.sum(axis=0)
    return H + np.diag(variance / room**2 + 1e-14 * np.diag(H).max())


def _free(problem: Problem, slopes: Slopes) -> NDArray[np.bool_]:
    """Which coordinates may move: not those at a bound that the gradient presses against."""
    g, space = slopes.gradient.sum(axis=0), problem.space
    return ~(((slopes.u <= space.low) & (g > 0)) | ((slopes.u >= space.high) & (g < 0)))
