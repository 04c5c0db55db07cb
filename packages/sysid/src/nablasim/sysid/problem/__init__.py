"""What is asked: a model, what was seen of it, and what is not known. The door of this room."""

from nablasim.sysid.problem.losses import Blur, Loss, Moments, Pixels, Pyramid
from nablasim.sysid.problem.observations import Pictures, States, balls
from nablasim.sysid.problem.parameters import Axis, Param, Space, Vector
from nablasim.sysid.problem.problem import Problem, Slopes
from nablasim.sysid.problem.simulation import FAILURES, Seen, Simulation, quantity

__all__ = [
    "FAILURES",
    "Axis",
    "Blur",
    "Loss",
    "Moments",
    "Param",
    "Pictures",
    "Pixels",
    "Problem",
    "Pyramid",
    "Seen",
    "Simulation",
    "Slopes",
    "Space",
    "States",
    "Vector",
    "balls",
    "quantity",
]
