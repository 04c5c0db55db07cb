"""Levenberg and Marquardt's method on the first frames of a problem, within bounds.

A step is the lowest point of g·δ + δ·(H + λ diag H) δ / 2 within the bounds, with H = Jᵀ J and g = Jᵀ r. Three
values of λ are tried in one batch of runs, and the best of them is taken. Runs that blow up count as infinitely bad,
so that steps into them are refused.

Where some combinations of parameters are known much better than others, the misfit is a valley that is narrow, long
and not straight: a step along it ends on its slope. From there, steps back to the floor with the same J cost three runs
each, and a new J costs two for each parameter. They are damped such that what is hardly known stays where it is. Of few
parameters an exact J costs less than these steps: the next one starts from the slope of the valley. It costs little
more than a run, too: while steps gain what they should, the boldest one is tried alone, and its J found with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from nablasim.sysid.problem import Problem, Slopes, Vector

FACTORS = np.array([0.1, 1.0, 10.0])
LEAST, MOST = 1e-9, 1e9
LONGEST = 0.4
"""Of the range of a parameter: no step goes farther."""
BACK, STIFF = 2, 3e-3
"""Steps back to the floor of a valley, and their λ."""
FEW = 8
"""Parameters of which tangents cost less than steps back."""
RIGHT = 0.9
"""Of what a step should gain: where it gains as much, there is nothing to correct."""
SAME = 1e-12
"""Sums of squares that differ by less are the same but for rounding: to follow it leads nowhere."""
ALIKE = 1e-2
"""Steps that differ by less than this part of them gain as much, or as little."""


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
    slopes = problem.slopes(u, frames, keep=True)
    if slopes is None:
        return Refined(u, None, damping, 0, False, "the simulation fails there")
    enough, bold = good**2 * float(problem.bound.pace[:frames].sum()), _is_cheap(problem)
    for step in range(steps):
        if on_step is not None:
            on_step(step, slopes)
        if slopes.squares.sum() <= enough:
            return Refined(u, slopes, damping, step, True, f"frames are less than {good:g} pixels off")
        if distance(problem, slopes) <= tolerance:
            return Refined(u, slopes, damping, step, True, f"within {tolerance:g} standard deviations of the minimum")
        after = _boldest(problem, slopes, frames, damping) if bold else None
        if after is not None:
            u, slopes, damping = after.u, after, max(LEAST, damping * FACTORS[0])
            continue
        moved, damping, bold = _step(problem, slopes, frames, damping)
        if moved is None:
            # Nothing is lower: as near as rounding and kinks allow.
            return Refined(u, slopes, 1e-2, step, True, "no step lowers the loss any more")
        after = problem.slopes(moved, frames, keep=True)
        if after is None:
            return Refined(u, slopes, damping, step, False, "the simulation fails beside the path")
        u, slopes = moved, after
    return Refined(u, slopes, damping, steps, False, f"stopped after {steps} steps")


def distance(problem: Problem, slopes: Slopes) -> float:
    """How far the minimum is, in standard deviations of the estimate, if the misfit is noise."""
    g = slopes.gradient.sum(axis=0)
    free = _free(problem, slopes.u, g)
    if not free.any() or slopes.squares.sum() == 0:
        return 0.0
    g, H = g[free], _matrix(problem, slopes)[np.ix_(free, free)]
    variance = slopes.squares.sum() / (slopes.count * len(slopes.squares))
    return float(np.sqrt(max(g @ np.linalg.solve(H, g), 0.0) / variance))


def _boldest(problem: Problem, slopes: Slopes, frames: int, damping: float) -> Slopes | None:
    """The slopes after the least damped step; None if it gains less than it should."""
    point = _moved(problem, slopes, max(LEAST, damping * FACTORS[0]))
    gain = _gain(slopes, point)
    if gain <= SAME * slopes.squares.sum():
        return None
    after = problem.slopes(point, frames, keep=True)
    return after if after is not None and slopes.squares.sum() - after.squares.sum() >= RIGHT * gain else None


def _step(problem: Problem, slopes: Slopes, frames: int, damping: float) -> tuple[Vector | None, float, bool]:
    """The best point of three, its λ, and whether the boldest of them gained what it should; None if none is lower."""
    before, failed = slopes.squares.sum(), None
    while damping < MOST:
        tried = np.clip(damping * FACTORS, LEAST, MOST)
        points = np.stack([_moved(problem, slopes, d) for d in tried])
        if np.array_equal(points[-1], slopes.u):
            break  # The shortest of the steps is below rounding.
        if failed is not None and np.abs(points[-1] - failed).max() <= ALIKE * np.abs(failed - slopes.u).max():
            damping *= 1000
            continue
        first = points[0]
        if slopes.J is None:
            sums = problem.misfits(points, frames).sum(axis=1)
        else:
            points, sums = _to_the_floor(problem, slopes, frames, tried, points)
        best = int(np.argmin(sums))
        if before - sums[best] > SAME * before:
            right = _is_cheap(problem) and before - sums[0] >= RIGHT * _gain(slopes, first)
            return points[best], float(tried[best]), bool(right)
        damping, failed = damping * 1000, first
    return None, damping, False


def _to_the_floor(
    problem: Problem, slopes: Slopes, frames: int, tried: Vector, points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Vector]:
    """The lowest points of steps and of those back to the floor of the valley, and their sums of squares."""
    assert slopes.J is not None
    r = problem.differences(points, frames)
    sums = np.einsum("bfm,bfm->b", r, r, dtype=np.float64)
    if _is_cheap(problem) or slopes.squares.sum() - sums[0] >= RIGHT * _gain(slopes, points[0]):
        return points, sums
    J, lowest_points, lowest_sums = slopes.J.reshape(len(slopes.J), -1), points, sums
    for _ in range(BACK):
        works = np.isfinite(sums)
        points = np.stack([
            _moved(problem, slopes, max(d, STIFF), at, J @ e.ravel()) if fine else at
            for d, at, e, fine in zip(tried, points, r, works)
        ])  # fmt: skip
        r = problem.differences(points, frames)
        sums = np.einsum("bfm,bfm->b", r, r, dtype=np.float64)
        lower = sums < lowest_sums
        lowest_points = np.where(lower[:, None], points, lowest_points)
        lowest_sums = np.where(lower, sums, lowest_sums)
    return lowest_points, lowest_sums


def _is_cheap(problem: Problem) -> bool:
    """Whether a new J costs less than steps with the old one."""
    return problem.slopes_by == "tangents" and problem.space.size <= FEW


def _gain(slopes: Slopes, point: Vector) -> float:
    """By how much the sum of squares should fall, if rows were linear."""
    way = point - slopes.u
    return float(-(2 * slopes.gradient.sum(axis=0) @ way + way @ slopes.normal.sum(axis=0) @ way))


def _moved(
    problem: Problem, slopes: Slopes, damping: float, at: Vector | None = None, gradient: Vector | None = None
) -> Vector:
    """The point after a step, within bounds; from elsewhere, with the gradient there, if that is given."""
    space, u = problem.space, slopes.u if at is None else at
    g = slopes.gradient.sum(axis=0) if gradient is None else np.asarray(gradient, np.float64)
    free, H = _free(problem, u, g), _matrix(problem, slopes)
    H = (H + damping * np.diag(np.diag(H)))[np.ix_(free, free)]
    way, room = np.zeros(space.size), space.high - space.low
    way[free] = -np.linalg.solve(H, g[free])
    moved = u + _shortened(way, room)
    if not ((moved >= space.low) & (moved <= space.high)).all():
        way[free] = lowest(H, g[free], (space.low - u)[free], (space.high - u)[free])
        moved = u + _shortened(way, room)
    return space.clip(moved)


def lowest(H: NDArray[np.float64], g: Vector, low: Vector, high: Vector) -> Vector:
    """The δ from low to high where g·δ + δ·H δ / 2 is lowest.

    To cut off the unbounded minimum at the bounds will not do: of two parameters that only their sum is known of, one
    that is held back takes the other one where nothing fits.
    """
    L = np.linalg.cholesky(H)
    found = lsq_linear(L.T, -np.linalg.solve(L, g), bounds=(low, high), method="bvls")
    return np.clip(found.x, low, high)


def _shortened(way: Vector, room: Vector) -> Vector:
    return way / max(1.0, float(np.max(np.abs(way) / (LONGEST * room))))


def _matrix(problem: Problem, slopes: Slopes) -> NDArray[np.float64]:
    """H, with what a range of the parameter says beside this much noise: what nothing depends on stays where it is."""
    room = problem.space.high - problem.space.low
    variance = max(slopes.squares.sum() / (slopes.count * len(slopes.squares)), 1e-300)
    H = slopes.normal.sum(axis=0)
    return H + np.diag(variance / room**2 + 1e-14 * np.diag(H).max())


def _free(problem: Problem, u: Vector, g: Vector) -> NDArray[np.bool_]:
    """Which coordinates may move: not those at a bound that the gradient presses against."""
    space = problem.space
    return ~(((u <= space.low) & (g > 0)) | ((u >= space.high) & (g < 0)))
