"""Visuomotor control: policies that move a model towards a goal, trained by gradients through physics and pictures.

    task = control.Task(model, actuate={"gear.activation": control.Waves(8)}, goal=control.Image(camera, target),
                        dt=1 / 30, steps=60, substeps=40)
    run = task.train(optimiser="adam", iterations=50, seed=0)

The door of this room.
"""

from nablasim.sysid.control.goals import CentreOfMass, Distance, Image, State, Video, centre_of_mass, particle_masses
from nablasim.sysid.control.policies import Held, Random, Waves
from nablasim.sysid.control.rewards import Reward
from nablasim.sysid.control.run import Run
from nablasim.sysid.control.task import Task
from nablasim.sysid.control.value import Feedback
from nablasim.sysid.control.windows import Windows

__all__ = [
    "CentreOfMass",
    "Distance",
    "Feedback",
    "Held",
    "Image",
    "Random",
    "Reward",
    "Run",
    "State",
    "Task",
    "Video",
    "Waves",
    "Windows",
    "centre_of_mass",
    "particle_masses",
]
