"""Gradient descent for a handful of parameters: needs a loss, its gradient, and nothing else.

Steps have the length of Barzilai and Borwein (1988), accepted by the non-monotone rule of Raydan (1997): the loss may
rise now and then, but stays below the worst of the last few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Evaluate = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
"""From parameters to the loss and its gradient."""

MEMORY = 5
SUFFICIENT = 1e-4
HALVINGS = 30


@dataclass(frozen=True, eq=False)
class Fit:
    """The path of a descent. Entry 0 is the start, the last entry the result."""

    values: NDArray[np.float64]
    losses: NDArray[np.float64]
    gradients: NDArray[np.float64]
    converged: bool
    message: str

    @property
    def value(self) -> NDArray[np.float64]:
        """Where the loss was lowest."""
        best: NDArray[np.float64] = self.values[int(np.argmin(self.losses))]
        return best


def descend(
    evaluate: Evaluate,
    start: ArrayLike,
    *,
    iterations: int = 60,
    tolerance: float = 1e-7,
    max_step: float = 1.0,
    on_iteration: Callable[[int, float], None] | None = None,
) -> Fit:
    """Walk downhill from `start` until the gradient is shorter than `tolerance`, no step longer than `max_step`."""
    value = np.array(start, dtype=np.float64)
    loss, gradient = _checked(evaluate, value)
    path = [(value, loss, gradient)]
    length = max_step / max(float(np.linalg.norm(gradient)), 1e-300)
    while len(path) <= iterations and np.linalg.norm(gradient) > tolerance:
        length = min(length, max_step / float(np.linalg.norm(gradient)))
        step = _search(evaluate, value, gradient, length, worst=max(entry[1] for entry in path[-MEMORY:]))
        if step is None:
            return _fit(path, False, "no step lowers the loss: is the gradient right?")
        length = _barzilai_borwein(step[0] - value, step[2] - gradient, otherwise=max_step)
        value, loss, gradient = step
        path.append(step)
        if on_iteration is not None:
            on_iteration(len(path) - 1, loss)
    if np.linalg.norm(gradient) <= tolerance:
        return _fit(path, True, f"the gradient is below {tolerance:g}")
    return _fit(path, False, f"stopped after {iterations} iterations")


_Point = tuple[NDArray[np.float64], float, NDArray[np.float64]]


def _search(evaluate: Evaluate, value: NDArray, gradient: NDArray, length: float, *, worst: float) -> _Point | None:
    """The first of the steps length, length/2, length/4 ... that lowers the loss enough."""
    for _ in range(HALVINGS):
        trial = value - length * gradient
        loss, slope = evaluate(trial)
        if np.isfinite(loss) and loss <= worst - SUFFICIENT * length * float(gradient @ gradient):
            return trial, loss, np.array(slope, dtype=np.float64)
        length /= 2
    return None


def _barzilai_borwein(moved: NDArray, bent: NDArray, *, otherwise: float) -> float:
    curvature = float(moved @ bent)
    return float(moved @ moved) / curvature if curvature > 0 else otherwise / max(float(np.linalg.norm(bent)), 1e-300)


def _checked(evaluate: Evaluate, value: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    loss, gradient = evaluate(value)
    if not np.isfinite(loss) or not np.isfinite(gradient).all():
        raise ValueError(f"the loss at the start is {loss} and its gradient {gradient}: start where both are finite")
    return loss, np.array(gradient, dtype=np.float64)


def _fit(path: list[_Point], converged: bool, message: str) -> Fit:
    values, losses, gradients = (np.array(column) for column in zip(*path))
    return Fit(values, losses, gradients, converged, message)
