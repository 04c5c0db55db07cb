"""How much of each pixel the object covers: soft masks, from its colours and those behind it.

Sixth step of `look`, once the object is chosen. A pixel that the object covered for a part a of the exposure is
I = (1 - a) B + a C, with B behind it and C its own colour: a moving thing is a veil, and its mask a fraction. A pixel
that no mixture explains (a hand, a shadow that falls elsewhere) is not the object's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from nablasim.sysid.look.background import Background, Moved, Picture
from nablasim.sysid.look.blobs import Blob

COLOURS = 3
"""Of the object: more shades than these are mixtures of them."""
OTHERS = 8
"""Colours of what is around it where it is let go."""
CLEAN = 0.3
"""Of the contrast: how far a pixel may be from a mixture of object and background."""
FAINT = 0.12
"""Cover below which a pixel is noise."""
EDGE = 0.8
"""Pixels: how soft a sharp edge looks."""

Box = tuple[int, int, int, int]
"""left, top, right, bottom; the last two are outside."""


@dataclass(frozen=True, eq=False)
class Appearance:
    """Colours of the object, and of what is around it where it was let go."""

    own: NDArray[np.float32]
    others: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Patch:
    """A soft mask: `alpha` (height, width) from 0 to 1, with its upper left corner; all else is 0."""

    left: int
    top: int
    alpha: NDArray[np.float32]

    @property
    def mass(self) -> float:
        return float(self.alpha.sum())

    @property
    def middle(self) -> tuple[float, float]:
        rows, columns = np.indices(self.alpha.shape)
        total = max(self.mass, 1e-9)
        return (self.left + float((columns * self.alpha).sum()) / total,
                self.top + float((rows * self.alpha).sum()) / total)  # fmt: skip

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height, pixels at the edge counted in part."""
        peak = max(0.9 * float(np.percentile(self.alpha[self.alpha > 0], 95)) if (self.alpha > 0).any() else 0, 1e-9)
        solid = np.minimum(self.alpha / peak, 1)
        return float(solid.max(axis=0).sum()), float(solid.max(axis=1).sum())


def appearance_of(
    frames: NDArray[np.uint8] | Moved, background: Background, blobs: Sequence[Blob], inside: NDArray[np.bool_]
) -> Appearance:
    """Learn the object's colours from frames in which it is sharp, and those around it from its first frames."""
    sharp = sorted(blobs, key=lambda b: b.area / max(b.size, 1.0) ** 2)[: max(3, len(blobs) // 3)]
    sharp = sharp[:: max(1, len(sharp) // 12)]
    own = []
    for blob in sharp:
        window = _window(frames[blob.frame], background, _around(blob, 0, inside.shape))
        strength = np.abs(window[0] - window[1]).max(axis=-1)
        middle = cv2.erode(np.ones(strength.shape, np.uint8), np.ones((3, 3), np.uint8))
        own.append(window[0][(strength > 0.5 * np.percentile(strength, 90)) & (middle > 0)])
    others = []
    for blob in list(blobs)[:3]:
        box = _around(blob, int(1.5 * max(blob.width, blob.height)), inside.shape)
        around, _ = _window(frames[blob.frame], background, box)
        free = np.ones(around.shape[:2], np.bool_)
        left, top = blob.left - box[0] - 3, blob.top - box[1] - 3
        free[max(0, top) : top + blob.height + 6, max(0, left) : left + blob.width + 6] = False
        others.append(around[free])
    return Appearance(_palette(np.concatenate(own), COLOURS), _palette(np.concatenate(others), OTHERS))


def _palette(pixels: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    pixels = pixels[:: max(1, len(pixels) // 4000)]
    if len(pixels) < 4 * count:
        return np.asarray(pixels.mean(axis=0, keepdims=True) if len(pixels) else np.zeros((0, 3)), np.float32)
    cv2.setRNGSeed(0)
    stop = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 30, 0.5)
    return np.asarray(cv2.kmeans(pixels, count, None, stop, 2, cv2.KMEANS_PP_CENTERS)[2], np.float32)


def _around(blob: Blob, margin: int, shape: tuple[int, ...]) -> Box:
    return (max(0, blob.left - margin), max(0, blob.top - margin),
            min(shape[1], blob.left + blob.width + margin), min(shape[0], blob.top + blob.height + margin))  # fmt: skip


def _window(frame: NDArray[np.uint8], background: Background, box: Box) -> tuple[Picture, Picture]:
    rows, columns = slice(box[1], box[3]), slice(box[0], box[2])
    return frame[rows, columns].astype(np.float32), background.still[rows, columns]


# -- masks
def matte(
    frame: NDArray[np.uint8], background: Background, gain: NDArray[np.float32], box: Box, appearance: Appearance
) -> Patch:
    """The object's cover in a window, by its colours and those behind it."""
    part = (slice(box[1], box[3]), slice(box[0], box[2]))
    still, noise = background.still[part] * gain, background.noise[part]
    visible = np.abs(frame[part] - still).max(axis=-1) > 2.5 * noise
    ground = _light(still)
    d = _light(frame[part].astype(np.float32)) - ground
    # Noise of a pixel in units of light, where the slope of the curve is 2.2 v^1.2.
    noise = 4 * noise / 255 * 2.2 * np.maximum(still.mean(axis=-1) / 255, 0.05) ** 1.2
    best, alpha = np.full(noise.shape, np.inf, np.float32), np.zeros(noise.shape, np.float32)
    distance = np.full(noise.shape, np.inf, np.float32)
    for color in _light(appearance.own):
        toward = color - ground
        reach = np.maximum((toward**2).sum(axis=-1), 1e-4)
        cover = np.clip((d * toward).sum(axis=-1) / reach, 0, 1.3)
        off = np.linalg.norm(d - cover[..., None] * toward, axis=-1)
        relative = off / np.maximum(CLEAN * np.sqrt(reach), noise)
        better = relative < best
        best[better], alpha[better], distance[better] = relative[better], cover[better], off[better]
    alpha = np.clip(alpha, 0, 1) * np.clip(2 - best, 0, 1)
    alpha[(alpha < FAINT) | ~visible | (_from_shadow(d, ground) + noise / 4 < distance)] = 0
    return Patch(box[0], box[1], alpha)


def _from_shadow(d: Picture, ground: Picture) -> Picture:
    """How far a pixel is from a shadow: less light, by one factor in all colours."""
    part = np.clip((d * ground).sum(axis=-1) / np.maximum((ground**2).sum(axis=-1), 1e-6), -0.75, 0)
    return np.asarray(np.linalg.norm(d - part[..., None] * ground, axis=-1))


def _light(values: Picture) -> Picture:
    """Pictures store light to the power of 1/2.2; what moves during the exposure mixes as light."""
    return np.asarray((np.clip(values, 0, 255) / 255) ** np.float32(2.0))


def matte_by_colour(frame: NDArray[np.uint8], box: Box, appearance: Appearance) -> Patch:
    """The object's cover where it touches something else that moves: which colour a pixel is nearer to."""
    pixels = frame[box[1] : box[3], box[0] : box[2]].astype(np.float32)
    own = _distance(pixels, appearance.own)
    others = _distance(pixels, appearance.others)
    alpha = np.clip(1.5 - 2 * own / np.maximum(own + others, 1e-3) * 1.25, 0, 1).astype(np.float32)
    alpha[alpha < FAINT] = 0
    return Patch(box[0], box[1], alpha)


def _distance(pixels: Picture, colours: NDArray[np.float32]) -> Picture:
    if not len(colours):
        return np.full(pixels.shape[:2], 60.0, np.float32)
    return np.asarray(np.linalg.norm(pixels[:, :, None] - colours, axis=-1).min(axis=-1))


def part_at(patch: Patch, x: float, y: float, reach: float) -> Patch | None:
    """The connected part of a mask that is at a place, or within reach of it."""
    count, labels, _, centres = cv2.connectedComponentsWithStats((patch.alpha > 0).astype(np.uint8), connectivity=8)
    best, most = 0, 0.0
    for n in range(1, count):
        part = labels == n
        off = np.hypot(patch.left + centres[n, 0] - x, patch.top + centres[n, 1] - y)
        weight = float(patch.alpha[part].sum()) * max(0.0, 1 - off / (2 * reach))
        if weight > most:
            best, most = n, weight
    if not best:
        return None
    return Patch(patch.left, patch.top, np.where(labels == best, patch.alpha, 0).astype(np.float32))


# -- sizes
def chord(patch: Patch, way: NDArray[np.float64]) -> float:
    """Pixels across the motion, of something round: motion blurs along its way and leaves the profile across it.

    Summed along the way, a disk is a half ellipse of width D, however far it moved during the exposure.
    """
    rows, columns = np.nonzero(patch.alpha)
    if len(rows) < 12:
        return float("nan")
    norm = float(np.hypot(*way))
    across = np.array([-way[1], way[0]]) / norm if norm > 0 else np.array([1.0, 0.0])
    s = columns * across[0] + rows * across[1]
    weight = patch.alpha[rows, columns].astype(np.float64)
    middle = float(weight @ s) / float(weight.sum())
    spread = float(np.sqrt(weight @ (s - middle) ** 2 / weight.sum()))
    edges = np.arange(middle - 3.2 * spread - 3, middle + 3.2 * spread + 3, 0.5)
    # Each pixel is spread over its own width: no comb where pixels and bins beat.
    profile = np.interp(edges, *_smeared(s, weight, edges))
    radius = 2 * spread

    def off(u: NDArray[np.float64]) -> NDArray[np.float64]:
        shape = _half_ellipse(edges - u[0], abs(u[1]))
        scale = float(shape @ profile) / max(float(shape @ shape), 1e-12)
        return np.asarray(scale * shape - profile)

    found = least_squares(off, [middle, radius], x_scale=[1.0, 1.0], max_nfev=40)
    return 2 * abs(float(found.x[1]))


def _smeared(
    s: NDArray[np.float64], weight: NDArray[np.float64], edges: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    step = 0.5
    counts = np.zeros(len(edges))
    for shift in (-0.375, -0.125, 0.125, 0.375):
        place = np.clip(np.rint((s + shift - edges[0]) / step).astype(int), 0, len(edges) - 1)
        np.add.at(counts, place, weight / 4)
    return edges, counts


def _half_ellipse(s: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """A disk's profile with soft edges: the mean over a few shifted ones."""
    shifts = EDGE * np.array([-1.3, -0.65, 0.0, 0.65, 1.3])
    weights = np.exp(-0.5 * (shifts / EDGE) ** 2)
    return np.asarray(sum(w * np.sqrt(np.maximum(radius**2 - (s + d) ** 2, 0)) for w, d in zip(weights, shifts)))
