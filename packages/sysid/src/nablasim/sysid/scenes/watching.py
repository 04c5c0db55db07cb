"""From a video file and a scene file to the pictures that are compared: cut, checked, scaled, and as silhouettes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nablasim import render
from nablasim.sysid.scenes.backgrounds import background_of, first_silhouette, level_of
from nablasim.sysid.scenes.build import Stage
from nablasim.sysid.video import ROUNDING, Video, masks, scaled

FINER = 4
"""Silhouettes are cut out of pictures so many times larger than what is compared: edges are finer than a pixel."""
FEWEST = 3
"""Frames below which there is no motion to speak of."""
SAME = 0.01
"""Frame rates that differ by less than this part are the same: 29.97 and 30."""


class BadVideo(ValueError):
    """A video that cannot be used for a scene; the message says what to do."""


def watch(stage: Stage, path: str | Path, *, fps: float | None = None) -> tuple[Video, Video]:
    """Read the part of a video that a scene is about: as it is compared, and as it was filmed, both scaled.

    `fps` is believed instead of what the file says.
    """
    path, entry = Path(path), stage.entries.video
    rate = _rate(stage, path, fps)
    first = _read(path, most=1, fps=rate)
    height = entry.height
    width = max(8, round(height * first.frames.shape[2] / first.frames.shape[1]))
    finer = FINER if entry.compare == "silhouette" else 1
    finer = max(1, min(finer, first.frames.shape[1] // height))
    skip = round(entry.start * rate)
    count = None if entry.duration is None else round(entry.duration * rate) + 1
    most = None if count is None else skip + count
    frames = _read(path, most=most, fps=rate, size=(finer * height, finer * width)).frames
    _check_length(stage, path, len(frames), skip, count, rate)
    whole = Video(frames[skip:], fps=rate, noise=entry.noise)
    if entry.compare == "colour":
        noise = entry.noise or (ROUNDING if path.is_dir() else None)
        return Video(whole.frames, whole.times, noise=noise), whole
    background = background_of(stage, whole)
    level = level_of(whole.frames[..., :3], background, first_silhouette(stage, whole.size))
    try:
        seen = masks(whole, background, level=level)
    except ValueError as error:
        raise BadVideo(f"{path}: {error}") from error
    silhouettes = np.stack([scaled(f, (height, width)) for f in seen.frames])
    return Video(silhouettes, whole.times, noise=entry.noise), whole


def _rate(stage: Stage, path: Path, fps: float | None) -> float:
    """How many frames there are in a second; the file, the scene and the user must not contradict each other."""
    said = stage.entries.video.fps
    if fps is not None:
        if not 0 < fps < np.inf:
            raise BadVideo(f"a video has more than 0 frames per second, and not {fps:g}")
        return fps
    if path.is_dir():
        if said is None:
            raise BadVideo(f"{path} is a folder of pictures, which has no frame rate: write `fps: 30` below `video:` "
                           f"in {stage.script.name}, or pass --fps 30")  # fmt: skip
        return float(said)
    found = _read(path, most=1).rate
    if said is not None and abs(found / said - 1) > SAME:
        raise stage.script.wrong(
            ("video", "fps"),
            f"the scene is about {said:g} frames per second, and {path} has {found:g}: correct one of them, or pass "
            f"--fps if the file does not know (slow motion)",
        )
    return found


def _read(path: Path, **options: Any) -> render.Video:
    try:
        return render.read_video(path, **options)
    except (OSError, ValueError) as error:
        raise BadVideo(str(error)) from error


def _check_length(stage: Stage, path: Path, found: int, skip: int, count: int | None, rate: float) -> None:
    needed = FEWEST if count is None else count
    if found - skip >= needed:
        return
    has = f"{path} has {found} frames ({(found - 1) / rate:.3g} s)"
    if count is None:
        raise BadVideo(f"{has}: a motion needs {skip + FEWEST} or more")
    after = f", {max(found - skip, 0)} of them from {skip / rate:g} s on" if skip else ""
    raise stage.script.wrong(
        ("video", "duration"),
        f"the scene lasts {stage.entries.video.duration:g} s, which is {count} frames, and {has}{after}: shorten the "
        "duration, or leave it out to take all there is",
    )
