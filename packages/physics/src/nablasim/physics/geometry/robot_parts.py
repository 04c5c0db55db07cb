"""What robots are made of: links, joints and motors, and checks of what users give for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import shaped
from nablasim.physics.errors import RobotError
from nablasim.physics.geometry.mass import MassProperties
from nablasim.physics.geometry.rotation import rotation_matrix
from nablasim.physics.geometry.solids import Geometry, solid

Floats = NDArray[np.float64]
WORLD = "world"
KINDS = {
    "fixed": (0, 0), "revolute": (1, 1), "continuous": (1, 1), "prismatic": (1, 1), "spherical": (4, 3),
    "universal": (2, 2), "planar": (3, 3), "free": (7, 6),
}  # fmt: skip
"""Kinds of joints: how many coordinates and degrees of freedom each has."""
SINGLE = ("revolute", "continuous", "prismatic")
NEEDS_AXIS = (*SINGLE, "planar")


@dataclass(frozen=True, eq=False)
class Placed:
    """A shape at (pos, rot) in the frame of its link.

    bits: two shapes touch if one's first number and the other's second have a bit in common: as of MJCF, (contype,
        conaffinity).
    """

    shape: Geometry
    pos: Floats
    rot: Floats
    bits: tuple[int, int] = (1, 1)


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid part: mass (kg), centre of mass (m) and inertia about it (kg m²) in the link's frame.

    `of_shape`: the inertia is that of the shapes, and grows with the mass.
    """

    name: str
    mass: float
    com: Floats
    inertia: Floats
    of_shape: bool
    shapes: tuple[Placed, ...]
    visuals: tuple[Placed, ...] = ()
    """What is drawn of it, if not its shapes; it touches nothing and weighs nothing."""

    @property
    def looks(self) -> tuple[Placed, ...]:
        """What is drawn of it."""
        return self.visuals or self.shapes


@dataclass(frozen=True, eq=False)
class Joint:
    """What joins `child` to `parent`; see `Robot.add_joint`."""

    name: str
    kind: str
    parent: str
    child: str
    pos: Floats
    rot: Floats
    axis: Floats
    """(2, 3) for a universal joint, otherwise (3,)."""
    limits: tuple[float, float] | None
    damping: float
    armature: float
    friction: float
    stiffness: float
    rest: float
    anchor: Floats
    ref: float

    @property
    def coords(self) -> int:
        return KINDS[self.kind][0]

    @property
    def dofs(self) -> int:
        return KINDS[self.kind][1]


@dataclass(frozen=True)
class Motor:
    """torque = clip(kp (target - q) - kd qd + torque, ±limit)."""

    kp: float = 0.0
    kd: float = 0.0
    limit: float = math.inf
    target: float = 0.0


@dataclass(frozen=True)
class Mimic:
    """The joint follows another: q = ratio · q of the leader + offset."""

    leader: str
    ratio: float = 1.0
    offset: float = 0.0


# -- checks
def placed(where: str, shape: Geometry, pos: ArrayLike, rot: ArrayLike) -> Placed:
    return Placed(shape, shaped(f"{where}: pos", pos, (3,)), quat_of(where, rot))


def quat_of(where: str, rot: ArrayLike) -> Floats:
    q = shaped(f"{where}: rot", rot, (4,))
    if not np.linalg.norm(q) > 0:
        raise RobotError(f"{where}: rot is a quaternion (x, y, z, w), and not zero; ph.quat(axis, angle) makes one")
    return q / np.linalg.norm(q)


def axis_of(name: str, kind: str, axis: ArrayLike | None) -> Floats:
    if kind not in (*NEEDS_AXIS, "universal"):
        return np.array([0.0, 0.0, 1.0])
    if axis is None:
        raise RobotError(f"joint {name}: a {kind} joint has an axis{', (a, b)' if kind == 'universal' else ''}")
    found = shaped(f"joint {name}: axis", axis, (2, 3) if kind == "universal" else (3,))
    length = np.linalg.norm(found, axis=-1, keepdims=True)
    if not (length > 1e-12).all():
        raise RobotError(f"joint {name}: the axis has length zero")
    found = found / length
    if kind == "universal" and np.linalg.norm(np.cross(found[0], found[1])) < 1e-6:
        raise RobotError(f"joint {name}: the two axes of a universal joint are parallel")
    return found


def limits_of(name: str, kind: str, limits: tuple[float, float] | None) -> tuple[float, float] | None:
    if limits is None:
        return None
    if kind not in (*SINGLE, "universal", "planar"):
        raise RobotError(f"joint {name}: a {kind} joint has no limits")
    low, high = (float(number) for number in limits)
    if not low <= high:
        raise RobotError(f"joint {name}: the limits are reversed, ({low:g}, {high:g})")
    return low, high


def weighed(link: Link, mass: float | None, density: float | None, com: ArrayLike | None, inertia: ArrayLike | None
             ) -> Link:  # fmt: skip
    """The link with its mass; by its shapes, as far as numbers are not given."""
    whole = _together(link) if link.shapes else None
    if mass is None:
        if density is None or whole is None:
            raise RobotError(f"link {link.name}: give mass (kg) or density (kg/m³)")
        mass = float(density) * whole.mass
    if not (math.isfinite(mass) and mass >= 0):
        raise RobotError(f"link {link.name}: the mass must be finite and not negative, and is {mass}")
    if com is None:
        com = np.zeros(3) if whole is None else whole.com
    of_shape = inertia is None and whole is not None
    if inertia is not None:
        tensor = np.array(inertia, np.float64)
        tensor = np.diag(tensor) if tensor.shape == (3,) else shaped(f"link {link.name}: inertia", tensor, (3, 3))
    else:
        tensor = np.zeros((3, 3)) if whole is None else whole.inertia * (mass / whole.mass)
    _check_inertia(link.name, tensor)
    return replace(link, mass=float(mass), com=shaped(f"link {link.name}: com", com, (3,)), inertia=tensor,
                   of_shape=of_shape)  # fmt: skip


def _check_inertia(name: str, tensor: Floats) -> None:
    scale = float(np.abs(tensor).max())
    if not np.allclose(tensor, tensor.T, atol=1e-9 * scale + 1e-300):
        raise RobotError(f"link {name}: the inertia is not symmetric")
    moments = np.linalg.eigvalsh(tensor)
    if moments[0] < -1e-9 * scale - 1e-18:  # Programs that draw robots leave rounding where zero is meant.
        raise RobotError(f"link {name}: the inertia is indefinite; its principal moments are {moments.tolist()} kg m²")


def _together(link: Link) -> MassProperties:
    """Of all shapes of a link as solids of density 1, which may overlap."""
    parts = []
    for placed in link.shapes:
        unit, R = solid(f"link {link.name}", placed.shape, 1.0).unit, rotation_matrix(placed.rot)
        parts.append((unit.mass, placed.pos + R @ unit.com, R @ unit.inertia @ R.T))
    return joined_masses(parts)


def joined_masses(parts: list[tuple[float, Floats, Floats]]) -> MassProperties:
    """Of several bodies (mass, centre of mass, inertia about it) as one."""
    mass = sum(m for m, _, _ in parts)
    com = np.asarray(sum((m * c for m, c, _ in parts), np.zeros(3))) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for m, c, I in parts:
        r = c - com
        inertia += I + m * (r @ r * np.eye(3) - np.outer(r, r))
    return MassProperties(mass, com, inertia)
