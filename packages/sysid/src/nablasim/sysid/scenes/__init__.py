"""Scene files: what is in front of the camera, and what is to be found in it, in YAML. The door of this room."""

from nablasim.sysid.scenes.build import Stage
from nablasim.sysid.scenes.estimates import params
from nablasim.sysid.scenes.object_entries import PendulumEntry, RigidEntry
from nablasim.sysid.scenes.quantities import Range
from nablasim.sysid.scenes.reading import BadScene, Script, parse_scene, read_scene
from nablasim.sysid.scenes.restitution import damping_of, restitution_of
from nablasim.sysid.scenes.units import to_number
from nablasim.sysid.scenes.unknowns import settled
from nablasim.sysid.scenes.watching import watch

__all__ = [
    "BadScene",
    "PendulumEntry",
    "Range",
    "RigidEntry",
    "Script",
    "Stage",
    "damping_of",
    "params",
    "parse_scene",
    "read_scene",
    "restitution_of",
    "settled",
    "to_number",
    "watch",
]
