"""The physical systems, one module each. The simulator only loops over `SYSTEMS`."""

from __future__ import annotations

from nablasim.physics.layout import Column, Index
from nablasim.physics.systems.bending import Bending
from nablasim.physics.systems.bodies import Bodies
from nablasim.physics.systems.body_loads import BodyLoads
from nablasim.physics.systems.body_planes import BodyPlanes
from nablasim.physics.systems.cloth import Cloth
from nablasim.physics.systems.loads import Loads
from nablasim.physics.systems.particles import Particles
from nablasim.physics.systems.planes import Planes
from nablasim.physics.systems.smoke import Smoke
from nablasim.physics.systems.springs import Springs
from nablasim.physics.systems.system import System
from nablasim.physics.systems.tets import Tets

SYSTEMS: tuple[System, ...] = (
    Particles(),
    Springs(),
    Tets(),
    Cloth(),
    Bending(),
    Planes(),
    Loads(),
    Bodies(),
    BodyPlanes(),
    BodyLoads(),
    Smoke(),
)
"""In the order in which they are set up and add their forces."""

COLUMNS: dict[str, Column] = {c.name: c for system in SYSTEMS for c in system.columns}
INDICES: dict[str, Index] = {i.name: i for system in SYSTEMS for i in system.indices}

__all__ = ["COLUMNS", "INDICES", "SYSTEMS", "System"]
