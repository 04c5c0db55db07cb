"""What was filmed: pictures and the times at which they were taken."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Video:
    """`frames` (n, height, width) or (n, height, width, channels), from 0 to 1, and their `times` (s).

    noise: standard deviation of a pixel, if it is known; 8-bit pictures have at least that of rounding.
    """

    frames: NDArray[np.floating[Any]]
    times: NDArray[np.float64]
    noise: float | None = None

    def __init__(
        self,
        frames: ArrayLike,
        times: ArrayLike | None = None,
        *,
        fps: float | None = None,
        noise: float | None = None,
    ):
        """Whole numbers count as 8-bit. Give the times, or how many frames there are per second."""
        pictures = _plain("frames", frames.detach().numpy() if hasattr(frames, "detach") else frames)
        if pictures.ndim not in (3, 4) or not pictures.size:
            raise ValueError(
                f"frames are (n, height, width) or (n, height, width, channels), not of shape {pictures.shape}"
            )
        if pictures.dtype == np.uint8:
            pictures = pictures.astype(np.float32) / 255
            noise = ROUNDING if noise is None else noise
        elif not np.issubdtype(pictures.dtype, np.floating):
            raise TypeError(f"frames are of uint8 or real numbers from 0 to 1, not {pictures.dtype}")
        if not np.isfinite(pictures).all():
            raise ValueError(f"frame {int(np.argwhere(~np.isfinite(pictures))[0, 0])} has a pixel that is not finite")
        if np.abs(pictures).max() > BRIGHTEST:
            low, high = pictures.min(), pictures.max()
            raise ValueError(f"real frames are from 0 to 1, and these from {low:.4g} to {high:.4g}: divide by 255")
        if (times is None) == (fps is None):
            raise ValueError("give the times of the frames, or fps, how many there are per second")
        if fps is not None and not 0 < fps < np.inf:
            raise ValueError(f"fps is how many frames there are per second, above zero, not {fps}")
        when = _times(times) if fps is None else np.arange(len(pictures)) / fps
        if when.shape != (len(pictures),):
            raise ValueError(f"there are {len(pictures)} frames and {when.size} times")
        check_noise(noise)
        object.__setattr__(self, "frames", pictures)
        object.__setattr__(self, "times", when)
        object.__setattr__(self, "noise", noise)

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def size(self) -> tuple[int, int]:
        """(height, width)."""
        return self.frames.shape[1], self.frames.shape[2]

    def on_steps(self, dt: float) -> Video:
        """The same, with each frame at the nearest whole step of a simulation: for frames that are not evenly apart."""
        steps = np.rint(self.times / dt)
        if (np.diff(steps) < 1).any():
            k = int(np.flatnonzero(np.diff(steps) < 1)[0])
            raise ValueError(f"frames {k} and {k + 1} fall on the same step of {dt:.6g} s: choose a smaller one")
        return Video(self.frames, steps * dt, noise=self.noise)

    def to_bytes(self) -> NDArray[np.uint8]:
        """As 8-bit pictures, rounded."""
        return np.rint(np.clip(self.frames, 0, 1) * 255).astype(np.uint8)

    def rounded(self) -> Video:
        """The same after storing it in 8 bits."""
        return Video(self.to_bytes(), self.times)

    def with_noise(self, sigma: float, rng: np.random.Generator) -> Video:
        """The same with white noise on every pixel."""
        return Video(self.frames + rng.normal(scale=sigma, size=self.frames.shape), self.times, noise=sigma)


BRIGHTEST = 16.0
"""No picture with noise or several lights goes as far: larger numbers count in another way than from 0 to 1."""
ROUNDING = 1 / 255 / 12**0.5
"""Standard deviation of what rounding to 8 bits takes away."""


@dataclass(frozen=True, eq=False)
class Track:
    """Measured states: values by name, such as {"cube.x": (n, 3)}, and their times (s)."""

    times: NDArray[np.float64]
    values: dict[str, NDArray[np.float64]]

    def __init__(self, times: ArrayLike, values: dict[str, ArrayLike]):
        object.__setattr__(self, "times", _times(times))
        made = {name: _plain(name, v).astype(np.float64) for name, v in values.items()}
        for name, v in made.items():
            if v.shape[:1] != self.times.shape:
                raise ValueError(f"{name}: there are {len(self.times)} times and {v.shape[:1]} values")
            if not np.isfinite(v).all():
                at = int(np.argwhere(~np.isfinite(v))[0, 0])
                raise ValueError(f"{name} is not finite at {self.times[at]:.6g} s: leave out what was not measured")
        object.__setattr__(self, "values", made)

    def __len__(self) -> int:
        return len(self.times)


def check_noise(noise: float | None) -> None:
    """A standard deviation: with any other number residuals would pass for noise, or never."""
    if noise is not None and not 0 <= noise < np.inf:
        raise ValueError(f"noise is a standard deviation, zero or more, not {noise}")


def _times(times: Any) -> NDArray[np.float64]:
    made = _plain("times", times).astype(np.float64)
    if not np.isfinite(made).all() or (np.diff(made) < 0).any():
        raise ValueError("times are finite, and in order: sort them together with what was seen")
    return made


def _plain(name: str, data: Any) -> NDArray[Any]:
    if np.ma.is_masked(data):
        raise ValueError(f"{name}: some are masked, and masks would be lost: leave them out, or data.filled(...)")
    return np.asarray(data)


def load_video(
    path: str | Path, *, size: tuple[int, int] | None = None, fps: float | None = None, mask: bool = False
) -> Video:
    """Read a video file (mp4, gif, ...) or a folder of pictures. Frames have the times that the file says, one by one.

    size: (height, width) to which frames are scaled, by averaging. Nothing is stretched: the height decides, as for the
        field of view of a camera, and sides are cut off or get bars, with a warning
    fps: frames per second, of a folder (30 if it is not given), or instead of what the file says (slow motion)
    mask: see only what moves, as `masks` does, before the frames are scaled: its edges are then finer than pixels
    """
    from nablasim import render
    from nablasim.render import scaling

    read = render.read_video(path, size=None if mask else size, fps=fps)
    notes = [*read.notes, *([scaling.said(read.frames.shape[1:3], size)] if mask and size is not None else [])]
    for note in filter(None, notes):
        warnings.warn(note, stacklevel=2)
    video = Video(read.frames, read.times, noise=ROUNDING if Path(path).is_dir() else None)
    if not mask:
        return video
    seen = masks(video)
    if size is None or size == seen.size:
        return seen
    return Video(np.stack([scaled(frame, size) for frame in seen.frames]), seen.times)


def masks(video: Video, background: ArrayLike | None = None, *, level: float | None = None) -> Video:
    """Silhouettes of what is in front of a still background, by default the median of all frames.

    level: how much a pixel must differ from the background; by default Otsu's threshold, which parts the differences
        into two groups that are most alike inside
    """
    frames = video.frames[..., None] if video.frames.ndim == 3 else video.frames[..., :3]
    still = np.median(frames, axis=0) if background is None else np.asarray(background, np.float64)
    apart = np.abs(frames - still).max(axis=-1)
    if apart.max() < 0.02:
        raise ValueError("nothing moves in this video: give the background, or the masks themselves")
    return Video((apart > (threshold(apart) if level is None else level)).astype(np.float32), video.times)


def threshold(values: NDArray[np.floating[Any]]) -> float:
    """Otsu's: parts values into two groups that are most alike inside."""
    counts, edges = np.histogram(values, bins=256)
    middle, below = (edges[1:] + edges[:-1]) / 2, np.cumsum(counts)
    above, sums = below[-1] - below, np.cumsum(counts * middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    return float(middle[int(np.argmax(np.nan_to_num(between[:-1])))])


def scaled(frame: NDArray[np.floating[Any]], size: tuple[int, int]) -> NDArray[np.float32]:
    """A grey picture in another size (height, width), by averaging, not stretched."""
    from nablasim.render import scaling

    return np.asarray(scaling.fit(np.asarray(frame, np.float32), size, bars="zero"), np.float32)
