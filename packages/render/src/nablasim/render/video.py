"""Videos: write and read them, lay their frames out on a sheet, and show a whole motion in one picture.

Frames are (time, height, width, channels) in [0, 1], or bytes; as NumPy arrays or torch tensors. What is read is
float32 RGB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from nablasim.render.checks import check_size
from nablasim.render.either import is_tensor

Frames = Any
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")


@dataclass(frozen=True, eq=False)
class Video:
    """Frames and when they were taken."""

    frames: NDArray[np.float32]
    """(time, height, width, 3) in [0, 1]."""
    times: NDArray[np.float64]
    """(time) in seconds from the first frame."""
    rate: float = 0.0
    """Frames per second, as the file says or as it was told."""

    @property
    def fps(self) -> float:
        """Frames per second, on average."""
        return (len(self.times) - 1) / float(self.times[-1]) if len(self.times) > 1 else self.rate

    def __len__(self) -> int:
        return len(self.frames)


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
        iio.imwrite(path, rgb, plugin="FFMPEG", fps=fps, codec="libx264", quality=8, macro_block_size=1)
    else:
        raise ValueError(f"a video is written as .mp4 or .gif, not as {path.suffix!r}")
    return path


def write_image(path: str | Path, image: Frames) -> Path:
    """Write one picture (height, width), (…, 3) or (…, 4); .png keeps alpha."""
    array = _numpy(image)
    if array.ndim not in (2, 3):
        raise ValueError(f"a picture is (height, width) or (height, width, channels), not of shape {array.shape}")
    Image.fromarray(_bytes(array)).save(path)
    return Path(path)


def read_video(
    path: str | Path, *, size: tuple[int, int] | None = None, fps: float | None = None, most: int | None = None
) -> Video:
    """Read an .mp4 or .gif, or a folder of pictures in the order of the numbers in their names.

    `size` (height, width): frames are scaled to it by averaging. `fps`: of a folder, 30 if it is not given; of a file,
    instead of what the file says. `most`: read no more frames than this.
    """
    path = Path(path)
    if size is not None:
        size = check_size(size)
    if path.is_dir():
        pictures, rate = _read_folder(path, most, size), 30.0
    elif path.is_file():
        pictures, rate = _read_file(path, most, size)
    else:
        raise FileNotFoundError(f"there is no video at {path}")
    if not pictures:
        raise ValueError(f"{path} has no frames")
    shapes = {p.shape for p in pictures}
    if len(shapes) > 1 and size is None:
        raise ValueError(f"frames of {path} have different sizes, {sorted(shapes)}: give size=(height, width)")
    return Video(np.stack(pictures), np.arange(len(pictures)) / (fps or rate), fps or rate)


def _why(error: Exception) -> str:
    """What ffmpeg said last: the rest is its version and how it was built."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rpartition(": ")[2] if lines else type(error).__name__


def _read_file(path: Path, most: int | None, size: tuple[int, int] | None) -> tuple[list[Any], float]:
    plugin = "pillow" if path.suffix == ".gif" else "FFMPEG"
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: a file of 0 bytes")
    try:
        meta = iio.immeta(path, plugin=plugin)
        stream = iio.imiter(path, plugin=plugin, **({"mode": "RGB"} if plugin == "pillow" else {}))
        # Scaled one by one: a long video in full size does not fit into memory.
        found = [_resized(frame, size) for frame in islice(stream, most)]
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be read as a video: {_why(error)}") from error
    duration = meta.get("duration", 0)
    return found, float(meta.get("fps") or (1000 / duration if plugin == "pillow" and duration else 30.0))


def _read_folder(path: Path, most: int | None, size: tuple[int, int] | None) -> list[Any]:
    names = sorted((p for p in path.iterdir() if p.suffix.lower() in PICTURES), key=_natural)
    if not names:
        raise ValueError(f"{path} has no pictures: files that end with {', '.join(PICTURES)}")
    return [_resized(np.asarray(Image.open(p).convert("RGB")), size) for p in names[:most]]


def _natural(path: Path) -> list[Any]:
    """frame2 comes before frame10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", path.name)]


def _resized(picture: Any, size: tuple[int, int] | None) -> NDArray[np.float32]:
    if size is not None and picture.shape[:2] != tuple(size):
        picture = np.asarray(Image.fromarray(picture).resize((size[1], size[0]), Image.Resampling.BOX))
    return (picture[..., :3] / 255).astype(np.float32)


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
    if not np.isfinite(array).all():
        raise ValueError("a picture has numbers that are not finite")
    return np.round(255 * np.clip(array, 0, 1)).astype(np.uint8)


def _numpy(value: Frames) -> Any:
    if isinstance(value, Sequence):
        return np.stack([_numpy(v) for v in value])
    if is_tensor(value):
        return value.detach().cpu().numpy()
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)
