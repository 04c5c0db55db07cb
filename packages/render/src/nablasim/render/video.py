"""Videos: write and read them, lay their frames out on a sheet, and show a whole motion in one picture.

Frames are (time, height, width, channels) in [0, 1], or bytes; as NumPy arrays or torch tensors. What is read is
float32 RGB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import imageio.v3 as iio
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageOps, ImageSequence

from nablasim.render import ffmpeg, scaling
from nablasim.render.checks import check_size
from nablasim.render.clock import times_of, told
from nablasim.render.either import is_tensor

Frames = Any
Taken = TypeVar("Taken")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")


@dataclass(frozen=True, eq=False)
class Video:
    """Frames and their time stamps."""

    frames: NDArray[np.float32]
    """(time, height, width, 3) in [0, 1]."""
    times: NDArray[np.float64]
    """(time) in seconds from the first frame."""
    rate: float = 0.0
    """Frames per second, as the file says or as it was told; where some were dropped, the rate of the others."""
    notes: tuple[str, ...] = ()
    """What to know before it is used: the file is damaged, its sides were cut off."""

    @property
    def fps(self) -> float:
        """Frames per second, on average."""
        return (len(self.times) - 1) / float(self.times[-1]) if len(self.times) > 1 else self.rate

    def __len__(self) -> int:
        return len(self.frames)


@dataclass(frozen=True, eq=False)
class Clock:
    """When the frames of a video were taken, and how large they are."""

    times: NDArray[np.float64]
    """(time) in seconds from the first frame."""
    rate: float
    """Frames per second, as of `Video`."""
    size: tuple[int, int] = (0, 0)
    """(height, width)"""
    notes: tuple[str, ...] = ()
    own: float = 0.0
    """Frames per second that the file shows, whatever was given; 0 where it says nothing, as pictures in a folder."""
    captured: float | None = None
    """Frames per second of the sensor, where a phone has noted that."""


# -- files
def write_video(path: str | Path, frames: Frames, *, fps: float = 30.0) -> Path:
    """Write an .mp4 (H.264) or a .gif. An alpha channel is left out: colours already lie over their background."""
    path = Path(path)
    rgb = to_bytes(frames)
    if not fps > 0:
        raise ValueError(f"fps must be above zero, not {fps}")
    if path.suffix == ".gif":
        iio.imwrite(path, rgb, plugin="pillow", duration=1000 / fps, loop=0)
    elif path.suffix == ".mp4":
        # H.264 with the usual colours takes even sizes only: the last row and column are doubled where they are odd.
        odd = [n % 2 for n in rgb.shape[1:3]]
        rgb = np.pad(rgb, ((0, 0), (0, odd[0]), (0, odd[1]), (0, 0)), mode="edge")
        ffmpeg.encode(path, rgb, fps)
    else:
        raise ValueError(f"a video is written as .mp4 or .gif, not as {path.suffix!r}")
    return path


def write_image(path: str | Path, image: Frames) -> Path:
    """Write one picture (height, width), (…, 3) or (…, 4); .png keeps alpha."""
    array = _numpy(image)
    if array.ndim not in (2, 3) or array.shape[2:] not in ((), (3,), (4,)):
        raise ValueError(f"a picture is (height, width), (…, 3) or (…, 4), not of shape {array.shape}")
    Image.fromarray(_bytes(array)).save(path)
    return Path(path)


def read_video(
    path: str | Path, *, size: tuple[int, int] | None = None, fps: float | None = None, most: int | None = None
) -> Video:
    """Read an .mp4, .gif or another video, or a folder of pictures in the order of the numbers in their names.

    Frames have the times that the file says, one by one: where some were dropped there is a gap. `size` (height,
    width): frames are scaled to it by averaging and not stretched; the height decides, sides are cut off or get bars.
    `fps`: of a folder, 30 if it is not given; of a file, instead of what it says (slow motion). `most`: read no more
    frames than this.
    """
    path = _there(path, fps)
    if size is not None:
        size = check_size(size)
    shapes: list[tuple[int, int]] = []

    def take(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        shapes.append(picture.shape[:2])  # Scaled one by one: a long video in full size does not fit into memory.
        scaled = picture if size is None else scaling.fit(picture, size)
        return (scaled[..., :3] / 255).astype(np.float32)

    if path.is_dir():
        names = _pictures(path)[:most]
        pictures, clock = [take(read_picture(p)) for p in names], _even(len(names), fps or 30.0)
    else:
        read = _read_gif if path.suffix.lower() == ".gif" else ffmpeg.decode
        pictures, log = read(path, take, most)
        clock = _clock(path, log, fps)
    if not pictures:
        raise ValueError(f"{path} has no frames")
    if len(set(shapes)) > 1 and size is None:
        raise ValueError(f"frames of {path} have different sizes, {sorted(set(shapes))}: give size=(height, width)")
    notes = [] if size is None else dict.fromkeys(n for shape in shapes if (n := scaling.said(shape, size)))
    return Video(np.stack(pictures), clock.times[: len(pictures)], clock.rate, (*clock.notes, *notes))


def video_times(path: str | Path, *, fps: float | None = None) -> Clock:
    """The time stamps of the frames of a video, and their size, without keeping the frames."""
    path = _there(path, fps)
    if path.is_dir():
        names = _pictures(path)
        return replace(_even(len(names), fps or 30.0), size=read_picture(names[0]).shape[:2])
    is_gif = path.suffix.lower() == ".gif"
    return _clock(path, _read_gif(path, np.shape, None)[1] if is_gif else ffmpeg.probe(path), fps)


def _there(path: str | Path, fps: float | None) -> Path:
    path = Path(path)
    if fps is not None and not 0 < fps < np.inf:
        raise ValueError(f"a video has more than 0 frames per second, and not {fps:g}")
    if not path.exists():
        raise FileNotFoundError(f"there is no video at {path}")
    if path.is_file() and not path.stat().st_size:
        raise ValueError(f"{path} is empty: a file of 0 bytes")
    return path


def _even(count: int, rate: float) -> Clock:
    return Clock(np.arange(count) / rate, rate)


def _clock(path: Path, log: ffmpeg.Log, fps: float | None) -> Clock:
    """The times of a file's frames, or of a rate that it was told."""
    size, notes = log.sizes[0], tuple(f"ffmpeg says about {path.name}: {c}" for c in log.complaints[:3])
    grows = log.stamps is not None and bool((np.diff(log.stamps) > 0).all())
    if not grows or log.stamps is None:
        if fps is None:
            raise ValueError(f"{path} does not say when its frames are shown: give fps, how many there are per second")
        return Clock(np.arange(len(log.sizes)) / fps, fps, size, notes)
    times, rate = times_of(log.stamps, log.tick)
    if fps is not None:
        if log.captured is not None and abs(log.captured / fps - 1) > 0.05:
            notes += (
                f"{path.name} notes that it was filmed with {log.captured:g} frames per second, and {fps:g} were given",
            )
        return Clock(told(times, fps), fps, size, notes, rate, log.captured)
    if log.captured is not None and rate and abs(log.captured / rate - 1) > 0.05:
        notes += (
            f"{path.name} notes that it was filmed with {log.captured:g} frames per second, and shows {rate:.4g}: if "
            f"this is slow motion, give fps {log.captured:g}",
        )
    return Clock(times, rate or 30.0, size, notes, rate, log.captured)


def _read_gif(
    path: Path, take: Callable[[NDArray[np.uint8]], Taken], most: int | None
) -> tuple[list[Taken], ffmpeg.Log]:
    taken, sizes, lengths = [], [], []
    try:
        with Image.open(path) as film:
            for frame in islice(ImageSequence.Iterator(film), most):
                taken.append(take(np.asarray(frame.convert("RGB"))))
                sizes.append((frame.height, frame.width))
                lengths.append(round(frame.info.get("duration", 0) / 10))  # ms; the file has hundredths of a second
    except (OSError, ValueError, SyntaxError) as error:
        raise ValueError(f"{path} cannot be read as a video: {error}") from error
    stamps = np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)
    return taken, ffmpeg.Log(stamps, 0.01, tuple(sizes), None, ())


def _pictures(path: Path) -> list[Path]:
    names = sorted((p for p in path.iterdir() if p.suffix.lower() in PICTURES), key=_natural)
    if not names:
        raise ValueError(f"{path} has no pictures: files that end with {', '.join(PICTURES)}")
    return names


def read_picture(path: Path) -> NDArray[np.uint8]:
    """One picture as bytes (height, width, 3), upright."""
    try:
        with Image.open(path) as picture:
            # A camera that was held upright notes so, and stores the picture as it lay.
            return np.asarray(_eight_bits(ImageOps.exif_transpose(picture)).convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be read as a picture: {error}") from error


def _eight_bits(picture: Image.Image) -> Image.Image:
    """Grey values of 16 bits as bytes; Pillow itself would make all of them but the darkest white."""
    if picture.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(picture) / 257).round().astype(np.uint8))
    if picture.mode in ("I", "F"):
        raise ValueError(f"its numbers (mode {picture.mode!r}) do not say what is white: save it with 8 or 16 bits")
    return picture


def _natural(path: Path) -> list[Any]:
    """frame2 comes before frame10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", path.name)]


# -- several frames in one picture
CAPTION = 18
"""Pixels above a frame that has a caption."""


def contact_sheet(
    frames: Frames,
    *,
    columns: int | None = None,
    gap: int = 2,
    color: float = 1.0,
    captions: Sequence[str] | None = None,
) -> NDArray[np.uint8]:
    """All frames side by side, row by row, as bytes; as many columns as make it about square.

    `captions`: a line above each frame; fewer than there are frames leave the others without.
    """
    rgb = to_bytes(frames)
    count, height, width = rgb.shape[:3]
    columns = columns or int(np.ceil(np.sqrt(count * height / width)))
    if columns < 1 or gap < 0:
        raise ValueError(f"a sheet has at least one column and no negative gap, not columns={columns}, gap={gap}")
    if captions is not None and len(captions) > count:
        raise ValueError(f"there are {len(captions)} captions for {count} frames")
    above = gap + (CAPTION if captions else 0)
    rows = -(-count // columns)
    sheet = np.full(
        (rows * (height + above) + gap, columns * (width + gap) + gap, 3), np.uint8(round(255 * color)), np.uint8
    )
    places = [(k // columns * (height + above), gap + k % columns * (width + gap)) for k in range(count)]
    for (i, j), frame in zip(places, rgb):
        sheet[i + above : i + above + height, j : j + width] = frame
    return _captioned(sheet, places, captions, dark=color > 0.5) if captions else sheet


def _captioned(
    sheet: NDArray[np.uint8], places: Sequence[tuple[int, int]], captions: Sequence[str], *, dark: bool
) -> NDArray[np.uint8]:
    picture = Image.fromarray(sheet)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(size=CAPTION - 6)
    for (i, j), text in zip(places, captions):
        pen.text((j + 2, i + 2), text, fill=(0, 0, 0) if dark else (255, 255, 255), font=font)
    return np.asarray(picture)


def overlay(
    frames: Frames, *, count: int = 6, faintest: float = 0.25, background: Frames | None = None
) -> NDArray[np.uint8]:
    """A motion in one picture: `count` frames over each other, early ones faint, the last one full.

    What moves is taken from alpha, if there is one; else it is what differs from the background, by default the median
    of all frames.
    """
    array = _frames(_numpy(frames)).astype(np.float64)
    rgb = to_bytes(frames).astype(np.float64) / 255
    still = np.median(rgb, axis=0) if background is None else to_bytes(_numpy(background)[None])[0] / 255
    if array.shape[-1] == 4:
        mask = np.clip(array[..., 3:] / (255 if array.max() > 1.5 else 1), 0, 1)
    else:
        mask = np.clip(4 * np.abs(rgb - still).max(-1, keepdims=True), 0, 1)
    chosen = np.unique(np.linspace(0, len(rgb) - 1, min(count, len(rgb))).round().astype(int))
    result = still.copy()
    for k, frame in enumerate(chosen):
        opacity = faintest + (1 - faintest) * (k + 1) / len(chosen)
        result += opacity * mask[frame] * (rgb[frame] - result)
    return _bytes(result)


# -- numbers
def to_bytes(frames: Frames) -> NDArray[np.uint8]:
    """(time, height, width, 3) bytes of frames of any kind."""
    array = _frames(_numpy(frames))
    rgb = np.repeat(array, 3, -1) if array.shape[-1] == 1 else array[..., :3]
    return _bytes(rgb)


def _frames(array: Any) -> Any:
    """With a channel axis."""
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or array.shape[-1] not in (1, 3, 4) or 0 in array.shape:
        raise ValueError(
            "frames are (time, height, width) or (time, height, width, channels) with 1, 3 or 4 channels, not of shape "
            f"{array.shape}"
        )
    return array


def _bytes(array: Any) -> NDArray[np.uint8]:
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "fb":
        raise ValueError(f"a picture is made of bytes (uint8) or of real numbers in [0, 1], not of {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError("a picture has numbers that are not finite")
    return np.round(255 * np.clip(array, 0, 1)).astype(np.uint8)


def _numpy(value: Frames) -> Any:
    if isinstance(value, Sequence):
        return np.stack([_numpy(v) for v in value])
    if is_tensor(value):
        return value.detach().cpu().numpy()
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)
