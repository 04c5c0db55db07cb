"""Shadows of directional lights: the scene as they see it, in which kernels look up what is in the way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import kernelc as kc
from nablasim.render.kernels import shadows as kernels
from nablasim.render.kernels import surface
from nablasim.render.kernels.triangles import TILE
from nablasim.render.raster import (
    Array,
    Number,
    Screen,
    Triangles,
    for_bands,
    lay_out,
    like,
    points_for_frames,
    view_of,
)

SIZE = (surface.LIGHT_TILES * TILE, surface.LIGHT_TILES * TILE)
"""Of a light's screen."""


@dataclass
class Shadows:
    """The lights of a batch of frames, each with triangles of its own on a screen of its own."""

    triangles: Triangles
    pose: Array
    """(lights · frames, 12)."""
    measure: Array
    count: int

    @cached_property
    def cast(self) -> Any:
        """As kernels take it."""
        t = self.triangles
        return surface.Shadow(
            pose=for_bands(self.pose, t.frames), triangles=t.in_bands, lists=t.lists, measure=self.measure
        )


def shadows_of(
    points: Array, faces: Array, face_count: int, lamps: Array, count: int, *, width: Number, bias: Number
) -> Shadows:
    """Shadows of the first `count` of the lamps, of faces on points (frames, vertices)."""
    frames = points.shape[0]
    pose = like(points, (count * frames,), kc.vec(12))
    kc.launch(kernels.aim, (count, frames), [lamps, frames], [pose])
    view = view_of(points_for_frames(points, count * frames), pose)
    lens, measure, reach = like(points, (count * frames,), kc.vec(11)), like(points, (5,)), like(points, (1,))
    kc.launch(kernels.measure_lights, 1, [view, width, bias], [lens, measure, reach])
    triangles = lay_out(
        view, faces, face_count, lens, Screen(SIZE), perspective=False, near=0.0, far=0.0, reach=reach, clips=False
    )
    return Shadows(triangles, pose, measure, count)
