"""The points by which bodies touch things: corners, centres of balls, rims; and which of them can touch together.

For shapes they are linear in the sizes, so that the sizes can be optimised: a point is at `spread` · size, and is the
centre of a ball of radius round[0] · size[0], or of a rim about the y axis of radius round[1] · size[0].

Edges join some of them: what crosses another body between its points is met by the middle of the part that is inside.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from nablasim.physics.geometry.shapes import Box, Capsule, Cone, Cylinder, Shape, Sphere

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Sets = list[tuple[Floats, Ints]]
"""Normals and points."""

RING = 8
"""Points on the flat end of a cylinder or cone: they hold it up, and brake it when it spins on that end."""
INSET = 0.9
"""How far out they are: within the edge, so that a rolling cylinder touches with its true round only."""
WITHIN = 0.4
"""How far out the points on the sides of a box are, of its size. Half would be the edge, where no side is the nearest;
what is pressed in deeper than the rest, a tenth of the size, may be pushed out of another side."""
EDGE = 0.25
"""The share of an edge, of the stiffness, damping and friction of a contact."""
TOGETHER, ALONE = 6, 2
"""How many sets of points that can touch together, and how many single points, are looked at for the stable step."""


class Features(NamedTuple):
    """Points of a shape: `spread` (n, 3, 3) and `round` (n, 2).

    The first `planes` of them are what can touch a plane: enough to hold a convex shape up, and no more. Those from
    `others` on meet the surfaces of other bodies: each with the part `share` of stiffness, damping and friction, such
    that a shape lies as firmly on a large box as on a plane.
    """

    spread: Floats
    round: Floats
    share: Floats
    planes: int
    others: int = 0
    edges: Ints = np.zeros((0, 2), np.int32)
    """Pairs of points; of ends with a ball around them, those of an axis."""


def features(shape: Shape) -> Features:
    """The points of a shape."""
    if isinstance(shape, Box):
        corners = [np.diag(0.5 * np.array(s)) for s in product((-1, 1), repeat=3)]
        # With 2 of the points on its side and 5 / 4 of the edges that is four, where a side lies on something large.
        return _features(_points(corners, 3 / 16), after=_points(_faces(), 2 / 9))._replace(edges=_box_edges())
    if isinstance(shape, Sphere):
        return _features(_balls([0.0], 1.0))
    if isinstance(shape, Capsule):
        found = _features(_balls([-0.5, 0.5], 0.5), after=_balls([-0.25, 0.0, 0.25], 0.25))
        return found._replace(edges=np.array([[0, 1]], np.int32))
    if isinstance(shape, Cylinder):
        within, edge = ([*_ring(-0.5, n, out), *_ring(0.5, n, out)] for n, out in ((RING, INSET), (2 * RING, 1.0)))
        return _features(_points(within, 0.5), before=_rims([-0.5, 0.5]), after=_points(edge, 5 / (2 * RING)))
    if isinstance(shape, Cone):
        within, edge = [*_ring(-0.5, RING, INSET), _height(0.5)], _ring(-0.5, 2 * RING, 1.0)
        return _features(_points(within, 0.5), before=_rims([-0.5]), after=_points(edge, 5 / (2 * RING)))
    raise TypeError(f"a shape is a Box, Sphere, Capsule, Cylinder or Cone, not {type(shape).__name__}")


Part = tuple[Floats, Floats, Floats]
"""Spread, round and share of some points."""


def _features(both: Part, *, before: Part | None = None, after: Part | None = None) -> Features:
    """`before` only planes are touched by, `after` only other bodies."""
    parts = [part for part in (before, both, after) if part is not None]
    first = 0 if before is None else len(before[0])
    spread, round, share = (np.concatenate(kind) for kind in zip(*parts))
    return Features(spread, round, share, first + len(both[0]), first)


def _points(spread: list[Floats], share: float) -> Part:
    return np.stack(spread), np.zeros((len(spread), 2)), np.full(len(spread), share)


def _balls(heights: list[float], share: float) -> Part:
    n = len(heights)
    return np.stack([_height(h) for h in heights]), np.array([[1.0, 0.0]] * n), np.full(n, share)


def _rims(heights: list[float]) -> Part:
    n = len(heights)
    return np.stack([_height(h) for h in heights]), np.array([[0.0, 1.0]] * n), np.ones(n)


def _height(part: float) -> Floats:
    """At this part of the height, which is the second size."""
    made = np.zeros((3, 3))
    made[1, 1] = part
    return made


def _ring(height: float, count: int, out: float) -> list[Floats]:
    """Points around the axis, at this part of the radius."""
    ring = []
    for angle in 2 * np.pi * np.arange(count) / count:
        place = _height(height)
        place[0, 0], place[2, 0] = out * np.cos(angle), out * np.sin(angle)
        ring.append(place)
    return ring


def _box_edges() -> Ints:
    """Corners that differ along one axis; they are in the order of `product((-1, 1), repeat=3)`."""
    return np.array([[c, c + step] for step in (1, 2, 4) for c in range(8) if not c & step], np.int32)


def held(share: Floats, edges: Ints) -> Floats:
    """The shares of points with those of the edges that end there: of a side that lies on something, all of four edges
    and a quarter of those that stand on it.
    """
    made = np.array(share, np.float64)
    np.add.at(made, edges.ravel(), EDGE * 5 / 12)
    return made


def _faces() -> list[Floats]:
    """Nine points on each side of a box."""
    at = []
    for axis, side, u, v in product(range(3), (-0.5, 0.5), (-1, 0, 1), (-1, 0, 1)):
        place = np.zeros(3)
        place[axis], place[axis - 2], place[axis - 1] = side, WITHIN * u, WITHIN * v
        at.append(np.diag(place))
    return at


# -------------------------------------------------------------------------------------------- what touches together
class Supports(NamedTuple):
    """Sets of points that a plane can touch at the same time: the plane's normal of each, and pairs (set, point)."""

    normals: Floats
    members: Ints

    @property
    def starts(self) -> Ints:
        """Where the pairs of each set begin; they are in order."""
        return np.searchsorted(self.members[:, 0], np.arange(len(self.normals)))


def supports(points: Floats, share: Floats, mass: float, com: Floats, inertia: Floats) -> Supports:
    """The stiffest sets of points of a body that can touch together, and the stiffest single points."""
    arms = points - com
    level = 0.01 * float(np.ptp(points, axis=0).max())
    faces: Sets = [(-n, np.flatnonzero(points @ n >= (points @ n).max() - level)) for n in _outward(points)]
    alone: Sets = [(n, np.array([i])) for i, n in enumerate(_weakest(arms, inertia))]
    best: Sets = []
    for found, count in ((faces, TOGETHER), (alone, ALONE)):
        sets = _joined_sets(found)
        stiff = rates(sets, arms, share, np.full(len(found), mass), np.broadcast_to(inertia, (len(found), 3, 3)))
        best += [found[i] for i in np.argsort(-stiff, kind="stable")[:count]]
    return _joined_sets(best)


def rates(sets: Supports, arms: Floats, share: Floats, mass: Floats, inertia: Floats) -> Floats:
    """Of each set, the largest eigenvalue of M⁻¹ K for contacts of unit stiffness along the normal.

    It is 1 / m for a push through the centre of mass, and more where points turn the body, or are several. `arms` are
    from the centre of mass to the points; mass and inertia are those of each set's body.
    """
    of, point = sets.members.T
    n = sets.normals[of] * np.sqrt(share[point])[:, None]
    # Rate of the gap: n·v + (arm × n)·omega, with both velocities in units in which M is the identity.
    turn = np.einsum("ni,nij->nj", np.cross(arms[point], n), np.linalg.cholesky(np.linalg.inv(inertia))[of])
    push = np.concatenate([n / np.sqrt(mass[of])[:, None], turn], axis=1)
    return np.linalg.eigvalsh(np.add.reduceat(push[:, :, None] * push[:, None, :], sets.starts))[:, -1]


SPARE = 2.0
"""Things are touched from two sides at a time."""


def crowd(sets: Supports, arms: Floats, mass: float, inertia: Floats) -> float:
    """How many points share a body: dampers c of points whose inverse masses are w are stable for c dt w crowd < 1.

    By the same modes as `rates`: 1 for a ball, 1.5 for a cube on one side, many for a fine mesh; and some to spare.
    """
    of, point = sets.members.T
    push = _pushes(arms[point], sets.normals[of], mass, inertia)
    push /= np.linalg.norm(push, axis=1, keepdims=True)  # Its square is the inverse mass of the point.
    return SPARE * float(np.linalg.eigvalsh(np.add.reduceat(push[:, :, None] * push[:, None, :], sets.starts)).max())


def crowd_across(sets: Supports, arms: Floats, mass: float, inertia: Floats) -> float:
    """The same of friction, which acts across the normals; inverse masses as of `kernels.bodies.lightness_across`."""
    of, point = sets.members.T
    n = sets.normals[of]
    least = np.eye(3)[np.abs(n).argmin(axis=1)]
    one = np.cross(n, least) / np.linalg.norm(np.cross(n, least), axis=1, keepdims=True)
    both = np.stack([_pushes(arms[point], t, mass, inertia) for t in (one, np.cross(n, one))], axis=1)
    turns = (both[:, :, 3:] ** 2).sum(axis=(1, 2))
    modes = np.einsum("nti,ntj->nij", both, both) / (1 / mass + turns)[:, None, None]
    return SPARE * float(np.linalg.eigvalsh(np.add.reduceat(modes, sets.starts)).max())


def _pushes(arms: Floats, ways: Floats, mass: float, inertia: Floats) -> Floats:
    """How fast pushes at these places move a body, (n, 6), in units in which its mass and inertia are 1."""
    turn = np.cross(arms, ways) @ np.linalg.cholesky(np.linalg.inv(inertia))
    return np.concatenate([ways / np.sqrt(mass), turn], axis=1)


def _joined_sets(sets: Sets) -> Supports:
    members = [np.stack([np.full(len(points), i), points], axis=1) for i, (_, points) in enumerate(sets)]
    return Supports(np.array([n for n, _ in sets]), np.concatenate(members))


def _outward(points: Floats) -> Floats:
    """The normals of the faces of the convex hull; the axes, where the points span no volume."""
    try:
        faces = ConvexHull(points).equations[:, :3]
    except (QhullError, ValueError):
        return np.concatenate([np.eye(3), -np.eye(3)])
    return np.unique(faces.round(6), axis=0)[:4096]


def _weakest(arms: Floats, inertia: Floats) -> Floats:
    """For each point the direction in which a push there meets the least inertia."""
    cross = np.cross(np.broadcast_to(np.eye(3), (len(arms), 3, 3)), arms[:, None, :])
    return np.linalg.eigh(cross @ np.linalg.inv(inertia) @ cross.transpose(0, 2, 1))[1][:, :, -1]
