"""Compliant contact of particles and points of nets with each other, as balls without spin, found anew in every step.

It belongs to `self_contact.py`, has its numbers from the vertices there, and triangles meet these points as they meet
all vertices. A row of `touch_points` is a point, of `touch_near_points` a pair of points of a net that is closer than
the thickness at rest, which is no contact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

import kernelc as kc
from nablasim.physics.checks import filled
from nablasim.physics.laws.contact import near_points_kernels as search
from nablasim.physics.laws.contact import point_contact_kernels as kernels
from nablasim.physics.laws.contact.self_contact import Search, add_numbers, add_vertices, vertices
from nablasim.physics.laws.deformable.particles import F, X, now
from nablasim.physics.laws.system import System
from nablasim.physics.model import Draft, Index, Layout

if TYPE_CHECKING:
    from nablasim.physics.model import Step

VERTEX = Index("touch_points.vertex", to="touch_vertices")
POINT_WORLD = Index("touch_points.world", to="touch_worlds")
NEAR_START = Index("touch_points.near_start", to="touch_near_points", begins=True)
NEAR_COUNT = Index("touch_points.near_count")
NEAR = Index("touch_near_points.point", to="touch_points")

ROOM, SHARE = 64, 8
"""Near how many others a point may be; and how many it may touch on average, each pair counted once."""
AROUND = 6
"""Twelve balls fit around one, which is as stiff as a vertex on another with six triangles around each."""


class PointContact(System):
    """The contact [ke, kd] between points."""

    name = "point_contacts"
    touches = True
    indices = (VERTEX, POINT_WORLD, NEAR_START, NEAR_COUNT, NEAR)

    def forces(self, s: Step) -> None:
        given = [now(s), vertices(s), s[VERTEX], find(s)]
        kc.launch(kernels.point_contact_forces, s.rows("touch_points"), given, [s[F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        n = s.rows("touch_points")
        e = s.scratch("point_contacts.energy", n)
        kc.launch(kernels.point_contact_energies, n, [s[X], vertices(s), s[VERTEX], find(s)], [e])
        return e

    def step_bytes(self, layout: Layout) -> int:
        return 4 * (SHARE + 1) * layout.rows("touch_points")


SEARCH = Search("close", "touch_points", "touch_points", (NEAR_START, NEAR_COUNT, NEAR), VERTEX, POINT_WORLD,
                search.find_near_points, search.find_close_points, SHARE)  # fmt: skip


def find(s: Step) -> Any:
    """The points that each point touches."""
    return SEARCH.run(s, ROOM)


def add_point_contact(draft: Draft, name: str, *, thickness: float | None, kf: float, mu: float, **law: Any) -> None:
    """Let the particles of an object touch; points of a net that are closer at rest than the thickness do not.

    Friction, which they have with triangles alone, is only checked: see `add_friction`.
    """
    for quantity, value in (("kf", kf), ("mu", mu)):
        filled(f"{name}.self_{quantity}", value, (), positive=True, allow_zero=True)
    thing, x = draft.things[name], np.asarray(draft.parameters[f"{name}.x"].value)
    if thickness is None:
        raise ValueError(f"{name}: give its thickness (m), the distance at which its points begin to touch")
    n = len(x)
    rows = add_vertices(draft, name, thing.rows["particles"].start + np.arange(n), np.full(n, AROUND),
                        np.zeros(n, int), thickness=thickness, **law)  # fmt: skip
    near = near_points(x, thickness) if thing.kind == "springs" else np.zeros((0, 2), int)
    points, pairs = draft.rows("touch_points", n), draft.rows("touch_near_points", len(near))
    draft.thing(name, thing.kind, points, pairs)
    count = np.bincount(near[:, 0], minlength=n)
    draft.index(VERTEX.name, rows.start + np.arange(n))
    draft.index(POINT_WORLD.name, np.zeros(n))
    draft.index(NEAR_START.name, pairs.start + np.cumsum(count) - count)
    draft.index(NEAR_COUNT.name, count)
    draft.index(NEAR.name, near[:, 1] + points.start)


def add_friction(draft: Draft, *, name: str, kf: float, mu: float) -> None:
    """What points rub with: triangles, if there are any. Called when everything else is there."""
    if draft.count.get("touch_triangles"):
        add_numbers(draft, name, kf=kf, mu=mu)


def near_points(points: NDArray[np.float64], distance: float) -> NDArray[np.integer[Any]]:
    """Pairs (i, j), i < j, of points that are closer than a distance."""
    found = cKDTree(points).query_pairs(distance, output_type="ndarray")
    return np.unique(np.sort(found, axis=1), axis=0).reshape(-1, 2)
