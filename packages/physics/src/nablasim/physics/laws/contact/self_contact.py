"""Compliant contact of deformable surfaces with themselves and each other: vertices against triangles, found anew in
every step. Edges that cross are in `edge_contact.py`.

All cloth and solids that were given to `Scene.add_self_contact` take part. A row of `touch_vertices` is a vertex, of
`touch_triangles` a triangle, of `touch_near` a pair of both that is closer than the thickness at rest, which is no
contact; `touch_worlds` has one row, so that its number tells the scenes of a batch apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

import kernelc as kc
from nablasim.physics.checks import filled
from nablasim.physics.geometry import TriMesh
from nablasim.physics.laws.contact import self_contact_kernels as kernels
from nablasim.physics.laws.contact import touching_kernels as search
from nablasim.physics.laws.contact.pairing_kernels import join_four
from nablasim.physics.laws.contact.planes import LAWS
from nablasim.physics.laws.deformable.particles import F, X, now
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Layout, Rows

if TYPE_CHECKING:
    from nablasim.physics.laws.limits import Bounds
    from nablasim.physics.model import Arrays, Step

PARTICLE, WORLD = Index("touch_vertices.particle", to="particles"), Index("touch_vertices.world", to="touch_worlds")
NEAR_START = Index("touch_vertices.near_start", to="touch_near", begins=True)
NEAR_COUNT = Index("touch_vertices.near_count")
FIRST = Index("touch_vertices.first", to="touch_vertices")
"""The first vertex of the scene, by which it is seen whether others moved against each other."""
AROUND, LAW = Index("touch_vertices.around"), Index("touch_vertices.law")
KE, KD, KF, MU, THICKNESS = (Column(f"touch_vertices.{q}") for q in ("ke", "kd", "kf", "mu", "thickness"))
TOUCH, SMOOTHING = Column("touch_vertices.touch"), Column("touch_vertices.smoothing")
FOUR = Column("touch_vertices.four", kc.float4, role="derived")
CORNERS = Index("touch_triangles.corners", to="touch_vertices", width=3)
TRIANGLE_WORLD = Index("touch_triangles.world", to="touch_worlds")
NEAR = Index("touch_near.triangle", to="touch_triangles")

ROOM, SHARE = 16, 12
"""A vertex may be near this many times the most triangles that meet in one vertex; and touch so many on average."""


class SelfContact(System):
    """The four-parameter contact [ke, kd, kf, mu] between layers of cloth."""

    name = "self_contacts"
    touches = True
    columns = (KE, KD, KF, MU, THICKNESS, TOUCH, SMOOTHING, FOUR)
    indices = (PARTICLE, WORLD, FIRST, NEAR_START, NEAR_COUNT, AROUND, LAW, CORNERS, TRIANGLE_WORLD, NEAR)

    def setup(self, a: Arrays) -> None:
        kc.launch(join_four, a.rows("touch_vertices"), [a[KE], a[KD], a[KF], a[MU]], [a[FOUR]])

    def forces(self, s: Step) -> None:
        if not s.rows("touch_triangles"):  # There are only points, which meet each other.
            return
        given = [now(s), vertices(s), s[CORNERS], find(s)]
        kc.launch(kernels.self_contact_forces, s.rows("touch_vertices"), given, [s[F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        if not s.rows("touch_triangles"):
            return None
        n = s.rows("touch_vertices")
        e = s.scratch("self_contacts.energy", n)
        kc.launch(kernels.self_contact_energies, n, [s[X], vertices(s), s[CORNERS], find(s)], [e])
        return e

    def step_bytes(self, layout: Layout) -> int:
        return 4 * (SHARE + 1) * layout.rows("touch_vertices") * bool(layout.rows("touch_triangles"))

    def stiffness(self, a: Arrays, bounds: Bounds) -> None:
        kc.launch(kernels.self_contact_stiffness, a.rows("touch_vertices"), [vertices(a), a[AROUND]], [bounds.contact])


def vertices(a: Arrays) -> Any:
    """All that touches, as kernels take it."""
    return a.bundle(search.Vertices, PARTICLE, THICKNESS, FOUR, LAW, TOUCH, SMOOTHING)


@dataclass(frozen=True)
class Search:
    """Finds which rows of a table touch which ones of another, all of them made of vertices that touch."""

    name: str
    """Of its memory."""
    seekers: str
    sought: str
    near: tuple[Index, Index, Index]
    """Of each seeker: where those begin that it does not touch, how many there are, and all of them."""
    shape: Index
    """The vertices of what is sought."""
    world: Index
    candidates: Any
    """The kernels: of all that are near, and of those that touch now."""
    touching: Any
    share: int
    """How many each may touch on average."""

    def run(self, s: Step, room: int) -> Any:
        """The contacts of each seeker, which may be near `room`."""

        def kept(what: str, shape: int | tuple[int, ...], element: Any = float) -> Any:
            return s.kept(f"{self.name}.{what}", shape, element)

        n, many, m = s.rows("touch_vertices"), s.rows(self.seekers), s.rows(self.sought)
        worlds, buckets = s.rows("touch_worlds"), 1 << max(m - 1, 1).bit_length()
        points = search.Points(kept("now", n, kc.float3), kept("reach", n), s[WORLD], s[FIRST])
        seen = search.Seen(kept("seen", n, kc.float3), kept("seen_reach", n), kept("slack", worlds),
                           kept("size", worlds))  # fmt: skip
        cells = search.Cells(s[self.world], kept("middle", m, kc.float3), kept("key", m, int),
                             kept("start", buckets + 1, int), kept("order", m, int))  # fmt: skip
        near = search.Rows(kept("count", many, int), kept("candidates", (many, room), int))
        found = search.Rows(kept("many", many, int), kept("found", (many, room), int))
        contacts = search.Contacts(s.scratch(f"{self.name}.first", many + 1, int),
                                   s.scratch(f"{self.name}.all", self.share * many, int))  # fmt: skip
        apart = search.Apart(*(s[index] for index in self.near))
        kc.launch(search.look_around, n, [s[X], vertices(s)], [points])
        kc.launch(self.candidates, 1, [points, s[self.shape], apart], [seen, cells, near])
        kc.launch(self.touching, many, [points, s[self.shape], near], [found])
        kc.launch(search.pack_touching, 1, [found], [contacts])
        return contacts


SEARCH = Search("touch", "touch_vertices", "touch_triangles", (NEAR_START, NEAR_COUNT, NEAR), CORNERS, TRIANGLE_WORLD,
                search.find_candidates, search.find_touching, SHARE)  # fmt: skip


def find(s: Step) -> Any:
    """The triangles that each vertex touches."""
    return SEARCH.run(s, ROOM * int(s.numpy(AROUND).max()))


def add_self_contact(
    draft: Draft, name: str, particles: NDArray[np.integer], mesh: TriMesh, *, thickness: float | None, kf: float,
    mu: float, **law: Any,
) -> tuple[Rows, float]:  # fmt: skip
    """Let the vertices and triangles of a surface touch; `mesh` is its shape at rest, `particles` its vertices.

    Returns the rows of its vertices and its thickness.
    """
    ends = mesh.vertices[mesh.edges]
    thick = 0.5 * np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).min() if thickness is None else thickness
    filled(f"{name}.thickness", thick, (), positive=True)
    n, near = len(mesh.vertices), near_pairs(mesh, float(thick))
    around, count = np.bincount(mesh.faces.ravel(), minlength=n), np.bincount(near[:, 0], minlength=n)
    rows = add_vertices(draft, name, particles, around, count, thickness=float(thick), **law)
    add_numbers(draft, name, kf=kf, mu=mu)
    faces, pairs = draft.rows("touch_triangles", len(mesh.faces)), draft.rows("touch_near", len(near))
    draft.thing(name, draft.things[name].kind, faces, pairs)
    draft.index(NEAR.name, near[:, 1] + faces.start)
    draft.index(CORNERS.name, mesh.faces + rows.start)
    draft.index(TRIANGLE_WORLD.name, np.zeros(faces.count))
    return rows, float(thick)


def add_vertices(
    draft: Draft,
    name: str,
    particles: NDArray[np.integer],
    around: NDArray[np.integer],
    near: NDArray[np.integer],
    *,
    thickness: float,
    ke: float,
    kd: float,
    damping: str,
    touch: float | None,
    smoothing: float,
) -> Rows:
    """Let particles touch triangles: `near` is how many each has that it does not touch, which are added next."""
    if damping not in LAWS:
        raise ValueError(f'{name}: damping is "smooth" or "linear", not {damping!r}')
    filled(f"{name}.thickness", thickness, (), positive=True)
    if not draft.count.get("touch_worlds"):
        draft.rows("touch_worlds", 1)
    n = len(particles)
    rows = draft.rows("touch_vertices", n)
    draft.thing(name, draft.things[name].kind, rows)
    draft.index(PARTICLE.name, particles)
    draft.index(WORLD.name, np.zeros(n))
    draft.index(FIRST.name, np.zeros(n))
    draft.index(NEAR_START.name, draft.count.get("touch_near", 0) + np.cumsum(near) - near)
    draft.index(NEAR_COUNT.name, near)
    draft.index(AROUND.name, around)
    draft.index(LAW.name, np.full(n, LAWS.index(damping)))
    about = "distance at which things begin to touch"
    draft.parameter(f"{name}.thickness", THICKNESS, rows, thickness, unit="m", bounds=(0.0, None), uniform=True,
                    about=about)  # fmt: skip
    add_numbers(draft, name, ke=ke, kd=kd)
    short = 0.2 * thickness if touch is None else touch
    draft.constant(TOUCH, rows, filled(f"{name}: touch", short, (), positive=True))
    draft.constant(SMOOTHING, rows, filled(f"{name}: smoothing", smoothing, (), positive=True, allow_zero=True))
    return rows


def add_numbers(draft: Draft, name: str, **numbers: float) -> None:
    """Contact numbers of what touches already, by name: ke, kd, kf, mu."""
    rows = draft.things[name].rows["touch_vertices"]
    for quantity, column, unit in (("ke", KE, "N/m"), ("kd", KD, "N s/m"), ("kf", KF, "N s/m"), ("mu", MU, "1")):
        if quantity in numbers:
            value = filled(f"{name}.self_{quantity}", numbers[quantity], (), positive=True, allow_zero=True)
            draft.parameter(f"{name}.self_{quantity}", column, rows, value, unit=unit, bounds=(0.0, None), uniform=True,
                            about="contact with what is deformable")  # fmt: skip


def near_pairs(mesh: TriMesh, distance: float) -> NDArray[np.int32]:
    """(vertex, triangle) of all that are closer than a distance, those of which the vertex is a corner included."""
    corners = mesh.vertices[mesh.faces]
    middle = corners.mean(axis=1)
    radius = float(np.linalg.norm(corners - middle[:, None], axis=2).max())
    found = cKDTree(mesh.vertices).query_ball_tree(cKDTree(middle), radius + distance)
    pairs = np.array([(v, t) for v, around in enumerate(found) for t in sorted(around)], np.int32).reshape(-1, 2)
    apart = kc.zeros(len(pairs), real=kc.float64)
    points = kc.array(np.array(mesh.vertices), dtype=kc.float3)
    kc.launch(search.distances, len(pairs), [points, kc.array(np.array(mesh.faces)), kc.array(pairs)], [apart])
    return pairs[apart.numpy() < distance]
