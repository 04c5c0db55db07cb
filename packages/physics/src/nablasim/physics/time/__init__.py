"""How it moves, and the way back: steps, solvers, programs, checkpoints, rollouts. The door of this room."""

from nablasim.physics.time.integrators import BackwardEuler
from nablasim.physics.time.motion import Motion, Thing, load_motions, save_motions
from nablasim.physics.time.robots import forward_dynamics, inverse_dynamics, kinematics, mass_matrix
from nablasim.physics.time.simulator import rollout, stable_dt
from nablasim.physics.time.study import energy, forces, hessian_vector
from nablasim.physics.time.tangents import jvp
from nablasim.physics.time.trajectory import Trajectory

__all__ = [
    "BackwardEuler",
    "Motion",
    "Thing",
    "Trajectory",
    "energy",
    "forces",
    "forward_dynamics",
    "hessian_vector",
    "inverse_dynamics",
    "jvp",
    "kinematics",
    "load_motions",
    "mass_matrix",
    "rollout",
    "save_motions",
    "stable_dt",
]
