"""What stands still: the camera's own motion taken out, the background by a temporal median, and its noise.

Second step of `look`. A camera held by hand drifts; a camera that stands must not be "corrected" by noise, so small
motions count as none. Light that changes for the whole picture is taken out frame by frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.signal import savgol_filter

SAMPLES = 25
"""Frames of which the median is made: more change little, and take long."""
STILL = 1.0
"""Pixels: a camera that moves less than this stands."""
CORNERS = 200
"""Places that are followed to see whether the camera moves."""
NEIGHBOURS = 9
"""Frames over which the camera's course is smooth."""
QUIETEST = 1.0
"""Of 255: compression hides noise, so that a pixel may never change; its noise is at least this."""

Picture = NDArray[np.float32]


class Moved:
    """Frames that are moved when they are asked for: a clip in full size would not fit into memory twice."""

    def __init__(self, frames: NDArray[np.uint8], warps: NDArray[np.float64]):
        self._frames, self._warps, self.shape = frames, warps, frames.shape
        self._last: tuple[int, NDArray[np.uint8]] | None = None

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: Any) -> NDArray[np.uint8]:
        """One frame, or those of an array of numbers."""
        if np.ndim(k):
            return np.stack([self[n] for n in k])
        if self._last is None or self._last[0] != k:
            if not -len(self) <= k < len(self):
                raise IndexError(f"frame {k} of {len(self)}")
            size = (self.shape[2], self.shape[1])
            moved = cv2.warpAffine(self._frames[k], self._warps[k], size, flags=cv2.INTER_LINEAR,
                                   borderMode=cv2.BORDER_REPLICATE)  # fmt: skip
            self._last = (int(k), np.asarray(moved, np.uint8))
        return self._last[1]


@dataclass(frozen=True, eq=False)
class Steadied:
    """Frames as a camera that stands would have seen them, and how each was moved: (n, 2, 3), from its own pixels."""

    frames: NDArray[np.uint8] | Moved
    warps: NDArray[np.float64]
    moved: float
    """Pixels by which the camera moved at most; 0 if it stood."""

    def steady(self, frame: int, x: float, y: float) -> tuple[float, float]:
        """A place in a frame as the camera that stands sees it."""
        at = self.warps[frame] @ np.array([x, y, 1.0])
        return float(at[0]), float(at[1])

    def filmed(self, frame: int, x: float, y: float) -> tuple[float, float]:
        """The other way."""
        w = self.warps[frame]
        at = np.linalg.solve(w[:, :2], np.array([x, y]) - w[:, 2])
        return float(at[0]), float(at[1])


@dataclass(frozen=True, eq=False)
class Background:
    """`still` (height, width, 3) and `noise` (height, width), the standard deviation of a pixel, both of 255."""

    still: Picture
    noise: Picture

    @cached_property
    def rounded(self) -> NDArray[np.uint8]:
        return np.rint(self.still).astype(np.uint8)

    def level(self, deviations: float, least: float) -> NDArray[np.uint8]:
        """From which difference on a pixel counts."""
        key = (deviations, least)
        if key not in self._levels:
            self._levels[key] = np.clip(np.maximum(deviations * self.noise, least), 0, 254).astype(np.uint8)
        return self._levels[key]

    @cached_property
    def _levels(self) -> dict[tuple[float, float], NDArray[np.uint8]]:
        return {}


def largest(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Of the three colours of each pixel."""
    a, b, c = cv2.split(picture)
    return np.asarray(cv2.max(cv2.max(a, b), c))


# -- the camera
def steadied(frames: NDArray[np.uint8]) -> Steadied:
    """Take out what the whole picture does: corners of the middle frame are followed, and most of them agree."""
    count, height, width = frames.shape[:3]
    identity = np.tile(np.eye(2, 3), (count, 1, 1))
    grey = _evenly_lit([cv2.cvtColor(f, cv2.COLOR_RGB2GRAY) for f in frames])
    anchor = count // 2
    corners = cv2.goodFeaturesToTrack(grey[anchor], CORNERS, 0.02, max(7.0, min(height, width) / 40))
    if corners is None or len(corners) < 8:
        return Steadied(frames, identity, 0.0)
    warps = identity.copy()
    for k in range(count):
        warps[k] = _warp(grey[anchor], grey[k], np.asarray(corners, np.float32))
    box = np.array([[0, 0, 1], [width, 0, 1], [0, height, 1], [width, height, 1]], np.float64)
    off = np.linalg.norm(np.einsum("kij,cj->kci", warps, box) - box[None, :, :2], axis=-1).max(axis=1)
    smooth = _smoothed(warps)
    if (
        np.percentile(off, 90) < STILL
        or not _helps(grey, smooth, anchor, corners)
        or _jumps(warps, smooth, box) > max(3 * STILL, 0.5 * float(off.max()))
    ):
        return Steadied(frames, identity, 0.0)
    return Steadied(Moved(frames, smooth), smooth, float(off.max()))


def _evenly_lit(grey: list[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
    """Corners are followed by their brightness: a lamp that flickers would move them."""
    middle = [float(np.mean(g[::4, ::4])) for g in grey]
    usual = float(np.median(middle))
    return [
        g if abs(m / usual - 1) < 0.004 else cv2.convertScaleAbs(g, alpha=usual / max(m, 1.0))
        for g, m in zip(grey, middle)
    ]


def _warp(anchor: NDArray[np.uint8], frame: NDArray[np.uint8], corners: NDArray[np.float32]) -> NDArray[np.float64]:
    """From a frame to the anchor: shift and turn that most corners agree on."""
    there, found, _ = cv2.calcOpticalFlowPyrLK(anchor, frame, corners, None, winSize=(21, 21), maxLevel=3)
    back, again, _ = cv2.calcOpticalFlowPyrLK(frame, anchor, there, None, winSize=(21, 21), maxLevel=3)
    good = (found.ravel() == 1) & (again.ravel() == 1) & (np.abs(back - corners).reshape(-1, 2).max(axis=1) < 0.5)
    if good.sum() < 8:
        return np.eye(2, 3)
    warp, used = cv2.estimateAffinePartial2D(there[good], corners[good], ransacReprojThreshold=1.5)
    if warp is None or used.sum() < max(8, 0.4 * good.sum()):
        return np.eye(2, 3)
    agree = used.ravel() == 1
    return _rigid(there[good][agree].reshape(-1, 2), corners[good][agree].reshape(-1, 2))


def _helps(
    grey: list[NDArray[np.uint8]], warps: NDArray[np.float64], anchor: int, corners: NDArray[np.float32]
) -> bool:
    """Whether most corners look more like the anchor's afterwards: things and shadows that pass move corners too."""
    x, y = (np.rint(corners.reshape(-1, 2)[:, c]).astype(int) for c in (0, 1))
    height, width = grey[0].shape
    before: list[float] = []
    after: list[float] = []
    for k in np.unique(np.linspace(0, len(grey) - 1, 12).round().astype(int)):
        moved = cv2.warpAffine(grey[k], warps[k], (width, height), borderMode=cv2.BORDER_REPLICATE)
        for picture, found in ((grey[k], before), (moved, after)):
            apart = cv2.blur(cv2.absdiff(picture, grey[anchor]).astype(np.float32), (7, 7))
            found.append(float(np.median(apart[y, x])))
    return float(np.mean(after)) < 0.8 * float(np.mean(before))


def _rigid(here: NDArray[np.float32], there: NDArray[np.float32]) -> NDArray[np.float64]:
    """Shift and turn by least squares. No zoom: a lens that focuses zooms less than corners in one part can tell."""
    a, b = here.mean(axis=0), there.mean(axis=0)
    p, q = (here - a).astype(np.float64), (there - b).astype(np.float64)
    angle = np.arctan2((p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]).sum(), (p * q).sum())
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.column_stack([turn, b - turn @ a])


def _smoothed(warps: NDArray[np.float64]) -> NDArray[np.float64]:
    """The course of a hand that holds a camera: frames in which corners went astray (something passed) are not
    followed."""
    middle = median_filter(warps, size=(min(NEIGHBOURS, len(warps)), 1, 1), mode="nearest")
    if len(warps) < NEIGHBOURS:
        return np.asarray(middle)
    return np.asarray(savgol_filter(middle, NEIGHBOURS, 2, axis=0, mode="nearest"))


def _jumps(warps: NDArray[np.float64], smooth: NDArray[np.float64], box: NDArray[np.float64]) -> float:
    """Pixels between what was found and its smooth course: corners that do not belong together."""
    return float(np.percentile(np.linalg.norm(np.einsum("kij,cj->kci", warps - smooth, box), axis=-1).max(axis=1), 90))


# -- what is behind
def background_of(frames: NDArray[np.uint8] | Moved, hidden: NDArray[np.bool_] | None = None) -> Background:
    """The median over time; where `hidden` (n, height, width) says that something is in front, without those frames."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, SAMPLES).round().astype(int))
    pictures = frames[chosen]
    half = len(chosen) // 2
    still = np.partition(pictures, half, axis=0)[half].astype(np.float32)
    rows = columns = np.zeros(0, np.intp)
    if hidden is not None:
        cover = hidden[chosen]
        rows, columns = np.nonzero(cover.any(axis=0) & ~cover.all(axis=0))
        values = pictures[:, rows, columns].astype(np.float32)
        values[cover[:, rows, columns]] = np.nan
        still[rows, columns] = np.nanmedian(values, axis=0)
    rounded = np.rint(still).astype(np.uint8)
    apart = np.stack([largest(cv2.absdiff(p, rounded)) for p in pictures])
    noise = 1.4826 * np.partition(apart, half, axis=0)[half].astype(np.float32)
    if len(rows):
        noise[rows, columns] = 1.4826 * np.nanmedian(np.abs(values - still[rows, columns]).max(axis=-1), axis=0)
    # A noisy neighbour is a warning: an edge that shakes does so on both of its sides.
    noise = cv2.blur(noise, (5, 5))
    return Background(still, np.maximum(noise, QUIETEST).astype(np.float32))


def gain_of(frame: NDArray[np.uint8], background: Background, inside: NDArray[np.bool_]) -> NDArray[np.float32]:
    """(3) by how much the whole picture is brighter than the background: lamps flicker, cameras adapt."""
    few = inside[::4, ::4]
    ground = np.maximum(background.still[::4, ::4][few], 20.0)
    if len(ground) < 50:
        return np.ones(3, np.float32)
    gain = 1 + np.median((frame[::4, ::4][few].astype(np.float32) - ground) / ground, axis=0)
    return np.where(np.abs(gain - 1) > 0.004, gain, 1.0).astype(np.float32)


def difference(
    frame: NDArray[np.uint8], background: Background, gain: NDArray[np.float32], part: tuple[slice, slice]
) -> Picture:
    """(height, width, 3) of a part: frame minus background, after light that changed for the whole picture."""
    return np.asarray(frame[part].astype(np.float32) - background.still[part] * gain)
