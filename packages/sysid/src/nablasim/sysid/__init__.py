"""System identification: finds the physics behind a video.

    problem = sysid.Problem(model, target=video, observe=render.Silhouette(camera), dt=1/960,
                            params=[sysid.Param("cube.density", (1, 50))])
    fit = problem.fit()

and the command `nablasim`.
"""

from nablasim.sysid.fit import Fit, FitFailed
from nablasim.sysid.losses import Blur, Moments, Pixels, Pyramid
from nablasim.sysid.observations import Pictures, States
from nablasim.sysid.parameters import Param
from nablasim.sysid.problem import Problem
from nablasim.sysid.sweep import SweepFailed, sweep
from nablasim.sysid.uncertainty import Estimate, Identifiability
from nablasim.sysid.video import Track, Video, load_video, masks

__all__ = [
    "Blur",
    "Estimate",
    "Fit",
    "FitFailed",
    "Identifiability",
    "Moments",
    "Param",
    "Pictures",
    "Pixels",
    "Problem",
    "Pyramid",
    "States",
    "SweepFailed",
    "Track",
    "Video",
    "load_video",
    "masks",
    "sweep",
]
