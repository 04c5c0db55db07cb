"""The chosen object followed closely: soft masks frame by frame, also where it touches the hand that lets it go.

Seventh step of `look`. Inside of its chain the object is where its patch was; before and after, it is looked for
where its motion goes on, by its colours. What is found must have the object's size: a mask sums to its area however
blurred it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from nablasim.sysid.look.background import Background, Moved, Steadied, background_of
from nablasim.sysid.look.blobs import Blob
from nablasim.sysid.look.chains import Chain
from nablasim.sysid.look.matte import (
    Appearance,
    Box,
    Patch,
    appearance_of,
    chord,
    matte,
    matte_by_colour,
    part_at,
)

SLOW = 0.02
"""Of its size, per frame: something that moves less rests."""
RESTING = 0.35
"""Of its usual speed: what is slower in the end comes to rest."""
ALIKE = (0.5, 1.8)
"""Areas that the object may seem to have, as parts of its usual one."""
WIDEST = 1.4
"""Of its size: what is wider is more than the object."""
ODD = 0.15
"""By which an area differs from those around it where the mask is not to be trusted (a logarithm)."""
BEYOND = 40
"""Frames that the object is looked for before and after its chain."""
HELD = 8
"""Frames at rest before the motion that are enough to see that it was held."""


@dataclass(frozen=True, eq=False)
class Sight:
    """The object in one frame, in the pixels of the steadied frames."""

    frame: int
    x: float
    y: float
    patch: Patch
    border: bool
    mixed: bool = False
    """Found by its colours, because it touches something else that moves: its edge is not to be trusted."""

    @property
    def place(self) -> NDArray[np.float64]:
        return np.array([self.x, self.y])


@dataclass(eq=False)
class Follower:
    """All that is needed to find the object in a frame."""

    steadied: Steadied
    background: Background
    gains: NDArray[np.float32]
    inside: NDArray[np.bool_]
    appearance: Appearance
    usual: float
    """Its area: what a mask sums to."""
    size: float
    narrow: float = 0.0
    """Its smaller extent."""

    def look(self, frame: int, at: NDArray[np.float64], reach: float, *, mixed: bool = False) -> Sight | None:
        """The object near a place of a frame. `mixed`: by colour, where it touches something else that moves."""
        box = self._box(at, reach)
        if box[2] - box[0] < 3 or box[3] - box[1] < 3:
            return None
        picture = self.steadied.frames[frame]
        if mixed:
            patch = matte_by_colour(picture, box, self.appearance)
        else:
            patch = matte(picture, self.background, self.gains[frame], box, self.appearance)
        part = part_at(patch, float(at[0]), float(at[1]), reach)
        return None if part is None else self._sight(frame, part, mixed)

    def _sight(self, frame: int, part: Patch, mixed: bool) -> Sight:
        x, y = part.middle
        rows, columns = np.nonzero(part.alpha)
        edge = 2
        border = bool(
            (part.left + columns.min() < edge) or (part.top + rows.min() < edge)
            or (part.left + columns.max() >= self.inside.shape[1] - edge)
            or (part.top + rows.max() >= self.inside.shape[0] - edge)
            or not self.inside[part.top + rows, part.left + columns].all()
        )  # fmt: skip
        return Sight(frame, x, y, _trimmed(part), border, mixed)

    def _box(self, at: NDArray[np.float64], reach: float) -> Box:
        height, width = self.inside.shape
        left, top = (max(0, int(v)) for v in at - reach)
        right, bottom = int(at[0] + reach) + 1, int(at[1] + reach) + 1
        return left, top, min(width, right), min(height, bottom)

    def like(self, sight: Sight | None) -> bool:
        """Whether a sight has the object's area."""
        if sight is None or min(sight.patch.extent) > WIDEST * self.size + 2:
            return False
        return ALIKE[0] < sight.patch.mass / self.usual < ALIKE[1]

    def more(self, sight: Sight) -> bool:
        """Whether a sight is larger and wider than the object: a piece of the hand may be in it."""
        return sight.patch.mass > 1.1 * self.usual and min(sight.patch.extent) > 1.08 * self.narrow

    def closer(self, *sights: Sight | None) -> Sight | None:
        """The one whose area is nearer to the object's."""
        there = [s for s in sights if s is not None and s.patch.mass > 0]
        return min(there, key=lambda s: abs(np.log(s.patch.mass / self.usual)), default=None)


def _trimmed(part: Patch) -> Patch:
    rows, columns = np.nonzero(part.alpha)
    top, left = int(rows.min()), int(columns.min())
    alpha = part.alpha[top : rows.max() + 1, left : columns.max() + 1]
    return Patch(part.left + left, part.top + top, alpha.copy())


# -- the way
def follow(
    steadied: Steadied, gains: NDArray[np.float32], inside: NDArray[np.bool_], chain: Chain, moving: list[Blob]
) -> list[Sight]:
    """The object in every frame in which it can be told, in the order of frames."""
    background = background_of(steadied.frames, hidden_by(steadied.frames, chain))
    look = _appearance(steadied, background, moving, inside)
    follower = Follower(steadied, background, gains, inside, look, 1.0, chain.size)
    sights = [s for blob in chain.blobs if (s := _at_blob(follower, blob)) is not None]
    if len(sights) < 4:
        return sights
    free = {b.frame for b in moving if not b.border}
    alone = [s for s in sights if s.frame in free and not s.border] or sights
    follower.usual = float(np.median([s.patch.mass for s in alone]))
    follower.narrow = float(np.median([min(s.patch.extent) for s in alone]))
    sights = _known(follower, sights)
    sights = _fill(follower, sights)
    before = _extend(follower, sights, -1)
    after = _extend(follower, sights, 1)
    return _mend(follower, [*reversed(before), *sights, *after])


def _mend(follower: Follower, sights: list[Sight]) -> list[Sight]:
    """Sights that jump out of the motion of their neighbours: perhaps a piece of the hand is in the mask."""
    mended = list(sights)
    for k, sight in enumerate(sights):
        around = [s for s in mended[max(0, k - 5) : k + 6] if s is not sight and not s.border]
        if sight.border or len(around) < 7 or not _unlike(sight, around):
            continue
        at, speed = _ahead(around, sight.frame)
        off = float(np.linalg.norm(sight.place - at))
        if off < max(1.0, 0.06 * follower.size):
            continue
        again = follower.look(sight.frame, at, 0.8 * follower.size + 0.5 * speed + 3, mixed=True)
        if again is not None and follower.like(again) and np.linalg.norm(again.place - at) < 0.5 * off:
            mended[k] = again
    return mended


def _unlike(sight: Sight, others: list[Sight]) -> bool:
    """Whether a mask is larger, smaller or wider than those around it."""
    usual = float(np.median([s.patch.mass for s in others]))
    narrow = float(np.median([min(s.patch.extent) for s in others]))
    return bool(abs(np.log(sight.patch.mass / usual)) > 0.2 or min(sight.patch.extent) > 1.2 * narrow)


def _known(follower: Follower, sights: list[Sight]) -> list[Sight]:
    """Sights that have the object's area; where a patch was more than the object, the object in it by its colours."""
    good = []
    for sight in sights:
        if sight.border or (follower.like(sight) and not follower.more(sight)):
            good.append(sight)
            continue
        again = follower.look(sight.frame, sight.place, 1.1 * follower.size + 3, mixed=True)
        better = follower.closer(sight, again)
        if better is not None and follower.like(better):
            good.append(better)
    return good


def _appearance(
    steadied: Steadied, background: Background, moving: list[Blob], inside: NDArray[np.bool_]
) -> Appearance:
    clear = [b for b in moving if not b.border] or moving
    # The first patches of a chain may hold a piece of the hand: colours are learned from what is of usual size.
    usual = float(np.median([b.size for b in clear]))
    good = [b for b in clear if 0.75 < b.size / usual < 1.35] or clear
    return appearance_of(steadied.frames, background, good, inside)


def _at_blob(follower: Follower, blob: Blob) -> Sight | None:
    at = np.array([blob.left + (blob.width - 1) / 2, blob.top + (blob.height - 1) / 2])
    if max(blob.width, blob.height) > 3 * follower.size + 12 and not blob.fullness > 0.5:
        at = np.array([blob.x, blob.y])
    reach = 0.6 * max(blob.width, blob.height) + 4
    return follower.look(blob.frame, at, reach)


def hidden_by(frames: NDArray[np.uint8] | Moved, chain: Chain, *, widened: bool = False) -> NDArray[np.bool_]:
    """Where the object hides the background: in its chain, and before and after it where it rests there.

    Where it comes to rest, a piece of it may be in the background already, and its patches lack that piece: they are
    widened to what it usually is.
    """
    hidden = np.zeros(frames.shape[:3], np.bool_)
    whole = [b for b in chain.blobs if not b.border] or chain.blobs
    width, height = (float(np.percentile([getattr(b, side) for b in whole], 80)) for side in ("width", "height"))

    def hide(frame: int, blob: Blob, widened: bool = False) -> None:
        lacks = (max(0.0, width - blob.width), max(0.0, height - blob.height)) if widened else (0.0, 0.0)
        x, y = (3 + int(lack) for lack in lacks)
        hidden[frame, max(0, blob.top - y) : blob.top + blob.height + y,
               max(0, blob.left - x) : blob.left + blob.width + x] = True  # fmt: skip

    steps = np.linalg.norm(np.diff(chain.places, axis=0), axis=1)
    rests = len(steps) > 4 and float(np.median(steps[-3:])) < RESTING * float(np.median(steps))
    for blob in chain.blobs:
        hide(blob.frame, blob, rests or widened)
    places = chain.places
    first, last = chain.blobs[0], chain.blobs[-1]
    if len(places) > 4 and np.linalg.norm(places[3] - places[0]) < 3 * max(0.5, SLOW * chain.size):
        for k in range(first.frame):
            hide(k, first)
    if len(places) > 4 and np.linalg.norm(places[-1] - places[-4]) < 3 * max(0.5, SLOW * chain.size):
        for k in range(last.frame + 1, len(frames)):
            hide(k, last)
    return hidden


def _ahead(sights: list[Sight], frame: int) -> tuple[NDArray[np.float64], float]:
    """Where the motion of some sights goes on, in another frame; and its speed there, in pixels per frame."""
    t = np.array([s.frame for s in sights], np.float64) - frame
    p = np.array([s.place for s in sights])
    order = 2 if len(sights) >= 6 else 1
    terms = np.polynomial.polynomial.polyfit(t, p, order)
    return np.asarray(terms[0]), float(np.hypot(*terms[1]))


def _fill(follower: Follower, sights: list[Sight]) -> list[Sight]:
    """Frames between sights in which nothing like the object was found: looked for between the neighbours."""
    filled = [sights[0]]
    for sight in sights[1:]:
        last = filled[-1]
        for frame in range(last.frame + 1, sight.frame):
            part = (frame - last.frame) / (sight.frame - last.frame)
            at = last.place + part * (sight.place - last.place)
            reach = follower.size + 0.7 * float(np.linalg.norm(sight.place - last.place))
            found = follower.closer(*(follower.look(frame, at, reach, mixed=mixed) for mixed in (False, True)))
            if found is not None and follower.like(found):
                filled.append(found)
        filled.append(sight)
    return filled


def _extend(follower: Follower, sights: list[Sight], step: int) -> list[Sight]:
    """The object before (-1) or after (1) the frames in which it stood alone."""
    known = [s for s in sights if not s.border][::-step]
    known = known[:10]
    found: list[Sight] = []
    if len(known) < 4:
        return found
    frame, missed, rested = (sights[0] if step < 0 else sights[-1]).frame + step, 0, 0
    while 0 <= frame < len(follower.steadied.frames) and missed < 2 and len(found) < BEYOND and rested < HELD:
        at, speed = _ahead(known[:10], frame)
        last = found[-1] if found else known[0]
        sight = _nearest(follower, frame, at, last, speed)
        if sight is None:
            missed += 1
        else:
            missed = 0
            rested = rested + 1 if np.linalg.norm(sight.place - last.place) < max(0.5, SLOW * follower.size) else 0
            found.append(sight)
            known = [sight, *known]
        frame += step
    return found


def _nearest(follower: Follower, frame: int, at: NDArray[np.float64], last: Sight, speed: float) -> Sight | None:
    """The object where it is expected, or where it just was."""
    gate, found = 0.4 * follower.size + 0.5 * speed + 2, []
    for mixed in (False, True):
        for place in (at, last.place):
            sight = follower.look(frame, place, 0.8 * follower.size + 0.8 * speed + 3, mixed=mixed)
            if sight is None or sight.border or not follower.like(sight):
                continue
            if min(np.linalg.norm(sight.place - at), np.linalg.norm(sight.place - last.place)) < gate:
                found.append(sight)

    def cost(sight: Sight) -> float:
        off = float(np.linalg.norm(sight.place - at)) / follower.size
        return off + abs(float(np.log(sight.patch.mass / follower.usual)))

    return min(found, key=cost, default=None)


# -- sizes
def clear(sights: list[Sight]) -> NDArray[np.bool_]:
    """Whether a mask is the whole object and nothing else: it is of the area that those around it have."""
    mass = np.array([s.patch.mass for s in sights])
    usual = median_filter(mass, size=min(15, len(mass)), mode="nearest")
    return np.asarray(~np.array([s.mixed for s in sights]) & (np.abs(np.log(mass / usual)) < ODD))


def chords(sights: list[Sight], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pixels across the motion for each sight."""
    places = np.array([s.place for s in sights])
    when = np.array([times[s.frame] for s in sights])
    ways = np.gradient(places, when, axis=0) if len(sights) > 1 else np.zeros_like(places)
    return np.array([chord(s.patch, way) for s, way in zip(sights, ways)])
