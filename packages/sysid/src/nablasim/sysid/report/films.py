"""Films for the report: as animations that need no JavaScript, as strips of frames, and as a motion in one picture."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nablasim.sysid.fit import Fit

Film = NDArray[np.float64]
"""(frames, height, width) or (frames, height, width, 3), from 0 to 1."""
FRAMES = 6
"""Pictures in a strip."""
BLENDED = 9
"""Frames in one picture."""
WIDE = 240
"""Pixels: films are shown at least so wide. Small videos are looked at."""
PANEL, GAP, LABEL = 320, 8, 32
"""Pixels: the width of a film in the animation, between films, and above each for its name."""
LARGE, LARGE_WIDE = 3, 560
"""Frames of the recording that are shown in full, and how wide they are at least."""
TARGET, FOUND = np.array([0.95, 0.45, 0.1]), np.array([0.1, 0.45, 0.9])
"""Colours of what only one of two films has."""


@dataclass(frozen=True)
class Shown:
    """Films as the page shows them: base64 of one animated WebP of all, and by name of PNGs."""

    animation: str
    blends: dict[str, str]
    strips: dict[str, str]
    outlined: dict[str, str]
    """Large frames of the recording as JPEGs, with the edge of what was found."""


def shown(fit: Fit, recording: NDArray[Any] | None = None) -> Shown | None:
    """The target, the first guess, what was found, and both of them; None where states were observed.

    recording: the video (frames, height, width, 3) of which the target was made, if it is another one
    """
    problem = fit.problem
    found = problem.residuals(fit.u)[1]
    if found is None:
        return None
    target = np.asarray(problem.target.frames, np.float64)
    if target.ndim == 4:
        target = target[..., :3].mean(axis=-1) if found.ndim == 3 else target[..., :3]
    first = problem.residuals(fit.starts[fit.best].first)[1]
    times = problem.bound.times
    pause = 1000 * float(np.median(np.diff(times))) if len(times) > 1 else 100.0
    assert first is not None
    made = {"target": target, "first guess": first, "found": found}
    blends = {name: png(blend(film)) for name, film in made.items()}
    if found.ndim == 3:
        made["target (orange), found (blue)"] = both(target, found)
        if recording is not None:
            outlined = with_outline(np.asarray(recording, np.float64), found)
            made = {"video, found in outline": outlined, **made}
    strips = {name: png(strip(film), wide=3 * WIDE) for name, film in made.items()}
    large = {} if recording is None or found.ndim != 3 else _large(np.asarray(recording), found, times)
    return Shown(animation(made, pause), blends, strips, large)


def both(target: Film, found: Film) -> Film:
    """Two silhouettes over each other: grey where both are, and the colour of the one that is alone."""
    a, b = (np.clip(s, 0, 1)[..., None] for s in (target, found))
    common = np.minimum(a, b)
    return 1 - common * 0.6 - (a - common) * (1 - TARGET) - (b - common) * (1 - FOUND)


def with_outline(video: Film, silhouettes: Film, color: tuple[float, float, float] = (0.0, 1.0, 0.9)) -> Film:
    """A video with the edges of silhouettes, which may be smaller, drawn on it."""
    from PIL import Image

    made = video[..., :3].copy()
    for frame, shape in zip(made, silhouettes):
        grey = Image.fromarray(np.asarray(shape, np.float32))
        inside = np.asarray(grey.resize((frame.shape[1], frame.shape[0]), Image.Resampling.BICUBIC)) > 0.5
        edge = np.zeros_like(inside)
        edge[:-1] |= inside[:-1] != inside[1:]
        edge[:, :-1] |= inside[:, :-1] != inside[:, 1:]
        frame[edge] = color
    return made


def _large(video: NDArray[Any], silhouettes: Film, times: NDArray[np.float64]) -> dict[str, str]:
    """Some frames in the size that they have, or larger, by caption."""
    chosen = np.unique(np.linspace(0, len(silhouettes) - 1, LARGE).round().astype(int))
    frames = np.stack([_resized(video[k], LARGE_WIDE) for k in chosen])
    drawn = with_outline(frames, silhouettes[chosen])
    return {f"{times[k]:.2f} s: what was found in outline": _jpeg(frame) for k, frame in zip(chosen, drawn)}


def _resized(frame: NDArray[Any], wide: int) -> Film:
    """At least so wide, smoothly."""
    from PIL import Image

    image = Image.fromarray(np.rint(np.clip(np.asarray(frame, float)[..., :3], 0, 1) * 255).astype(np.uint8))
    if image.width < wide:
        image = image.resize((wide, round(wide * image.height / image.width)), Image.Resampling.BICUBIC)
    return np.asarray(image, np.float64) / 255


def _jpeg(picture: Film) -> str:
    buffer = io.BytesIO()
    _image(picture, 1).convert("RGB").save(buffer, format="jpeg", quality=88)
    return base64.b64encode(buffer.getvalue()).decode()


def strip(film: Film) -> NDArray[np.float64]:
    """Some frames side by side."""
    chosen = np.unique(np.linspace(0, len(film) - 1, FRAMES).round().astype(int))
    gap = np.ones_like(film[0][:, :1])
    parts = [part for k in chosen for part in (film[k], gap)]
    return np.concatenate(parts[:-1], axis=1)


def blend(film: Film) -> NDArray[np.float64]:
    """A motion in one picture: silhouettes have the colour of their time, from dark (early) to bright (late)."""
    if film.ndim == 4:
        from nablasim.render import overlay

        return np.asarray(overlay(film, count=BLENDED), np.float64) / 255
    chosen = np.unique(np.linspace(0, len(film) - 1, BLENDED).round().astype(int))
    colors = colormaps["viridis"](np.linspace(0.05, 0.95, len(chosen)))[:, :3]
    made = np.ones((*film.shape[1:], 3))
    for k, color in zip(chosen, colors):
        shape = 0.85 * np.clip(film[k], 0, 1)[..., None]
        made = made * (1 - shape) + color * shape
    return made


# -- files
def animation(films: Mapping[str, Film], pause: float) -> str:
    """All films in one animated WebP, two in a row with their names above: browsers let several run at different times.

    pause: between frames, in milliseconds
    """
    from PIL import Image, ImageDraw, ImageFont

    panels = {name: [_image(frame) for frame in film] for name, film in films.items()}
    width = PANEL
    height = max(p[0].height * width // p[0].width for p in panels.values())
    font, rows = ImageFont.load_default(size=22), -(-len(panels) // 2)
    pictures = []
    for k in range(min(map(len, panels.values()))):
        page = Image.new("RGB", (2 * width + GAP, rows * (height + LABEL)), "white")
        for at, (name, panel) in enumerate(panels.items()):
            x, y = (at % 2) * (width + GAP), (at // 2) * (height + LABEL)
            ImageDraw.Draw(page).text((x, y + 2), name, fill=(80, 80, 80), font=font)
            page.paste(panel[k].convert("RGB").resize((width, height), Image.Resampling.BOX), (x, y + LABEL))
        pictures.append(page)
    buffer = io.BytesIO()
    pictures[0].save(buffer, format="webp", save_all=True, append_images=pictures[1:], duration=round(pause), loop=0,
                     lossless=True, method=2)  # fmt: skip
    return base64.b64encode(buffer.getvalue()).decode()


def png(picture: NDArray[np.float64], wide: int = WIDE) -> str:
    buffer = io.BytesIO()
    _image(picture, wide).save(buffer, format="png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def _image(picture: NDArray[np.float64], wide: int = WIDE) -> Any:
    """As a picture of Pillow, each pixel as a square where it is small."""
    from PIL import Image

    pixels = np.rint(np.clip(picture[..., :3] if picture.ndim == 3 else picture, 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(pixels)
    larger = max(1, -(-wide // image.width))
    return image.resize((larger * image.width, larger * image.height), Image.Resampling.NEAREST)
