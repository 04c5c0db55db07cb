"""What a body is made of: a shape, a closed surface of triangles, or signed distances; its points, faces and mass."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import shaped
from nablasim.physics.errors import about
from nablasim.physics.geometry.distance import Heightfield, SignedDistance
from nablasim.physics.geometry.features import Features, Floats, features
from nablasim.physics.geometry.mass import MassProperties, solid_mass_properties
from nablasim.physics.geometry.mesh import TriMesh
from nablasim.physics.geometry.shapes import Box, Shape
from nablasim.physics.geometry.shapes_kernels import FIELD, GRID, MESH

Geometry = Shape | TriMesh | SignedDistance | Heightfield | tuple[ArrayLike, ArrayLike]
GROUP = 16
"""Faces in a group: the nearest face is looked for group by group."""
FLAT, SHORT = 1e-4, 0.05
"""Parts of the extent of a mesh: up to the first, edges do not stick out; below the second, vertices are close enough
together to meet whatever there is."""


@dataclass(frozen=True, eq=False)
class Solid:
    """Points at `vertices` + spread · size, in the body's frame, as `features.py` says, and faces between them."""

    kind: int
    sizes: dict[str, float]
    """The sizes of a shape by name, such as radius and height; none of a mesh."""
    vertices: Floats
    features: Features
    faces: NDArray[np.int32]
    """Neighbours follow each other."""
    unit: MassProperties
    """Of a solid of density 1."""
    skin: TriMesh | None = None
    """What is drawn of it."""
    distance: SignedDistance | None = None
    field: Heightfield | None = None

    @cached_property
    def points(self) -> Floats:
        """Where the points are."""
        size = np.zeros(3)
        size[: len(self.sizes)] = list(self.sizes.values())
        return self.vertices + self.features.spread @ size


def solid(name: str, geometry: Geometry, scale: ArrayLike) -> Solid:
    """What a body is made of; `scale` makes it larger, before anything else."""
    if isinstance(geometry, Shape):
        return _of_shape(_scaled(name, geometry, scale))
    if isinstance(geometry, SignedDistance):
        return _of_distance(name, geometry, scale)
    if isinstance(geometry, Heightfield):
        return _of_heights(geometry, shaped(f"{name}: scale", np.broadcast_to(np.asarray(scale, float), 3), (3,)))
    if not isinstance(geometry, TriMesh):
        if not (isinstance(geometry, tuple) and len(geometry) == 2):
            raise TypeError(
                f"{name}: a body is a shape such as ph.Box(1, 1, 1), a closed ph.TriMesh, or its vertices and faces, "
                f"not {type(geometry).__name__}"
            )
    with about(name):
        mesh = geometry if isinstance(geometry, TriMesh) else TriMesh(*geometry)
        mesh = mesh.moved(scale=scale).require_closed()
    n = len(mesh.vertices)
    points = Features(np.zeros((n, 3, 3)), np.zeros((n, 2)), np.ones(n), n, edges=crossing_edges(mesh))
    return Solid(MESH, {}, np.array(mesh.vertices), points, _in_groups(mesh), solid_mass_properties(mesh, 1.0), mesh)


def crossing_edges(mesh: TriMesh) -> NDArray[np.int32]:
    """The edges by which a mesh may touch between its vertices: those that stick out, and are not very short."""
    corners = mesh.vertices[mesh.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    ends = np.concatenate([mesh.faces[:, [k, (k + 1) % 3]] for k in range(3)])
    face, apex = np.tile(np.arange(len(mesh.faces)), 3), np.concatenate([mesh.faces[:, (k + 2) % 3] for k in range(3)])
    edges, which, count = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    first = np.cumsum(count) - count
    one, other = order[first], order[np.minimum(first + 1, len(order) - 1)]
    # Where the other triangle falls away from the plane of the one, by more than what is flat.
    fall = -np.einsum("ij,ij->i", normal[face[one]], mesh.vertices[apex[other]] - mesh.vertices[edges[:, 0]])
    length = np.linalg.norm(mesh.vertices[edges[:, 0]] - mesh.vertices[edges[:, 1]], axis=1)
    extent = float(np.ptp(mesh.vertices, axis=0).max())
    sharp = (fall > FLAT * extent) | (count != 2)
    return np.array(edges[sharp & (length > SHORT * extent)], np.int32)


_NO_FACES = np.zeros((0, 3), np.int32)


@lru_cache(maxsize=256)
def _of_shape(shape: Shape) -> Solid:
    """Kept: thousands of bodies may be of one shape."""
    found = features(shape)
    sizes = {field.name: float(getattr(shape, field.name)) for field in fields(shape)}
    return Solid(shape.kind, sizes, np.zeros((len(found.spread), 3)), found, _NO_FACES, shape.mass_properties(1.0),
                 shape.mesh())  # fmt: skip


def _of_distance(name: str, distance: SignedDistance, scale: ArrayLike) -> Solid:
    factor = float(np.asarray(scale, float).reshape(-1)[0])
    if not (np.asarray(scale) == factor).all() or not factor > 0:
        raise ValueError(f"{name}: signed distances can only be scaled by one positive number, not {scale!r}")
    scaled = SignedDistance(distance.values * factor, distance.low * factor, distance.high * factor)
    return _without_mass(GRID, distance=scaled)


def _of_heights(field: Heightfield, scale: Floats) -> Solid:
    scaled = Heightfield(field.heights * scale[1], field.size * scale[[0, 2]])
    return replace(_without_mass(FIELD), field=scaled, skin=scaled.mesh())


def _without_mass(kind: int, distance: SignedDistance | None = None) -> Solid:
    # One point, which touches nothing: every body has a first one.
    none = Features(np.zeros((1, 3, 3)), np.zeros((1, 2)), np.ones(1), 0, 1)
    unit = MassProperties(1.0, np.zeros(3), np.eye(3))
    return Solid(kind, {}, np.zeros((1, 3)), none, _NO_FACES, unit, distance=distance)


def _in_groups(mesh: TriMesh) -> NDArray[np.int32]:
    """The faces along a curve that fills space (Morton), so that a run of them lies in a small box."""
    centres = mesh.vertices[mesh.faces].mean(axis=1)
    cells = (1023 * (centres - centres.min(axis=0)) / max(float(np.ptp(centres, axis=0).max()), 1e-300)).astype(
        np.int64
    )
    code = np.zeros(len(cells), np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.array(mesh.faces[np.argsort(code, kind="stable")])


def _scaled(name: str, shape: Shape, scale: ArrayLike) -> Shape:
    if isinstance(scale, float) and scale == 1.0:
        return shape
    factor = shaped(f"{name}: scale", np.broadcast_to(np.asarray(scale, float), 3), (3,))
    if isinstance(shape, Box):
        return Box(*(shape.size * factor))
    if not (factor == factor[0]).all():
        raise ValueError(f"{name}: {type(shape).__name__} can only be scaled by one number; use shape.mesh() otherwise")
    return replace(shape, **{f.name: getattr(shape, f.name) * factor[0] for f in fields(shape)})
