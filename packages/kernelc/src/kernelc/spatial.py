"""`HashGrid` and `Bvh`: tables of what is near what, for loops over neighbours in kernels.

    grid = kc.HashGrid(len(x), width=0.1)
    grid.build(x)                                          # launches: on the tape that is open
    kc.launch(forces, n, inputs=[x, grid.index, 0.1], outputs=[f])

    for j in kc.hash_grid_query(grid, x[i], radius): ...     # in the kernel

The kernels and the loops are in `lib/spatial.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .errors import WrongChoice, WrongShape, public
from .frontend.function import Func
from .lib import spatial as kernels
from .runtime import empty, launch, zeros
from .runtime.arrays import Array
from .runtime.creation import array
from .types import FLOAT64, float3, float32, float64

_typed: Any = kernels  # Type checkers do not look into kernels.
bvh_query: Func = _typed.bvh_query
bvh_query_ray: Func = _typed.bvh_query_ray
hash_grid_query: Func = _typed.hash_grid_query


class HashGrid:
    """Points by the cell of space that they lie in, for queries of a radius near `width`.

    `index` is the table, an array of integers; a kernel takes it as `grid: kc.Array[int]`. Space has no bounds; cells
    share a fixed number of buckets. device: "cpu" or "cuda", where the points will be.
    """

    @public
    def __init__(self, count: int, width: float, *, device: str | None = None):
        if not isinstance(count, int) or count < 0:
            raise WrongChoice(f"a grid holds a whole number of points, not {count!r}", advice="pass how many there are")
        if not (math.isfinite(width) and 2.0**-30 <= width < 2.0**24):
            raise WrongChoice(f"the width of a cell cannot be {width!r}",
                              advice="use about the radius of the queries, above 1e-9")  # fmt: skip
        self.count = count
        # The width as a whole number over a power of two, rounded up: kernels of both precisions compute the same.
        self._shift = max(0, min(30, 23 - math.frexp(width)[1]))
        self._whole = math.ceil(width * 2**self._shift)
        self._buckets = 1 << max(1, (2 * count - 1).bit_length())
        self.index = zeros(kernels.HEAD + self._buckets + 1 + 4 * count, dtype=int, device=device)
        self._cell = empty((count, 3), dtype=int, device=device)

    @property
    def width(self) -> float:
        """The side of a cell: what was asked for, rounded up a little."""
        return float(self._whole / 2**self._shift)

    def build(self, points: Any) -> HashGrid:
        """Sort the points, an array of float3, into their cells. On an open tape it is recorded, and replayed."""
        points = _points("points", points, self.count)
        size = [self._whole, self._shift]
        launch(kernels.find_cells, self.count, [points, *size], [self._cell])
        launch(kernels.sort_cells, 1, [self._cell, self._buckets, *size], [self.index])
        return self


class Bvh:
    """A tree of boxes around items, for queries of boxes and rays: triangles, tetrahedra, anything with an extent.

    A kernel takes `order: kc.Array[int], boxes: kc.Array[kc.float3, 2]`: pass `*bvh.arrays`. device: "cpu" or "cuda",
    where the items will be.
    """

    @public
    def __init__(self, count: int, *, device: str | None = None):
        if not isinstance(count, int) or count < 1:
            raise WrongChoice(f"a tree holds a whole number of items, from 1 on, not {count!r}",
                              advice="pass how many there are")  # fmt: skip
        self.count = count
        self._leaves = 1 << (count - 1).bit_length()
        self.order = zeros(2 + count, dtype=int, device=device)
        self.order.assign(np.concatenate([[count, self._leaves], np.arange(count)]).astype(np.int32))
        self._boxes: dict[Any, Array] = {}
        self._real: Any = float32
        self._code, self._item = (empty((2, count), dtype=int, device=device) for _ in range(2))
        self._counts = empty(1025, dtype=int, device=device)

    @property
    def boxes(self) -> Array:
        """The boxes of all nodes, lower and upper corners, in the precision of what was built last."""
        if self._real not in self._boxes:
            self._boxes[self._real] = zeros((2 * self._leaves - 1, 2), dtype=float3, real=self._real,
                                             device=self.order.device)  # fmt: skip
        return self._boxes[self._real]

    @property
    def arrays(self) -> list[Array]:
        """What a kernel takes: the order of the items, and the boxes."""
        return [self.order, self.boxes]

    def build(self, lower: Any, upper: Any) -> Bvh:
        """Sort the items by where they are, and put a tree of boxes around them; both are arrays of float3."""
        lower, upper = self._corners(lower, upper)
        frame = zeros(2, dtype=float3, real=self._real, device=self.order.device)
        launch(kernels.frame_boxes, 1, [lower, upper], [frame])
        launch(kernels.morton_codes, self.count, [lower, upper, frame], [self._code])
        launch(kernels.sort_codes, 1, [self._code, self._item, self._counts], [self.order])
        return self.refit(lower, upper)

    def refit(self, lower: Any, upper: Any) -> Bvh:
        """New boxes for the same tree: right wherever the items moved, and fast while they stay near each other."""
        lower, upper = self._corners(lower, upper)
        launch(kernels.fill_leaves, self._leaves, [lower, upper, self.order], [self.boxes])
        launch(kernels.join_boxes, 1, [self.order], [self.boxes])
        return self

    def _corners(self, lower: Any, upper: Any) -> tuple[Array, Array]:
        found = _points("lower", lower, self.count), _points("upper", upper, self.count)
        self._real = float64 if found[0].real is FLOAT64 else float32
        return found


def _points(name: str, points: Any, count: int) -> Array:
    found = points if isinstance(points, Array) else array(points, dtype=float3)
    length = found.shape[0] if found.shape else 0
    if length != count:
        raise WrongShape(f"{name} has {length} elements, and the table is for {count}", advice="make a new one")
    return found
