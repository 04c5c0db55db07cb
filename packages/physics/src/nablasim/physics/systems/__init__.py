"""The physical systems, one module each. The simulator only loops over `SYSTEMS`."""

from __future__ import annotations

from collections.abc import Mapping

from nablasim.physics.layout import Column, Index
from nablasim.physics.systems.bending import Bending
from nablasim.physics.systems.bodies import Bodies
from nablasim.physics.systems.body_contacts import GridHits, GridPairs, MeshHits, MeshPairs, ShapeHits, ShapePairs
from nablasim.physics.systems.body_friction import BodyFriction
from nablasim.physics.systems.body_loads import BodyLoads
from nablasim.physics.systems.body_planes import BodyPlanes
from nablasim.physics.systems.cloth import Cloth
from nablasim.physics.systems.edge_contact import EdgeContact
from nablasim.physics.systems.face_hits import FaceHits
from nablasim.physics.systems.loads import Loads
from nablasim.physics.systems.particles import Particles
from nablasim.physics.systems.planes import Planes
from nablasim.physics.systems.point_contact import PointContact
from nablasim.physics.systems.self_contact import SelfContact
from nablasim.physics.systems.smoke import Smoke
from nablasim.physics.systems.springs import Springs
from nablasim.physics.systems.surfaces import Surfaces
from nablasim.physics.systems.system import System
from nablasim.physics.systems.tets import Tets

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
    Surfaces(),
    ShapePairs(),
    MeshPairs(),
    GridPairs(),
    FaceHits(),
    ShapeHits(),
    MeshHits(),
    GridHits(),
    BodyFriction(),
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
    if taken or any(system.name == other.name for other in SYSTEMS):
        raise ValueError(f"{', '.join(taken) or repr(system.name)}: there is one of that name already")
    SYSTEMS.append(system)


def _entries(system: System) -> tuple[Column | Index, ...]:
    return (*system.columns, *system.indices)


__all__ = ["SYSTEMS", "System", "in_use", "register"]
