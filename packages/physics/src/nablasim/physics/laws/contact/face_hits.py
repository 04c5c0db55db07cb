"""Compliant contact of the points of bodies with triangles of cloth and of the surfaces of solids.

It holds what could pass between the vertices: balls smaller than the longest edge, and, where the surface has a
thickness, corners and vertices of bodies. Everything else is met by the vertices (`body_contacts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import kernelc as kc
from nablasim.physics.laws.contact.adding_contacts import Law, Meeting, add_numbers, meeting_bodies
from nablasim.physics.laws.contact.body_contacts import Contact, partners
from nablasim.physics.laws.contact.face_hits_kernels import FaceHits as Faces
from nablasim.physics.laws.contact.face_hits_kernels import face_hit_energies, face_hit_forces
from nablasim.physics.laws.contact.pairing_kernels import pair_with_triangle
from nablasim.physics.laws.contact.planes import pushed
from nablasim.physics.laws.contact.reports import Touches, blank, centres, rows, spread, touches
from nablasim.physics.laws.contact.reports_kernels import report_face_hits
from nablasim.physics.laws.deformable import particles as p
from nablasim.physics.laws.limits import CONTACT_SAFETY, Limit, step_rate
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.surfaces import BOUND, surfaces
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index

if TYPE_CHECKING:
    from nablasim.physics.model import Arrays, Step

CONTACT = Contact("face_hits")
CORNERS, BODY = Index("face_hits.corners", to="particles", width=3), Index("face_hits.body", to="bodies")
THICKNESS = Column("face_hits.thickness")


class FaceHits(System):
    """Points of bodies against triangles of what is deformable, which feel each other alike."""

    name = "face_hits"
    touches = True
    columns = (*CONTACT.columns, THICKNESS)
    indices = (CORNERS, BODY, CONTACT.law)

    def finish(self, a: Arrays) -> None:
        given = [CONTACT.defaults(a), a[CORNERS], a[BODY], partners(a), a[p.MASS]]
        kc.launch(pair_with_triangle, a.rows(self.name), given, [a[CONTACT.four]], parts=a.parts)

    def forces(self, s: Step) -> None:
        kc.launch(face_hit_forces, s.rows(self.name), [*met(s), s.ahead], [b.forces(s)], parts=s.parts)

    def energy(self, s: Step) -> Any:
        e = s.scratch("face_hits.energy", s.rows(self.name))
        kc.launch(face_hit_energies, s.rows(self.name), met(s), [e])
        return e

    def contacts(self, s: Step) -> list[Touches]:
        corners, body = s.numpy(CORNERS), s.numpy(BODY)
        x, reach = s.numpy(p.X)[corners], s.numpy(BOUND)[body]
        middle = x.mean(axis=1)
        size = np.linalg.norm(x - middle[:, None], axis=2).max(axis=1)
        slack = 0.5 * s.numpy(THICKNESS) + s.numpy(CONTACT.smoothing)
        close = np.flatnonzero(np.linalg.norm(middle - centres(s)[body], axis=1) < size + reach[:, 3] + slack)
        start, of = spread(s.numpy(b.POINT_COUNT)[body[close]])
        report = blank(s, len(of))
        kc.launch(report_face_hits, len(close), [*met(s), rows(close), start], [report])
        return [touches(report, ("particles", corners[close][of, 0]), ("bodies", body[close][of]))]

    def limits(self, a: Arrays) -> list[Limit]:
        corners, body = a.numpy(CORNERS), a.numpy(BODY)
        # A point that is pressed on a vertex touches all triangles around it, and both sides give way.
        rates = b.contact_rates(a, planes=False)[body]
        softer = 1 + a.numpy(p.MASS)[corners] * rates[:, None]
        pushed = np.ravel_multi_index((corners, body[:, None]), (a.rows("particles"), a.rows("bodies")))
        pair, which = np.unique(pushed, return_inverse=True)
        k = np.zeros(len(pair))
        np.add.at(k, which.ravel(), (a.numpy(CONTACT.four)[:, :1] * softer).ravel())
        particle, most = pair // a.rows("bodies"), np.zeros(a.rows("particles"))
        np.maximum.at(most, particle, step_rate(k, np.zeros_like(k), a.numpy(p.WEIGHT)[particle]))
        return [Limit("particles", most, "its contact (ke)", "soften the contact", safety=CONTACT_SAFETY)]


def met(s: Step) -> list[Any]:
    """What meets, in kernels."""
    return [pushed(s), b.moving(s), surfaces(s), CONTACT.rows(s, Faces, CORNERS, BODY, THICKNESS)]


def add_face_hits(draft: Draft, *, numbers: Mapping[str, float | None], law: Law, laws: Mapping[str, Law]) -> None:
    """Contacts of bodies with the triangles between whose vertices they could pass. See `add_contacts`."""
    bodies = [body for body in meeting_bodies(draft) if body.points]
    for thing in list(draft.things.values()):
        if not bodies or thing.kind not in ("cloth", "soft"):
            continue
        faces, rest = draft.surfaces[thing.name].faces, draft.parameters[f"{thing.name}.rest"].value
        ends = rest[faces] - rest[np.roll(faces, 1, axis=1)]
        longest, thick = float(np.linalg.norm(ends, axis=2).max()), "touch_vertices" in thing.rows
        for body in (body for body in bodies if _slips_through(draft, body, longest, thick)):
            rows = draft.rows("face_hits", len(faces))
            draft.index(CORNERS.name, faces + thing.rows["particles"].start)
            draft.index(BODY.name, np.full(len(faces), body.row))
            add_numbers(draft, rows, body.given, numbers, laws.get(body.name, law))
            if thick:
                known = draft.parameters[f"{thing.name}.thickness"]
                draft.parameter(known.name, THICKNESS, rows, known.value, unit=known.unit)


def _slips_through(draft: Draft, body: Meeting, longest: float, thick: bool) -> bool:
    """Whether a body could come between vertices, and can be held by what is between them."""
    if body.roundness:
        return float(draft.parameters[f"{body.name}.radius"].value) < longest
    return thick
