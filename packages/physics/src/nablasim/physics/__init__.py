"""Differentiable physics: mass-spring systems, as kernels that run on a kernelc tape.

`build_springs` makes a model and a state, `rollout_springs` moves it; every quantity is an array that can
require a gradient.
"""

from nablasim.physics.builder import build_springs, spring_grid
from nablasim.physics.model import SpringModel
from nablasim.physics.simulator import move_rigidly, rollout_springs, stable_dt, step_springs, sum_spring_forces
from nablasim.physics.state import State

__all__ = [
    "SpringModel",
    "State",
    "build_springs",
    "move_rigidly",
    "rollout_springs",
    "spring_grid",
    "stable_dt",
    "step_springs",
    "sum_spring_forces",
]
