"""Articulated bodies in reduced coordinates: links that hang on joints. A pair of files each: system and kernels."""

from nablasim.physics.laws.articulated import robots_kernels as kernels
from nablasim.physics.laws.articulated.bundles import Composite, Drives, Masses, Motion, Poses
from nablasim.physics.laws.articulated.robots import Robots
from nablasim.physics.laws.articulated.tables import drives, masses, memory, now, rig, tree

__all__ = [
    "Composite",
    "Drives",
    "Masses",
    "Motion",
    "Poses",
    "Robots",
    "drives",
    "kernels",
    "masses",
    "memory",
    "now",
    "rig",
    "tree",
]
