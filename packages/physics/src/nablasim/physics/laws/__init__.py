"""The laws of physics, a pair of files each: a system, and its kernels. Rollouts only loop over `SYSTEMS`.

The door of this room: adders that `Scene` calls, the systems, and the columns of particles and bodies.
"""

from __future__ import annotations

from collections.abc import Mapping

from nablasim.physics.laws import articulated
from nablasim.physics.laws.articulated.adding_robots import add_robot
from nablasim.physics.laws.articulated.link_bodies import LinkBodies, add_link_bodies, finish_link_bodies
from nablasim.physics.laws.articulated.link_planes import LinkPlanes, add_link_planes, sort_link_planes
from nablasim.physics.laws.articulated.robots import Robots
from nablasim.physics.laws.contact import body_planes, hard_kernels, planes
from nablasim.physics.laws.contact.adding_contacts import Law, add_contacts
from nablasim.physics.laws.contact.body_contacts import (
    GridHits,
    GridPairs,
    Hits,
    MeshHits,
    MeshPairs,
    ShapeHits,
    ShapePairs,
)
from nablasim.physics.laws.contact.body_friction import PRESS, BodyFriction, add_scene
from nablasim.physics.laws.contact.body_planes import BodyPlanes
from nablasim.physics.laws.contact.edge_contact import EdgeContact, add_edge_contact
from nablasim.physics.laws.contact.face_hits import FaceHits, add_face_hits
from nablasim.physics.laws.contact.neighbours import Neighbours
from nablasim.physics.laws.contact.planes import Planes, add_plane
from nablasim.physics.laws.contact.point_contact import PointContact, add_friction, add_point_contact
from nablasim.physics.laws.contact.rubbing import Rubbing
from nablasim.physics.laws.contact.self_contact import SelfContact, add_self_contact
from nablasim.physics.laws.deformable import particles
from nablasim.physics.laws.deformable.bending import Bending
from nablasim.physics.laws.deformable.cloth import Cloth, add_cloth, add_wind
from nablasim.physics.laws.deformable.loads import Loads, add_load
from nablasim.physics.laws.deformable.particles import Particles, add_particles
from nablasim.physics.laws.deformable.springs import Springs, add_springs
from nablasim.physics.laws.deformable.tets import Tets, add_tets
from nablasim.physics.laws.limits import Bounds, Limit, step_rate
from nablasim.physics.laws.projection import Projection, Staggered
from nablasim.physics.laws.rigid import bodies, bodies_kernels
from nablasim.physics.laws.rigid.adding_bodies import Four, add_body, add_obstacle
from nablasim.physics.laws.rigid.bodies import Bodies
from nablasim.physics.laws.rigid.bodies_kernels import free_turn
from nablasim.physics.laws.rigid.body_loads import BodyLoads, add_body_load
from nablasim.physics.laws.rigid.implicit_bodies_kernels import lacking_momenta, place_bodies
from nablasim.physics.laws.rigid.magnets import Magnets, add_magnet
from nablasim.physics.laws.rigid.surfaces import Surfaces
from nablasim.physics.laws.smoke import PROJECTIONS, Smoke, add_smoke
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Index

SYSTEMS: list[System] = [
    Particles(),
    Springs(),
    Tets(),
    Cloth(),
    Bending(),
    SelfContact(),
    EdgeContact(),
    PointContact(),
    Loads(),
    Planes(),
    Bodies(),
    BodyPlanes(),
    BodyLoads(),
    Magnets(),
    Surfaces(),
    Neighbours(),
    ShapePairs(),
    MeshPairs(),
    GridPairs(),
    FaceHits(),
    ShapeHits(),
    MeshHits(),
    GridHits(),
    BodyFriction(),
    Rubbing(),
    LinkBodies(),
    LinkPlanes(),
    Robots(),
    Smoke(),
]
"""In the order in which they are set up and add their forces. Contact looks at what the others added."""


def in_use(count: Mapping[str, int]) -> list[System]:
    """The systems that have something to do where tables have these numbers of rows."""
    filled = {table for table, rows in count.items() if rows}
    return [s for s in SYSTEMS if not filled.isdisjoint(entry.table for entry in _entries(s))]


def register(system: System) -> None:
    """Let a system from elsewhere take part in every scene that is built from now on."""
    known = {entry.name for s in SYSTEMS for entry in _entries(s)}
    taken = [entry.name for entry in _entries(system) if entry.name in known]
    if taken:
        raise ValueError(f"register: a system that is there already has {', '.join(map(repr, taken))}; "
                         "names of columns and indices are given once")  # fmt: skip
    if any(system.name == other.name for other in SYSTEMS):
        raise ValueError(f"register: there is a system named {system.name!r} already: give this one another `name`")
    SYSTEMS.append(system)


def _entries(system: System) -> tuple[Column | Index, ...]:
    return (*system.columns, *system.indices)


__all__ = [
    "PRESS",
    "PROJECTIONS",
    "SYSTEMS",
    "Bending",
    "Bodies",
    "BodyFriction",
    "BodyLoads",
    "BodyPlanes",
    "Bounds",
    "Cloth",
    "EdgeContact",
    "FaceHits",
    "Four",
    "GridHits",
    "GridPairs",
    "Hits",
    "Law",
    "Limit",
    "LinkBodies",
    "LinkPlanes",
    "Loads",
    "Magnets",
    "MeshHits",
    "MeshPairs",
    "Neighbours",
    "Particles",
    "Planes",
    "PointContact",
    "Projection",
    "Robots",
    "Rubbing",
    "SelfContact",
    "ShapeHits",
    "ShapePairs",
    "Smoke",
    "Springs",
    "Staggered",
    "Surfaces",
    "System",
    "Tets",
    "add_body",
    "add_body_load",
    "add_cloth",
    "add_contacts",
    "add_edge_contact",
    "add_face_hits",
    "add_friction",
    "add_link_bodies",
    "add_link_planes",
    "add_load",
    "add_magnet",
    "add_obstacle",
    "add_particles",
    "add_plane",
    "add_point_contact",
    "add_robot",
    "add_scene",
    "add_self_contact",
    "add_smoke",
    "add_springs",
    "add_tets",
    "add_wind",
    "articulated",
    "bodies",
    "bodies_kernels",
    "body_planes",
    "finish_link_bodies",
    "free_turn",
    "hard_kernels",
    "in_use",
    "lacking_momenta",
    "particles",
    "place_bodies",
    "planes",
    "register",
    "sort_link_planes",
    "step_rate",
]
