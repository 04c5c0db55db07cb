"""The physical systems, one module each. The simulator only loops over `SYSTEMS`."""

from __future__ import annotations

from nablasim.physics.layout import Column, Index
from nablasim.physics.systems.bending import Bending
from nablasim.physics.systems.bodies import Bodies
from nablasim.physics.systems.body_contacts import GridHits, GridPairs, MeshHits, MeshPairs, ShapeHits, ShapePairs
from nablasim.physics.systems.body_loads import BodyLoads
from nablasim.physics.systems.body_planes import BodyPlanes
from nablasim.physics.systems.cloth import Cloth
from nablasim.physics.systems.loads import Loads
from nablasim.physics.systems.particles import Particles
from nablasim.physics.systems.planes import Planes
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
    Loads(),
    Planes(),
    Bodies(),
    BodyPlanes(),
    BodyLoads(),
    Surfaces(),
    ShapePairs(),
    MeshPairs(),
    GridPairs(),
    ShapeHits(),
    MeshHits(),
    GridHits(),
    Smoke(),
]
"""In the order in which they are set up and add their forces. Contact looks at what the others added."""

COLUMNS: dict[str, Column] = {c.name: c for system in SYSTEMS for c in system.columns}
INDICES: dict[str, Index] = {i.name: i for system in SYSTEMS for i in system.indices}


def register(system: System) -> None:
    """Let a system from elsewhere take part in every scene that is built from now on."""
    names = [c.name for c in system.columns] + [i.name for i in system.indices]
    taken = [name for name in names if name in COLUMNS or name in INDICES]
    if taken or any(system.name == known.name for known in SYSTEMS):
        raise ValueError(f"{', '.join(taken) or repr(system.name)}: there is one of that name already")
    SYSTEMS.append(system)
    COLUMNS.update({c.name: c for c in system.columns})
    INDICES.update({i.name: i for i in system.indices})


__all__ = ["COLUMNS", "INDICES", "SYSTEMS", "System", "register"]
