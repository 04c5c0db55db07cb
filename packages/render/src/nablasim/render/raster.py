"""The stages of a picture on arrays of kernelc, up to what all modes share: triangles, tables, lists, copies.

Everything here launches kernels, so it is recorded where a tape is open, and one reverse sweep goes from the pixels to
whatever the vertices came from. A picture is made of samples, `sampling`² to a pixel, in tiles of 4 × 4; each frame has
four bands of tiles (kernels/coverage.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import kernelc as kc
from nablasim.render.kernels import bands, bins, triangles
from nablasim.render.kernels.coverage import BANDS
from nablasim.render.kernels.triangles import AREA, TILE

Array = Any
"""An array of kernelc."""
Number = Any
"""A number; or an array of one, which may be another in a replay."""


@dataclass(frozen=True)
class Screen:
    """The grid of samples, and the unit of distances on it: NDC times `units`."""

    size: tuple[int, int]
    sampling: int = 1
    in_pixels: bool = False

    @property
    def rows(self) -> int:
        return self.size[0] * self.sampling

    @property
    def columns(self) -> int:
        return self.size[1] * self.sampling

    @property
    def units(self) -> tuple[float, float]:
        """Half the size of the picture in pixels, where distances are measured in pixels."""
        return (self.size[1] / 2, self.size[0] / 2) if self.in_pixels else (1.0, 1.0)

    @property
    def tiles_x(self) -> int:
        return -(-self.columns // TILE)

    @property
    def tiles(self) -> int:
        """Tiles of a frame: all bands have as many, so some may lie below the picture."""
        return -(-(self.tiles_x * -(-self.rows // TILE)) // BANDS) * BANDS

    def grid(self, frames: int) -> tuple[int, int, int]:
        """The launch grid of kernels that look at every sample."""
        return BANDS * frames, self.tiles // BANDS, AREA

    @property
    def place(self) -> Any:
        """What these kernels need to know where a sample is."""
        return triangles.Screen(tiles_x=self.tiles_x, rows=self.rows, columns=self.columns, units=self.units)


@dataclass
class Triangles:
    """The triangles of a batch of frames on the screen, and which of them each tile has to look at."""

    screen: Screen
    frames: int
    faces: Array
    """(m, 3), of which the first `count` are drawn."""
    count: int
    perspective: int
    corner: Array
    """(frames, slots) of six numbers."""
    deep: Array
    """(frames, slots): inverse depths of the corners, or depths for an orthographic camera."""
    edges: Array
    starts: Array
    items: Array
    mix: Array | None = None
    """(frames, slots) 3 × 3 weights, where faces may have been clipped."""
    part: int = 0
    """Where the second slots of faces begin, if they have any; then the third and the fourth."""
    _copies: dict[str, Array] = field(default_factory=dict)

    @property
    def slots(self) -> int:
        return int(self.corner.shape[1])

    @cached_property
    def lists(self) -> Any:
        """What kernels look at that go from tile to tile."""
        return bins.Lists(edges=self.edges, starts=self.starts, items=self.items)

    @cached_property
    def on_screen(self) -> Any:
        """All that kernels know of the triangles of a frame,"""
        return triangles.Triangles(corner=self.corner, slope=self.slope, deep=self.deep)

    @cached_property
    def in_bands(self) -> Any:
        """and of those of a band."""
        return triangles.Triangles(*(self.banded(name) for name in ("corner", "slope", "deep")))

    def slots_of(self, faces: Array) -> Any:
        """How the vertices of faces, these or those of a texture, become corners of slots."""
        return triangles.Faces(faces=faces, mix=self.mix, part=self.part)

    @cached_property
    def slope(self) -> Array:
        """(frames, slots) of four numbers: how barycentric weights change on the screen."""
        made = like(self.corner, (self.frames, self.slots), kc.vec(4))
        kc.launch(bands.slopes, (self.frames, self.slots), [self.corner, self.edges], [made])
        return made

    def banded(self, name: str) -> Array:
        """`corner`, `deep` or `slope` with a copy for each band."""
        if name not in self._copies:
            self._copies[name] = for_bands(getattr(self, name), self.frames)
        return self._copies[name]


def like(array: Array, shape: tuple[int, ...], dtype: Any = float) -> Array:
    """Memory for numbers of the precision of an array."""
    return kc.empty(shape, dtype=dtype, real=precision(array))


def precision(array: Array) -> Any:
    return kc.float64 if array.numpy().dtype == np.float64 else kc.float32


def for_bands(rows: Array, frames: int) -> Array:
    """(n, k) for frames, or fewer that are used again, to (4 frames, k) for bands."""
    n, shape = rows.shape[0], tuple(rows.shape[1:])
    made = like(rows, (frames, BANDS, *shape), rows.dtype)
    source = rows.reals()
    count = source.size // n
    if n == frames and count % 64 == 0:
        target = made.reals().reshape(frames, BANDS, count // 64, 64)
        kc.launch(bands.copy_bands, target.shape, [source.reshape(n, count // 64, 64)], [target])
    else:
        target = made.reals().reshape(frames, BANDS, count)
        kc.launch(bands.spread_bands, target.shape, [source.reshape(n, count)], [target])
    return made.reshape(frames * BANDS, *shape)


def for_frames(rows: Array, frames: int) -> Array:
    """(n, ...) to (frames, ...): rows of a smaller batch are used again."""
    n, shape = rows.shape[0], tuple(rows.shape[1:])
    if n == frames:
        return rows
    made = like(rows, (frames, *shape), rows.dtype)
    source = rows.reals()
    grid = (frames, source.size // n)
    kc.launch(bands.spread_rows, grid, [source.reshape(n, grid[1])], [made.reals().reshape(*grid)])
    return made


def points_for_frames(points: Array, frames: int) -> Array:
    """(n, vertices) points to (frames, vertices)."""
    if points.shape[0] == frames:
        return points
    made = like(points, (frames, points.shape[1]), kc.float3)
    kc.launch(bands.spread_points, made.shape, [points], [made])
    return made


def view_of(points: Array, pose: Array) -> Array:
    """(frames, vertices): x right, y up, depth."""
    made = like(pose, points.shape[:2], kc.float3)
    kc.launch(triangles.view_vertices, made.shape, [points, pose], [made])
    return made


def lay_out(
    view: Array, faces: Array, count: int, lens: Array, screen: Screen, *, perspective: bool, near: Number,
    far: Number, reach: Number, clips: bool,
) -> Triangles:  # fmt: skip
    """Triangles on the screen, whose soft borders reach `reach` far, and lists of them for all tiles.

    Without `clips` nothing may be nearer than `near` or beyond `far`. What is launched here may be recorded, and run
    again with other vertices: there is room for longer lists, and where they do not fit they are replaced by all faces.
    """
    frames = view.shape[0]
    part = max(64, -(-count // 64) * 64)
    grid = (frames, 4 * part if clips else part)
    corner, deep = like(view, grid, kc.vec(6)), like(view, grid, kc.float3)
    there, mix = kc.empty(grid, dtype=int), None
    lenses = triangles.Lenses(lens=lens, perspective=int(perspective), units=screen.units)
    common = [view, faces, lenses, count]
    if clips:
        mix = like(view, grid, kc.mat33)
        kc.launch(triangles.clip_faces, grid, [*common, near, far, part], [corner, deep, mix, there])
    else:
        kc.launch(triangles.project_faces, grid, common, [corner, deep, there])
    edges, box = like(view, grid, kc.vec(22)), kc.empty(grid, dtype=kc.int4)
    kc.launch(triangles.tabulate, grid, [corner, there, screen.place, reach], [edges, box])
    starts, items = _lists(box, screen)
    return Triangles(
        screen, frames, faces, count, int(perspective), corner, deep, edges, starts, items, mix, part if clips else 0
    )


def _lists(box: Array, screen: Screen) -> tuple[Array, Array]:
    frames = box.shape[0]
    starts, totals = kc.empty((frames, screen.tiles + 1), dtype=int), kc.empty(frames, dtype=int)
    kc.launch(bins.count_tiles, frames, [box, screen.tiles_x], [starts, totals])
    items = kc.empty((frames, 2 * int(totals.numpy().max(initial=0)) + 1024), dtype=int)
    cursor = kc.empty((frames, screen.tiles), dtype=int)
    kc.launch(bins.list_tiles, frames, [box, screen.tiles_x, starts], [cursor, items])
    return starts, items
