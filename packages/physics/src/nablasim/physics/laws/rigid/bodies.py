"""Rigid bodies: Newton's and Euler's equations. Owns positions, rotations and velocities, and the mass of bodies.

What a body is made of stands in further tables: `body_points`, by which it touches, `body_faces`, triangles over which
its mass is integrated, and `body_sets`, points that can touch together and so limit the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.geometry import Supports, face_moments, held, rates
from nablasim.physics.laws.contact.pairing_kernels import join_four
from nablasim.physics.laws.limits import CONTACT_SAFETY, Limit, step_rate
from nablasim.physics.laws.rigid import bodies_kernels as kernels
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Index, owner

if TYPE_CHECKING:
    from nablasim.physics.model import Arrays, Step

X, V, OMEGA = (Column(f"bodies.{q}", kc.float3, role="state") for q in ("x", "v", "omega"))
ROT = Column("bodies.rot", kc.quat, role="state")
F, TORQUE = (Column(f"bodies.{q}", kc.float3, role="sum") for q in ("f", "torque"))
CONTACT_F, CONTACT_TORQUE = (
    Column(f"bodies.contact_{q}", kc.float3, role="sum", by=("rubbing_bodies", "rubbing")) for q in ("f", "torque")
)
"""Of friction, which looks at all other forces first."""
GRAVITY = Column("bodies.gravity", kc.float3)
DENSITY, GIVEN_MASS = Column("bodies.density"), Column("bodies.given_mass")
GIVEN_INERTIA = Column("bodies.given_inertia", kc.mat33)
SIZES = tuple(Column(f"bodies.size_{k}") for k in range(3))
KE, KD, KF, MU = (Column(f"bodies.{q}") for q in ("ke", "kd", "kf", "mu"))
"""What a body brings to a contact, or `NONE`."""
CROWD = Column("bodies.crowd", kc.float3)
"""How many points share the body where it touches planes, other bodies, and rubs those: see `features.crowd`."""
SIZE = Column("bodies.size", kc.float3, role="derived")
FOUR = Column("bodies.four", kc.float4, role="derived")
MASS, VOLUME = Column("bodies.mass", role="derived"), Column("bodies.volume", role="derived")
COM, FIRST = (Column(f"bodies.{q}", kc.float3, role="derived") for q in ("com", "first"))
INERTIA, INVERSE, SECOND = (Column(f"bodies.{q}", kc.mat33, role="derived") for q in ("inertia", "inverse", "second"))
KIND, MOTION = Index("bodies.kind"), Index("bodies.motion")
REFERENCE = Index("bodies.reference", to="body_points")
PLANE_COUNT = Index("bodies.plane_count")
"""How many of the first points planes touch."""
POINT_START, POINT_COUNT = Index("bodies.point_start", to="body_points", begins=True), Index("bodies.point_count")
"""The points that meet the surfaces of others."""

VERTEX, SPREAD = Column("body_points.vertex", kc.float3), Column("body_points.spread", kc.mat33)
ROUND, SHARE = Column("body_points.round", kc.float2), Column("body_points.share")
LOCAL = Column("body_points.local", kc.float3, role="derived")
BALL, RIM = (Column(f"body_points.{q}", role="derived") for q in ("ball", "rim"))
OF_BODY = Index("body_points.body", to="bodies")

ENDS = Index("body_edges.ends", to="body_points", width=2)
EDGE_START, EDGE_COUNT = Index("bodies.edge_start", to="body_edges", begins=True), Index("bodies.edge_count")
"""The edges that meet the surfaces of others."""

FACE, FACE_BODY = Index("body_faces.corners", to="body_points", width=3), Index("body_faces.body", to="bodies")

SET_BODY, SET_NORMAL = Index("body_sets.body", to="bodies"), Column("body_sets.normal", kc.float3)
SET_PLANES = Index("body_sets.planes")
"""1 for points that touch planes, 0 for points that touch other bodies."""
MEMBER = Index("body_set_points.point", to="body_points")
MEMBER_OF = Index("body_set_points.set", to="body_sets")


STATE = (X, ROT, V, OMEGA)
RESISTING = (MASS, COM, INERTIA, INVERSE)
MATTER = (KIND, SIZE, REFERENCE, VOLUME, FIRST, SECOND, DENSITY, GIVEN_MASS, GIVEN_INERTIA)


class Bodies(System):
    """Momentum and angular momentum of bodies; gravity is an acceleration."""

    name = "bodies"
    columns = (X, ROT, V, OMEGA, F, TORQUE, CONTACT_F, CONTACT_TORQUE, GRAVITY, DENSITY, GIVEN_MASS, GIVEN_INERTIA,
               *SIZES, KE, KD, KF, MU, CROWD, SIZE, FOUR, MASS, VOLUME, COM, FIRST, INERTIA, INVERSE, SECOND, VERTEX,
               SPREAD, ROUND, SHARE, LOCAL, BALL, RIM, SET_NORMAL)  # fmt: skip
    indices = (KIND, MOTION, REFERENCE, PLANE_COUNT, POINT_START, POINT_COUNT, OF_BODY, ENDS, EDGE_START, EDGE_COUNT,
               FACE, FACE_BODY, SET_BODY, SET_PLANES, MEMBER, MEMBER_OF)  # fmt: skip

    def setup(self, a: Arrays) -> None:
        n = a.rows("bodies")
        kc.launch(kernels.body_sizes, n, [a[column] for column in SIZES], [a[SIZE]])
        given = [a[VERTEX], a[SPREAD], a[ROUND], a[OF_BODY], a[SIZE]]
        kc.launch(kernels.body_points, a.rows("body_points"), given, [points(a)], parts=a.parts)
        kc.launch(join_four, n, [a[KE], a[KD], a[KF], a[MU]], [a[FOUR]])
        for total in (a[VOLUME], a[FIRST], a[SECOND]):
            total.zero_()
        surface = [a[LOCAL], a[FACE], a[FACE_BODY], a[REFERENCE]]
        kc.launch(face_moments, a.rows("body_faces"), surface, [a[VOLUME], a[FIRST], a[SECOND]], parts=a.parts)
        matter = a.bundle(kernels.Matter, *MATTER)
        kc.launch(kernels.body_masses, n, [matter, a[LOCAL]], [a[c] for c in RESISTING], parts=a.parts)

    def advance(self, s: Step) -> None:
        given = [moving(s), forces(s), rub(s) if s.has(CONTACT_F) else None, s.dt]
        kc.launch(kernels.advance_bodies, s.rows("bodies"), given, [after(s)])

    def energy(self, s: Step) -> Any:
        e = s.scratch("bodies.energy", s.rows("bodies"))
        kc.launch(kernels.body_energies, s.rows("bodies"), [moving(s)], [e])
        return e

    def check(self, a: Arrays) -> None:
        mass = a.numpy(MASS)
        moments = np.linalg.eigvalsh(np.where(np.isfinite(a.numpy(INERTIA)), a.numpy(INERTIA), -1.0))
        positive = (mass > 0) & (moments[:, 0] > 1e-6 * moments[:, 2]) | (a.numpy(MOTION) != kernels.FREE)
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


# ---------------------------------------------------------------------------------------------------------- in kernels
def moving(a: Arrays, **state: Any) -> Any:
    """Bodies that move, in the state of a step or in another one."""
    columns = [c for c in STATE if not state]
    return a.bundle(kernels.Bodies, *columns, GRAVITY, *RESISTING, MOTION, CROWD, **state)


def points(a: Arrays) -> Any:
    return a.bundle(kernels.Points, LOCAL, BALL, RIM, SHARE, start=POINT_START, count=POINT_COUNT)


def forces(s: Step) -> Any:
    """The sums of all forces but those of friction on planes."""
    return s.bundle(kernels.Forces, F, TORQUE)


def rub(s: Step) -> Any:
    """The sums of friction on planes."""
    return s.bundle(kernels.Forces, f=CONTACT_F, torque=CONTACT_TORQUE)


def before(s: Step) -> Any:
    return s.bundle(kernels.State, *STATE)


def after(s: Step) -> Any:
    """Where the state after the step goes."""
    return s.bundle(kernels.State, **{c.name.partition(".")[2]: s.next(c) for c in STATE})


# ------------------------------------------------------------------------------------------------------------- limits
def contact_rates(a: Arrays, planes: bool) -> NDArray[np.float64]:
    """How fast contacts of unit stiffness can move each body (1/kg): k / m is this times ke.

    Several points touch at a time, and turn the body as well as they push it: the modes of all of them together count.
    Dampers do not: they are bounded by what a step can resolve. Nor does friction: on planes it is taken at the end of
    the step, and elsewhere it is bounded as well.
    """
    mass, com, inertia, local = (a.numpy(column).astype(np.float64) for column in (MASS, COM, INERTIA, LOCAL))
    body, arms = a.numpy(SET_BODY), local - com[a.numpy(OF_BODY)]
    members = np.stack([a.numpy(MEMBER_OF), a.numpy(MEMBER)], axis=1)
    share = np.ones(len(arms)) if planes else held(a.numpy(SHARE), a.numpy(ENDS))
    found = rates(Supports(a.numpy(SET_NORMAL), members), arms, share, mass[body], inertia[body])
    most = np.zeros(len(mass))
    wanted = a.numpy(SET_PLANES) == int(planes)
    np.maximum.at(most, body[wanted], found[wanted])
    return most * np.isin(a.numpy(MOTION), (kernels.FREE, kernels.LINK))


def contact_limit(body: NDArray[np.int32], count: int, k: NDArray[Any]) -> Limit:
    """The limit of `count` bodies for contacts of some of them, with stiffness per mass."""
    most = np.zeros(count)
    np.maximum.at(most, body, step_rate(k, np.zeros_like(k), np.ones(len(body))))
    return Limit("bodies", most, "its contact (ke)", "soften the contact", safety=CONTACT_SAFETY)
