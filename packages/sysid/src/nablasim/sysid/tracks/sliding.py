"""Things that slide and roll along a line: a constant acceleration until they rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nablasim.sysid.look import Look
from nablasim.sysid.tracks.answers import CannotTell
from nablasim.sysid.tracks.least_squares import Fitted, Vector, fit

PLACE, SPEED, PULL = range(3)
FEWEST = 8
BENT = 0.04
"""Of its length: a way that bends more is no line."""


@dataclass(frozen=True, eq=False)
class Slid:
    """What was fitted along the line: place (pixels), speed and acceleration against it (pixels/s²)."""

    fitted: Fitted
    way: Vector
    """(2) the direction in the picture, of the motion"""
    uneven: float
    """By which part the acceleration differs between the first and the second half."""
    doubt: float
    """The standard deviation of that."""
    grows: float
    """By which part the size changes from begin to end: it comes nearer or goes away."""

    @property
    def against(self) -> float:
        """Pixels/s² by which it is slowed down; negative if it gets faster."""
        return float(self.fitted.u[PULL])

    @property
    def std(self) -> float:
        return self.fitted.std(PULL)


def fit_slide(look: Look) -> Slid:
    """Fit the part in which the object moves."""
    t, p = np.asarray(look.track.time), look.steady
    if look.contacts:
        t, p = t[t < look.contacts[0] - 1 / look.rate], p[: int((t < look.contacts[0] - 1 / look.rate).sum())]
    if len(t) < FEWEST:
        raise CannotTell(f"the object moves by itself in {len(t)} frames only: film it for longer, or with more frames")
    middle = p - p.mean(axis=0)
    _, spread, ways = np.linalg.svd(middle, full_matrices=False)
    way = ways[0] * np.sign((p[-1] - p[0]) @ ways[0] or 1.0)
    if spread[1] > BENT * spread[0]:
        raise CannotTell(
            "the object does not move along a line: it flies, turns, or the camera looks along its way. Film "
            "from the side"
        )
    s = p @ way
    found = _fit(t, s, look.noise)
    stop = found.u[SPEED] / found.u[PULL] if found.u[PULL] > 0 else np.inf
    moving = t - t[0] < stop
    if moving.sum() < FEWEST:
        raise CannotTell(f"the object moves in {int(moving.sum())} frames only: film it with more frames per second")
    tm, sm = t[moving], s[moving]
    half = len(tm) // 2
    early, late = (_fit(tm[part], sm[part], look.noise) for part in (slice(None, half), slice(half, None)))
    pull = max(abs(float(found.u[PULL])), 1e-9)
    doubt = float(np.hypot(early.std(PULL), late.std(PULL))) / pull
    size = look.track.height[: len(t)][moving]
    grows = float(np.median(size[-len(size) // 3 :]) / np.median(size[: len(size) // 3])) - 1
    return Slid(found, way, float(late.u[PULL] - early.u[PULL]) / pull, doubt, grows)


def _fit(t: Vector, s: Vector, noise: float) -> Fitted:
    terms = np.polynomial.polynomial.polyfit(t - t[0], s, 2)
    start = np.array([terms[0], terms[1], -2 * terms[2]])

    def see(u: Vector) -> Vector:
        when = np.tile(t - t[0], (len(u), 1))
        pull = u[:, PULL, None]
        # What is slowed down rests in the end; what gets faster goes on.
        stop = np.where(pull > 1e-9, u[:, SPEED, None] / np.where(pull > 1e-9, pull, 1.0), np.inf)
        when = np.minimum(when, np.maximum(stop, 0))
        return np.asarray(u[:, PLACE, None] + u[:, SPEED, None] * when - 0.5 * pull * when**2)

    steps = np.array([1e-3, 1e-3, 1e-2])
    none = np.full(3, np.inf)
    return fit(see, s, np.zeros(len(t), np.int64), start, np.zeros(3), none, (max(noise, 0.1),), steps=steps)
