"""Geoms and orientations of MJCF: shapes, what they weigh, and the many ways to say how something is turned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.geometry import Box, Capsule, Cylinder, Placed, Shape, Sphere, TriMesh, quat, rotation_matrix
from nablasim.physics.io.xml import numbers, refuse

Floats = NDArray[np.float64]
UPRIGHT = np.asarray(kc.quat_to_matrix(quat((1, 0, 0), math.pi / 2)))
"""Turns y to z: our shapes stand along y, those of MJCF along z."""
AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}


@dataclass(frozen=True, eq=False)
class Geom:
    """A geom in the frame of its body."""

    mass: float
    com: Floats
    inertia: Floats
    placed: Placed | None
    """None of planes and ellipsoids, which bodies cannot be made of here."""
    touches: bool
    seen: Placed | None = None
    """What is drawn of it."""


def orientation(file: Any, e: Any, a: dict[str, str]) -> Floats:
    """How an element is turned, (x, y, z, w)."""
    if "quat" in a:
        w, x, y, z = numbers(e, "quat", a["quat"], file.path, (4,))
        found = np.array([x, y, z, w])
    elif "axisangle" in a:
        *axis, angle = numbers(e, "axisangle", a["axisangle"], file.path, (4,))
        found = quat(axis, file.angle(angle))
    elif "euler" in a:
        R = np.eye(3)
        for letter, angle in zip(file.sequence, numbers(e, "euler", a["euler"], file.path, (3,))):
            turn = rotation_matrix(quat(AXES[letter.lower()], file.angle(angle)))
            R = R @ turn if letter.islower() else turn @ R
        found = np.asarray(kc.quat_from_matrix(R))
    elif "zaxis" in a:
        found = turned_z(numbers(e, "zaxis", a["zaxis"], file.path, (3,)))
    elif "xyaxes" in a:
        x, y = numbers(e, "xyaxes", a["xyaxes"], file.path, (6,)).reshape(2, 3)
        x = x / np.linalg.norm(x)
        y = y - (x @ y) * x
        y = y / np.linalg.norm(y)
        found = np.asarray(kc.quat_from_matrix(np.stack([x, y, np.cross(x, y)], axis=1)))
    else:
        return np.array([0.0, 0.0, 0.0, 1.0])
    length = float(np.linalg.norm(found))
    if not (math.isfinite(length) and length > 0):
        refuse(e, file.path, f"<{e.tag}> is turned by a quaternion or an axis of length zero")
    return found / length


def turned_z(axis: Floats) -> Floats:
    """The shortest turn of z to an axis."""
    z = axis / np.linalg.norm(axis)
    across = np.cross([0, 0, 1], z)
    length = float(np.linalg.norm(across))
    if length < 1e-12:
        return np.array([0.0, 0, 0, 1]) if z[2] > 0 else np.array([1.0, 0, 0, 0])
    return quat(across, math.atan2(length, z[2]))


def geom_of(file: Any, e: Any, a: dict[str, str], *, weigh: bool = True) -> Geom:
    """A geom with its mass: given, or by its density; that of a mesh only if it is asked for."""
    kind = a.get("type", "sphere")
    pos = file.values(e, "pos", a.get("pos"), (3,), (0, 0, 0))
    R = rotation_matrix(orientation(file, e, a))
    size = file.values(e, "size", a.get("size"), (1, 2, 3), (0, 0, 0))
    if "fromto" in a:
        ends = numbers(e, "fromto", a["fromto"], file.path, (6,)).reshape(2, 3)
        along = ends[0] - ends[1]
        if not np.linalg.norm(along) > 0:
            refuse(e, file.path, "the two ends of a geom's fromto are the same")
        pos, R = ends.mean(axis=0), rotation_matrix(turned_z(along))
        half = 0.5 * np.linalg.norm(along)
        size = np.array([size[0], half]) if kind in ("capsule", "cylinder") else np.array([size[0], size[0], half])
    bits = tuple(int(file.values(e, key, a.get(key), (1,), [1.0])[0]) for key in ("contype", "conaffinity"))
    touches = any(bits)
    if kind in ("sdf", "hfield"):
        refuse(e, file.path, f"a geom is a {kind}, and those are not read", "Use primitive shapes, or meshes")
    if kind == "plane":
        return Geom(0.0, pos, np.zeros((3, 3)), None, touches)
    if "mesh" in a:
        return _mesh_geom(file, e, a, kind, pos, R, bits, weigh)
    shape, volume, unit = _shape(file, e, kind, size)
    mass = _mass(file, e, a, volume)
    upright = R if kind in ("box", "sphere", "ellipsoid") else R @ UPRIGHT
    placed = None if shape is None else Placed(shape, pos, np.asarray(kc.quat_from_matrix(upright)), (bits[0], bits[1]))
    seen = placed
    if kind == "ellipsoid":
        seen = Placed(TriMesh.icosphere().moved(scale=size[:3]), pos, np.asarray(kc.quat_from_matrix(R)))
    return Geom(mass, pos, R @ np.diag(unit * mass) @ R.T, placed, touches, seen if _is_seen(file, e, a) else None)


def _mass(file: Any, e: Any, a: dict[str, str], volume: float) -> float:
    density = float(file.values(e, "density", a.get("density"), (1,), [1000.0])[0])
    mass = float(numbers(e, "mass", a["mass"], file.path, (1,))[0]) if "mass" in a else density * volume
    if mass < 0:
        refuse(e, file.path, f"a geom has the mass {mass:g}")
    return mass


def _is_seen(file: Any, e: Any, a: dict[str, str]) -> bool:
    """As MuJoCo's viewer starts: it shows the groups 0, 1 and 2."""
    return float(file.values(e, "group", a.get("group"), (1,), [0.0])[0]) < 3


def _mesh_geom(file: Any, e: Any, a: dict[str, str], kind: str, pos: Floats, R: Floats, bits: tuple[int, ...],
               weigh: bool) -> Geom:  # fmt: skip
    """A geom that is a mesh: it touches by its convex hull, and weighs what the mesh says."""
    if kind != "mesh":
        refuse(e, file.path, f"a {kind} is fitted to a mesh, and that is not read", 'Use type="mesh", or give its size')
    asset, reads = file.meshes.of(e, a["mesh"]), file.meshes.reads
    rot, touches = np.asarray(kc.quat_from_matrix(R)), any(bits)
    hull = asset.hull if reads and touches else None
    placed = None if hull is None else Placed(hull, pos, rot, (bits[0], bits[1]))
    drawn = asset.drawn if reads and _is_seen(file, e, a) else None
    seen = None if drawn is None else Placed(drawn, pos, rot)
    if not weigh:
        return Geom(0.0, pos, np.zeros((3, 3)), placed, touches, seen)
    unit = asset.unit(e)
    mass = _mass(file, e, a, unit.mass)
    return Geom(mass, pos + R @ unit.com, R @ (unit.inertia * (mass / unit.mass)) @ R.T, placed, touches, seen)


def _shape(file: Any, e: Any, kind: str, size: Floats) -> tuple[Shape | None, float, Floats]:
    """Shape, volume, and moments of inertia per mass in the geom's own axes."""
    needed = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
    if kind not in needed:
        refuse(e, file.path, f"a geom has the type {kind!r}; known: {', '.join(needed)}, plane")
    if len(size) < needed[kind] or not (size[: needed[kind]] > 0).all():
        refuse(e, file.path, f"a {kind} has {needed[kind]} positive sizes, not {size.tolist()}")
    if kind == "ellipsoid":
        x, y, z = size**2
        return None, 4 / 3 * math.pi * float(np.prod(size)), np.array([y + z, x + z, x + y]) / 5
    shape: Shape
    if kind == "box":
        shape = Box(*(2 * size))
    elif kind == "sphere":
        shape = Sphere(float(size[0]))
    else:
        shape = (Capsule if kind == "capsule" else Cylinder)(float(size[0]), 2 * float(size[1]))
    mass, _, inertia = shape.mass_properties(1.0)
    moments = np.diag(inertia) / mass
    return shape, float(mass), moments if kind in ("box", "sphere") else moments[[0, 2, 1]]
