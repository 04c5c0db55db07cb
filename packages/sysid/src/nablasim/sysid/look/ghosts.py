"""Ghosts: things that rest for most of the clip are part of the median, and leave a hole where they are not.

Between chains and motion in `look`. Where a patch stands still, either a thing stands there or the background has one
that is not there now: the one of both pictures that has edges around the patch shows the thing.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.look.background import Background, Moved
from nablasim.sysid.look.blobs import Blob
from nablasim.sysid.look.chains import Chain

STANDS = 4
"""Frames in which a patch has the same box."""
SOLID = 8.0
"""Pixels across, at least."""
SHARPER = 1.25
"""How much stronger edges must be before they decide."""


def without_ghosts(frames: NDArray[np.uint8] | Moved, background: Background, chains: Sequence[Chain]) -> Background:
    """The background with what is behind the ghosts; the same one if there are none."""
    still = background.still.copy()
    found = False
    for chain in chains:
        stretch = _standing(chain)
        if len(stretch) >= STANDS and _solid(stretch[0]):
            found |= _clear(frames, still, stretch)
    return Background(still, background.noise) if found else background


def _solid(blob: Blob) -> bool:
    """A thing, and not an edge that a camera or a lens moved."""
    return blob.size >= SOLID and blob.fullness > 0.5 and not blob.border


def _standing(chain: Chain) -> list[Blob]:
    """The longest run of patches with the same box."""
    best: list[Blob] = []
    run: list[Blob] = []
    for blob in chain.blobs:
        if run and not _same(run[0], blob):
            run = []
        run.append(blob)
        if len(run) > len(best):
            best = list(run)
    return best


def _same(a: Blob, b: Blob) -> bool:
    return bool(np.abs(np.subtract((a.left, a.top, a.width, a.height), (b.left, b.top, b.width, b.height))).max() <= 2)


def _clear(frames: NDArray[np.uint8] | Moved, still: NDArray[np.float32], run: Sequence[Blob]) -> bool:
    """Put what these frames show into the background, if the background has the thing."""
    margin, first = 4, run[0]
    rows = slice(max(0, first.top - margin), first.top + first.height + margin)
    columns = slice(max(0, first.left - margin), first.left + first.width + margin)
    there = np.median(np.stack([frames[b.frame][rows, columns] for b in run[:25]]), axis=0).astype(np.float32)
    behind = still[rows, columns]
    differs = (np.abs(there - behind).max(axis=-1) > 9).astype(np.uint8)
    ring = cv2.dilate(differs, np.ones((3, 3), np.uint8)) - cv2.erode(differs, np.ones((3, 3), np.uint8))
    if ring.sum() < 8:
        return False
    if _edges(behind)[ring > 0].mean() < SHARPER * _edges(there)[ring > 0].mean():
        return False
    grown = cv2.dilate(differs, np.ones((5, 5), np.uint8)) > 0
    behind[grown] = there[grown]
    return True


def _edges(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    across, down = cv2.Sobel(picture, cv2.CV_32F, 1, 0), cv2.Sobel(picture, cv2.CV_32F, 0, 1)
    return np.asarray(cv2.magnitude(across, down).max(axis=-1))
