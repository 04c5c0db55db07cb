"""Things that slide and roll along a line: a constant acceleration until they rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nablasim.sysid.look import Look
from nablasim.sysid.tracks.answers import CannotTell
from nablasim.sysid.tracks.least_squares import Fitted, Vector, fit

PLACE, SPEED, PULL, TURN = range(4)
FEWEST = 8
TURNED = np.radians(7.0)
"""Standard deviation of the angle at which the camera looks at the way, from the side: nobody stands exactly square."""
BENT = 0.04
"""Of its length: a way that bends more is no line."""


@dataclass(frozen=True, eq=False)
class Slid:
    """What was fitted along the line: place (pixels), speed, acceleration against it (pixels/s²), the camera's turn."""

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
    # From where the camera looks: there, what goes away from it at an angle has the scale of its distance.
    s = p @ way - float((np.array(look.size[::-1]) - 1) / 2 @ way)
    found = _fit(t, s, look, (0.0, TURNED))
    stop = found.u[SPEED] / found.u[PULL] if found.u[PULL] > 0 else np.inf
    moving = t - t[0] < stop
    if moving.sum() < FEWEST:
        raise CannotTell(f"the object moves in {int(moving.sum())} frames only: film it with more frames per second")
    tm, sm = t[moving], s[moving]
    half = len(tm) // 2
    turn = (float(found.u[TURN]), 1e-3 * TURNED)
    early, late = (_fit(tm[part], sm[part], look, turn) for part in (slice(None, half), slice(half, None)))
    pull = max(abs(float(found.u[PULL])), 1e-9)
    doubt = float(np.hypot(early.std(PULL), late.std(PULL))) / pull
    size = look.track.height[: len(t)][moving]
    grows = float(np.median(size[-len(size) // 3 :]) / np.median(size[: len(size) // 3])) - 1
    return Slid(found, way, float(late.u[PULL] - early.u[PULL]) / pull, doubt, grows)


DEEP = 0.6
"""By which part of its width a block may be deeper or less deep than it is wide."""
FOCAL = 0.95
"""Of the longer side of the picture: the focal length of what people film with."""
VEILED = 0.7
"""Pixels by which masks of boxes are too wide or too narrow."""


def width_of(look: Look, slid: Slid) -> tuple[float, float]:
    """Pixels along the way that the block would take at its middle's distance, and the relative deviation of that.

    Away from the middle of the picture one of its ends is seen as well: |x - m| / f of its depth, with m where the
    camera looks at it squarely. And its front, which is what is seen, is nearer than its middle.
    """
    x = look.steady @ slid.way
    wide = np.array([look.masks.along(int(k), slid.way) for k in look.track.frame])
    good = np.isfinite(wide) & look.clear
    if good.sum() < FEWEST:
        good = np.isfinite(wide)
    x, wide, f = x[good], wide[good], FOCAL * max(look.size)
    square = float((np.array(look.size[::-1]) - 1) / 2 @ slid.way)
    fits = []
    for middle in square + f * np.radians([-8.0, -4.0, 0.0, 4.0, 8.0]):
        side = np.abs(x - middle) / f
        design, weights = np.stack([np.ones_like(x), side], axis=-1), np.ones_like(x)
        for _ in range(4):
            terms, *_ = np.linalg.lstsq(design * weights[:, None], wide * weights, rcond=None)
            weights = np.sqrt(1 / np.maximum(np.abs(wide - design @ terms), 0.3))
        seen = float(np.clip(terms[1], 0, 2.5 * float(np.median(wide)))) * side
        front = float(np.median(wide - seen))
        fits.append((front, float(np.mean(np.minimum(np.abs(wide - front - seen), 3.0)))))
    fronts, costs = np.array(fits).T
    weights = np.exp(-0.5 * ((costs - costs.min()) / (0.25 * costs.min() + 0.1)) ** 2)
    best = float(weights @ fronts / weights.sum())
    spread = float(np.sqrt(weights @ (fronts - best) ** 2 / weights.sum()))
    nearer = best / (2 * f)
    return best / (1 + nearer), float(np.hypot(np.hypot(spread, VEILED) / best, DEEP * nearer))


def _fit(t: Vector, s: Vector, look: Look, turn: tuple[float, float]) -> Fitted:
    """`turn`: what is known of the angle, and its standard deviation (rad)."""
    terms = np.polynomial.polynomial.polyfit(t - t[0], s, 2)
    start = np.array([terms[0], terms[1], -2 * terms[2], turn[0]])
    f = FOCAL * max(look.size)

    def see(u: Vector) -> Vector:
        when = np.tile(t - t[0], (len(u), 1))
        pull = u[:, PULL, None]
        # What is slowed down rests in the end; what gets faster goes on.
        stop = np.where(pull > 1e-9, u[:, SPEED, None] / np.where(pull > 1e-9, pull, 1.0), np.inf)
        when = np.minimum(when, np.maximum(stop, 0))
        along = u[:, PLACE, None] + u[:, SPEED, None] * when - 0.5 * pull * when**2
        return np.asarray(along / np.maximum(1 + np.sin(u[:, TURN, None]) * along / f, 0.2))

    steps = np.array([1e-3, 1e-3, 1e-2, 1e-5])
    mean, std = np.array([0, 0, 0, turn[0]]), np.array([np.inf, np.inf, np.inf, turn[1]])
    noise = (max(look.noise, 0.1),)
    return fit(see, s, np.zeros(len(t), np.int64), start, mean, std, noise, steps=steps)
