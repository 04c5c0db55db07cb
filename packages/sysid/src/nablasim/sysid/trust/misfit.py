"""Do residuals look like noise? If they do not, the model is wrong somewhere, and intervals mean nothing.

In pictures an error of the model moves or bends shapes. So each frame's residual is compared with what a shift of the
drawn picture by a fraction of a pixel would make of it: noise has no preference for any direction, an error has. What
is somewhere else altogether has no edge in common with it, but residuals that are alike over many pixels. In states an
error of the model is the same from frame to frame, and noise is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nablasim.sysid.problem import Problem, Slopes

LOUDER = 1.3
"""Residuals may be this much larger than the noise that was stated."""
PATCH = 4
"""Pixels: the side of patches in which residuals of noise have a mean of about zero."""
ALIKE = 0.4
"""The part of a frame's residual that is the same over whole patches: 1/16 for noise, a quarter along edges."""
SIGNIFICANT = 5.0
"""Standard deviations of the test's value under noise."""


@dataclass(frozen=True)
class Misfit:
    """What the residuals show. `reasons` is empty where they are consistent with noise."""

    rms: float
    """Of a residual number."""
    floor: float
    """Below this, residuals are rounding of the simulation and the renderer."""
    excess: float
    """The value of the test: 0 on average for noise, with a standard deviation of 1."""
    shift: float = 0.0
    """Pictures: how far shapes are off (pixels, root mean square), beyond what noise explains."""
    reasons: tuple[str, ...] = ()


def examine(problem: Problem, slopes: Slopes) -> Misfit:
    """Look at the residuals at the end of a fit."""
    floor = problem.bound.floor
    rms = float(np.sqrt(slopes.loss))
    loud = problem.bound.noise is not None and rms > LOUDER * np.hypot(problem.bound.noise, floor)
    reasons: tuple[str, ...] = ()
    if loud:
        reasons = (f"residuals ({rms:.2g}) are larger than the noise ({problem.bound.noise:.2g})",)
    if rms <= 2 * floor:
        return Misfit(rms, floor, 0.0, 0.0, ())
    r, pictures = problem.residuals(slopes.u)
    if pictures is None or pictures.size != r.size:
        excess, shift = _repetition(r, problem.space.size), 0.0
        text = "residuals repeat from frame to frame: the model misses something"
    else:
        excess, shift = _shifts(r.reshape(pictures.shape), pictures, problem.space.size)
        text = f"shapes are {shift:.2g} pixels off, more than noise explains: the model misses something"
        lost = _lost(r.reshape(pictures.shape), problem.bound.pace)
        if len(lost):
            some = f"{len(lost)} of {len(r)} frames show something else, from number {lost[0]} on"
            reasons = (*reasons, f"{some}: the model misses something")
    return Misfit(rms, floor, excess, shift, (*reasons, text) if excess > SIGNIFICANT else reasons)


def _repetition(r: NDArray[np.float64], parameters: int) -> float:
    """How much residuals (frames, m) of one frame are like those of the next, in standard deviations."""
    if len(r) < 4:
        return 0.0
    power = (r * r).sum(axis=0)
    some = power > 0
    if not some.any():
        return 0.0
    likeness = (r[1:] * r[:-1]).sum(axis=0)[some] / power[some]
    # Numbers of one frame may hang together (a body has few ways to move): count those that are their own.
    unit = r[:, some] / np.sqrt(power[some])
    own = float(some.sum()) ** 2 / float((unit.T @ unit).__pow__(2).sum())
    # A fit of p parameters makes neighbours a little unlike each other.
    return float((likeness.mean() + parameters / (len(r) * own)) * np.sqrt(len(r) * own))


def _lost(r: NDArray[np.float64], pace: NDArray[np.float64]) -> NDArray[np.int64]:
    """Frames that are off by more than a pixel, and not by noise: their residuals are alike over whole patches."""
    frames, height, width = r.shape[:3]
    r = r.reshape(frames, height, width, -1)
    down, across = height // PATCH, width // PATCH
    if not down or not across:
        return np.zeros(0, np.int64)
    r = r[:, : PATCH * down, : PATCH * across]
    means = r.reshape(frames, down, PATCH, across, PATCH, -1).mean(axis=(2, 4))
    energy = (r**2).sum(axis=(1, 2, 3))
    alike = PATCH**2 * (means**2).sum(axis=(1, 2, 3)) / np.maximum(energy, 1e-300)
    return np.flatnonzero((energy > pace) & (alike > ALIKE))


def _shifts(r: NDArray[np.float64], pictures: NDArray[np.float64], parameters: int) -> tuple[float, float]:
    """How far each frame's shapes are off, in units of what noise makes of it; and in pixels."""
    frames = len(r)
    across = np.stack([np.gradient(pictures, axis=axis) for axis in (1, 2)], axis=-1).reshape(frames, -1, 2)
    r = r.reshape(frames, -1)
    worth, pixels = [], []
    for g, e in zip(across, r):
        A = g.T @ g
        if A[0, 0] * A[1, 1] <= 1e-12 or np.linalg.det(A) <= 1e-9 * A[0, 0] * A[1, 1]:
            continue
        noise = (g * e[:, None] ** 2).T @ g
        score = g.T @ e
        if np.linalg.det(noise) <= 0:
            continue
        worth.append(float(score @ np.linalg.solve(noise, score)))
        way, variance = np.linalg.solve(A, score), np.linalg.solve(A, np.linalg.solve(A, noise).T)
        pixels.append(float(way @ way - np.trace(variance)))
    if len(worth) < 3:
        return 0.0, 0.0
    expected = float(max(2 * len(worth) - parameters, 1))
    return float((np.sum(worth) - expected) / np.sqrt(2 * expected)), float(np.sqrt(max(float(np.mean(pixels)), 0.0)))
