"""Compliant contact of bodies with half-spaces. A row is a pair of a point of a body and a plane.

`planes.add_plane` names these rows when it names those of particles: a plane has one set of parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import kernelc as kc
from nablasim.physics.checks import STICK
from nablasim.physics.laws.contact.body_friction import PRESS, add_rubbing, add_scene, together
from nablasim.physics.laws.contact.body_planes_kernels import Planes, body_plane_energies, body_plane_forces
from nablasim.physics.laws.contact.compliant_kernels import FIRM, Contact
from nablasim.physics.laws.contact.hard_kernels import HARD, hard_body_forces, hard_body_weights
from nablasim.physics.laws.contact.pairing_kernels import Defaults, Partners, pair_with_plane
from nablasim.physics.laws.contact.planes_kernels import unit_normals
from nablasim.physics.laws.contact.reports import Touches, blank, touches
from nablasim.physics.laws.contact.reports_kernels import report_body_planes
from nablasim.physics.laws.contact.rubbing_kernels import hard_presses
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.bodies_kernels import FREE
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.laws.limits import Limit
    from nablasim.physics.model import Arrays, Step

BODY, POINT = Index("body_plane_contacts.body", to="bodies"), Index("body_plane_contacts.point", to="body_points")
LAW = Index("body_plane_contacts.law")
GIVEN = tuple(Column(f"body_plane_contacts.{q}") for q in ("ke", "kd", "kf", "mu", "rate", "ratio"))
"""ke, kd and kf are `NONE` where the mass of the body and the last two say them."""
FOUR = Column("body_plane_contacts.four", kc.float4, role="derived")
GIVEN_NORMAL = Column("body_plane_contacts.given_normal", kc.float3)
NORMAL = Column("body_plane_contacts.normal", kc.float3, role="derived")
OFFSET = Column("body_plane_contacts.offset")
TOUCH, SMOOTHING = Column("body_plane_contacts.touch"), Column("body_plane_contacts.smoothing")


class BodyPlanes(System):
    """The four-parameter contact [ke, kd, kf, mu] of every point of every body with every plane."""

    name = "body_plane_contacts"
    columns = (*GIVEN, FOUR, GIVEN_NORMAL, NORMAL, OFFSET, TOUCH, SMOOTHING,
               PRESS)  # fmt: skip
    indices = (BODY, POINT, LAW)

    def setup(self, a: Arrays) -> None:
        kc.launch(unit_normals, a.rows(self.name), [a[GIVEN_NORMAL]], [a[NORMAL]])

    def finish(self, a: Arrays) -> None:
        given = [a.bundle(Defaults, *GIVEN), a[BODY], a.bundle(Partners, b.FOUR, b.MASS, b.MOTION)]
        kc.launch(pair_with_plane, a.rows(self.name), given, [a[FOUR]], parts=a.parts)

    def forces(self, s: Step) -> None:
        n, touching, sums = s.rows(self.name), [b.moving(s), b.points(s), planes(s)], [b.forces(s), s[PRESS]]
        kc.launch(body_plane_forces, n, [*touching, s.ahead], sums, parts=s.parts)
        if (s.numpy(LAW) == HARD).any() and together(s):
            kc.launch(hard_presses, n, [*touching, s.dt], [s[PRESS]], parts=s.parts)
        elif (s.numpy(LAW) == HARD).any():
            weights = s.scratch("bodies.weights", s.rows("bodies"))
            weights.zero_()
            kc.launch(hard_body_weights, n, [*touching, s.dt], [weights], parts=s.parts)
            kc.launch(hard_body_forces, n, [*touching, s.dt, weights], sums, parts=s.parts)

    def energy(self, s: Step) -> Any:
        e = s.scratch("body_plane_contacts.energy", s.rows(self.name))
        kc.launch(body_plane_energies, s.rows(self.name), [b.moving(s), b.points(s), planes(s)], [e])
        return e

    def contacts(self, s: Step) -> list[Touches]:
        n = s.rows(self.name)
        report = blank(s, n)
        for total in (s[b.F], s[b.TORQUE], s[PRESS]):
            total.zero_()
        self.forces(s)
        kc.launch(report_body_planes, n, [b.moving(s), planes(s), s[PRESS]], [report])
        return [touches(report, ("bodies", s.numpy(BODY)), (self.name, np.arange(n)))]

    def limits(self, a: Arrays) -> list[Limit]:
        four, body = a.numpy(FOUR), a.numpy(BODY)
        rate = b.contact_rates(a, planes=True)[body] * (a.numpy(LAW) < HARD)
        return [b.contact_limit(body, a.rows("bodies"), rate * four[:, 0])]


def planes(s: Step) -> Any:
    """Pairs of points of bodies and planes in kernels."""
    contact = s.bundle(Contact, FOUR, LAW, TOUCH, SMOOTHING)
    return s.bundle(Planes, BODY, POINT, NORMAL, OFFSET, contact=contact)


def add_rows(draft: Draft) -> Rows:
    """Pairs of a plane with every point of every body that moves."""
    start, count, motion = (draft.whole(index) for index in (b.REFERENCE, b.PLANE_COUNT, b.MOTION))
    points = [np.arange(s, s + n) for s, n in zip(start, np.where(motion == FREE, count, 0))]
    draft.index(POINT.name, np.concatenate([np.zeros(0, int), *points]))
    many = np.array([len(p) for p in points], int)
    draft.index(BODY.name, np.repeat(np.arange(len(points)), many))
    add_rubbing(draft, many)
    return draft.rows("body_plane_contacts", int(many.sum()))


def make_firm(draft: Draft, rows: Rows, *, by_mass: bool, sticks: bool) -> None:
    """Let steps find how hard bodies press on a plane, where neither of the two says how stiff that is, or one of them
    sticks: what sticks to springs that are taken as they are when a step begins rocks from corner to corner, and walks.
    """
    bodies = [t for t in draft.things.values() if "bodies" in t.rows]
    own = [t.rows["bodies"].start for t in bodies if f"{t.name}.ke" in draft.parameters]
    stuck = [place.rows.start for place, kf in draft.constants if place.column == b.KF.name and kf == STICK]
    body, law = draft.whole(BODY)[rows.slice], draft.whole(LAW)
    firm = np.isin(body, stuck) | sticks | (by_mass & ~np.isin(body, own))
    law[rows.slice] = np.where(firm, FIRM, law[rows.slice])
    draft.indices[LAW.name] = [law]
    if firm.any():
        add_scene(draft)
