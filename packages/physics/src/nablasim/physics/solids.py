"""What a body is made of: a shape or a closed surface of triangles, with its points, its faces and its mass."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import shaped
from nablasim.physics.features import Floats, corners
from nablasim.physics.kernels.bodies import MESH
from nablasim.physics.mass import MassProperties, solid_mass_properties
from nablasim.physics.mesh import TriMesh
from nablasim.physics.shapes import Box, Shape


@dataclass(frozen=True, eq=False)
class Solid:
    """Points at `vertices` + `spread` · size, in the body's frame, as `features.py` says, and faces between them."""

    kind: int
    sizes: dict[str, float]
    """The sizes of a shape by name, such as radius and height; none of a mesh."""
    vertices: Floats
    spread: Floats
    round: Floats
    faces: NDArray[np.int32]
    unit: MassProperties
    """Of a solid of density 1."""
    skin: TriMesh
    """What is drawn of it."""

    @cached_property
    def points(self) -> Floats:
        size = np.zeros(3)
        size[: len(self.sizes)] = list(self.sizes.values())
        return self.vertices + self.spread @ size


def solid(name: str, geometry: Shape | TriMesh | tuple[ArrayLike, ArrayLike], scale: ArrayLike) -> Solid:
    """A shape, a mesh, or vertices and faces; `scale` makes it larger, before anything else."""
    if isinstance(geometry, Shape):
        return _of_shape(_scaled(name, geometry, scale))
    if not isinstance(geometry, TriMesh):
        if not (isinstance(geometry, tuple) and len(geometry) == 2):
            raise TypeError(
                f"{name}: a body is a shape such as ph.Box(1, 1, 1), a closed ph.TriMesh, or its vertices and faces, "
                f"not {type(geometry).__name__}"
            )
        geometry = TriMesh(*geometry)
    mesh = geometry.moved(scale=scale).require_closed()
    n = len(mesh.vertices)
    return Solid(MESH, {}, np.array(mesh.vertices), np.zeros((n, 3, 3)), np.zeros((n, 2)), np.array(mesh.faces),
                 solid_mass_properties(mesh, 1.0), mesh)  # fmt: skip


def _of_shape(shape: Shape) -> Solid:
    spread, round = corners(shape)
    sizes = {field.name: float(getattr(shape, field.name)) for field in fields(shape)}
    none = np.zeros((0, 3), np.int32)
    return Solid(shape.kind, sizes, np.zeros((len(spread), 3)), spread, round, none, shape.mass_properties(1.0),
                 shape.mesh())  # fmt: skip


def _scaled(name: str, shape: Shape, scale: ArrayLike) -> Shape:
    factor = shaped(f"{name}: scale", np.broadcast_to(np.asarray(scale, float), 3), (3,))
    if isinstance(shape, Box):
        return Box(*(shape.size * factor))
    if not (factor == factor[0]).all():
        raise ValueError(f"{name}: {type(shape).__name__} can only be scaled by one number; use shape.mesh() otherwise")
    return replace(shape, **{f.name: getattr(shape, f.name) * factor[0] for f in fields(shape)})
