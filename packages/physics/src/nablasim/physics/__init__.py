"""Differentiable physics written as kernels of kernelc: one `Scene`, one `Model`, one `rollout` for every system.

scene = ph.Scene()
scene.add_soft("block", ph.TetMesh.box(), density=1e3, material=ph.NeoHookean(E=1e5, nu=0.3))
scene.add_ground("floor")
trajectory = ph.rollout(scene.build(), dt=1e-3, steps=1000, every=10)
"""

from nablasim.physics import io
from nablasim.physics.adding.deformables import spring_grid
from nablasim.physics.builder import Scene
from nablasim.physics.distance import SignedDistance
from nablasim.physics.errors import InputError, MeshError, MissingPackage, RobotError
from nablasim.physics.integrators import BackwardEuler
from nablasim.physics.layout import Parameter
from nablasim.physics.mass import MassProperties, solid_mass_properties, vertex_masses
from nablasim.physics.materials import NeoHookean
from nablasim.physics.mesh import TetMesh, TriMesh
from nablasim.physics.model import Model, batch
from nablasim.physics.pendula import DoublePendulum, Pendulum
from nablasim.physics.rotation import quat
from nablasim.physics.shapes import Box, Capsule, Cone, Cylinder, Shape, Sphere
from nablasim.physics.simulator import energy, forces, rollout, stable_dt
from nablasim.physics.smoke import Smoke
from nablasim.physics.stability import Diverged, NotConverged, PassedThrough, StepShortened, StepTooLarge
from nablasim.physics.state import State
from nablasim.physics.trajectory import Trajectory

__all__ = [
    "BackwardEuler",
    "Box",
    "Capsule",
    "Cone",
    "Cylinder",
    "Diverged",
    "DoublePendulum",
    "InputError",
    "MassProperties",
    "MeshError",
    "MissingPackage",
    "Model",
    "NeoHookean",
    "NotConverged",
    "Parameter",
    "PassedThrough",
    "Pendulum",
    "RobotError",
    "Scene",
    "Shape",
    "SignedDistance",
    "Smoke",
    "Sphere",
    "State",
    "StepShortened",
    "StepTooLarge",
    "TetMesh",
    "Trajectory",
    "TriMesh",
    "batch",
    "energy",
    "forces",
    "io",
    "quat",
    "rollout",
    "solid_mass_properties",
    "spring_grid",
    "stable_dt",
    "vertex_masses",
]
