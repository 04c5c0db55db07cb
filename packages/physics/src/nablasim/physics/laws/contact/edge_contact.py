"""Compliant contact of deformable surfaces where their edges cross, found anew in every step.

It belongs to `self_contact.py`, has its numbers from the vertices there, and sees what no vertex does. A row of
`touch_edges` is an edge, of `touch_near_edges` a pair of them that is closer than the thickness at rest, which is no
contact: among them are all that share a vertex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

import kernelc as kc
from nablasim.physics.geometry import TriMesh
from nablasim.physics.laws.contact import crossing_kernels as search
from nablasim.physics.laws.contact import edge_contact_kernels as kernels
from nablasim.physics.laws.contact.self_contact import AROUND, ROOM, Search, vertices
from nablasim.physics.laws.deformable.particles import F, X, now
from nablasim.physics.laws.system import System
from nablasim.physics.model import Draft, Index, Layout, Rows

if TYPE_CHECKING:
    from nablasim.physics.model import Step

ENDS = Index("touch_edges.ends", to="touch_vertices", width=2)
EDGE_WORLD = Index("touch_edges.world", to="touch_worlds")
NEAR_START = Index("touch_edges.near_start", to="touch_near_edges", begins=True)
NEAR_COUNT = Index("touch_edges.near_count")
NEAR = Index("touch_near_edges.edge", to="touch_edges")

SHARE = 12
"""How many others an edge may cross on average."""


class EdgeContact(System):
    """The four-parameter contact [ke, kd, kf, mu] between edges of layers of cloth.

    The bound of `self_contacts` on the stable step holds for it, too.
    """

    name = "edge_contacts"
    touches = True
    indices = (ENDS, EDGE_WORLD, NEAR_START, NEAR_COUNT, NEAR)

    def forces(self, s: Step) -> None:
        given = [now(s), vertices(s), s[ENDS], find(s)]
        kc.launch(kernels.edge_contact_forces, s.rows("touch_edges"), given, [s[F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        n = s.rows("touch_edges")
        e = s.scratch("edge_contacts.energy", n)
        kc.launch(kernels.edge_contact_energies, n, [s[X], vertices(s), s[ENDS], find(s)], [e])
        return e

    def step_bytes(self, layout: Layout) -> int:
        return 4 * (SHARE + 1) * layout.rows("touch_edges")


SEARCH = Search("cross", "touch_edges", "touch_edges", (NEAR_START, NEAR_COUNT, NEAR), ENDS, EDGE_WORLD,
                search.find_near_edges, search.find_crossing, SHARE)  # fmt: skip


def find(s: Step) -> Any:
    """The edges that each edge crosses."""
    return SEARCH.run(s, ROOM * int(s.numpy(AROUND).max()))


def add_edge_contact(draft: Draft, name: str, mesh: TriMesh, ends: Rows, thickness: float) -> None:
    """Let the edges of a surface touch whose vertices do already, in rows `ends`; `mesh` is its shape at rest."""
    near = near_edges(mesh, thickness)
    rows, pairs = draft.rows("touch_edges", len(mesh.edges)), draft.rows("touch_near_edges", len(near))
    draft.thing(name, draft.things[name].kind, rows, pairs)
    count = np.bincount(near[:, 0], minlength=rows.count)
    draft.index(ENDS.name, mesh.edges + ends.start)
    draft.index(EDGE_WORLD.name, np.zeros(rows.count))
    draft.index(NEAR_START.name, pairs.start + np.cumsum(count) - count)
    draft.index(NEAR_COUNT.name, count)
    draft.index(NEAR.name, near[:, 1] + rows.start)


def near_edges(mesh: TriMesh, distance: float) -> NDArray[np.int32]:
    """Pairs (i, j), i < j, of edges that are closer than a distance, those that share a vertex included."""
    ends = mesh.vertices[mesh.edges]
    middle = ends.mean(axis=1)
    longest = float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).max())
    found = cKDTree(middle).query_pairs(longest + distance, output_type="ndarray")
    pairs = np.unique(np.sort(found, axis=1), axis=0).astype(np.int32).reshape(-1, 2)
    apart = kc.zeros(len(pairs), real=kc.float64)
    points = kc.array(np.array(mesh.vertices), dtype=kc.float3)
    kc.launch(search.edge_distances, len(pairs), [points, kc.array(np.array(mesh.edges)), kc.array(pairs)], [apart])
    return pairs[apart.numpy() < distance]
