"""Friction of bodies on half-spaces. A row is a body, which rubs at all points that `body_planes.py` finds pressed.

It comes after all other forces: they say with which velocity the step would end, and friction is taken there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.kernels.body_friction import body_friction
from nablasim.physics.layout import Column, Draft, Index
from nablasim.physics.systems import bodies as b
from nablasim.physics.systems.system import System

if TYPE_CHECKING:
    from nablasim.physics.program import Step

PRESS = Column("body_plane_contacts.press", kc.float4, role="sum")
"""Where each point is from the centre of mass, and how hard it is pushed."""
BODY, FIRST = Index("rubbing_bodies.body", to="bodies"), Index("rubbing_bodies.first", to="body_plane_contacts")
POINTS, PLANES, STRIDE = (Index(f"rubbing_bodies.{q}") for q in ("points", "planes", "stride"))
"""Point i of plane k is in row first + k · stride + i of the contacts."""


class BodyFriction(System):
    """The relaxed cone min(mu f_n, kf |u|) at the end of the step, for all points of a body together."""

    name = "rubbing_bodies"
    indices = (BODY, FIRST, POINTS, PLANES, STRIDE)

    def forces(self, s: Step) -> None:
        # Its modules need this one, to add the rows.
        from nablasim.physics.systems.body_planes import FOUR, LAW, NORMAL, OFFSET, SMOOTHING

        bodies = [s[c] for c in (b.X, b.ROT, b.V, b.OMEGA, b.F, b.TORQUE, b.GRAVITY, b.MASS, b.COM, b.INERTIA)]
        rows = [s[c] for c in (BODY, FIRST, POINTS, PLANES, STRIDE, NORMAL, OFFSET, FOUR, LAW, SMOOTHING, PRESS)]
        given = [*bodies, s[b.INVERSE], s.ahead, *rows]
        sums = [s[b.CONTACT_F], s[b.CONTACT_TORQUE]]
        kc.launch(body_friction, s.rows(self.name), given, sums, parts=s.parts)


def add_rubbing(draft: Draft, points: NDArray[np.int_]) -> None:
    """The bodies that have so many points on each plane; called for one plane after the other."""
    bodies = np.flatnonzero(points)
    if draft.count.get("rubbing_bodies", 0):
        draft.indices[PLANES.name] = [draft.whole(PLANES) + 1]
        return
    first = draft.count.get("body_plane_contacts", 0) + np.cumsum(points) - points
    draft.rows("rubbing_bodies", len(bodies))
    for index, values in ((BODY, bodies), (FIRST, first[bodies]), (POINTS, points[bodies]),
                          (PLANES, np.ones(len(bodies))), (STRIDE, np.full(len(bodies), points.sum()))):  # fmt: skip
        draft.index(index.name, values)
