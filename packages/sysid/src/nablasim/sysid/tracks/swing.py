"""A swing: the pendulum's own equation, so that wide swings are as good as small ones, with damping.

φ'' = -Ω² sin φ - c φ'. The period tells Ω² = g / length without any ruler; the circle in the picture tells how wide it
swings. A camera that looks from the side squeezes the circle a little, and may be turned: nuisances with a prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nablasim.sysid.look import Look, swing_of
from nablasim.sysid.tracks.answers import CannotTell
from nablasim.sysid.tracks.least_squares import Fitted, Vector, fit
from nablasim.sysid.tracks.sliding import FOCAL, TURNED

OMEGA, DAMPING, RADIUS, X, Y, ROLL, SQUEEZED, TURN, PITCH, ANGLE, RATE = range(11)
SUBSTEPS = 4
FEWEST = 12
CYCLES = 0.9
"""Periods that must be seen."""


@dataclass(frozen=True, eq=False)
class Swung:
    """What was fitted: log Ω², damping (1/s), log of the radius in pixels, pivot ..."""

    fitted: Fitted
    cycles: float
    widest: float
    """rad"""

    @property
    def omega_squared(self) -> float:
        return float(np.exp(self.fitted.u[OMEGA]))

    @property
    def radius(self) -> float:
        return float(np.exp(self.fitted.u[RADIUS]))


def fit_swing(look: Look) -> Swung:
    """Fit the track of a bob."""
    t, p = np.asarray(look.track.time), look.steady
    rough = swing_of(t, p) if len(t) >= FEWEST else None
    if rough is None or rough.rms > 0.15 * rough.amplitude:
        raise CannotTell("the object does not swing: --as names another motion, or --object x,y another object")
    if rough.cycles < CYCLES:
        raise CannotTell(f"only {rough.cycles:.1f} periods are seen: film at least one whole swing, there and back")
    height = float(np.percentile(p[:, 1], 98) - np.percentile(p[:, 1], 2))
    widest = float(np.clip(2 * np.arctan(max(height, 0.5) / rough.amplitude), 0.03, 2.5))
    radius = rough.amplitude / np.sin(min(widest, np.pi / 2))
    middle = float((np.percentile(p[:, 0], 98) + np.percentile(p[:, 0], 2)) / 2)
    pivot = float(np.percentile(p[:, 1], 98)) - radius
    ratio = np.clip((p[:6, 0] - middle) / radius, -0.99, 0.99)
    turn = np.polynomial.polynomial.polyfit(t[:6] - t[0], np.arcsin(ratio), 1)
    slower = 1 + widest**2 / 16
    start = np.array([2 * np.log(rough.omega * slower), rough.decay, np.log(radius), middle, pivot, 0, 0, 0, 0, *turn])
    mean, std = np.zeros(11), np.full(11, np.inf)
    std[ROLL], std[SQUEEZED], std[TURN], std[PITCH] = np.radians(4), 0.04, TURNED, TURNED
    steps = np.array([1e-5, 1e-5, 1e-4, 0.01, 0.01, 1e-4, 1e-4, 1e-4, 1e-4, 1e-5, 1e-4])
    observed = np.concatenate([p[:, 0], p[:, 1]])
    found = fit(lambda u: see(u, t, look.size), observed, np.zeros(2 * len(t), np.int64), start, mean, std,
                (max(look.noise, 0.1),), steps=steps)  # fmt: skip
    return Swung(found, rough.cycles, widest)


def see(u: Vector, t: Vector, size: tuple[int, int]) -> Vector:
    """(m, 2 n) x and y of the bob, in a picture of that height and width."""
    square, c = np.exp(u[:, OMEGA]), u[:, DAMPING]
    phi, rate = u[:, ANGLE], u[:, RATE]
    angles = [phi]
    for gap in np.diff(t):
        h = gap / SUBSTEPS
        for _ in range(SUBSTEPS):
            phi, rate = _step(phi, rate, square, c, h)
        angles.append(phi)
    phi = np.stack(angles, axis=-1)
    radius, roll = np.exp(u[:, RADIUS, None]), u[:, ROLL, None]
    side, down = radius * np.sin(phi), radius * np.exp(u[:, SQUEEZED, None]) * np.cos(phi)
    x = u[:, X, None] + np.cos(roll) * side - np.sin(roll) * down
    y = u[:, Y, None] + np.sin(roll) * side + np.cos(roll) * down
    # A plane that is seen at an angle: what is farther away is smaller.
    middle, f = (np.array(size[::-1]) - 1) / 2, FOCAL * max(size)
    x, y = x - middle[0], y - middle[1]
    away = np.maximum(1 + (np.sin(u[:, TURN, None]) * x + np.sin(u[:, PITCH, None]) * y) / f, 0.2)
    return np.concatenate([middle[0] + x / away, middle[1] + y / away], axis=1)


def _step(phi: Vector, rate: Vector, square: Vector, c: Vector, h: float) -> tuple[Vector, Vector]:
    def turn(a: Vector, b: Vector) -> Vector:
        return np.asarray(-square * np.sin(a) - c * b)

    k1 = turn(phi, rate)
    k2 = turn(phi + h / 2 * rate, rate + h / 2 * k1)
    k3 = turn(phi + h / 2 * rate + h**2 / 4 * k1, rate + h / 2 * k2)
    k4 = turn(phi + h * rate + h**2 / 2 * k2, rate + h * k3)
    return phi + h * rate + h**2 / 6 * (k1 + k2 + k3), rate + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
