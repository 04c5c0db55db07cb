"""System identification: finds the physics behind a video.

    problem = sysid.Problem(model, target=video, observe=render.Silhouette(camera), dt=1/960,
                            params=[sysid.Param("cube.density", (1, 50))])
    fit = problem.fit()

and the command `nablasim`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# A function with the name of its module: imported now, or the module would take its place. It needs nothing heavy.
from nablasim.sysid.sweep import SweepFailed, sweep

if TYPE_CHECKING:
    from nablasim.sysid.fit import Fit, FitFailed
    from nablasim.sysid.identify import Case, prepare
    from nablasim.sysid.losses import Blur, Moments, Pixels, Pyramid
    from nablasim.sysid.observations import Pictures, States
    from nablasim.sysid.parameters import Param
    from nablasim.sysid.problem import Problem
    from nablasim.sysid.uncertainty import Estimate, Identifiability
    from nablasim.sysid.video import Track, Video, load_video, masks

__all__ = [
    "Blur",
    "Case",
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
    "prepare",
    "sweep",
]

_HOMES = {
    "fit": ("Fit", "FitFailed"),
    "identify": ("Case", "prepare"),
    "losses": ("Blur", "Moments", "Pixels", "Pyramid"),
    "observations": ("Pictures", "States"),
    "parameters": ("Param",),
    "problem": ("Problem",),
    "uncertainty": ("Estimate", "Identifiability"),
    "video": ("Track", "Video", "load_video", "masks"),
}
"""Where names live. Torch and the compiler are imported when something needs them: a command that only says what is
wrong with its input, and a process of a sweep, do without."""


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"nablasim.sysid.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
