"""The clip: its frames as bytes, small enough for memory, the times at which they were taken, and what is odd about
them.

First step of `look`: everything after it works on `Clip.frames` and comes back to the original picture by
`to_original`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from nablasim import render
from nablasim.render import ffmpeg
from nablasim.render.clock import beat_of
from nablasim.render.video import Clock

ROOM = 300e6
"""Bytes that the frames may take together; larger ones are halved, or more, by averaging."""
FINEST = 1.3e6
"""Pixels of a frame that is looked at, at most: edges are found to a fraction of a pixel anyway."""
FEWEST = 6
"""Frames below which no motion can be told from another."""
SAME = 0.01
"""Rates that differ by less than this part are the same: 29.97 and 30."""
SLOWED = 1.5
"""Slow motion is at least so many times slower."""
NEARLY = 0.02
"""Of the time between frames: what an even clock may shake."""

Region = tuple[float, float, float, float]


class CannotLook(ValueError):
    """Nothing could be tracked in a clip; the message says what to do."""


@dataclass(frozen=True, eq=False)
class Clip:
    """What is looked at: `frames` (n, height, width, 3), a `factor` smaller than the original, and their `times`
    (s)."""

    path: Path
    frames: NDArray[np.uint8]
    times: NDArray[np.float64]
    rate: float
    size: tuple[int, int]
    """(height, width) of the original picture."""
    factor: int
    told: bool
    """Whether the user gave the frame rate."""
    vouched: bool
    """Whether two say the same of the frame rate: the user, what the file shows, what the phone noted."""
    alone: bool
    """Whether the file alone says the frame rate, and nothing contradicts it."""
    own: float
    """Frames per second that the file shows; 0 where it says nothing."""
    inside: NDArray[np.bool_]
    """(height, width) where to look: the region."""
    notes: tuple[str, ...]

    def to_original(self, x: Any) -> Any:
        """A place along a row or a column, from these frames to the original picture. Middles of pixels are whole."""
        return (np.asarray(x, np.float64) + 0.5) * self.factor - 0.5

    def from_original(self, x: Any) -> Any:
        return (np.asarray(x, np.float64) + 0.5) / self.factor - 0.5


def read_clip(path: str | Path, *, region: Region | None = None, fps: float | None = None) -> Clip:
    """Read a video file or a folder of pictures. `region` (x, y, width, height) in pixels of the original picture."""
    path = Path(path)
    try:
        clock = render.video_times(path, fps=fps)
        size, count = clock.size, len(clock.times)
        if count < FEWEST:
            raise CannotLook(f"{path} has {count} frames: a motion needs {FEWEST} or more")
        factor = _factor(size, count)
        frames = _frames(path, factor, count)
    except (OSError, ValueError) as error:
        raise error if isinstance(error, CannotLook) else CannotLook(str(error)) from error
    count = min(count, len(frames))
    inside = _inside(size, factor, frames.shape[1:3], region)
    times = np.asarray(clock.times[:count], np.float64)
    notes = (*clock.notes, *_odd_clock(path, times, fps is not None), *_odd_rate(path, fps))
    return Clip(path, frames[:count], times, clock.rate, size, factor, fps is not None, _vouched(clock, fps),
                fps is None and clock.own > 0 and clock.captured is None, clock.own, inside, notes)  # fmt: skip


def _factor(size: tuple[int, int], count: int) -> int:
    factor = 1
    while size[0] * size[1] / factor**2 > FINEST or 3.0 * count * size[0] * size[1] / factor**2 > ROOM:
        factor += 1
    return factor


def _frames(path: Path, factor: int, count: int) -> NDArray[np.uint8]:
    """All of them in one array, put there as they come: they are not in memory twice."""
    made = np.zeros((0, 0, 0, 3), np.uint8)
    taken = 0

    def keep(picture: NDArray[np.uint8]) -> bool:
        nonlocal made, taken
        small = take(picture)
        if not taken:
            made = np.empty((count, *small.shape), np.uint8)
        if small.shape != made.shape[1:]:
            raise CannotLook(f"frames of {path} have different sizes: cut out a part in which they are the same")
        if taken < count:
            made[taken] = small
        taken += 1
        return True

    def take(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if factor == 1:
            return picture
        height, width = (n // factor * factor for n in picture.shape[:2])
        small = cv2.resize(picture[:height, :width], (width // factor, height // factor), interpolation=cv2.INTER_AREA)
        return np.asarray(small, np.uint8)

    if path.is_dir() or path.suffix.lower() == ".gif":
        for frame in render.read_video(path).frames:
            keep(np.rint(255 * frame).astype(np.uint8))
    else:
        ffmpeg.decode(path, keep, None)
    return made[:taken]


def _inside(size: tuple[int, int], factor: int, small: tuple[int, int], region: Region | None) -> NDArray[np.bool_]:
    inside = np.ones(small, np.bool_)
    if region is None:
        return inside
    x, y, width, height = region
    if width <= 0 or height <= 0 or x >= size[1] or y >= size[0] or x + width <= 0 or y + height <= 0:
        raise CannotLook(
            f"the region {x:g},{y:g},{width:g},{height:g} is not in the picture, which has {size[1]} × {size[0]} "
            "pixels: a region is x,y,width,height of the part to look at, from the upper left corner"
        )
    inside[:] = False
    rows = slice(max(0, int(y // factor)), int(-(-(y + height) // factor)))
    columns = slice(max(0, int(x // factor)), int(-(-(x + width) // factor)))
    inside[rows, columns] = True
    return inside


def _vouched(clock: Clock, fps: float | None) -> bool:
    """Pictures in a folder have a user's word only, which nothing contradicts."""
    if not clock.own:
        return fps is not None
    said = [v for v in (fps, clock.own, clock.captured) if v is not None]
    return sum(abs(v / clock.rate - 1) <= SAME for v in said) >= 2


def _odd_rate(path: Path, told: float | None) -> tuple[str, ...]:
    """What a user says of the rate, and no camera does. Pictures of a folder have no rate of their own."""
    if told is None or path.is_dir():
        return ()
    own = render.video_times(path).rate
    if abs(told / own - 1) <= SAME or told / own >= SLOWED:
        return ()
    return (
        f"{path.name} has {own:.4g} frames per second, and {told:.4g} were given: slow motion has at least {SLOWED:g} "
        "times as many, and nothing else has another rate than the file",
    )


def _odd_clock(path: Path, times: NDArray[np.float64], told: bool) -> tuple[str, ...]:
    """What the times of frames say that a frame rate does not."""
    gaps = np.diff(times)
    usual, average = 1 / float(np.median(gaps)), (len(times) - 1) / float(times[-1] - times[0])
    beat = beat_of(times - times[0], NEARLY / usual)
    if beat is not None and int(beat.counts[-1]) + 1 > len(times):
        lost = int(beat.counts[-1]) + 1 - len(times)
        return (f"{lost} of {lost + len(times)} frames are not in {path.name}: the others keep their times",)
    if told or abs(average / usual - 1) <= SAME:
        return ()
    return (
        f"frames of {path.name} are not evenly apart: most come {usual:.4g} times a second, on average there are "
        f"{average:.4g}; each keeps the time that the file gives it",
    )
