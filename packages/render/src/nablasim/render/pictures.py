"""What a renderer can show, on arrays of kernelc: soft and hard pictures, depth, normals, indices, flow.

Each function launches the kernels of one kind of picture on `Triangles` (raster.py) and returns an array (frames,
height, width, …).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelc as kc
from nablasim.render.kernels import bands, coverage, resolve, softras, visible
from nablasim.render.kernels.triangles import AREA
from nablasim.render.raster import Array, Number, Screen, Triangles, for_bands, for_frames, like, precision, view_of

COLOUR_CUTOFF = 1e-4
"""SoftRas: faces outside of which less than this is seen are left out of colours,"""
SILHOUETTE_CUTOFF = 1e-6
"""and of silhouettes."""
DIBR_CUTOFF = 1e-10


def soft_limit(sigma: float, cutoff: float) -> float:
    """The squared distance at which sigmoid(-d² / sigma) is the cutoff."""
    return float(np.log(1 / cutoff - 1) * sigma)


def mask_limit(sigmainv: float) -> float:
    """The squared distance at which exp(-sigmainv d²) is the cutoff."""
    return float(-np.log(DIBR_CUTOFF) / sigmainv)


# -- surfaces
@dataclass
class Surface:
    """What is painted on the faces of a batch, and how it is lit. Arrays have a row per frame, or fewer."""

    points: Array
    """(frames, vertices, 3) in the world."""
    pose: Array
    """(frames, 12)."""
    faces: Array
    colors: Array | None = None
    face_colors: Array | None = None
    uvs: Array | None = None
    uv_faces: Array | None = None
    texture: Array | None = None
    wrapped: bool = False
    normals: Array | None = None
    smooth: bool = True
    sky: Array | None = None
    material: Array | None = None
    lights: Array | None = None
    shines: bool = False
    harmonics: bool = False

    @property
    def kind(self) -> tuple[bool, bool, bool, bool, bool]:
        """Which kernel colours it."""
        textured = self.texture is not None
        return textured, textured and self.wrapped, self.lights is not None, self.shines, self.harmonics

    def arguments(self, t: Triangles) -> list[Array]:
        """paint, uv, texture, normal, position, pose, sky, material, lights: with a row for each band."""
        lit = self.lights is not None
        return [
            self.dummy(kc.vec(9)) if self.texture is not None else for_bands(self.paint(t), t.frames),
            for_bands(self.corner_uvs(t), t.frames) if self.texture is not None else self.dummy(kc.vec(6)),
            self.texture if self.texture is not None else self.dummy(kc.float3),
            for_bands(self.corner_normals(t), t.frames) if lit else self.dummy(kc.vec(9)),
            for_bands(corner_vectors(self.points, t), t.frames) if lit else self.dummy(kc.vec(9)),
            for_bands(self.pose, t.frames) if lit else self.dummy(kc.vec(12), 1),
            for_bands(self.sky, t.frames) if lit else self.dummy(kc.vec(30), 1),
            for_bands(self.material, t.frames) if lit else self.dummy(kc.float4, 1),
            for_bands(self.lights, t.frames) if lit else self.dummy(kc.vec(10)),
        ]

    def dummy(self, dtype: Any, ndim: int = 2) -> Array:
        """An argument that this kind of surface does not read."""
        return kc.zeros((1,) * ndim, dtype=dtype, real=precision(self.points))

    def paint(self, t: Triangles) -> Array:
        """(n, slots, 9) colours at the corners: white if there are none."""
        if self.face_colors is not None:
            return repeated(self.face_colors, t)
        if self.colors is not None:
            return corner_vectors(self.colors, t)
        return kc.ones((1, t.slots), dtype=kc.vec(9), real=precision(self.points))

    def corner_uvs(self, t: Triangles) -> Array:
        assert self.uvs is not None
        indices = self.faces if self.uv_faces is None else self.uv_faces
        if t.mix is None:
            made = like(self.uvs, (self.uvs.shape[0], t.slots), kc.vec(6))
            kc.launch(bands.gather_uvs, made.shape, [self.uvs, indices], [made])
        else:
            made = like(self.uvs, (t.frames, t.slots), kc.vec(6))
            kc.launch(bands.mix_uvs, made.shape, [for_frames(self.uvs, t.frames), indices, t.mix, t.part], [made])
        return made

    def corner_normals(self, t: Triangles) -> Array:
        """(frames, slots, 9): of the faces; or those given; or of the vertices, weighted by area."""
        if not self.smooth:
            made = like(self.points, (self.points.shape[0], self.faces.shape[0]), kc.float3)
            kc.launch(bands.face_normals, made.shape, [self.points, self.faces], [made])
            return repeated(made, t)
        if self.normals is not None:
            return corner_vectors(self.normals, t)
        shape = self.points.shape[:2]
        total = kc.zeros(shape, dtype=kc.float3, real=precision(self.points))
        made = like(self.points, shape, kc.float3)
        total.zero_()  # On a tape: a replay adds again.
        kc.launch(bands.add_normals, (shape[0], self.faces.shape[0]), [self.points, self.faces], [total])
        kc.launch(bands.unit_vectors, shape, [total], [made])
        return corner_vectors(made, t)


def corner_vectors(values: Array, t: Triangles) -> Array:
    """(n, vertices) vectors to (n, slots) of three vectors."""
    if t.mix is None:
        made = like(t.corner, (values.shape[0], t.slots), kc.vec(9))
        kc.launch(bands.gather_vectors, made.shape, [values, t.faces], [made])
    else:
        made = like(t.corner, (t.frames, t.slots), kc.vec(9))
        kc.launch(bands.mix_vectors, made.shape, [for_frames(values, t.frames), t.faces, t.mix, t.part], [made])
    return made


def repeated(values: Array, t: Triangles) -> Array:
    """(n, faces) vectors to (n, slots) of three."""
    made = like(t.corner, (values.shape[0], t.slots), kc.vec(9))
    kc.launch(bands.repeat_vectors, made.shape, [values, t.part], [made])
    return made


# -- soft pictures
def silhouette(t: Triangles, *, scale: Number, limit: Number) -> Array:
    """(frames, height, width): 1 - Π(1 - D), D = sigmoid(±d² scale), without faces whose d² ≥ limit."""
    inverse = samples(t)
    inputs = [t.banded("corner"), *t.lists, *t.screen.place, scale, limit]
    kc.launch(coverage.cover, t.screen.grid(t.frames), inputs, [inverse])
    image = picture(t)
    kc.launch(resolve.resolve_alpha, image.shape, [tiled(inverse, t), *grain(t.screen)], [image])
    return image


def soft_colours(
    t: Triangles, surface: Surface, background: Array, *, scale: Number, limit: Number, sharpness: Number,
    infinity: Number, start: Number, composite: bool,
) -> Array:  # fmt: skip
    """(frames, height, width, 4): SoftRas. `infinity` is the depth of the background, `start` where looking for the
    nearest face begins, `sharpness` how fast weights fall with depth."""
    top, inverse, weight, colour = samples(t), samples(t), samples(t), samples(t, kc.float3)
    grid = t.screen.grid(t.frames)
    inputs = [t.corner, t.slope, t.deep, *t.lists, *t.screen.place, limit, t.perspective, start]
    kc.launch(softras.nearest_depths, grid, inputs, [top])
    inputs = [
        t.banded("corner"), t.banded("slope"), t.banded("deep"), *surface.arguments(t), *t.lists, top, *t.screen.place,
        scale, limit, t.perspective, sharpness,
    ]  # fmt: skip
    kc.launch(softras.blend(surface.kind), grid, inputs, [inverse, weight, colour])
    image = picture(t, kc.float4)
    inputs = [tiled(a, t) for a in (inverse, weight, colour, top)]
    inputs += [for_frames(background, t.frames), *grain(t.screen), infinity, sharpness, int(composite)]
    kc.launch(resolve.resolve_soft, image.shape, inputs, [image])
    return image


# -- what is seen
@dataclass
class Seen:
    """The nearest face of each sample, and the weights of its corners there."""

    t: Triangles
    slot: Array
    weights: Array
    depth: Array


def see(t: Triangles, *, cull: bool) -> Seen:
    """Find what each sample sees."""
    grid = t.screen.grid(t.frames)
    slot = kc.empty(grid, dtype=int)
    slack = (1e-12 if precision(t.corner) is kc.float64 else 1e-6) * max(t.screen.units)
    inputs = [t.corner, t.slope, t.deep, *t.lists, *t.screen.place, slack, t.perspective, int(cull)]
    kc.launch(visible.nearest_faces, grid, inputs, [slot])
    weights, depth = samples(t, kc.float3), samples(t)
    inputs = [t.banded("corner"), t.banded("slope"), t.banded("deep"), slot, *t.screen.place, t.perspective]
    kc.launch(visible.look, grid, inputs, [weights, depth])
    return Seen(t, slot, weights, depth)


def painted(seen: Seen, surface: Surface, background: Array) -> Array:
    """(frames, height, width, 4): a hard picture."""
    nothing = kc.ones((1, 1, 1), real=precision(seen.t.corner))
    return _over(seen, colours_of(seen, surface), background, nothing, masked=False)


def masked(seen: Seen, surface: Surface, background: Array, *, sigmainv: Number, limit: Number) -> Array:
    """(frames, height, width, 4): DIB-R."""
    t, left = seen.t, samples(seen.t)
    inputs = [t.banded("corner"), *t.lists, *t.screen.place, sigmainv, limit, seen.slot]
    kc.launch(visible.soft_mask, t.screen.grid(t.frames), inputs, [left])
    return _over(seen, colours_of(seen, surface), background, tiled(left, t), masked=True)


def _over(seen: Seen, colour: Array, background: Array, left: Array, *, masked: bool) -> Array:
    """What is seen over the background."""
    t, image = seen.t, picture(seen.t, kc.float4)
    inputs = [tiled(colour, t), tiled(seen.slot, t), left, int(masked), for_frames(background, t.frames)]
    kc.launch(resolve.resolve_seen, image.shape, [*inputs, *grain(t.screen)], [image])
    return image


def colours_of(seen: Seen, surface: Surface) -> Array:
    colour = samples(seen.t, kc.float3)
    inputs = [*surface.arguments(seen.t), seen.slot, seen.weights]
    kc.launch(visible.paint(surface.kind), seen.t.screen.grid(seen.t.frames), inputs, [colour])
    return colour


def depths(seen: Seen, *, nothing: Number) -> Array:
    """(frames, height, width)."""
    t, image = seen.t, picture(seen.t)
    inputs = [tiled(seen.depth, t), tiled(seen.slot, t), nothing, *grain(t.screen)]
    kc.launch(resolve.resolve_depth, image.shape, inputs, [image])
    return image


def normals(seen: Seen, surface: Surface) -> Array:
    """(frames, height, width, 3) in the world."""
    t, vector, image = seen.t, samples(seen.t, kc.float3), picture(seen.t, kc.float3)
    rows = for_bands(surface.corner_normals(t), t.frames)
    kc.launch(visible.mix_seen, t.screen.grid(t.frames), [rows, seen.slot, seen.weights, 1], [vector])
    inputs = [tiled(vector, t), tiled(seen.slot, t), 1.0, *grain(t.screen)]
    kc.launch(resolve.resolve_normals, image.shape, inputs, [image])
    return image


def indices(seen: Seen, numbers: Any) -> Array:
    """(frames, height, width) whole numbers: numbers[face], -1 where nothing is seen."""
    t = seen.t
    image = kc.empty((t.frames, *t.screen.size), dtype=int)
    inputs = [tiled(seen.slot, t), t.part, *grain(t.screen), numbers]
    kc.launch(resolve.resolve_index, image.shape, inputs, [image])
    return image


def flow(seen: Seen, points: Array, pose: Array, lens: Array, *, perspective: bool, near: Number) -> Array:
    """(frames, height, width, 2): how far what is seen moves to the right and down, in pixels, if the vertices go to
    `points`, seen by the camera of `pose` and `lens`."""
    t, moved, image = seen.t, samples(seen.t, kc.float2), picture(seen.t, kc.float2)
    view = for_bands(view_of(points, pose), t.frames)
    mix = t.mix if t.mix is not None else kc.zeros((1, 1), dtype=kc.mat33, real=precision(points))
    inputs = [view, for_bands(lens, t.frames), t.faces, mix, t.part, int(perspective), near]
    inputs += [*t.screen.place, seen.slot, seen.weights]
    kc.launch(visible.flow_seen, t.screen.grid(t.frames), inputs, [moved])
    inputs = [tiled(moved, t), tiled(seen.slot, t), 1.0 / t.screen.sampling, *grain(t.screen)]
    kc.launch(resolve.resolve_flow, image.shape, inputs, [image])
    return image


# -- memory
def samples(t: Triangles, dtype: Any = float) -> Array:
    """Memory for something of each sample."""
    return like(t.corner, t.screen.grid(t.frames), dtype)


def tiled(array: Array, t: Triangles) -> Array:
    """The same with all tiles of a frame side by side."""
    return array.reshape(t.frames, t.screen.tiles, AREA)


def picture(t: Triangles, dtype: Any = float) -> Array:
    return like(t.corner, (t.frames, *t.screen.size), dtype)


def grain(screen: Screen) -> list[int]:
    return [screen.tiles_x, screen.sampling]
