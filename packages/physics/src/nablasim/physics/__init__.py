"""Differentiable physics written as kernels of kernelc: one `Scene`, one `Model`, one `rollout` for every system.

scene = ph.Scene()
scene.add_soft("block", ph.TetMesh.box(), density=1e3, material=ph.NeoHookean(E=1e5, nu=0.3))
scene.add_ground("floor")
trajectory = ph.rollout(scene.build(), dt=1e-3, steps=1000, every=10)
"""

from typing import Any

from nablasim.physics import io
from nablasim.physics.errors import (
    Diverged,
    InputError,
    MeshError,
    MissingPackage,
    NotConverged,
    PassedThrough,
    RobotError,
    StepShortened,
    StepTooLarge,
)
from nablasim.physics.geometry import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Heightfield,
    MassProperties,
    NeoHookean,
    Robot,
    Shape,
    SignedDistance,
    Sphere,
    TetMesh,
    TriMesh,
    quat,
    solid_mass_properties,
    vertex_masses,
)
from nablasim.physics.io import load_robot
from nablasim.physics.model import Model, Parameter, State, batch
from nablasim.physics.scene import Scene, spring_grid
from nablasim.physics.standalone import Bounce, DoublePendulum, Pendulum, Smoke
from nablasim.physics.time import (
    BackwardEuler,
    Motion,
    Thing,
    Trajectory,
    energy,
    forces,
    forward_dynamics,
    hessian_vector,
    inverse_dynamics,
    jvp,
    kinematics,
    load_motions,
    mass_matrix,
    rollout,
    save_motions,
    stable_dt,
)
from nablasim.physics.view import Slider, Viewer, show

__all__ = [
    "BackwardEuler",
    "Bounce",
    "Box",
    "Capsule",
    "Cone",
    "Cylinder",
    "Diverged",
    "DoublePendulum",
    "Heightfield",
    "InputError",
    "MassProperties",
    "MeshError",
    "MissingPackage",
    "Model",
    "Motion",
    "NeoHookean",
    "NotConverged",
    "Parameter",
    "PassedThrough",
    "Pendulum",
    "Robot",
    "RobotError",
    "Scene",
    "Shape",
    "SignedDistance",
    "Slider",
    "Smoke",
    "Sphere",
    "State",
    "StepShortened",
    "StepTooLarge",
    "TetMesh",
    "Thing",
    "Trajectory",
    "TriMesh",
    "Viewer",
    "batch",
    "energy",
    "forces",
    "forward_dynamics",
    "hessian_vector",
    "inverse_dynamics",
    "io",
    "jvp",
    "kinematics",
    "load_motions",
    "load_robot",
    "mass_matrix",
    "quat",
    "rollout",
    "save_motions",
    "show",
    "solid_mass_properties",
    "spring_grid",
    "stable_dt",
    "vertex_masses",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # it takes a while to import

        return version("nablasim-physics")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
