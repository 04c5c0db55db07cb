"""Friction of bodies on half-spaces. A row is a body, which rubs at all points that `body_planes.py` finds pressed.

It comes after all other forces: they say with which velocity the step would end, and friction is taken there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.laws.contact.body_friction_kernels import Rubbing, body_friction
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index

if TYPE_CHECKING:
    from nablasim.physics.model import Step

PRESS = Column("body_plane_contacts.press", kc.float4, role="sum")
"""Where each point is from the centre of mass, and how hard it is pushed."""
BODY, FIRST = Index("rubbing_bodies.body", to="bodies"), Index("rubbing_bodies.first", to="body_plane_contacts")
POINTS, PLANES, STRIDE = (Index(f"rubbing_bodies.{q}") for q in ("points", "planes", "stride"))
"""Point i of plane k is in row first + k · stride + i of the contacts."""


SCENE = Index("rubbing.scene")
"""A row for a scene in which contact of all bodies is solved for together: see `rubbing.py`."""


class BodyFriction(System):
    """The relaxed cone min(mu f_n, kf |u|) at the end of the step, for all points of a body together."""

    name = "rubbing_bodies"
    indices = (BODY, FIRST, POINTS, PLANES, STRIDE)

    def forces(self, s: Step) -> None:
        # Its modules need this one, to add the rows.
        from nablasim.physics.laws.contact.body_planes import planes

        if together(s):
            return

        rubbing = s.bundle(Rubbing, *self.indices, PRESS)
        given = [b.moving(s), b.forces(s), rubbing, planes(s), s.ahead]
        kc.launch(body_friction, s.rows(self.name), given, [b.rub(s)], parts=s.parts)


def together(s: Step) -> bool:
    """Whether contact of this step is solved for by scene; where forces are looked at, they are the law itself."""
    return bool(s.rows("rubbing")) and s.tape is not None and s.ahead is s.dt


def add_scene(draft: Draft) -> None:
    """Let contact of all bodies be solved for together: where bodies meet bodies, or are firm."""
    if not draft.count.get("rubbing", 0):
        draft.rows("rubbing", 1)
        draft.index(SCENE.name, np.zeros(1))


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
