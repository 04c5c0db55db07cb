"""Looking at a clip before anything is fitted: what moves, its track and masks, when it was let go and what it hit.

`sysid.look` is the function; the room has its name, so that its door is light: OpenCV is imported when something is
looked at.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nablasim.sysid.look.clip import CannotLook
    from nablasim.sysid.look.looking import Look, Masks
    from nablasim.sysid.look.motion import swing_of
    from nablasim.sysid.look.page import outlined, said_impacts, said_release, write_track

_HOMES = {
    "CannotLook": "clip", "Look": "looking", "Masks": "looking", "swing_of": "motion",
    "outlined": "page", "said_impacts": "page", "said_release": "page", "write_track": "page",
}  # fmt: skip

__all__ = [
    "CannotLook",
    "Look",
    "Masks",
    "look",
    "outlined",
    "said_impacts",
    "said_release",
    "swing_of",
    "write_track",
]


def look(
    file: str | Path,
    region: tuple[float, float, float, float] | None = None,
    object: tuple[float, float] | None = None,
    fps: float | None = None,
) -> Look:
    """Find what moves freely in a clip: a video file, or a folder of pictures.

    region: (x, y, width, height) in pixels, where to look; everywhere if it is not given
    object: (x, y) a place in the picture that the object passes, if the wrong thing is picked without it
    fps: frames per second of the camera, where the file says something else (slow motion)
    """
    from nablasim.sysid.look.looking import find

    return find(file, region, object, fps)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"nablasim.sysid.look.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
