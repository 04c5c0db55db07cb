"""System identification: finds the physics behind a video.

    problem = sysid.Problem(model, target=video, observe=render.Silhouette(camera), dt=1/960,
                            params=[sysid.Param("cube.density", (1, 50))])
    fit = problem.fit()

and the command `nablasim`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# First of all: without the other packages, it says which are missing instead of failing at the first import of one.
import nablasim.sysid.needs  # noqa: F401  isort: skip

# Functions with the names of their modules: imported now, or the modules would take their place. They need nothing
# heavy.
from nablasim.sysid.look import look
from nablasim.sysid.sweep import SweepFailed, sweep

if TYPE_CHECKING:
    from nablasim.sysid.fit import Fit, FitFailed
    from nablasim.sysid.identify import Case, TrackCase, TrackFit, prepare
    from nablasim.sysid.look import CannotLook, Look
    from nablasim.sysid.problem import Blur, Moments, Param, Pictures, Pixels, Problem, Pyramid, States
    from nablasim.sysid.trust import Estimate, Identifiability, SlopesDisagree
    from nablasim.sysid.video import Track, Video, load_video, masks

__all__ = [
    "Blur",
    "CannotLook",
    "Case",
    "Estimate",
    "Fit",
    "FitFailed",
    "Identifiability",
    "Look",
    "Moments",
    "Param",
    "Pictures",
    "Pixels",
    "Problem",
    "Pyramid",
    "SlopesDisagree",
    "States",
    "SweepFailed",
    "Track",
    "TrackCase",
    "TrackFit",
    "Video",
    "load_video",
    "look",
    "masks",
    "prepare",
    "sweep",
]

_HOMES = {
    "fit": ("Fit", "FitFailed"),
    "identify": ("Case", "TrackCase", "TrackFit", "prepare"),
    "look": ("CannotLook", "Look"),
    "problem": ("Blur", "Moments", "Param", "Pictures", "Pixels", "Problem", "Pyramid", "States"),
    "trust": ("Estimate", "Identifiability", "SlopesDisagree"),
    "video": ("Track", "Video", "load_video", "masks"),
}
"""Where names live. Torch and the compiler are imported when something needs them: a command that only says what is
wrong with its input, and a process of a sweep, do without."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # it takes a while to import

        return version("nablasim-sysid")
    if name == "control":
        return import_module("nablasim.sysid.control")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"nablasim.sysid.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
