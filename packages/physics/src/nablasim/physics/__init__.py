"""Differentiable physics: mass-spring systems, as kernels that run on a kernelc tape.

`build_springs` makes a model and a state, `rollout_springs` moves it; every quantity is an array that can
require a gradient.
"""

from nablasim.physics import io
from nablasim.physics.builder import build_springs, spring_grid
from nablasim.physics.errors import InputError, MeshError, MissingPackage, RobotError
from nablasim.physics.mass import MassProperties, solid_mass_properties, vertex_masses
from nablasim.physics.mesh import TetMesh, TriMesh
from nablasim.physics.model import SpringModel
from nablasim.physics.rotation import quat
from nablasim.physics.shapes import Box, Capsule, Cone, Cylinder, Shape, Sphere
from nablasim.physics.simulator import move_rigidly, rollout_springs, stable_dt, step_springs, sum_spring_forces
from nablasim.physics.state import State

__all__ = [
    "Box",
    "Capsule",
    "Cone",
    "Cylinder",
    "InputError",
    "MassProperties",
    "MeshError",
    "MissingPackage",
    "RobotError",
    "Shape",
    "Sphere",
    "SpringModel",
    "State",
    "TetMesh",
    "TriMesh",
    "build_springs",
    "io",
    "move_rigidly",
    "quat",
    "rollout_springs",
    "solid_mass_properties",
    "spring_grid",
    "stable_dt",
    "step_springs",
    "sum_spring_forces",
    "vertex_masses",
]
