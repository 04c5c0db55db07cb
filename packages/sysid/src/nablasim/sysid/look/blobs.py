"""What is in front of the background: connected patches of each frame, with shadows taken off.

Third step of `look`. A patch that is darker by one factor in all colours may be a shadow, or a grey thing: what is
left of a patch without such pixels stands for it if that is much of it; otherwise the whole patch stands, and is
marked.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.look.background import Background, Picture, difference, largest

SURE, LIKELY = 7.0, 3.5
"""Standard deviations of noise from which a pixel is in front; and with a neighbour that is."""
LEAST = 9.0
"""Of 255: what differs by less is compression."""
SMALLEST = 6
"""Pixels of a patch."""
DARKEST = 0.45
"""Shadows leave at least this part of the light."""
GREY = 0.045
"""By which the colours of a shadow may be darkened differently."""
KEPT = 0.35
"""Of a patch, without what may be shadow: from this part on the rest stands for it."""
THIN = 0.35
"""Of its box: what fills less may be a thing on a string."""
STRING = 2.5
"""Pixels: the width of a string, at most, before motion blur doubles it."""
BULKY = 2.0
"""Squares of its width: what hangs on a string is no longer than about twice as long as wide."""
MOST = 24
"""Patches of a frame that are kept, the largest."""


@dataclass(frozen=True, eq=False)
class Blob:
    """A patch of one frame: its middle (weighted with how much it differs), its box and area, and its mean colour."""

    frame: int
    x: float
    y: float
    left: int
    top: int
    width: int
    height: int
    area: float
    color: NDArray[np.float32]
    shadow: bool
    border: bool
    """Whether it touches the edge of what is looked at: hands come from outside."""

    @property
    def size(self) -> float:
        """Pixels across, the smaller way."""
        return float(min(self.width, self.height))

    @property
    def fullness(self) -> float:
        """Of its box: a ball fills 79 %, an arm less."""
        return self.area / (self.width * self.height)


def blobs_of(
    k: int, frame: NDArray[np.uint8], background: Background, gain: NDArray[np.float32], inside: NDArray[np.bool_],
    *, hangs: bool = False,
) -> list[Blob]:  # fmt: skip
    """The patches of frame k. `hangs`: strings and rods are taken off what hangs on them."""
    ground = background.rounded if (gain == 1).all() else _lit(background.still, gain)
    strength = cv2.GaussianBlur(largest(cv2.absdiff(frame, ground)), (0, 0), 0.8)
    strength[~inside] = 0
    front = _front(strength, background)
    found = []
    _, labels, stats, _ = cv2.connectedComponentsWithStats(front.astype(np.uint8), connectivity=8)
    for label in 1 + np.argsort(-stats[1:, cv2.CC_STAT_AREA])[:MOST]:
        left, top, width, height, area = (int(n) for n in stats[label])
        if area < SMALLEST:
            continue
        box = (slice(top, top + height), slice(left, left + width))
        whole = labels[box] == label
        shady = _shadowy(difference(frame, background, gain, box), background.still[box])
        clear = cv2.morphologyEx((whole & ~shady).astype(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))
        is_shadow = bool(clear.sum() < max(KEPT * area, SMALLEST))
        for part in [whole] if is_shadow else _parts(clear):
            part = _without_string(part) if hangs else part
            found.append(_blob(k, part, (left, top), strength, frame, inside, is_shadow))
    return found


def _lit(still: Picture, gain: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.clip(np.rint(still * gain), 0, 255).astype(np.uint8)


def _front(strength: NDArray[np.uint8], background: Background) -> NDArray[np.bool_]:
    """Hysteresis: patches of likely pixels that hold a sure one."""
    likely = cv2.compare(strength, background.level(LIKELY, LEAST), cv2.CMP_GT)
    sure = cv2.compare(strength, background.level(SURE, 1.6 * LEAST), cv2.CMP_GT)
    likely = cv2.morphologyEx(likely, cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
    count, labels = cv2.connectedComponents(likely, connectivity=8)
    holds = np.zeros(count, np.bool_)
    holds[np.unique(labels[sure > 0])] = True
    holds[0] = False
    return np.asarray(holds[labels], np.bool_)


def _shadowy(apart: Picture, still: Picture) -> NDArray[np.bool_]:
    """Darker by one factor in all colours."""
    ground = np.maximum(still, 8.0)
    ratio = (ground + apart) / ground
    middle = ratio.mean(axis=-1)
    differently = np.ptp(ratio, axis=-1) > GREY * (1 + 60 / ground.mean(axis=-1))
    return np.asarray((middle < 1) & (middle > DARKEST) & ~differently)


def _without_string(part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What hangs on a string or a rod, without it: the thick piece of a patch that is thin otherwise."""
    rows, columns = np.nonzero(part)
    box = (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
    if part.sum() > THIN * box and max(np.ptp(rows), np.ptp(columns)) < 3 * part.sum() ** 0.5:
        return part
    solid = np.pad(part.astype(np.uint8), 1)
    thick = 2 * float(cv2.distanceTransform(solid, cv2.DIST_L2, 3).max())
    size = int(0.6 * thick) | 1
    if thick < 2 * STRING or size < 3:
        return part
    core = cv2.morphologyEx(solid, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))
    pieces = _parts(core[1:-1, 1:-1])
    # An arm is thick all along; a string leaves little when its bob is gone.
    left = part & ~(core[1:-1, 1:-1] > 0)
    if len(pieces) != 1 or pieces[0].sum() > BULKY * thick**2 or left.sum() > STRING * 2 * max(part.shape):
        return part
    return pieces[0]


def _parts(mask: NDArray[np.uint8]) -> list[NDArray[np.bool_]]:
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    return [labels == n for n in range(1, count) if stats[n, cv2.CC_STAT_AREA] >= SMALLEST]


def _blob(
    k: int, part: NDArray[np.bool_], corner: tuple[int, int], strength: NDArray[np.uint8], frame: NDArray[np.uint8],
    inside: NDArray[np.bool_], shadow: bool,
) -> Blob:  # fmt: skip
    rows, columns = np.nonzero(part)
    left, top = corner[0] + int(columns.min()), corner[1] + int(rows.min())
    width, height = int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1
    y, x = rows + corner[1], columns + corner[0]
    weight = strength[y, x].astype(np.float64)
    total = float(weight.sum())
    strong = weight >= np.percentile(weight, 60)
    color = np.median(frame[y[strong], x[strong]], axis=0).astype(np.float32)
    return Blob(
        k, float(weight @ x) / total, float(weight @ y) / total, left, top, width, height, float(len(x)), color, shadow,
        _at_border(left, top, width, height, inside),
    )  # fmt: skip


def _at_border(left: int, top: int, width: int, height: int, inside: NDArray[np.bool_]) -> bool:
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    return bool(left <= columns[0] + 1 or top <= rows[0] + 1 or left + width >= columns[-1] or top + height >= rows[-1])
