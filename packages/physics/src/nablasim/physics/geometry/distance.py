"""Obstacles on grids: signed distances, of any form, positive outside and negative inside; and heights of ground."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import finite, shaped
from nablasim.physics.geometry.mesh import TriMesh


@dataclass(frozen=True, eq=False)
class SignedDistance:
    """`values` (nx, ny, nz) at the nodes of an upright grid from `low` to `high` (m), at least four along each axis.

    Between nodes they are joined by cubics, so that normals are continuous. The outermost layer of cells has too few
    neighbours for that, and nothing is felt there: leave a margin around the surface.
    """

    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __init__(self, values: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
        array = finite("signed distance", np.array(values, np.float64))
        if array.ndim != 3 or min(array.shape) < 4:
            raise ValueError(f"signed distance: values have shape {array.shape}; expected at least (4, 4, 4) nodes")
        if not (array.min() < 0 < array.max()):
            raise ValueError(
                f"signed distance: values go from {array.min():g} to {array.max():g}; expected positive ones outside, "
                f"negative ones inside"
            )
        ends = shaped("signed distance: low", low, (3,)), shaped("signed distance: high", high, (3,))
        if not (ends[0] < ends[1]).all():
            raise ValueError(f"signed distance: low is {ends[0].tolist()} and high is {ends[1].tolist()}")
        for name, value in (("values", array), ("low", ends[0]), ("high", ends[1])):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def sample(
        cls,
        function: Callable[[NDArray[np.float64]], ArrayLike],
        low: ArrayLike,
        high: ArrayLike,
        *,
        cells: int | tuple[int, int, int] = 32,
    ) -> SignedDistance:
        """The values of a function of points (n, 3), at the nodes between so many cells along each axis."""
        counts = np.broadcast_to(cells, 3) + 1
        axes = [np.linspace(a, b, n) for a, b, n in zip(np.asarray(low), np.asarray(high), counts)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        return cls(np.asarray(function(points), np.float64).reshape(counts), low, high)

    @property
    def spacing(self) -> NDArray[np.float64]:
        """The distance between nodes along each axis, m."""
        return (self.high - self.low) / (np.array(self.values.shape) - 1)


@dataclass(frozen=True, eq=False)
class Heightfield:
    """Ground with `heights` (nx, nz) above the plane y = 0 (m), over a rectangle of `size` = (along x, along z) about
    the origin; at least four nodes each way.

    The first index goes along x. Between nodes heights are joined by cubics, so that normals are continuous. All below
    is ground; beyond the rectangle there is nothing.
    """

    heights: NDArray[np.float64]
    size: NDArray[np.float64]

    def __init__(self, heights: ArrayLike, size: ArrayLike) -> None:
        array = finite("heightfield", np.array(heights, np.float64))
        if array.ndim != 2 or min(array.shape) < 4:
            raise ValueError(f"heightfield: heights have shape {array.shape}; expected at least (4, 4) nodes")
        sides = shaped("heightfield: size", size, (2,))
        if not (sides > 0).all():
            raise ValueError(f"heightfield: size is {sides.tolist()}; expected two positive lengths, along x and z")
        for name, value in (("heights", array), ("size", sides)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def spacing(self) -> NDArray[np.float64]:
        """The distance between nodes along x and z, m."""
        return self.size / (np.array(self.heights.shape) - 1)

    def mesh(self) -> TriMesh:
        """The nodes and triangles between them, seen from above."""
        (nx, nz), (width, depth) = self.heights.shape, self.size
        along = np.linspace(-width / 2, width / 2, nx), np.linspace(-depth / 2, depth / 2, nz)
        x, z = np.meshgrid(*along, indexing="ij")
        index = np.arange(nx * nz).reshape(nx, nz)
        a, b, c, d = (part.ravel() for part in (index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]))
        faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
        return TriMesh(np.stack([x, self.heights, z], axis=-1).reshape(-1, 3), faces)
