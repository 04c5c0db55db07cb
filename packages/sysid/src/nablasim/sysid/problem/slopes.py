"""`Slopes`: misfit, gradient and normal matrix near a point, frame by frame; and how they are summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.problem.parameters import Vector


@dataclass(frozen=True, eq=False)
class Slopes:
    """The misfit near a point, summed per frame, for r = rows - target and J = ∂ rows / ∂ u."""

    u: Vector
    squares: Vector
    """(frames) r·r"""
    gradient: NDArray[np.float64]
    """(frames, n) Jᵀ r"""
    normal: NDArray[np.float64]
    """(frames, n, n) Jᵀ J"""
    spread: NDArray[np.float64]
    """(frames, n, n) Jᵀ diag(r²) J: the noise as these parameters see it"""
    count: int
    """numbers per frame"""
    J: NDArray[np.floating[Any]] | None = None
    """(n, frames, numbers) itself, where it was asked for and is not too large"""

    @property
    def loss(self) -> float:
        """The mean of squares."""
        return float(self.squares.sum() / (self.count * len(self.squares)))


class Sums:
    """Adds up what `Slopes` has, some frames at a time."""

    def __init__(self, u: Vector, frames: int, n: int, m: int, keep: np.dtype[Any] | None):
        self.u, self.count = np.array(u, np.float64), m
        self.squares, self.gradient = np.zeros(frames), np.zeros((frames, n))
        self.normal, self.spread = np.zeros((frames, n, n)), np.zeros((frames, n, n))
        self.whole = None if keep is None else np.zeros((n, frames, m), keep)

    def add(self, some: Sequence[int], r: NDArray[np.floating[Any]], J: NDArray[np.floating[Any]]) -> None:
        """r (some, m) and J (n, some, m) of some frames."""
        self.squares[some] = np.einsum("fm,fm->f", r, r, dtype=np.float64)
        if self.whole is not None:
            self.whole[:, some] = J
        moves = (J != 0).any(axis=0)
        for k, frame in enumerate(some):
            # Most of a picture does not move at all: only the outline of a silhouette does.
            live = np.flatnonzero(moves[k])
            a, e = J[:, k, live].astype(np.float64), r[k, live].astype(np.float64)
            self.gradient[frame], self.normal[frame] = a @ e, a @ a.T
            self.spread[frame] = (a * e**2) @ a.T

    def slopes(self) -> Slopes | None:
        """The sums; None where one of them is not a finite number."""
        if not np.isfinite(self.squares).all() or not np.isfinite(self.normal).all():
            return None
        return Slopes(self.u, self.squares, self.gradient, self.normal, self.spread, self.count, self.whole)
