"""What was looked at, as files: a page with outlined frames and tracks, masks, the track as a table, a draft scene."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nablasim.sysid.report import filled, made_by, svg, write_page

if TYPE_CHECKING:
    from nablasim.sysid.look.looking import Look

SHOWN = 24
"""Frames on the page."""
TALL = 420
"""Pixels: frames are shown at most so high."""
LINE, WAY = (255, 220, 0), (0, 230, 230)
"""Colours of the outline and of the way so far."""


def write(look: Look, folder: Path) -> Path:
    """Write all of it; gives the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    write_track(look, folder / "track.csv")
    _write_masks(look, folder / "masks")
    scene = look.draft()
    (folder / "scene.yaml").write_text(scene, encoding="utf-8")
    return write_page(folder / "index.html", page(look, scene))


def write_track(look: Look, file: Path) -> None:
    """frame, time, x, y, width, height, with a header."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(look.track.dtype.names)
        for row in look.track:
            table.writerow([int(row.frame), *(f"{v:.6g}" for v in list(row)[1:])])


def _write_masks(look: Look, folder: Path) -> None:
    """One grey picture for each frame of the clip: `nablasim identify look/masks` takes the folder as a video."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    for k, mask in enumerate(look.masks):
        cv2.imwrite(str(folder / f"{k:05d}.png"), np.rint(255 * mask).astype(np.uint8))


def page(look: Look, scene: str) -> str:
    rows = look.track
    chosen = np.unique(np.linspace(0, len(rows) - 1, SHOWN).round().astype(int))
    near = {int(k) for k in np.flatnonzero(np.isin(rows.frame, (look.release, *look.impacts)))}
    shown = sorted({*map(int, chosen), *near})
    pictures = [(_caption(look, k), outlined(look, k)) for k in shown]
    return filled(
        "look.html.j2",
        title=f"{look.path.name}: what moves",
        look=look,
        release=said_release(look),
        impacts=said_impacts(look),
        pictures=pictures,
        curves=svg(_curves(look)),
        scene=scene,
        made_by=made_by(),
    )


def said_release(look: Look) -> str:
    return f"release: frame {look.release}"


def said_impacts(look: Look) -> str:
    return f"impacts: frames {', '.join(map(str, look.impacts))}" if look.impacts else "impacts: none"


def _caption(look: Look, k: int) -> str:
    frame = int(look.track.frame[k])
    what = " release" if frame == look.release else " impact" if frame in look.impacts else ""
    return f"frame {frame}{what}"


def outlined(look: Look, k: int) -> str:
    """A frame of the track with the mask's outline and the way so far, as base64 of a JPEG."""
    frame, clip = int(look.track.frame[k]), look.clip
    factor = min(1.0, TALL / clip.frames.shape[1])
    picture = cv2.resize(clip.frames[frame], None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    scale = factor / clip.factor
    mask = cv2.resize(look.masks[frame], (picture.shape[1], picture.shape[0]), interpolation=cv2.INTER_LINEAR)
    # Half of what it covers at most: something fast is a veil.
    inside = (mask > 0.5 * max(float(mask.max()), 0.2)).astype(np.uint8)
    edges, _ = cv2.findContours(inside, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    way = np.rint(16 * scale * np.column_stack([look.track.x[: k + 1], look.track.y[: k + 1]])).astype(np.int32)
    cv2.polylines(picture, [way.reshape(-1, 1, 2)], False, WAY, 1, cv2.LINE_AA, shift=4)
    cv2.drawContours(picture, edges, -1, LINE, 1, cv2.LINE_AA)
    return jpeg(picture)


def jpeg(picture: NDArray[np.uint8]) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="jpeg", quality=82)
    return base64.b64encode(buffer.getvalue()).decode()


def _curves(look: Look) -> Figure:
    """Place and size against time, with the impacts."""
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    grid: Any = figure.subplots(3, 1, sharex=True)
    t = look.track.time
    for axes, values, name in zip(grid, (look.steady[:, 0], look.steady[:, 1], look.across), ("x", "y", "across")):
        axes.plot(t, values, ".", markersize=3)
        axes.set_ylabel(f"{name} (pixels)")
        axes.grid(True, alpha=0.3)
        for contact in look.contacts:
            axes.axvline(contact, color="tab:orange", linewidth=1)
    grid[1].invert_yaxis()
    grid[2].set_xlabel("time (s); lines are impacts")
    return figure
