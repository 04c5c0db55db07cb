"""Compliant contact of the points of bodies with triangles of cloth and of the surfaces of solids.

It holds what could pass between the vertices: balls smaller than the longest edge, and, where the surface has a
thickness, corners and vertices of bodies. Everything else is met by the vertices (`body_contacts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import kernelc as kc
from nablasim.physics.kernels.face_hits import face_hit_energies, face_hit_forces
from nablasim.physics.kernels.pairing import pair_with_triangle
from nablasim.physics.layout import Column, Draft, Index
from nablasim.physics.stability import CONTACT_SAFETY, Limit, step_rate
from nablasim.physics.systems import bodies as b
from nablasim.physics.systems import particles as p
from nablasim.physics.systems import surfaces
from nablasim.physics.systems.body_contacts import Contact, Law, Meeting, add_numbers, meeting_bodies
from nablasim.physics.systems.system import System

if TYPE_CHECKING:
    from nablasim.physics.program import Arrays, Step

CONTACT = Contact("face_hits")
CORNERS, BODY = Index("face_hits.corners", to="particles", width=3), Index("face_hits.body", to="bodies")
THICKNESS = Column("face_hits.thickness")
POINTS = (b.POINT_START, b.POINT_COUNT, b.LOCAL, b.BALL, b.SHARE)


class FaceHits(System):
    """Points of bodies against triangles of what is deformable, which feel each other alike."""

    name = "face_hits"
    touches = True
    columns = (*CONTACT.columns, THICKNESS)
    indices = (CORNERS, BODY, CONTACT.law)

    def finish(self, a: Arrays) -> None:
        given = [*(a[column] for column in CONTACT.given), a[CORNERS], a[BODY], a[b.FOUR], a[p.MASS], a[b.MASS],
                 a[b.MOTION]]  # fmt: skip
        kc.launch(pair_with_triangle, a.rows(self.name), given, [a[CONTACT.four]], parts=a.parts)

    def forces(self, s: Step) -> None:
        moving = [s[b.X], s[b.ROT], s[b.V], s[b.OMEGA], s[b.COM]]
        light = [s[b.MASS], s[b.INVERSE], s[b.MOTION], s[b.CROWD], s[surfaces.BOUND]]
        rows = [*(s[what] for what in POINTS), s[CORNERS], s[BODY], s[THICKNESS], *CONTACT.law_of(s)]
        given = [s[p.X], s[p.V], s[p.WEIGHT], s.ahead, *moving, *light, *rows]
        kc.launch(face_hit_forces, s.rows(self.name), given, [s[p.F], s[b.F], s[b.TORQUE]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        e = s.scratch("face_hits.energy", s.rows(self.name))
        given = [s[p.X], s[b.X], s[b.ROT], *(s[what] for what in POINTS), s[CORNERS], s[BODY], s[THICKNESS],
                 s[CONTACT.four], s[CONTACT.smoothing]]  # fmt: skip
        kc.launch(face_hit_energies, s.rows(self.name), given, [e])
        return e

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
