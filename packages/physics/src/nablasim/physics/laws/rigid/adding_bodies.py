"""Adding rigid bodies and obstacles to a scene: their rows in the tables of `bodies.py` and `surfaces.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import STICK, filled, shaped
from nablasim.physics.geometry import MESH, Solid, Supports, crowd, crowd_across, held, supports
from nablasim.physics.laws.rigid import bodies_kernels as kernels
from nablasim.physics.laws.rigid.bodies import (
    CROWD,
    DENSITY,
    EDGE_COUNT,
    EDGE_START,
    ENDS,
    FACE,
    FACE_BODY,
    GIVEN_INERTIA,
    GIVEN_MASS,
    GRAVITY,
    KD,
    KE,
    KF,
    KIND,
    MEMBER,
    MEMBER_OF,
    MOTION,
    MU,
    OF_BODY,
    OMEGA,
    PLANE_COUNT,
    POINT_COUNT,
    POINT_START,
    REFERENCE,
    ROT,
    ROUND,
    SET_BODY,
    SET_NORMAL,
    SET_PLANES,
    SHARE,
    SIZES,
    SPREAD,
    VERTEX,
    V,
    X,
)
from nablasim.physics.laws.rigid.surfaces import add_surface
from nablasim.physics.model import Draft, Rows


@dataclass(frozen=True)
class Four:
    """What an object brings to its contacts: ke (N/m), kd, kf (N s/m) and mu. None is nothing of its own."""

    ke: float | None = None
    kd: float | None = None
    kf: float | None = None
    mu: float | None = None


def add_body(
    draft: Draft,
    name: str,
    solid: Solid,
    *,
    density: float | None,
    mass: float | None,
    inertia: ArrayLike | None,
    pos: ArrayLike,
    rot: ArrayLike,
    vel: ArrayLike,
    omega: ArrayLike,
    contact: Four,
    gravity: ArrayLike,
) -> None:
    """A body that moves by the forces on it."""
    if solid.distance is not None or solid.field is not None:
        what = "heights" if solid.distance is None else "signed distances"
        raise TypeError(f"{name}: {what} have no mass; use scene.add_obstacle, or a mesh")
    rows, points = _add_solid(draft, name, "rigid", solid)
    draft.index(MOTION.name, [kernels.FREE])
    found = _add_mass(draft, name, rows, solid, density, mass, inertia)
    _add_motion(draft, name, rows, pos, rot, vel, omega)
    draft.parameter("gravity", GRAVITY, rows, gravity, unit="m/s²", uniform=True, about="acceleration of what falls")
    _add_contact(draft, name, rows, contact)
    mass, _, tensor = found
    touching, shares = _supported(solid, mass, tensor.tobytes())
    for planes, (first, sets) in zip((1, 0), touching):
        _add_sets(draft, rows, points.start + first, sets, planes=planes)
    draft.constant(CROWD, rows, shares)


@lru_cache(maxsize=256)
def _supported(solid: Solid, mass: float, tensor: bytes) -> tuple[list[tuple[int, Supports]], list[float]]:
    """Which points can touch planes together, and which others, each from which point on; and the body's `CROWD`.

    Kept for bodies that are alike; the inertia comes as the bytes of its matrix.
    """
    com, inertia = solid.unit.com, np.frombuffer(tensor).reshape(3, 3)
    at, (_, _, share, planes, others, edges) = solid.points, solid.features
    share = held(share, edges)
    touching, shares = [], []
    for first, last, part in ((0, planes, np.ones(planes)), (others, len(at), share[others:])):
        sets = supports(at[first:last], part, mass, com, inertia)
        touching.append((first, sets))
        shares.append(crowd(sets, at[first:last] - com, mass, inertia))
    shares.append(crowd_across(sets, at[others:] - com, mass, inertia))
    return touching, shares


def add_obstacle(
    draft: Draft,
    name: str,
    solid: Solid,
    *,
    pos: ArrayLike,
    rot: ArrayLike,
    vel: ArrayLike,
    omega: ArrayLike,
    contact: Four,
) -> None:
    """A body that nothing pushes: it stays, or moves with the velocities that it was given."""
    rows, _ = _add_solid(draft, name, "obstacle", solid)
    draft.index(MOTION.name, [kernels.DRIVEN])
    draft.constant(CROWD, rows, [1.0, 1.0, 1.0])
    draft.constant(DENSITY, rows, 1.0)
    for unset in (GIVEN_MASS, GIVEN_INERTIA):
        draft.constant(unset, rows, kernels.NONE)
    _add_motion(draft, name, rows, pos, rot, vel, omega)
    _add_contact(draft, name, rows, contact)


def add_carried(
    draft: Draft, name: str, solid: Solid, *, mass: float | None, inertia: NDArray[np.float64] | None
) -> Rows:
    """A shape of a link of a robot, which carries it: mass and inertia are what pushes it has to move; None if nothing
    does."""
    rows, points = _add_solid(draft, name, "link", solid)
    draft.index(MOTION.name, [kernels.DRIVEN if mass is None else kernels.LINK])
    for column, value in (
        (DENSITY, 1.0), (GIVEN_MASS, kernels.NONE if mass is None else mass), (ROT, (0.0, 0.0, 0.0, 1.0)),
        (GIVEN_INERTIA, kernels.NONE if inertia is None else inertia),
    ):  # fmt: skip
        draft.constant(column, rows, value)
    _add_contact(draft, name, rows, Four())
    shares = [1.0, 1.0, 1.0]
    if mass is not None and inertia is not None:
        touching, shares = _supported(solid, mass, inertia.tobytes())
        first, sets = touching[1]
        _add_sets(draft, rows, points.start + first, sets, planes=0)
    draft.constant(CROWD, rows, shares)
    return rows


def _add_solid(draft: Draft, name: str, kind: str, solid: Solid) -> tuple[Rows, Rows]:
    rows, points = draft.rows("bodies", 1), draft.rows("body_points", len(solid.vertices))
    faces = draft.rows("body_faces", len(solid.faces))
    draft.thing(name, kind, rows, points, faces, single=True)
    if solid.skin is not None:
        draft.surface(name, solid.skin.faces, solid.skin.vertices)
    draft.index(KIND.name, [solid.kind])
    draft.index(REFERENCE.name, [points.start])
    draft.index(PLANE_COUNT.name, [solid.features.planes])
    draft.index(POINT_START.name, [points.start + solid.features.others])
    draft.index(POINT_COUNT.name, [points.count - solid.features.others])
    draft.index(OF_BODY.name, np.full(points.count, rows.start))
    edges = draft.rows("body_edges", len(solid.features.edges))
    draft.index(ENDS.name, solid.features.edges + points.start)
    draft.index(EDGE_START.name, [edges.start])
    draft.index(EDGE_COUNT.name, [edges.count])
    draft.index(FACE.name, solid.faces + points.start)
    draft.index(FACE_BODY.name, np.full(faces.count, rows.start))
    draft.constant(SPREAD, points, solid.features.spread)
    draft.constant(ROUND, points, solid.features.round)
    draft.constant(SHARE, points, solid.features.share)
    if solid.kind == MESH:
        draft.parameter(f"{name}.vertices", VERTEX, points, solid.vertices, unit="m",
                        about="vertices of the surface, in the body's frame")  # fmt: skip
    for (size, value), column in zip(solid.sizes.items(), SIZES):
        draft.parameter(f"{name}.{size}", column, rows, value, unit="m", bounds=(1e-4, None), uniform=True,
                        about="size of the shape")  # fmt: skip
    add_surface(draft, name, rows, faces, solid)
    return rows, points


def _add_mass(
    draft: Draft,
    name: str,
    rows: Rows,
    solid: Solid,
    density: float | None,
    mass: float | None,
    inertia: ArrayLike | None,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Density and mass are two ways to say the same; the one that was given is in force."""
    said = {option: number for option, number in (("density", density), ("mass", mass)) if number is not None}
    if len(said) != 1:
        raise ValueError(f"{name}: give either density (kg/m³) or mass (kg)")
    ((given, number_given),) = said.items()
    value = float(filled(f"{name}.{given}", number_given, (), positive=True))
    whole = value if given == "mass" else value * solid.unit.mass
    ways = [("density", DENSITY, whole / solid.unit.mass, "kg/m³"), ("mass", GIVEN_MASS, whole, "kg")]
    for option, column, number, unit in sorted(ways, key=lambda way: way[0] != given):
        draft.parameter(f"{name}.{option}", column, rows, number, unit=unit, bounds=(1e-6, None), uniform=True,
                        choice=(f"{name}: mass", option))  # fmt: skip
    tensor = solid.unit.inertia * (whole / solid.unit.mass)
    if inertia is not None:
        tensor = np.array(inertia, np.float64)
        tensor = np.diag(tensor) if tensor.shape == (3,) else shaped(f"{name}.inertia", tensor, (3, 3))
    for unset in (GIVEN_MASS, GIVEN_INERTIA):
        draft.constant(unset, rows, kernels.NONE)
    draft.parameter(f"{name}.inertia", GIVEN_INERTIA, rows, tensor, unit="kg m²", uniform=True,
                    choice=(f"{name}: inertia", "inertia"), dormant=inertia is None,
                    about="about the centre of mass, in the body's frame, instead of that of the shape")  # fmt: skip
    return whole, solid.unit.com, tensor


def _add_motion(
    draft: Draft, name: str, rows: Rows, pos: ArrayLike, rot: ArrayLike, vel: ArrayLike, omega: ArrayLike
) -> None:
    q = shaped(f"{name}: rot", rot, (4,))
    if not np.linalg.norm(q) > 0:
        raise ValueError(f"{name}: rot is a quaternion (x, y, z, w), and not zero; ph.quat(axis, angle) makes one")
    for quantity, column, value, unit, about in (
        ("x", X, shaped(f"{name}: pos", pos, (3,)), "m", "initial position of the origin of the body's frame"),
        ("rot", ROT, q / np.linalg.norm(q), "1", "initial rotation, a quaternion (x, y, z, w) of any length"),
        ("v", V, shaped(f"{name}: vel", vel, (3,)), "m/s", "initial velocity of that origin"),
        ("omega", OMEGA, shaped(f"{name}: omega", omega, (3,)), "rad/s", "initial angular velocity, in world axes"),
    ):  # fmt: skip
        draft.parameter(f"{name}.{quantity}", column, rows, value, unit=unit, uniform=True, about=about)


def _add_contact(draft: Draft, name: str, rows: Rows, contact: Four) -> None:
    for quantity, column, unit in (("ke", KE, "N/m"), ("kd", KD, "N s/m"), ("kf", KF, "N s/m"), ("mu", MU, "1")):
        value = getattr(contact, quantity)
        if value is None or value == STICK:
            draft.constant(column, rows, kernels.NONE if value is None else STICK)
        else:
            filled(f"{name}.{quantity}", value, (), positive=True, allow_zero=True)
            draft.parameter(f"{name}.{quantity}", column, rows, value, unit=unit, bounds=(0.0, None), uniform=True)


def _add_sets(draft: Draft, body: Rows, first: int, sets: Supports, *, planes: int) -> None:
    rows = draft.rows("body_sets", len(sets.normals))
    draft.rows("body_set_points", len(sets.members))
    draft.constant(SET_NORMAL, rows, sets.normals)
    draft.index(SET_BODY.name, np.full(rows.count, body.start))
    draft.index(SET_PLANES.name, np.full(rows.count, planes))
    draft.index(MEMBER_OF.name, sets.members[:, 0] + rows.start)
    draft.index(MEMBER.name, sets.members[:, 1] + first)
