"""Takes the divergence out of the flow on a staggered grid: the nearest flow that neither makes nor loses air.

With D the divergence of the cells by the speeds of the open faces, that is u = w - Dᵀ p with D Dᵀ p = D w: the
orthogonal projection onto the flows with D u = 0. It is its own adjoint, so the reverse sweep applies it again, and
no solver is ever differentiated. Without obstacles D Dᵀ is diagonal in waves and cosines; with them it is factorised
once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

Floats = NDArray[np.float64]


class Staggered:
    """A grid of nx × ny cells with sides h, of which some are solid; `wrap` says which directions wrap around.

    Faces across x come first (index i·ny + j), then those across y (i·my + j). A face is open unless it lies at a wall
    or at a solid cell.
    """

    def __init__(
        self, cells: tuple[int, int], h: tuple[float, float], wrap: tuple[bool, bool], solid: NDArray[np.bool_]
    ) -> None:
        self.cells, self.h, self.wrap, self.solid = cells, h, wrap, solid
        nx, ny = cells
        self.shapes = (nx + (not wrap[0]), ny), (nx, ny + (not wrap[1]))
        """The shapes of the arrays of speeds across x and across y."""
        parts = [self._faces(axis) for axis in (0, 1)]
        self.place = np.concatenate([place for place, _ in parts])
        """(faces, 3): i, j, and the axis that the face lies across."""
        self.between = np.concatenate([between for _, between in parts])
        """(faces, 2): the cells before and behind; at a wall both are the cell at it."""
        self.open = (self.between[:, 0] != self.between[:, 1]) & ~solid.ravel()[self.between].any(axis=1)

    def _faces(self, axis: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        n = self.cells[axis]
        i, j = (index.ravel() for index in np.indices(self.shapes[axis]))
        ends = []
        for shift in (-1, 0):
            at = [i, j]
            at[axis] = (at[axis] + shift) % n if self.wrap[axis] else np.clip(at[axis] + shift, 0, n - 1)
            ends.append(at[0] * self.cells[1] + at[1])
        return np.stack([i, j, np.full_like(i, axis)], axis=1), np.stack(ends, axis=1)

    def divergence(self) -> Any:
        """D: (cells, faces), 1/s per m/s. Faces that are not open have no part in it."""
        faces = np.flatnonzero(self.open)
        weight = 1.0 / np.array(self.h)[self.place[faces, 2]]
        rows = self.between[faces].T.ravel()
        entries = np.concatenate([weight, -weight]), (rows, np.tile(faces, 2))
        return sparse.csr_matrix(entries, shape=(self.solid.size, len(self.open)))

    def to_faces(self) -> Any:
        """(faces, 2 cells): the mean of the velocities on both sides; x and y stand side by side, cell by cell."""
        faces = np.flatnonzero(self.open)
        columns = 2 * self.between[faces] + self.place[faces, 2:]
        entries = np.full(columns.size, 0.5), (np.repeat(faces, 2), columns.ravel())
        return sparse.csr_matrix(entries, shape=(len(self.open), 2 * self.solid.size))

    def to_cells(self) -> Any:
        """(2 cells, faces): the mean of the speeds on both sides of each cell."""
        i, j = (index.ravel() for index in np.indices(self.cells))
        (mx, _), (_, my) = self.shapes
        behind = mx * self.cells[1]  # where the faces across y begin
        sides = [
            [i * self.cells[1] + j, (i + 1) % mx * self.cells[1] + j],
            [behind + i * my + j, behind + i * my + (j + 1) % my],
        ]
        rows = [2 * np.arange(self.solid.size) + axis for axis in (0, 1) for _ in range(2)]
        columns = [faces for both in sides for faces in both]
        entries = np.full(4 * self.solid.size, 0.5), (np.concatenate(rows), np.concatenate(columns))
        return sparse.csr_matrix(entries, shape=(2 * self.solid.size, len(self.open)))


class Projection:
    """The projection of speeds on the faces of a grid."""

    def __init__(self, grid: Staggered) -> None:
        self.grid, self.D = grid, grid.divergence()
        self._solve = self._by_waves if not grid.solid.any() else self._by_factors

    def __call__(self, speed: Floats) -> Floats:
        """Speeds (…, faces) without divergence, in double precision; zero where a face is not open."""
        w = np.where(self.grid.open, np.asarray(speed, dtype=np.float64), 0.0)
        flat = w.reshape(-1, w.shape[-1]).T
        # A second time for the rounding of the first: what is left is that of the last subtraction.
        for _ in range(2):
            flat = flat - self.D.T @ self._solve(self.D @ flat)
        return flat.T.reshape(w.shape)

    def _by_waves(self, b: Floats) -> Floats:
        """D Dᵀ p = b by Fourier transforms: waves where the grid wraps around, cosines between walls."""
        p = b.T.reshape(-1, *self.grid.cells)
        walls = [1 + axis for axis in (0, 1) if not self.grid.wrap[axis]]
        waves = [1 + axis for axis in (0, 1) if self.grid.wrap[axis]]
        p = scipy.fft.dctn(p, type=2, axes=walls, norm="ortho") if walls else p
        p = scipy.fft.fftn(p, axes=waves) if waves else p
        p = p * self._inverse
        p = scipy.fft.ifftn(p, axes=waves).real if waves else p
        p = scipy.fft.idctn(p, type=2, axes=walls, norm="ortho") if walls else p
        return p.reshape(len(p), -1).T

    @cached_property
    def _inverse(self) -> Floats:
        """One over the eigenvalues of D Dᵀ; zero for the constant, which has none to divide by."""
        each = [
            (2 - 2 * np.cos((2 if wrap else 1) * np.pi * np.arange(n) / n)) / h**2
            for n, h, wrap in zip(self.grid.cells, self.grid.h, self.grid.wrap)
        ]
        total = each[0][:, None] + each[1][None, :]
        total[0, 0] = np.inf
        return 1 / total

    def _by_factors(self, b: Floats) -> Floats:
        free, factors = self._factors
        p = np.zeros_like(b)
        p[free] = factors.solve(np.ascontiguousarray(b[free]))
        return p

    @cached_property
    def _factors(self) -> tuple[NDArray[np.int64], Any]:
        """D Dᵀ factorised, with the pressure of one cell of every pool of air held at zero: it is free there."""
        L = (self.D @ self.D.T).tocsc()
        _, pool = connected_components(L, directed=False)
        held = np.unique(pool, return_index=True)[1]
        free = np.setdiff1d(np.arange(L.shape[0]), held)
        options = {"SymmetricMode": True}
        return free, splu(L[free][:, free].tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
