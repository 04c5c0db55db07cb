"""Analytic shapes: box, sphere, capsule, cylinder, cone. Each has a surface, a signed distance, and mass properties.

The formulas are those of `shapes_kernels.py`, which are called from here with plain numbers; `kind` and `size` are what
kernels get. Round shapes stand upright, along y; the origin is half-way up, which for a cone is not the centre of mass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import is_number
from nablasim.physics.errors import MeshError
from nablasim.physics.geometry import shapes_kernels as forms
from nablasim.physics.geometry.mass import MassProperties
from nablasim.physics.geometry.mesh import TetMesh, TriMesh


@dataclass(frozen=True)
class Shape(ABC):
    """What all shapes share. Sizes are positive, in metres."""

    kind: ClassVar[int]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not is_number(value) or not (np.isfinite(value) and value > 0):
                raise ValueError(f"{type(self).__name__}: {field.name} must be positive and finite, not {value!r}")

    @property
    def size(self) -> NDArray[np.float64]:
        """(3) the size as kernels get it: the parameters in order, filled up with zeros."""
        values = astuple(self)
        return np.array([*values, *[0.0] * (3 - len(values))], dtype=float)

    @property
    def volume(self) -> float:
        """m³."""
        return float(self._moments()[0])

    @property
    def com(self) -> NDArray[np.float64]:
        """The centre of mass in the shape's own frame, m."""
        return np.array([0.0, float(self._moments()[1]), 0.0])

    def mass_properties(self, density: float) -> MassProperties:
        """Mass, centre of mass, and inertia about it, of a solid of this shape."""
        volume, _, *principal = self._moments()
        mass = float(density * volume)
        return MassProperties(mass, self.com, mass * np.diag([float(p) for p in principal]))

    def distance(self, points: ArrayLike) -> NDArray[np.float64]:
        """How far points (…, 3) lie outside of the shape; negative inside."""
        return self._distances(points)[0]

    def normal(self, points: ArrayLike) -> NDArray[np.float64]:
        """The outward normal of the surface nearest to each point: the gradient of the distance."""
        return self._distances(points)[1]

    @abstractmethod
    def mesh(self, *args: Any, **detail: Any) -> TriMesh:
        """The surface as triangles; round shapes take how fine. Vertices lie on the surface."""

    def _moments(self) -> Any:
        return forms.shape_moments(self.kind, self.size)

    def _distances(self, points: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        p = np.array(points, dtype=float)
        n = p.size // 3
        kind, size = np.full(n, self.kind, dtype=np.int32), np.tile(self.size, (n, 1))
        distance, normal = np.zeros(n), np.zeros((n, 3))
        kc.launch(forms.shape_distances, dim=n, inputs=[kind, size, p.reshape(n, 3)], outputs=[distance, normal])
        return distance.reshape(p.shape[:-1]), normal.reshape(p.shape)


@dataclass(frozen=True)
class Box(Shape):
    """A box with sides a, b, c along x, y, z."""

    a: float
    b: float
    c: float
    kind = forms.BOX

    def mesh(self, *, cells: int | tuple[int, int, int] = 1) -> TriMesh:
        """Two triangles per cell of each side; `cells` along x, y, z."""
        block = TetMesh.box(self.size, cells)
        return block.moved(pos=-self.size / 2).surface.compact()


@dataclass(frozen=True)
class Sphere(Shape):
    """A ball."""

    radius: float
    kind = forms.SPHERE

    def mesh(self, *, subdivisions: int = 3) -> TriMesh:
        """20·4^subdivisions triangles: those of an icosahedron, divided again and again."""
        vertices, faces = _icosahedron()
        for _ in range(subdivisions):
            vertices, faces = _divided(vertices, faces)
            vertices /= np.linalg.norm(vertices, axis=1, keepdims=True)
        return TriMesh(self.radius * vertices, faces)


@dataclass(frozen=True)
class Capsule(Shape):
    """A cylinder of this radius and height with a half ball on either end: height + 2 radius tall."""

    radius: float
    height: float
    kind = forms.CAPSULE

    def mesh(self, *, segments: int = 32, rings: int = 8) -> TriMesh:
        """`segments` around the axis, `rings` on each half ball."""
        angles = np.linspace(-np.pi / 2, 0, rings + 1)
        low = np.stack([np.cos(angles), np.sin(angles)], axis=1) * self.radius - [0, self.height / 2]
        return _turned(np.concatenate([low, low[::-1] * [1, -1]]), segments)


@dataclass(frozen=True)
class Cylinder(Shape):
    """A cylinder."""

    radius: float
    height: float
    kind = forms.CYLINDER

    def mesh(self, *, segments: int = 32) -> TriMesh:
        """`segments` around the axis."""
        r, h = self.radius, self.height / 2
        return _turned(np.array([[0, -h], [r, -h], [r, h], [0, h]]), segments)


@dataclass(frozen=True)
class Cone(Shape):
    """A cone with its base at -height/2 and its tip at +height/2; the centre of mass is at -height/4."""

    radius: float
    height: float
    kind = forms.CONE

    def mesh(self, *, segments: int = 32) -> TriMesh:
        """`segments` around the axis."""
        r, h = self.radius, self.height / 2
        return _turned(np.array([[0, -h], [r, -h], [0, h]]), segments)


def _turned(profile: NDArray[np.float64], segments: int) -> TriMesh:
    """The surface that a profile of (distance from the axis, height) leaves when it turns about y.

    The profile runs from the lowest point of the axis to the highest one.
    """
    if segments < 3:
        raise MeshError(f"a round shape needs at least 3 segments, not {segments}")
    turn = np.arange(segments) * (2 * np.pi / segments)
    circle = np.stack([np.cos(turn), np.zeros(segments), -np.sin(turn)], axis=1)
    rings = [r * circle + [0, y, 0] for r, y in profile[1:-1]]
    bottom, top = [0, profile[0, 1], 0], [0, profile[-1, 1], 0]
    last = len(rings) * segments + 1
    i, j = np.arange(segments), (np.arange(segments) + 1) % segments
    faces = [np.stack([np.zeros_like(i), 1 + j, 1 + i], axis=1)]
    for k in range(len(rings) - 1):
        a, b = 1 + k * segments, 1 + (k + 1) * segments
        faces += [np.stack([a + i, a + j, b + j], axis=1), np.stack([a + i, b + j, b + i], axis=1)]
    rim = last - segments
    faces.append(np.stack([rim + i, rim + j, np.full_like(i, last)], axis=1))
    return TriMesh(np.vstack([bottom, *rings, top]), np.concatenate(faces))


def _icosahedron() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A pole, two rings of five, a pole."""
    turn = np.arange(5) * (2 * np.pi / 5)
    r, h = 2 / np.sqrt(5), 1 / np.sqrt(5)
    low = np.stack([r * np.cos(turn), np.full(5, -h), -r * np.sin(turn)], axis=1)
    high = np.stack([r * np.cos(turn + np.pi / 5), np.full(5, h), -r * np.sin(turn + np.pi / 5)], axis=1)
    i, j = np.arange(5), (np.arange(5) + 1) % 5
    faces = [
        np.stack([np.zeros_like(i), 1 + j, 1 + i], axis=1),
        np.stack([1 + i, 1 + j, 6 + i], axis=1),
        np.stack([1 + j, 6 + j, 6 + i], axis=1),
        np.stack([6 + i, 6 + j, np.full_like(i, 11)], axis=1),
    ]
    return np.vstack([[0, -1, 0], low, high, [0, 1, 0]]), np.concatenate(faces)


def _divided(vertices: NDArray[np.float64], faces: NDArray) -> tuple[NDArray[np.float64], NDArray]:
    """Each triangle becomes four, with new vertices in the middle of the edges."""
    ends = np.stack([faces[:, [k, (k + 1) % 3]] for k in range(3)], axis=1).reshape(-1, 2)
    edges, which = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True)
    a, b, c = faces.T
    ab, bc, ca = (which.reshape(-1, 3) + len(vertices)).T
    new = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.vstack([vertices, vertices[edges].mean(axis=1)]), np.concatenate([np.stack(f, axis=1) for f in new])
