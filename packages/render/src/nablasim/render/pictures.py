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
from nablasim.render.kernels import surface as surfaces
from nablasim.render.kernels.triangles import AREA, Lenses
from nablasim.render.raster import Array, Number, Screen, Triangles, for_bands, for_frames, like, precision, view_of
from nablasim.render.shadows import Shadows
from nablasim.render.texels import Textures

COLOUR_CUTOFF = 1e-4
"""SoftRas: faces outside of which less than this is seen are left out of colours,"""
SILHOUETTE_CUTOFF = 1e-6
"""and of silhouettes."""
DIBR_CUTOFF = 1e-10
LAYERS = 4
"""How many surfaces of textures with an alpha channel a hard picture looks through."""


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
    textures: Textures | None = None
    kinds: Array | None = None
    """(faces, 2) whole numbers: texture, or -1, and material of each face."""
    normals: Array | None = None
    smooth: bool = True
    sky: Array | None = None
    material: Array | None = None
    lights: Array | None = None
    shines: bool = False
    harmonics: bool = False
    turned: int = 0
    """Whether normals are turned to the camera: 1 in perspective, 2 in an orthographic picture."""
    shadows: Shadows | None = None

    @property
    def kind(self) -> tuple[bool, bool]:
        """Which kernel colours it: with shadows there is one for all lights."""
        return (True, True) if self.shadows is not None else (self.shines, self.harmonics)

    @property
    def is_clear(self) -> bool:
        """Whether something may be seen through."""
        return self.textures is not None and self.textures.clear

    def banded(self, t: Triangles) -> Any:
        """All of it as kernels take it, with a row for each band."""
        return surfaces.Surface(paint=self.painted(t), light=None if self.lights is None else self.light(t))

    def painted(self, t: Triangles) -> Any:
        """What is painted. Textures alone; or, where some faces have colours or textures have smaller copies, all that
        there may be, so that there are few kinds of kernels."""
        if self.textures is None:
            return self.bare_paint(t, colors=for_bands(self.paint(t), t.frames))
        given: dict[str, Any] = {"uv": for_bands(self.corner_uvs(t), t.frames), "textures": self.textures.table}
        if self.textures.mixed or self.textures.levels > 1:
            given |= {"colors": for_bands(self.paint(t), t.frames), "triangles": t.in_bands}
        return self.bare_paint(t, **given)

    def bare_paint(self, t: Triangles, **given: Any) -> Any:
        (width, height), screen = t.screen.units, t.screen
        step = (2 * width / screen.columns, 2 * height / screen.rows)
        return surfaces.Paint(kinds=self.kinds, part=t.part, step=step, perspective=t.perspective, **given)

    def opacity(self, t: Triangles) -> Any:
        """What may be seen through, and nothing else."""
        return self.painted(t) if self.is_clear else self.bare_paint(t)

    def light(self, t: Triangles) -> Any:
        corners = self.corner_normals(t), corner_vectors(self.points, t)
        rows = (*corners, self.pose, self.sky, self.material, self.lights)
        names = ("normal", "position", "pose", "sky", "material", "lamps")
        named = {name: for_bands(row, t.frames) for name, row in zip(names, rows)}
        shadow = None if self.shadows is None else self.shadows.cast
        sunny = 0 if self.shadows is None else self.shadows.count
        return surfaces.Light(**named, sunny=sunny, turned=self.turned, shadow=shadow)

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
        uvs = self.uvs if t.mix is None else for_frames(self.uvs, t.frames)
        made = like(self.uvs, (uvs.shape[0], t.slots), kc.vec(6))
        kc.launch(bands.gather_uvs, made.shape, [uvs, t.slots_of(indices)], [made])
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
    rows = values if t.mix is None else for_frames(values, t.frames)
    made = like(t.corner, (rows.shape[0], t.slots), kc.vec(9))
    kc.launch(bands.gather_vectors, made.shape, [rows, t.slots_of(t.faces)], [made])
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
    inputs = [t.banded("corner"), t.lists, t.screen.place, scale, limit]
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
    top, sums = samples(t), softras.Sums(samples(t), samples(t), samples(t, kc.float3))
    grid = t.screen.grid(t.frames)
    inputs = [t.on_screen, surface.opacity(t), t.lists, t.screen.place, limit, t.perspective, start]
    kc.launch(softras.nearest_depths, grid, inputs, [top])
    inputs = [t.in_bands, surface.banded(t), t.lists, top, t.screen.place, scale, limit, t.perspective, sharpness]
    kc.launch(softras.blend(surface.kind), grid, inputs, [sums])
    image = picture(t, kc.float4)
    side_by_side = softras.Sums(*(tiled(a, t) for a in (sums.inverse, sums.weight, sums.colour)))
    inputs = [side_by_side, tiled(top, t), background, *grain(t.screen)]
    kc.launch(resolve.resolve_soft, image.shape, [*inputs, infinity, sharpness, int(composite)], [image])
    return image


# -- what is seen
@dataclass
class Seen:
    """The nearest face of each sample, and the weights of its corners there."""

    t: Triangles
    slot: Array
    weights: Array
    depth: Array

    @property
    def looked(self) -> Any:
        """As kernels take it."""
        return visible.Seen(slot=self.slot, weights=self.weights)


def see(t: Triangles, *, cull: bool, before: Seen | None = None) -> Seen:
    """Find what each sample sees; or what it would see without what lies before."""
    grid = t.screen.grid(t.frames)
    slot = kc.empty(grid, dtype=int)
    slack = (1e-12 if precision(t.corner) is kc.float64 else 1e-6) * max(t.screen.units)
    inputs = [t.on_screen, t.lists, t.screen.place, slack, t.perspective, int(cull)]
    if before is None:
        kc.launch(visible.nearest_faces, grid, [*inputs, like(t.corner, (1, 1, 1))], [slot])
    else:
        kc.launch(visible.next_faces, grid, [*inputs, before.depth], [slot])
    weights, depth = samples(t, kc.float3), samples(t)
    kc.launch(visible.look, grid, [t.in_bands, slot, t.screen.place, t.perspective], [weights, depth])
    return Seen(t, slot, weights, depth)


def painted(seen: Seen, surface: Surface, background: Array, *, cull: bool) -> Array:
    """(frames, height, width, 4): a hard picture."""
    nothing = kc.ones((1, 1, 1), real=precision(seen.t.corner))
    return _over(seen, through(seen, surface, cull=cull), background, nothing, masked=False)


def masked(seen: Seen, surface: Surface, background: Array, *, sigmainv: Number, limit: Number, cull: bool) -> Array:
    """(frames, height, width, 4): DIB-R."""
    t, left = seen.t, samples(seen.t)
    inputs = [t.banded("corner"), t.lists, t.screen.place, sigmainv, limit, seen.slot]
    kc.launch(visible.soft_mask, t.screen.grid(t.frames), inputs, [left])
    return _over(seen, through(seen, surface, cull=cull), background, tiled(left, t), masked=True)


def _over(seen: Seen, colour: Array, background: Array, left: Array, *, masked: bool) -> Array:
    """What is seen over the background."""
    t, image = seen.t, picture(seen.t, kc.float4)
    inputs = [tiled(colour, t), tiled(seen.slot, t), left, int(masked), background]
    kc.launch(resolve.resolve_seen, image.shape, [*inputs, *grain(t.screen)], [image])
    return image


def through(seen: Seen, surface: Surface, *, cull: bool) -> Array:
    """What is seen, and what is seen through it where textures are not opaque: colour times opacity, and opacity."""
    colour = colours_of(seen, surface)
    for _ in range(LAYERS - 1 if surface.is_clear else 0):
        seen = see(seen.t, cull=cull, before=seen)
        both = samples(seen.t, kc.float4)
        inputs = [colour, colours_of(seen, surface)]
        kc.launch(visible.lay_under, seen.t.screen.grid(seen.t.frames), inputs, [both])
        colour = both
    return colour


def colours_of(seen: Seen, surface: Surface) -> Array:
    colour = samples(seen.t, kc.float4)
    inputs = [surface.banded(seen.t), seen.looked]
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
    kc.launch(visible.mix_seen, t.screen.grid(t.frames), [rows, seen.looked, 1], [vector])
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
    lenses = Lenses(lens=for_bands(lens, t.frames), perspective=int(perspective), units=t.screen.units)
    inputs = [view, lenses, t.slots_of(t.faces), near, t.screen.place, seen.looked]
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
