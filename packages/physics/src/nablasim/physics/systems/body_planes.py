"""Compliant contact of bodies with half-spaces. A row is a pair of a point of a body and a plane.

`planes.add_plane` names these rows when it names those of particles: a plane has one set of parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import kernelc as kc
from nablasim.physics.kernels.bodies import FREE
from nablasim.physics.kernels.body_planes import body_plane_energies, body_plane_forces
from nablasim.physics.kernels.hard import HARD, hard_body_forces, hard_body_weights
from nablasim.physics.kernels.pairing import pair_with_plane
from nablasim.physics.kernels.planes import unit_normals
from nablasim.physics.layout import Column, Draft, Index, Rows
from nablasim.physics.systems import bodies as b
from nablasim.physics.systems.body_friction import PRESS, add_rubbing
from nablasim.physics.systems.system import System

if TYPE_CHECKING:
    from nablasim.physics.program import Arrays, Step
    from nablasim.physics.stability import Limit

BODY, POINT = Index("body_plane_contacts.body", to="bodies"), Index("body_plane_contacts.point", to="body_points")
LAW = Index("body_plane_contacts.law")
KE, KD, KF, MU = (Column(f"body_plane_contacts.{q}") for q in ("ke", "kd", "kf", "mu"))
FOUR = Column("body_plane_contacts.four", kc.float4, role="derived")
GIVEN_NORMAL = Column("body_plane_contacts.given_normal", kc.float3)
NORMAL = Column("body_plane_contacts.normal", kc.float3, role="derived")
OFFSET = Column("body_plane_contacts.offset")
TOUCH, SMOOTHING = Column("body_plane_contacts.touch"), Column("body_plane_contacts.smoothing")


class BodyPlanes(System):
    """The four-parameter contact [ke, kd, kf, mu] of every point of every body with every plane."""

    name = "body_plane_contacts"
    columns = (KE, KD, KF, MU, FOUR, GIVEN_NORMAL, NORMAL, OFFSET, TOUCH, SMOOTHING,
               PRESS)  # fmt: skip
    indices = (BODY, POINT, LAW)

    def setup(self, a: Arrays) -> None:
        kc.launch(unit_normals, a.rows(self.name), [a[GIVEN_NORMAL]], [a[NORMAL]])

    def finish(self, a: Arrays) -> None:
        given = [a[KE], a[KD], a[KF], a[MU], a[BODY], a[b.FOUR]]
        kc.launch(pair_with_plane, a.rows(self.name), given, [a[FOUR]], parts=a.parts)

    def forces(self, s: Step) -> None:
        bodies = [s[b.X], s[b.ROT], s[b.V], s[b.OMEGA], s[b.COM], s[b.MASS], s[b.INVERSE], s[b.CROWD], s.ahead]
        points = [s[b.LOCAL], s[b.BALL], s[b.RIM]]
        plane = [s[BODY], s[POINT], s[NORMAL], s[OFFSET], s[FOUR], s[LAW], s[TOUCH], s[SMOOTHING]]
        given = [*bodies, *points, *plane]
        kc.launch(body_plane_forces, s.rows(self.name), given, [s[b.F], s[b.TORQUE], s[PRESS]], parts=s.parts)
        if (s.numpy(LAW) == HARD).any():
            self._hard_forces(s)

    def _hard_forces(self, s: Step) -> None:
        moving = [s[b.X], s[b.ROT], s[b.V], s[b.OMEGA], s[b.GRAVITY], s[b.COM]]
        points, plane = [s[b.LOCAL], s[b.BALL], s[b.RIM], s.dt], [s[BODY], s[POINT], s[NORMAL], s[OFFSET]]
        weights = s.scratch("bodies.weights", s.rows("bodies"))
        weights.zero_()
        given = [*moving, s[b.MASS], s[b.INVERSE], *points, *plane, s[LAW]]
        kc.launch(hard_body_weights, s.rows(self.name), given, [weights], parts=s.parts)
        given = [*moving, *points, *plane, s[LAW], weights]
        kc.launch(hard_body_forces, s.rows(self.name), given, [s[b.F], s[b.TORQUE], s[PRESS]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        e = s.scratch("body_plane_contacts.energy", s.rows(self.name))
        bodies = [s[b.X], s[b.ROT], s[b.LOCAL], s[b.BALL], s[b.RIM]]
        plane = [s[BODY], s[POINT], s[NORMAL], s[OFFSET], s[FOUR], s[SMOOTHING]]
        kc.launch(body_plane_energies, s.rows(self.name), [*bodies, *plane], [e])
        return e

    def limits(self, a: Arrays) -> list[Limit]:
        four, body = a.numpy(FOUR), a.numpy(BODY)
        rate = b.contact_rates(a, planes=True)[body]
        return [b.contact_limit(body, a.rows("bodies"), rate * four[:, 0])]


def add_rows(draft: Draft) -> Rows:
    """Pairs of a plane with every point of every body that moves."""
    start, count, motion = (draft.whole(index) for index in (b.REFERENCE, b.PLANE_COUNT, b.MOTION))
    points = [np.arange(s, s + n) for s, n in zip(start, np.where(motion == FREE, count, 0))]
    draft.index(POINT.name, np.concatenate([np.zeros(0, int), *points]))
    many = np.array([len(p) for p in points], int)
    draft.index(BODY.name, np.repeat(np.arange(len(points)), many))
    add_rubbing(draft, many)
    return draft.rows("body_plane_contacts", int(many.sum()))
