"""How far an estimate can be trusted, and what a video can tell at all.

Covariances are Gauss and Newton's, with the noise as the residuals show it. They say nothing where the search did not
end, where residuals are not noise, or where another start ended elsewhere: `certify` gives an interval only where it
is earned, and a reason where it is not. `identifiability` asks the same before any fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nablasim.sysid.problem import Problem, Slopes, Space, Vector
from nablasim.sysid.trust.agreement import say
from nablasim.sysid.trust.misfit import Misfit, examine

LEVEL = 0.9
NEAR = 0.3
"""Standard deviations: how near the minimum must be, and how near to each other the ends of two starts."""
RELATED = 0.5
"""Correlations from here on are printed."""
TELLING = 0.5
"""An interval wider than this part of the bounds says nothing."""


@dataclass(frozen=True)
class Estimate:
    """One number: its value and, if it is certified, the interval that holds the truth with probability `level`.

    `std` is of the number itself; `why` says what stands against an interval.
    """

    name: str
    value: float
    std: float
    low: float
    high: float
    level: float
    unit: str = ""
    why: tuple[str, ...] = ()

    @property
    def certified(self) -> bool:
        return not self.why

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval, or None where it is not certified."""
        return (self.low, self.high) if self.certified else None

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit not in ("", "1") else ""
        if self.certified:
            return f"{self.value:.6g}{unit}, {self.level:.0%} in [{self.low:.6g}, {self.high:.6g}]"
        return f"{self.value:.6g}{unit}, not certified: {'; '.join(self.why)}"


@dataclass(frozen=True, eq=False)
class Certificate:
    """Estimates of all numbers, and what the residuals look like."""

    estimates: tuple[Estimate, ...]
    covariance: NDArray[np.float64]
    """In the space of the search."""
    misfit: Misfit


def certify(
    problem: Problem, slopes: Slopes, others: Sequence[Vector], *, converged: bool = True, level: float = LEVEL
) -> Certificate:
    """Estimates with intervals at the end of a fit. `others` are the ends of the other starts that are as low.

    The slopes are looked at here, once: where exact ones are not those of runs beside the point, no interval stands.
    """
    misfit, doubts = examine(problem, slopes), say(problem, _labels(problem.space), slopes.u)
    covariance = covariance_of(problem, slopes, misfit.floor)
    std = np.sqrt(np.diag(covariance))
    common: tuple[str, ...] = () if converged else ("the search did not end",)
    common += misfit.reasons
    if not others:
        common += ("only one start ended here: run more starts",)
    away = np.abs(np.linalg.lstsq(slopes.normal.sum(0), slopes.gradient.sum(0), rcond=1e-12)[0])
    spread = np.max([np.abs(slopes.u - u) for u in others], axis=0) if others else np.zeros_like(std)
    reasons = _by_axis(problem.space, [
        (*common, *_reasons(problem.space, j, slopes.u, std, away, spread), *([doubts[j]] if j in doubts else []))
        for j in range(problem.space.size)
    ])  # fmt: skip
    return Certificate(_estimates(problem.space, slopes.u, covariance, level, reasons), covariance, misfit)


def uncertified(problem: Problem, u: Vector, why: str, *, level: float = LEVEL) -> Certificate:
    """Estimates without intervals."""
    n = problem.space.size
    reasons = _by_axis(problem.space, [(why,)] * n)
    covariance = np.full((n, n), np.nan)
    rms = float(np.sqrt(problem.loss(u)))
    estimates = [Estimate(name, float(v), np.nan, np.nan, np.nan, level, unit, reasons[name])
                 for name, v, unit in zip(problem.names, problem.space.numbers(u), problem.space.units)]  # fmt: skip
    return Certificate(tuple(estimates), covariance, Misfit(rms, problem.bound.floor, 0.0))


def _reasons(space: Space, j: int, u: Vector, std: Vector, away: Vector, spread: Vector) -> tuple[str, ...]:
    """What stands against an interval of one coordinate."""
    room = float(space.high[j] - space.low[j])
    z = float(stats.norm.ppf(0.5 + LEVEL / 2))
    if not 2 * z * std[j] <= TELLING * room:
        return ("these frames cannot tell it",)
    found = []
    if u[j] - space.low[j] < 1e-6 * room or space.high[j] - u[j] < 1e-6 * room:
        found.append("it ended at a bound")
    if away[j] > NEAR * std[j]:
        found.append("the search did not reach the minimum")
    if spread[j] > max(NEAR * std[j], 1e-9 * room):
        found.append("starts ended at different values")
    return tuple(found)


def covariance_of(problem: Problem, slopes: Slopes, floor: float) -> NDArray[np.float64]:
    """H⁻¹ M H⁻¹, in the space of the search.

    M is Jᵀ diag(r²) J, right for noise of different strength in different pixels; where residuals of a frame hang
    together, the sum over frames of (Jᵀ r)(Jᵀ r)ᵀ is larger, and the larger of both is taken for each coordinate.
    Where errors are alike in several frames, those count as one. `floor` is what rounding alone makes of a number.
    Where nothing is known, a standard deviation is ten times the range.
    """
    variance = max(slopes.loss, floor**2)
    # What the bounds say, ten times weakened: enough to invert, and to make blind directions wide.
    prior = variance / (10 * (problem.space.high - problem.space.low)) ** 2
    H = slopes.normal.sum(axis=0)
    known, blind = inverses(H, prior, problem.bound.slack, _least(problem))
    plain = known @ (slopes.spread.sum(axis=0) + floor**2 * H) @ known
    scores = slopes.gradient @ known
    clustered = scores.T @ scores
    growth = np.sqrt(np.maximum(1.0, np.diag(clustered) / np.maximum(np.diag(plain), 1e-300)))
    return problem.bound.alike * plain * np.outer(growth, growth) + variance * blind


def inverses(
    H: NDArray[np.float64], prior: Vector, slack: float, least: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(H + diag prior)⁻¹ as a sum of two parts: of the directions that H knows, and of those that it does not.

    H is known up to a part `slack` in any direction, and up to `least` on its diagonal: what is below counts as zero.
    """
    some = np.diag(H) > least
    H = np.where(np.outer(some, some), H, 0.0)
    scale = np.sqrt(np.maximum(np.diag(H), prior))
    values, ways = np.linalg.eigh(H / np.outer(scale, scale))
    q = np.diag(prior / scale**2)
    V, W = ways[:, values > slack], ways[:, values <= slack]
    known = (V / (values[values > slack] + np.diag(V.T @ q @ V))) @ V.T
    blind = W @ np.linalg.inv(W.T @ q @ W) @ W.T
    return known / np.outer(scale, scale), blind / np.outer(scale, scale)


def _least(problem: Problem) -> float:
    """The diagonal of H that rounding alone makes."""
    return 100 * problem.bound.target.size * problem.bound.blur**2


def _estimates(
    space: Space, u: Vector, covariance: NDArray[np.float64], level: float, reasons: Mapping[str, tuple[str, ...]]
) -> tuple[Estimate, ...]:
    z = float(stats.norm.ppf(0.5 + level / 2))
    slope = space.slope(u)
    spread = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slope, covariance, slope), 0))
    names, units, numbers = space.names, space.units, space.numbers(u)
    made, row = [], 0
    for axis in space.axes:
        for _ in axis.names:
            value, std = float(numbers[row]), float(spread[row])
            if axis.param.kind == "log":
                factor = float(np.exp(min(z * std / value, 700.0)))
                low, high = value / factor, value * factor
            else:
                low, high = value - z * std, value + z * std
            made.append(Estimate(names[row], value, std, low, high, level, units[row], reasons[names[row]]))
            row += 1
    return tuple(made)


def _by_axis(space: Space, reasons: Sequence[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Reasons of coordinates as those of numbers: the numbers of a unit vector share those of all its coordinates."""
    found: dict[str, tuple[str, ...]] = {}
    for axis in space.axes:
        mine = reasons[axis.at]
        for k, name in enumerate(axis.names):
            found[name] = mine[k] if len(mine) == len(axis.names) else tuple(dict.fromkeys(r for m in mine for r in m))
    return found


# -- before a fit
@dataclass(frozen=True, eq=False)
class Identifiability:
    """What some frames can tell: `std` of each coordinate as a part of its value (log) or of its range (linear),
    medians over the points that were looked at; `correlations`, and directions in which nothing is known."""

    names: tuple[str, ...]
    std: Vector
    correlations: NDArray[np.float64]
    blind: tuple[str, ...]
    warnings: tuple[str, ...]
    noise: float
    points: int

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [f"what {self.points} blind points can tell, for noise of {self.noise:.2g}:"]
        for name, std in zip(self.names, self.std):
            lines.append(f"  {name:{width}}  " + ("cannot be told" if std > 1 else f"to {std:.2g} of its value"))
        for j, k in zip(*np.triu_indices(len(self.names), 1)):
            if abs(self.correlations[j, k]) >= RELATED and np.isfinite(self.std[[j, k]]).all():
                lines.append(f"  correlation of {self.names[j]} and {self.names[k]}: {self.correlations[j, k]:+.2f}")
        lines += [f"  nothing is known along {way}" for way in self.blind]
        return "\n".join([*lines, *(f"  warning: {w}" for w in self.warnings)])

    __repr__ = __str__


def identifiability(
    problem: Problem,
    *,
    at: Mapping[str, ArrayLike] | None = None,
    points: int = 6,
    noise: float | None = None,
    seed: int = 0,
) -> Identifiability:
    """What the frames can tell about the params, at given values or, as the truth is not known, at blind points.

    noise: standard deviation of a pixel or a measured number; what the target says, or rounding to 8 bits
    """
    space, rng = problem.space, np.random.default_rng(seed)
    noise = noise if noise is not None else problem.bound.usual_noise
    looked: list[Slopes] = []
    for _ in range(50 * points):
        slopes = problem.slopes(space.vector(at) if at is not None else space.draw(rng))
        if slopes is not None:
            looked.append(slopes)
        if at is not None or len(looked) == points:
            break
    if not looked:
        raise ArithmeticError("the simulation fails wherever it was looked at: check dt and the bounds")
    room, least = space.high - space.low, _least(problem)
    parts = [inverses(s.normal.sum(0), 12 * noise**2 / room**2, problem.bound.slack, least) for s in looked]
    covariances = [noise**2 * (known + blind) for known, blind in parts]
    std = np.median([np.sqrt(np.diag(c)) for c in covariances], axis=0)
    middle = covariances[int(np.argsort([np.trace(c / np.outer(room, room)) for c in covariances])[len(looked) // 2])]
    scale = np.sqrt(np.diag(middle))
    correlations = middle / np.outer(scale, scale)
    blind, labels = _blind(middle, room, _labels(space)), _labels(space)
    share = np.array([std[a.at] if a.param.kind == "log" else std[a.at] / room[a.at] for a in space.axes], dtype=object)
    told = np.concatenate([np.atleast_1d(s) for s in share]).astype(np.float64)
    told_by = np.median([np.diag(s.normal.sum(0)) for s in looked], axis=0)
    hidden = told_by <= np.maximum((1e-3 * noise / room) ** 2, least)
    warnings = [*(f"nothing in these frames depends on {labels[j]}" for j in np.flatnonzero(hidden))]
    warnings += [
        f"{labels[j]} cannot be told: its interval would be as wide as its bounds"
        for j in np.flatnonzero(~hidden & (np.median([np.sqrt(np.diag(c)) for c in covariances], 0) > 0.15 * room))
    ]
    for j, k in zip(*np.triu_indices(space.size, 1)):
        if abs(correlations[j, k]) > 0.98 and not (hidden[j] or hidden[k]):
            pair = f"{labels[j]} and {labels[k]}"
            warnings.append(f"{pair} are hard to tell apart (correlation {correlations[j, k]:+.3f})")
    told[hidden] = np.inf
    return Identifiability(tuple(labels), told, correlations, blind, tuple(warnings), float(noise), len(looked))


def _blind(covariance: NDArray[np.float64], room: Vector, labels: Sequence[str]) -> tuple[str, ...]:
    """Directions about which the data say less than the bounds do, as sums of parameters."""
    values, vectors = np.linalg.eigh(covariance * 12 / np.outer(room, room))
    found = []
    for value, way in zip(values, vectors.T):
        if value > 0.5:
            way = way * np.sign(way[np.argmax(np.abs(way))])
            parts = [f"{w:+.2g} {name}" for w, name in zip(way, labels) if abs(w) > 0.2]
            found.append(" ".join(parts))
    return tuple(found)


def _labels(space: Space) -> list[str]:
    """A name for each coordinate."""
    made: list[str] = []
    for axis in space.axes:
        n = axis.at.stop - axis.at.start
        made += axis.names if n == len(axis.names) else [f"{axis.param.name} (turn {k + 1})" for k in range(n)]
    return made
