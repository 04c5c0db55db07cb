"""The points by which bodies touch things: corners, centres of balls, rims; and which of them can touch together.

For shapes they are linear in the sizes, so that the sizes can be optimised: a point is at `spread` · size, and is the
centre of a ball of radius round[0] · size[0], or of a rim about the y axis of radius round[1] · size[0].
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from nablasim.physics.shapes import Box, Capsule, Cone, Cylinder, Shape, Sphere

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Sets = list[tuple[Floats, Ints]]
"""Normals and points."""

RING = 8
"""Points on the flat end of a cylinder or cone: they hold it up, and brake it when it spins on that end."""
INSET = 0.9
"""How far out they are: within the edge, so that a rolling cylinder touches with its true round only."""
TOGETHER, ALONE = 6, 2
"""How many sets of points that can touch together, and how many single points, are looked at for the stable step."""


class Features(NamedTuple):
    """Points of a shape: `spread` (n, 3, 3) and `round` (n, 2)."""

    spread: Floats
    round: Floats

    def at(self, size: Floats) -> Floats:
        """Where they are, of a shape of this size."""
        return self.spread @ size


def corners(shape: Shape) -> Features:
    """What of a convex shape can touch a plane: enough to hold it up, and no more."""
    if isinstance(shape, Box):
        return _points(*(np.diag(0.5 * np.array(s)) for s in product((-1, 1), repeat=3)))
    if isinstance(shape, Sphere):
        return Features(np.zeros((1, 3, 3)), np.array([[1.0, 0.0]]))
    if isinstance(shape, Capsule):
        return Features(np.stack([_height(-0.5), _height(0.5)]), np.array([[1.0, 0.0]] * 2))
    if isinstance(shape, Cylinder):
        return _joined(_end(-0.5), _end(0.5))
    if isinstance(shape, Cone):
        return _joined(_end(-0.5), _points(_height(0.5)))
    raise TypeError(f"a shape is a Box, Sphere, Capsule, Cylinder or Cone, not {type(shape).__name__}")


def _points(*spread: Floats) -> Features:
    return Features(np.stack(spread), np.zeros((len(spread), 2)))


def _joined(*parts: Features) -> Features:
    return Features(np.concatenate([p.spread for p in parts]), np.concatenate([p.round for p in parts]))


def _height(part: float) -> Floats:
    """At this part of the height, which is the second size."""
    made = np.zeros((3, 3))
    made[1, 1] = part
    return made


def _end(part: float) -> Features:
    """The flat end of a round shape: its edge, and points within it."""
    ring = []
    for angle in 2 * np.pi * np.arange(RING) / RING:
        place = _height(part)
        place[0, 0], place[2, 0] = INSET * np.cos(angle), INSET * np.sin(angle)
        ring.append(place)
    return _joined(Features(_height(part)[None], np.array([[0.0, 1.0]])), _points(*ring))


# -------------------------------------------------------------------------------------------- what touches together
class Supports(NamedTuple):
    """Sets of points that a plane can touch at the same time: the plane's normal of each, and pairs (set, point)."""

    normals: Floats
    members: Ints

    @property
    def starts(self) -> Ints:
        """Where the pairs of each set begin; they are in order."""
        return np.searchsorted(self.members[:, 0], np.arange(len(self.normals)))


def supports(points: Floats, mass: float, com: Floats, inertia: Floats) -> Supports:
    """The stiffest sets of points of a body that can touch together, and the stiffest single points."""
    arms = points - com
    level = 0.01 * float(np.ptp(points, axis=0).max())
    faces: Sets = [(-n, np.flatnonzero(points @ n >= (points @ n).max() - level)) for n in _outward(points)]
    alone: Sets = [(n, np.array([i])) for i, n in enumerate(_weakest(arms, inertia))]
    best: Sets = []
    for found, count in ((faces, TOGETHER), (alone, ALONE)):
        sets = _joined_sets(found)
        stiff = rates(sets, arms, np.full(len(found), mass), np.broadcast_to(inertia, (len(found), 3, 3)))
        best += [found[i] for i in np.argsort(-stiff, kind="stable")[:count]]
    return _joined_sets(best)


def rates(sets: Supports, arms: Floats, mass: Floats, inertia: Floats) -> Floats:
    """Of each set, the largest eigenvalue of M⁻¹ K for contacts of unit stiffness along the normal.

    It is 1 / m for a push through the centre of mass, and more where points turn the body, or are several. `arms` are
    from the centre of mass to the points; mass and inertia are those of each set's body.
    """
    of, point = sets.members.T
    n = sets.normals[of]
    # Rate of the gap: n·v + (arm × n)·omega, with both velocities in units in which M is the identity.
    turn = np.einsum("ni,nij->nj", np.cross(arms[point], n), np.linalg.cholesky(np.linalg.inv(inertia))[of])
    push = np.concatenate([n / np.sqrt(mass[of])[:, None], turn], axis=1)
    return np.linalg.eigvalsh(np.add.reduceat(push[:, :, None] * push[:, None, :], sets.starts))[:, -1]


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
