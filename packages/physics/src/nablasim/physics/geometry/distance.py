"""Signed distances on a grid: obstacles of any form, positive outside, negative inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import finite, shaped


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
