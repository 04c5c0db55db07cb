"""Visuomotor control: policies that move a model towards a goal, trained by gradients through physics and pictures.

    task = control.Task(model, actuate={"gear.activation": control.Waves(8)}, goal=control.Image(camera, target),
                        dt=1 / 30, steps=60, substeps=40)
    run = task.train(optimiser="adam", iterations=50, seed=0)

The door of this room.
"""

from nablasim.sysid.control.goals import CentreOfMass, Distance, Image, State, Video, centre_of_mass, particle_masses
from nablasim.sysid.control.policies import Held, Random, Waves
from nablasim.sysid.control.task import Task
from nablasim.sysid.control.training import Run

__all__ = [
    "CentreOfMass",
    "Distance",
    "Held",
    "Image",
    "Random",
    "Run",
    "State",
    "Task",
    "Video",
    "Waves",
    "centre_of_mass",
    "particle_masses",
]
