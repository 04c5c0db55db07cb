"""Rigid bodies: Newton's and Euler's equations. Owns positions, rotations and velocities, and the mass of bodies.

What a body is made of stands in further tables: `body_points`, by which it touches, `body_faces`, triangles over which
its mass is integrated, and `body_sets`, points that can touch together and so limit the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import filled, shaped
from nablasim.physics.features import Supports, rates, supports
from nablasim.physics.kernels import bodies as kernels
from nablasim.physics.kernels.mass import face_moments
from nablasim.physics.kernels.pairing import join_four
from nablasim.physics.layout import Column, Draft, Index, Rows
from nablasim.physics.solids import Solid
from nablasim.physics.stability import CONTACT_SAFETY, Limit, longest_step, owner
from nablasim.physics.systems.system import System

if TYPE_CHECKING:
    from nablasim.physics.program import Arrays, Step

X, V, OMEGA = (Column(f"bodies.{q}", kc.float3, role="state") for q in ("x", "v", "omega"))
ROT = Column("bodies.rot", kc.quat, role="state")
F, TORQUE = (Column(f"bodies.{q}", kc.float3, role="sum") for q in ("f", "torque"))
GRAVITY = Column("bodies.gravity", kc.float3)
DENSITY, GIVEN_MASS = Column("bodies.density"), Column("bodies.given_mass")
GIVEN_INERTIA = Column("bodies.given_inertia", kc.mat33)
SIZES = tuple(Column(f"bodies.size_{k}") for k in range(3))
KE, KD, KF, MU = (Column(f"bodies.{q}") for q in ("ke", "kd", "kf", "mu"))
"""What a body brings to a contact, or `NONE`."""
SIZE = Column("bodies.size", kc.float3, role="derived")
FOUR = Column("bodies.four", kc.float4, role="derived")
MASS, VOLUME = Column("bodies.mass", role="derived"), Column("bodies.volume", role="derived")
COM, FIRST = (Column(f"bodies.{q}", kc.float3, role="derived") for q in ("com", "first"))
INERTIA, INVERSE, SECOND = (Column(f"bodies.{q}", kc.mat33, role="derived") for q in ("inertia", "inverse", "second"))
KIND, MOTION = Index("bodies.kind"), Index("bodies.motion")
REFERENCE = Index("bodies.reference", to="body_points")

VERTEX, SPREAD = Column("body_points.vertex", kc.float3), Column("body_points.spread", kc.mat33)
ROUND = Column("body_points.round", kc.float2)
LOCAL = Column("body_points.local", kc.float3, role="derived")
BALL, RIM = (Column(f"body_points.{q}", role="derived") for q in ("ball", "rim"))
OF_BODY = Index("body_points.body", to="bodies")

FACE, FACE_BODY = Index("body_faces.corners", to="body_points", width=3), Index("body_faces.body", to="bodies")

SET_BODY, SET_NORMAL = Index("body_sets.body", to="bodies"), Column("body_sets.normal", kc.float3)
MEMBER = Index("body_set_points.point", to="body_points")
MEMBER_OF = Index("body_set_points.set", to="body_sets")


class Bodies(System):
    """Momentum and angular momentum of bodies; gravity is an acceleration."""

    name = "bodies"
    columns = (X, ROT, V, OMEGA, F, TORQUE, GRAVITY, DENSITY, GIVEN_MASS, GIVEN_INERTIA, *SIZES, KE, KD, KF, MU, SIZE,
               FOUR, MASS, VOLUME, COM, FIRST, INERTIA, INVERSE, SECOND, VERTEX, SPREAD, ROUND, LOCAL, BALL, RIM,
               SET_NORMAL)  # fmt: skip
    indices = (KIND, MOTION, REFERENCE, OF_BODY, FACE, FACE_BODY, SET_BODY, MEMBER, MEMBER_OF)

    def setup(self, a: Arrays) -> None:
        n = a.rows("bodies")
        kc.launch(kernels.body_sizes, n, [a[column] for column in SIZES], [a[SIZE]])
        points = [a[VERTEX], a[SPREAD], a[ROUND], a[OF_BODY], a[SIZE]]
        kc.launch(kernels.body_points, a.rows("body_points"), points, [a[LOCAL], a[BALL], a[RIM]])
        kc.launch(join_four, n, [a[KE], a[KD], a[KF], a[MU]], [a[FOUR]])
        for total in (a[VOLUME], a[FIRST], a[SECOND]):
            total.zero_()
        surface = [a[LOCAL], a[FACE], a[FACE_BODY], a[REFERENCE]]
        kc.launch(face_moments, a.rows("body_faces"), surface, [a[VOLUME], a[FIRST], a[SECOND]])
        given = [a[KIND], a[SIZE], a[LOCAL], a[REFERENCE], a[VOLUME], a[FIRST], a[SECOND], a[DENSITY], a[GIVEN_MASS],
                 a[GIVEN_INERTIA]]  # fmt: skip
        kc.launch(kernels.body_masses, n, given, [a[MASS], a[COM], a[INERTIA], a[INVERSE]])

    def advance(self, s: Step) -> None:
        now = [s[X], s[ROT], s[V], s[OMEGA], s[F], s[TORQUE], s[GRAVITY]]
        made_of = [s[MASS], s[COM], s[INERTIA], s[INVERSE], s[MOTION]]
        after = [s.next(column) for column in (X, ROT, V, OMEGA)]
        kc.launch(kernels.advance_bodies, s.rows("bodies"), [*now, *made_of, s.dt], after)

    def energy(self, s: Step) -> Any:
        e = s.scratch("bodies.energy", s.rows("bodies"))
        given = [s[X], s[ROT], s[V], s[OMEGA], s[GRAVITY], s[MASS], s[COM], s[INERTIA], s[MOTION]]
        kc.launch(kernels.body_energies, s.rows("bodies"), given, [e])
        return e

    def check(self, a: Arrays) -> None:
        mass = a.numpy(MASS)
        moments = np.linalg.eigvalsh(np.where(np.isfinite(a.numpy(INERTIA)), a.numpy(INERTIA), -1.0))
        positive = (mass > 0) & (moments[:, 0] > 1e-6 * moments[:, 2])
        for b in np.flatnonzero(~positive)[:1]:
            name, _ = owner(a.layout, "bodies", int(b))
            raise ValueError(
                f"{name}: the mass is {mass[b]:g} kg and the principal moments of inertia are {moments[b].tolist()} "
                f"kg m²; all must be positive. Check its density or mass, its sizes or vertices, and its inertia, if "
                f"that was given: a symmetric matrix about the centre of mass"
            )
        four = a.numpy(FOUR)
        for b, k in np.argwhere((four < 0) & (four > kernels.NONE))[:1]:
            name, _ = owner(a.layout, "bodies", int(b))
            quantity = ("ke", "kd", "kf", "mu")[k]
            raise ValueError(f"{name}.{quantity} is {four[b, k]:g}; contact numbers must not be negative")


def contact_limit(a: Arrays, k: NDArray[Any], c: NDArray[Any]) -> Limit:
    """How long a step may be for contacts of stiffness k and damping c at any of the points of each body.

    Several points touch at a time, and turn the body as well as they push it: the modes of all of them together count.
    Friction does not: beyond its own limit it changes sign from step to step, but stays below mu times the pressure.
    """
    mass, com, inertia, local = (a.numpy(column).astype(np.float64) for column in (MASS, COM, INERTIA, LOCAL))
    body, arms = a.numpy(SET_BODY), local - com[a.numpy(OF_BODY)]
    members = np.stack([a.numpy(MEMBER_OF), a.numpy(MEMBER)], axis=1)
    rate = rates(Supports(a.numpy(SET_NORMAL), members), arms, mass[body], inertia[body])
    dt = np.full(len(mass), np.inf)
    np.minimum.at(dt, body, longest_step(rate * k[body], rate * c[body], np.ones(len(body))))
    dt[a.numpy(MOTION) != kernels.FREE] = np.inf
    return Limit("bodies", dt, "its contact (ke, kd)", "soften the contact", safety=CONTACT_SAFETY)


# ------------------------------------------------------------------------------------------------------------ adding
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
    rows = draft.rows("bodies", 1)
    draft.thing(name, "rigid", rows, single=True)
    draft.index(MOTION.name, [kernels.FREE])
    points = _add_solid(draft, name, rows, solid)
    tensor = _add_mass(draft, name, rows, solid, density, mass, inertia)
    _add_motion(draft, name, rows, pos, rot, vel, omega)
    draft.parameter("gravity", GRAVITY, rows, gravity, unit="m/s²", uniform=True, about="acceleration of what falls")
    _add_contact(draft, name, rows, contact)
    _add_sets(draft, rows, points, supports(solid.points, *tensor))


def _add_solid(draft: Draft, name: str, rows: Rows, solid: Solid) -> Rows:
    points, faces = draft.rows("body_points", len(solid.vertices)), draft.rows("body_faces", len(solid.faces))
    draft.thing(name, "rigid", points, faces)
    draft.surface(name, solid.skin.faces, solid.skin.vertices)
    draft.index(KIND.name, [solid.kind])
    draft.index(REFERENCE.name, [points.start])
    draft.index(OF_BODY.name, np.full(points.count, rows.start))
    draft.index(FACE.name, solid.faces + points.start)
    draft.index(FACE_BODY.name, np.full(faces.count, rows.start))
    draft.constant(SPREAD, points, solid.spread)
    draft.constant(ROUND, points, solid.round)
    if solid.kind == kernels.MESH:
        draft.parameter(f"{name}.vertices", VERTEX, points, solid.vertices, unit="m",
                        about="vertices of the surface, in the body's frame")  # fmt: skip
    for (size, value), column in zip(solid.sizes.items(), SIZES):
        draft.parameter(f"{name}.{size}", column, rows, value, unit="m", bounds=(1e-4, None), uniform=True,
                        about="size of the shape")  # fmt: skip
    return points


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
    if (density is None) == (mass is None):
        raise ValueError(f"{name}: give either density (kg/m³) or mass (kg)")
    given = "mass" if density is None else "density"
    value = float(filled(f"{name}.{given}", mass if density is None else density, (), positive=True))  # type: ignore[arg-type]
    whole = value if density is None else value * solid.unit.mass
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
        if value is None:
            draft.constant(column, rows, kernels.NONE)
        else:
            filled(f"{name}.{quantity}", value, (), positive=True, allow_zero=True)
            draft.parameter(f"{name}.{quantity}", column, rows, value, unit=unit, bounds=(0.0, None), uniform=True)


def _add_sets(draft: Draft, body: Rows, points: Rows, sets: Supports) -> None:
    rows = draft.rows("body_sets", len(sets.normals))
    draft.rows("body_set_points", len(sets.members))
    draft.constant(SET_NORMAL, rows, sets.normals)
    draft.index(SET_BODY.name, np.full(rows.count, body.start))
    draft.index(MEMBER_OF.name, sets.members[:, 0] + rows.start)
    draft.index(MEMBER.name, sets.members[:, 1] + points.start)
