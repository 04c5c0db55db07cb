"""From a video file and a scene file to the pictures that are compared: cut, checked, scaled, and as silhouettes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim import render
from nablasim.render.clock import beat_of
from nablasim.render.scaling import natural_width
from nablasim.sysid.scenes.backgrounds import background_of, first_silhouette, level_of
from nablasim.sysid.scenes.build import Stage
from nablasim.sysid.video import ROUNDING, Video, masks, scaled

FINER = 4
"""Silhouettes are cut out of pictures so many times larger than what is compared: edges are finer than a pixel."""
FEWEST = 3
"""Frames below which there is no motion to speak of."""
NARROWEST = 8
"""Columns of pictures that are compared, at least."""
SAME = 0.01
"""Frame rates that differ by less than this part are the same: 29.97 and 30."""
NEARLY = 0.02
"""Of the time between frames: what an even clock may shake."""


class BadVideo(ValueError):
    """A video that cannot be used for a scene; the message says what to do."""


@dataclass(frozen=True, eq=False)
class Watched:
    """The part of a video that a scene is about, scaled."""

    seen: Video
    """As it is compared."""
    whole: Video
    """As it was filmed."""
    dt: float
    """s, the step of the simulation: frames are at whole ones"""
    notes: tuple[str, ...]
    """What to look at before the numbers are used."""


def watch(stage: Stage, path: str | Path, *, fps: float | None = None) -> Watched:
    """Read the part of a video that a scene is about. `fps` is believed instead of what the file says."""
    path, entry = Path(path), stage.entries.video
    if entry.exposure is not None:
        raise stage.script.wrong(
            ("video", "exposure"),
            "pixels take no notice of motion blur: leave it out, or ask for what a track tells (docs: From a clip to a "
            "number)",
        )
    clock = _clock(stage, path, fps)
    first, last = _part(stage, path, clock)
    times, dt, notes = _times(stage, clock.times[first:last] - clock.times[first], clock.rate)
    (height, width), said = _size(clock.size, entry.height)
    finer = FINER if entry.compare == "silhouette" else 1
    finer = max(1, min(finer, clock.size[0] // height))
    read = _reading(render.read_video, path, most=last, fps=fps, size=(finer * height, finer * width))
    whole = Video(read.frames[first:], times, noise=entry.noise)
    notes = (*clock.notes, *notes, *said)
    if entry.compare == "colour":
        noise = entry.noise or (ROUNDING if path.is_dir() else None)
        return Watched(Video(whole.frames, times, noise=noise), whole, dt, notes)
    if entry.masks is not None:
        cut = _given_masks(stage, entry.masks, len(clock.times), whole.size)[first:last]
    else:
        background = background_of(stage, whole)
        level = level_of(whole.frames[..., :3], background, first_silhouette(stage, whole.size))
        try:
            cut = masks(whole, background, level=level).frames
        except ValueError as error:
            raise BadVideo(f"{path}: {error}") from error
    if entry.region is not None:
        cut = cut * _inside(stage, entry.region, clock.size, whole.size)
    silhouettes = np.stack([scaled(f, (height, width)) for f in cut])
    return Watched(Video(silhouettes, times, noise=entry.noise), whole, dt, notes)


# -- time
def _clock(stage: Stage, path: Path, fps: float | None) -> Any:
    """When the frames were taken; the file, the scene and the user must not contradict each other."""
    said = stage.entries.video.fps
    if fps is None and path.is_dir():
        if said is None:
            raise BadVideo(f"{path} is a folder of pictures, which has no frame rate: write `fps: 30` below `video:` "
                           f"in {stage.script.name}, or pass --fps 30")  # fmt: skip
        fps = float(said)
    clock = _reading(render.video_times, path, fps=fps)
    if fps is None and said is not None and abs(clock.rate / said - 1) > SAME:
        raise stage.script.wrong(
            ("video", "fps"),
            f"the scene is about {said:g} frames per second, and {path} has {clock.rate:.6g}: correct one of them, or "
            "pass --fps if the file does not know (slow motion)",
        )
    return clock


def _part(stage: Stage, path: Path, clock: Any) -> tuple[int, int]:
    """The frames of the scene: the number of the first, and that after the last."""
    entry, times, half = stage.entries.video, clock.times, 0.5 / clock.rate
    begins, ends = entry.start, float(times[-1])
    # The frame that is nearest to the time at which the scene begins, and to that at which it ends.
    first = int(np.searchsorted(times, begins - half * (1 + 1e-9)))
    there = f"{path} has {len(times)} frame{'s' if len(times) != 1 else ''} ({ends:.3g} s)"
    after = f", {len(times) - first} of them from {begins:g} s on" if first else ""
    if entry.duration is not None:
        last = int(np.searchsorted(times, begins + entry.duration + half * (1 - 1e-9)))
        count = round(entry.duration * clock.rate) + 1
        if ends < begins + entry.duration - half:
            raise stage.script.wrong(
                ("video", "duration"),
                f"the scene lasts {entry.duration:g} s, which is {count} frames, and {there}{after}: shorten the "
                "duration, or leave it out to take all there is",
            )
    else:
        last = len(times)
    if last - first < FEWEST:
        few = f"{there}{after}" if entry.duration is None else f"{last - first} frames of {path} are in the scene"
        raise BadVideo(f"{few}: a motion needs {FEWEST} or more")
    return first, last


def _times(stage: Stage, times: NDArray[np.float64], rate: float) -> tuple[NDArray[np.float64], float, tuple[str, ...]]:
    """Times of frames as whole steps of the simulation, and its step. Gaps stay gaps."""
    beat = beat_of(times, NEARLY / rate)
    gaps = np.diff(times)
    if beat is not None:
        dt = stage.time_step(1 / beat.spacing)
        lost = int(beat.counts[-1]) + 1 - len(times)
        lack = f"{lost} of {lost + len(times)} frames are not in the file: the others keep their times"
        return beat.times, dt, (lack,) if lost else ()
    dt = stage.uneven_step(float(gaps.min()))
    steps = np.rint(times / dt)
    off = float(np.abs(steps * dt - times).max())
    said = (
        f"frames are {1e3 * gaps.min():.3g} to {1e3 * gaps.max():.3g} ms apart, as the file says: each is looked at "
        f"after the nearest step of {1e3 * dt:.3g} ms, at most {1e3 * off:.2g} ms off"
    )
    return steps * dt, dt, (said,)


# -- pictures
def _given_masks(stage: Stage, name: str, count: int, size: tuple[int, int]) -> NDArray[np.floating[Any]]:
    """Silhouettes that somebody made, such as those of `look`: one for each frame of the video."""
    folder = stage.script.folder / name
    if not folder.is_dir():
        raise stage.script.wrong(("video", "masks"), f"there is no folder {folder}: `nablasim look` writes look/masks")
    read = _reading(render.read_video, folder, fps=30.0, size=size).frames
    if len(read) != count:
        said = f"{folder} has {len(read)} pictures, and the video {count} frames: there is one for each frame"
        raise stage.script.wrong(("video", "masks"), said)
    return np.asarray(read[..., :3].mean(axis=-1) if read.ndim == 4 else read)


def _inside(
    stage: Stage, region: tuple[float, ...], size: tuple[int, int], small: tuple[int, int]
) -> NDArray[np.float32]:
    """Where the region is in scaled pictures: their height decides, sides are cut off evenly."""
    x, y, width, height = region
    if width <= 0 or height <= 0 or x >= size[1] or y >= size[0] or x + width <= 0 or y + height <= 0:
        raise stage.script.wrong(("video", "region"), f"it is not in the picture, which has {size[1]} × {size[0]} "
                                 "pixels: a region is x, y, width, height")  # fmt: skip
    scale = small[0] / size[0]
    rows = (np.arange(small[0]) + 0.5) / scale
    columns = (np.arange(small[1]) + 0.5 - small[1] / 2) / scale + size[1] / 2
    inside = ((rows >= y) & (rows < y + height))[:, None] & ((columns >= x) & (columns < x + width))
    return inside.astype(np.float32)


def _size(shape: tuple[int, int], height: int) -> tuple[tuple[int, int], tuple[str, ...]]:
    """(height, width) of what is compared, in the shape of the video."""
    width = natural_width(shape, height)
    if width >= NARROWEST:
        return (height, width), ()
    wanted, height = height, -(-NARROWEST * shape[0] // shape[1])
    said = (
        f"the video is {shape[1]} × {shape[0]} pixels: {wanted} rows would be {width} columns, so {height} rows are "
        f"compared; `height: {height}` below `video:` says the same"
    )
    return (height, natural_width(shape, height)), (said,)


def _reading(read: Callable[..., Any], path: Path, **options: Any) -> Any:
    try:
        return read(path, **options)
    except (OSError, ValueError) as error:
        raise BadVideo(str(error)) from error
