"""Small least squares with priors: Levenberg and Marquardt on a model that takes many parameter vectors at once.

Noise is what the residuals show, with neighbours that err together counted as fewer; outliers weigh less (Huber).
What is known beforehand (a camera is level to a few degrees) is a row of its own, so that it enters the intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Model = Callable[[Vector], Vector]
"""(m, parameters) to (m, observations)"""
HUBER = 2.5
"""Standard deviations from which an observation weighs less."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Where a fit ended: parameters, their covariance, residuals in the units of observations, noise of each group."""

    u: Vector
    covariance: Vector
    residuals: Vector
    noise: Vector
    """(groups)"""
    correlation: float
    """By how much noise of neighbours that err together widens variances."""

    def std(self, k: int) -> float:
        return float(np.sqrt(max(self.covariance[k, k], 0.0)))


def fit(
    model: Model, observed: Vector, groups: NDArray[np.int64], start: Vector, mean: Vector, std: Vector,
    noise: Sequence[float], *, steps: Vector | None = None, rounds: int = 3,
) -> Fitted:  # fmt: skip
    """Fit `model(u) = observed`. `groups` says which observations share a noise; `mean`, `std`: prior (inf: none)."""
    u, sigma = start.astype(np.float64).copy(), np.array(noise, np.float64)
    known = np.isfinite(std)
    steps = (
        np.where(known, 1e-4 * np.where(known, std, 1.0), 1e-5 * np.maximum(np.abs(u), 1.0)) if steps is None else steps
    )
    weights = np.ones(len(observed))
    for _ in range(rounds):
        u = _descend(model, observed, weights / sigma[groups], u, mean, std, known, steps)
        residuals = observed - model(u[None])[0]
        scaled = np.abs(residuals) / sigma[groups]
        sigma = np.array([_spread(residuals[groups == g], sigma[g]) for g in range(len(sigma))])
        scaled = np.abs(residuals) / sigma[groups]
        weights = np.sqrt(np.minimum(1.0, HUBER / np.maximum(scaled, 1e-9)))
    jacobian = _slopes(model, u, steps)
    rows = jacobian * (weights / sigma[groups])[:, None]
    prior = np.where(known, 1 / np.where(known, std, 1.0) ** 2, 0.0)
    # Noise that is alike from frame to frame carries less: its share of the information is divided, the prior's is not.
    alike = correlation_of(residuals / sigma[groups], groups)
    information = rows.T @ rows / alike + np.diag(prior)
    covariance = _inverse(information)
    return Fitted(u, covariance, residuals, sigma, alike)


LEAST = 1e-13
"""Of the information about a parameter: what is less cannot be told from nothing."""


def _inverse(information: Vector) -> Vector:
    """The covariance. What nothing tells has a deviation without bounds, and not none, as a pseudo-inverse has it."""
    # Parameters have many units: inverted with a diagonal of ones.
    scale = 1 / np.sqrt(np.maximum(np.diag(information), 1e-100))
    values, ways = np.linalg.eigh(information * np.outer(scale, scale))
    return np.asarray((ways / np.maximum(values, LEAST)) @ ways.T * np.outer(scale, scale))


def _spread(values: Vector, least: float) -> float:
    """Robust, and not below a third of what was expected: few observations can fit by chance."""
    values = values[np.isfinite(values)]
    if len(values) < 4:
        return least
    robust = 1.4826 * float(np.median(np.abs(values)))
    return max(float(np.sqrt((robust**2 + min(robust * 2, float(np.std(values))) ** 2) / 2)), least / 3)


def _slopes(model: Model, u: Vector, steps: Vector) -> Vector:
    """(observations, parameters) by central differences, all at once."""
    moved = model(np.concatenate([u + np.diag(steps), u - np.diag(steps)]))
    n = len(u)
    return np.asarray((moved[:n] - moved[n:]).T / (2 * steps))


def _descend(
    model: Model, observed: Vector, weights: Vector, u: Vector, mean: Vector, std: Vector, known: NDArray[np.bool_],
    steps: Vector, most: int = 60,
) -> Vector:  # fmt: skip
    tied = np.where(known, std, 1.0)

    def residuals(v: Vector) -> Vector:
        return np.concatenate([(observed - model(v[None])[0]) * weights, np.where(known, (mean - v) / tied, 0.0)])

    damping, r = 1e-3, residuals(u)
    for _ in range(most):
        rows = np.concatenate([_slopes(model, u, steps) * weights[:, None], np.diag(np.where(known, 1 / tied, 0.0))])
        normal, gradient = rows.T @ rows, rows.T @ r
        for _ in range(12):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-12), gradient)
            after = residuals(u + step)
            if np.isfinite(after).all() and after @ after < r @ r:
                break
            damping *= 5
        else:
            return u
        gained = float(r @ r - after @ after)
        u, r, damping = u + step, after, max(damping / 8, 1e-9)
        if gained < 1e-6 * (1 + float(r @ r)):
            break
    return u


def correlation_of(residuals: Vector, groups: NDArray[np.int64]) -> float:
    """1 + 2 Σ ρ over lags until ρ is small: by how much the variance of a mean of such noise is larger."""
    worst = 1.0
    for g in np.unique(groups):
        r = residuals[groups == g]
        r = r[np.isfinite(r)]
        if len(r) < 12:
            continue
        r = np.clip(r - np.median(r), -4, 4)
        total, power = 1.0, float(r @ r)
        for lag in range(1, len(r) // 3):
            rho = float(r[lag:] @ r[:-lag]) / max(power, 1e-12)
            if rho < 1.0 / np.sqrt(len(r)):
                break
            total += 2 * rho
        worst = max(worst, total)
    return worst
