"""Fourteen closed surfaces of at most 250 vertices for the experiments: primitives, and organic non-convex ones.

The paper took fruit, animals, office things and aeroplanes from ShapeNet and DexNet; these are made of formulas, in the
same spirit: bodies of revolution, bent tubes, bumpy balls, and prisms over outlines. All are about one metre large.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nablasim.physics import TriMesh

Points = NDArray[np.float64]
AROUND = 14
"""Vertices around a tube or a body of revolution."""


def names() -> list[str]:
    return list(SHAPES)


def shape(name: str) -> TriMesh:
    """The surface of this name, with its mean vertex at the origin and its largest extent one metre."""
    if name not in SHAPES:
        raise KeyError(f"there is no shape {name!r}; there are {', '.join(SHAPES)}")
    made = SHAPES[name]()
    low, high = made.vertices.min(axis=0), made.vertices.max(axis=0)
    return TriMesh((made.vertices - (low + high) / 2) / float((high - low).max()), made.faces)


def _tube(rings: Points, first: Points, last: Points) -> TriMesh:
    """Rings of points (rings, around, 3), closed by a point at either end."""
    n, around = rings.shape[:2]
    points = np.concatenate([first[None], rings.reshape(-1, 3), last[None]])
    end = len(points) - 1
    faces = []
    for k in range(around):
        j = (k + 1) % around
        faces.append((0, 1 + j, 1 + k))
        for i in range(n - 1):
            a, b = 1 + i * around + k, 1 + i * around + j
            c, d = a + around, b + around
            faces += [(a, b, c), (b, d, c)]
        faces.append((end, 1 + (n - 1) * around + k, 1 + (n - 1) * around + j))
    return _outward(points, np.array(faces))


def _outward(points: Points, faces: NDArray[np.int64]) -> TriMesh:
    """Faces turned so that the volume is positive."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum()
    return TriMesh(points, faces if volume > 0 else faces[:, ::-1])


def _revolved(profile: Callable[[Points], tuple[Points, Points]], rings: int = 15, around: int = AROUND) -> TriMesh:
    """A body of revolution about y: `profile` gives radius and height for parameters in [0, 1]."""
    t = np.linspace(0, 1, rings + 2)
    radius, height = profile(t)
    angle = 2 * np.pi * np.arange(around) / around
    ring = np.stack([np.cos(angle), np.zeros(around), np.sin(angle)], axis=-1)
    up = np.array([0.0, 1.0, 0.0])
    rows = radius[1:-1, None, None] * ring + height[1:-1, None, None] * up
    return _tube(rows, height[0] * up, height[-1] * up)


def _bent(path: Callable[[Points], Points], radius: Callable[[Points], Points], rings: int = 15) -> TriMesh:
    """A tube around a plane curve in x and y, thin at its ends."""
    t = np.linspace(0, 1, rings + 2)
    centre = path(t)
    along = np.gradient(centre, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    side = np.cross([0.0, 0.0, 1.0], along)
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    turn = np.cos(angle)[None, :, None] * side[:, None] + np.sin(angle)[None, :, None] * np.array([0.0, 0.0, 1.0])
    rows = centre[:, None] + radius(t)[:, None, None] * turn
    return _tube(rows[1:-1], centre[0], centre[-1])


def _ball(bump: Callable[[Points], Points], rings: int = 15, around: int = AROUND) -> TriMesh:
    """A sphere whose radius is a function of the direction (..., 3)."""
    angle = np.pi * np.arange(1, rings + 1) / (rings + 1)
    turn = 2 * np.pi * np.arange(around) / around
    way = np.stack([
        np.sin(angle)[:, None] * np.cos(turn), np.cos(angle)[:, None] + 0 * turn, np.sin(angle)[:, None] * np.sin(turn)
    ], axis=-1)  # fmt: skip
    ends = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    first, last = bump(ends)[:, None] * ends
    return _tube(bump(way)[..., None] * way, first, last)


def _prism(outline: Points, thickness: float) -> TriMesh:
    """A plate over a star-shaped outline (n, 2)."""
    n = len(outline)
    flat = np.concatenate([outline, np.zeros((n, 1))], axis=1)
    centre = np.append(outline.mean(axis=0), 0.0)
    lift = np.array([0.0, 0.0, thickness / 2])
    return _tube(np.stack([flat - lift, flat + lift]), centre - lift, centre + lift)


def _star(points: int, inner: float) -> Points:
    angle = np.pi * np.arange(2 * points) / points
    radius = np.where(np.arange(2 * points) % 2, inner, 1.0)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def _plane() -> TriMesh:
    """An aeroplane: fuselage, wings and tail as one outline."""
    half = np.array([(1.0, 0.0), (0.8, 0.12), (0.35, 0.14), (0.1, 0.95), (-0.12, 0.95), (-0.1, 0.14), (-0.7, 0.1),
                     (-0.85, 0.4), (-1.0, 0.4), (-0.95, 0.0)])  # fmt: skip
    return _prism(np.concatenate([half, half[-2:0:-1] * [1, -1]]), 0.22)


def _grid_box(size: tuple[float, float, float]) -> TriMesh:
    x, y, z = size
    return _prism(np.array([(-x, -y), (x, -y), (x, y), (-x, y)]), 2 * z)


def _cone(t: Points) -> tuple[Points, Points]:
    """Down the side, then in over the base."""
    return np.interp(t, [0, 0.7, 1], [0, 0.5, 0]), np.interp(t, [0, 0.7, 1], [1.0, 0, 0])


def _cylinder(t: Points) -> tuple[Points, Points]:
    return np.interp(t, [0, 0.25, 0.75, 1], [0, 0.4, 0.4, 0]), np.interp(t, [0, 0.25, 0.75, 1], [0.5, 0.5, -0.5, -0.5])


def _pear(t: Points) -> tuple[Points, Points]:
    a = np.pi * t
    return 0.35 * np.sin(a) * (1 - 0.45 * np.cos(a)), 0.5 * np.cos(a)


def _bottle(t: Points) -> tuple[Points, Points]:
    radius = np.interp(t, [0, 0.08, 0.3, 0.42, 0.5, 0.92, 1], [0, 0.1, 0.1, 0.16, 0.26, 0.26, 0])
    return radius, np.interp(t, [0, 0.08, 0.92, 1], [0.5, 0.5, -0.5, -0.5])


def _pawn(t: Points) -> tuple[Points, Points]:
    radius = np.interp(t, [0, 0.1, 0.2, 0.3, 0.36, 0.42, 0.7, 0.85, 0.93, 1], [0, 0.15, 0.18, 0.13, 0.07, 0.14, 0.15,
                       0.28, 0.28, 0])  # fmt: skip
    return radius, 0.5 - t


def _arc(t: Points) -> Points:
    a = np.pi * (0.15 + 0.7 * t)
    return np.stack([np.cos(a), np.sin(a), 0 * a], axis=-1)


SHAPES: dict[str, Callable[[], TriMesh]] = {
    "box": lambda: _grid_box((0.5, 0.5, 0.5)),
    "brick": lambda: _grid_box((0.5, 0.3, 0.2)),
    "cone": lambda: _revolved(_cone),
    "cylinder": lambda: _revolved(_cylinder),
    "ball": lambda: _ball(lambda d: np.ones(d.shape[:-1])),
    "pear": lambda: _revolved(_pear),
    "bottle": lambda: _revolved(_bottle),
    "pawn": lambda: _revolved(_pawn),
    "banana": lambda: _bent(_arc, lambda t: 0.02 + 0.2 * np.sqrt(np.sin(np.pi * t))),
    "potato": lambda: _ball(lambda d: 0.6 + 0.12 * np.sin(3 * d[..., 0] + 1) + 0.15 * d[..., 1] * d[..., 2]),
    "fish": lambda: _ball(
        lambda d: 0.25 + 0.75 * d[..., 0] ** 4 * (0.6 + 0.4 * np.sign(d[..., 0])) + 0.35 * np.abs(d[..., 1]) ** 3
    ),
    "duck": lambda: _ball(
        lambda d: 0.5 + 0.45 * np.exp(-6 * ((d[..., 0] - 0.6) ** 2 + (d[..., 1] - 0.75) ** 2 + d[..., 2] ** 2))
        + 0.3 * np.exp(-8 * ((d[..., 0] + 0.9) ** 2 + (d[..., 1] - 0.3) ** 2 + d[..., 2] ** 2))
    ),
    "star": lambda: _prism(_star(5, 0.45), 0.4),
    "plane": _plane,
}  # fmt: skip
