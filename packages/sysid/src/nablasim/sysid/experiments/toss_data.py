"""Tracked tosses of a cube: files in, how a toss began, and how far a prediction is from it.

Two forms are read: an `.npz` with all frames one after another (`length`, `position`, `quaternion_wxyz`, `fps`,
`half_width`), and the folder of tensors of the public data set (DAIRLab/contact-nets), one file per toss, lengths in
half widths. Velocities in the files are not used: they are half a frame old, and frames say more of them than that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Floats = NDArray[np.float64]

FPS, HALF_WIDTH = 148.0, 0.0524
"""Of the public data set, whose tensors do not say so."""
GRAVITY = 9.81
CLEAR = 3e-3
"""Metres from the lowest corner to the floor, above which a cube surely flies."""
LAUNCH = 12
"""Frames of flight at most that the start is found from: those before the first touch, where no hand is near."""
FEWEST = 4
CORNERS = np.array([(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Toss:
    """Frames of one toss: where the centre is (m, z up), and how the cube is turned (x, y, z, w)."""

    position: Floats
    turned: Floats

    def lowest(self, half_width: float) -> Floats:
        """The height of the lowest corner in each frame."""
        down = Rotation.from_quat(self.turned).as_matrix()[:, 2, :] @ (CORNERS * half_width).T
        return self.position[:, 2] + down.min(axis=1)


@dataclass(frozen=True, eq=False)
class Tosses:
    """All tosses of a file, in its own metres."""

    tosses: tuple[Toss, ...]
    fps: float
    half_width: float


def read_tosses(path: str | Path) -> Tosses:
    """From the `.npz`, or from the folder of tensors."""
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}: give the .npz of tosses, or the folder of tensors, as --data")
    with np.load(path) as file:
        missing = {"length", "position", "quaternion_wxyz", "fps", "half_width"} - set(file.files)
        if missing:
            raise ValueError(f"{path} has no {', '.join(sorted(missing))}: it is not a file of tosses")
        cuts = np.cumsum(file["length"])[:-1]
        parts = (np.split(file[name].astype(np.float64), cuts) for name in ("position", "quaternion_wxyz"))
        return Tosses(tuple(_toss(x, q) for x, q in zip(*parts)), float(file["fps"]), float(file["half_width"]))


def _read_folder(folder: Path) -> Tosses:
    import torch

    files = sorted((f for f in folder.glob("*.pt") if f.stem.isdigit()), key=lambda f: int(f.stem))
    if not files:
        raise ValueError(f"{folder} holds no tensors 0.pt, 1.pt …: is it the data set's folder of tosses?")
    rows = [torch.load(f, weights_only=True).numpy().astype(np.float64).reshape(-1, 19) for f in files]
    return Tosses(tuple(_toss(r[:, :3] * HALF_WIDTH, r[:, 3:7]) for r in rows), FPS, HALF_WIDTH)


def _toss(position: Floats, wxyz: Floats) -> Toss:
    return Toss(position, wxyz[:, [1, 2, 3, 0]] / np.linalg.norm(wxyz, axis=1, keepdims=True))


def digest(path: str | Path) -> str:
    """A name of what the file or the folder holds: kept results belong to it."""
    path, made = Path(path), hashlib.sha256()
    for file in sorted(path.glob("*.pt")) if path.is_dir() else [path]:
        made.update(file.read_bytes())
    return made.hexdigest()[:16]


# ------------------------------------------------------------------------------------------------------------- starts
@dataclass(frozen=True, eq=False)
class Started:
    """A toss from where its flight is known: the state of its first frame, and what was seen from there on."""

    toss: Toss
    velocity: Floats
    spin: Floats
    """Angular velocity in world axes; a cube in flight keeps it."""


@dataclass(frozen=True, eq=False)
class Flown:
    """Tosses in true metres above a floor at z = 0, ready to be predicted by any engine."""

    tosses: tuple[Started, ...]
    fps: float
    half_width: float
    scale: float
    """What the file's metre is in true ones, by gravity in flight."""


def flown(data: Tosses) -> Flown:
    """Where each toss starts, by the frames of its flight, and the scale and the floor, by all of them.

    Every engine that is fitted or asked gets the same.
    """
    flights = [_flight(t, data.half_width) for t in data.tosses]
    kept = [(t, f) for t, f in zip(data.tosses, flights) if f.stop - f.start >= FEWEST]
    if not kept:
        raise ValueError("no toss shows the cube in flight for four frames: nothing says how it starts")
    times = [np.arange(f.stop - f.start) / data.fps for _, f in kept]
    falls = [-2 * np.polyfit(t, toss.position[f, 2], 2)[0] for (toss, f), t in zip(kept, times) if len(t) >= 8]
    scale = float(np.median(falls)) / GRAVITY if len(falls) else 1.0
    rest = float(np.median([t.position[-1, 2] for t in data.tosses])) / scale
    lift = data.half_width - rest
    started = tuple(_started(toss, f, t, scale, lift) for (toss, f), t in zip(kept, times))
    return Flown(started, data.fps, data.half_width, scale)


def _flight(toss: Toss, half_width: float) -> slice:
    """The last frames before the first touch. The floor is where the cube comes to rest."""
    floor = toss.position[-1, 2] - half_width
    touching = np.flatnonzero(toss.lowest(half_width) - floor < CLEAR)
    end = int(touching[0]) if len(touching) else len(toss.position)
    return slice(max(0, end - LAUNCH), end)


def _started(toss: Toss, flight: slice, t: Floats, scale: float, lift: float) -> Started:
    x, turned = toss.position / scale + (0.0, 0.0, lift), Rotation.from_quat(toss.turned)
    fall = np.outer(0.5 * GRAVITY * t**2, (0.0, 0.0, 1.0))
    (velocity, origin) = np.polyfit(t, x[flight] + fall, 1)
    first = turned[flight.start]
    # World axes, from the first frame: less than half a turn in so few frames, so that rotation vectors do not jump.
    (spin, wrong) = np.polyfit(t, (turned[flight] * first.inv()).as_rotvec(), 1)
    position, quaternions = x[flight.start :].copy(), turned[flight.start :].as_quat()
    position[0], quaternions[0] = origin, (Rotation.from_rotvec(wrong) * first).as_quat()
    return Started(Toss(position, quaternions), velocity, spin)


# ------------------------------------------------------------------------------------------------------------- errors
@dataclass(frozen=True)
class Misses:
    """Of predictions: means over tosses of means over frames, and the means of the last frames."""

    position: float
    """Per cent of the width."""
    turn: float
    """Degrees."""
    last_position: float
    last_turn: float


def misses(seen: Sequence[Started], position: Floats, turned: Floats, half_width: float) -> Floats:
    """For each toss: position in % of the width and rotation in degrees, over the whole toss and at its end."""
    made = []
    for k, start in enumerate(seen):
        n = len(start.toss.position)
        away = np.linalg.norm(position[k, :n] - start.toss.position, axis=1) / (2 * half_width) * 100
        cosine = np.abs((turned[k, :n] * start.toss.turned).sum(axis=1))
        angle = np.degrees(2 * np.arccos(np.clip(cosine, 0.0, 1.0)))
        made.append((away.mean(), angle.mean(), away[-1], angle[-1]))
    return np.array(made)


def summed(rows: Floats) -> Misses:
    return Misses(*(float(value) for value in rows.mean(axis=0)))
