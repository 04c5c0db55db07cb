"""`sysid.look`: find what moves freely in a clip, when it was let go, and what it hit.

    look = sysid.look("drop.mp4", fps=120)
    look.track.x, look.release, look.impacts, look.warnings

The steps are the other files of this room, in this order: clip, background, blobs, chains, ghosts, motion, following,
matte, events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.sysid.look.background import Background, Steadied, background_of, gain_of, steadied
from nablasim.sysid.look.blobs import blobs_of
from nablasim.sysid.look.chains import Chain, chains_of
from nablasim.sysid.look.clip import CannotLook, Clip, Region, read_clip
from nablasim.sysid.look.events import Events, events_of
from nablasim.sysid.look.following import Sight, chords, clear, follow, hidden_by
from nablasim.sysid.look.ghosts import without_ghosts
from nablasim.sysid.look.motion import Judged, judge

COLUMNS = ("frame", "time", "x", "y", "width", "height")
CLEAR = 2.0
"""How much better the best chain must be than the next one before the choice is called sure."""
DIFFERS = 15.0
"""Of 255: by which two backgrounds are not the same."""
LACKING = 0.05
"""Of the object's area: what of it is in the median before its masks suffer."""
LEAST = 4.0
"""Frames of free motion that must be explained before anything is called found."""


class Masks:
    """Soft masks of all frames, (height, width) each, of the original picture: `masks[k]`, or all of them as an array.

    They are kept as small patches: a clip in full size would not fit into memory. `noise` is the standard deviation
    of a pixel inside of the object and at its edge.
    """

    def __init__(self, shape: tuple[int, int, int], factor: int, patches: dict[int, Any], noise: float):
        self.shape, self.noise = shape, noise
        self._factor, self._patches = factor, patches

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, frame: int) -> NDArray[np.float32]:
        if not -len(self) <= frame < len(self):
            raise IndexError(f"frame {frame} of {len(self)}")
        mask = np.zeros(self.shape[1:], np.float32)
        patch = self._patches.get(int(frame) % len(self))
        if patch is None:
            return mask
        large = np.kron(patch.alpha, np.ones((self._factor, self._factor), np.float32))
        top, left = patch.top * self._factor, patch.left * self._factor
        # A camera that was steadied may see a little over the edge.
        rows, columns = slice(max(0, top), top + large.shape[0]), slice(max(0, left), left + large.shape[1])
        seen = mask[rows, columns]
        seen[:] = large[max(0, -top) :, max(0, -left) :][: seen.shape[0], : seen.shape[1]]
        return mask

    def along(self, frame: int, way: ArrayLike) -> float:
        """Pixels that the object takes along a direction of the picture: of a box, its side. Motion blur adds none."""
        patch = self._patches.get(int(frame) % len(self))
        if patch is None:
            return float("nan")
        rows, columns = np.nonzero(patch.alpha)
        unit = np.asarray(way, np.float64) / np.linalg.norm(way)
        at = columns * unit[0] + rows * unit[1]
        weight = patch.alpha[rows, columns].astype(np.float64)
        shifts = (-0.375, -0.125, 0.125, 0.375)
        edges = np.arange(at.min() - 1.5, at.max() + 2.5, 1.0)
        heights = np.mean([np.histogram(at + d, edges, weights=weight)[0] for d in shifts], axis=0)
        usual = float(np.median(heights[heights > 0.5 * heights.max()]))
        return self._factor * float(np.minimum(heights / usual, 1.0).sum())

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        return (self[k] for k in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.stack(list(self)).astype(dtype or np.float32)


@dataclass(frozen=True, eq=False)
class Look:
    """What was tracked in a clip."""

    path: Path
    track: Any
    """One row for each frame of the free motion: frame, time (s), x, y, width and height in pixels of the original
    picture, row 0 on top. A record array: `track.x`, `track["x"]`."""
    steady: NDArray[np.float64]
    """(n, 2) the places as a camera that stands would have seen them: what motion is fitted to."""
    across: NDArray[np.float64]
    """(n) pixels across the motion, which motion blur leaves alone; nan where it cannot be told."""
    clear: NDArray[np.bool_]
    """(n) whether it stands alone: its mask touches no hand and no floor."""
    masks: Masks
    release: int
    """The first frame of the free motion."""
    impacts: tuple[int, ...]
    """Frames nearest to each impact."""
    contacts: tuple[float, ...]
    """Times of the impacts (s), finer than frames."""
    swings: bool
    warnings: tuple[str, ...]
    times: NDArray[np.float64]
    """Of all frames of the clip (s)."""
    rate: float
    size: tuple[int, int]
    """(height, width) of the original picture."""
    noise: float
    """Pixels: standard deviation of a place."""
    told: bool
    """Whether the frame rate was given."""
    vouched: bool
    """Whether two say the same of the frame rate: the user, what the file shows, what the phone noted."""
    alone: bool
    """Whether the file alone says the frame rate, and nothing contradicts it."""
    own: float
    """Frames per second that the file shows, whatever was given; 0 where it says nothing."""
    moved: float
    """Pixels by which the camera moved."""
    clip: Clip = field(repr=False)

    def draft(self, kind: str | None = None) -> str:
        """A scene file for `nablasim identify`, with what the track says filled in and guesses marked.

        kind: throw, bounce, slide, roll or swing; what it looks like if it is not given
        """
        from nablasim.sysid.look.draft import draft

        return draft(self, kind)

    @property
    def kind(self) -> str:
        """What it looks like: throw, bounce, slide or swing."""
        from nablasim.sysid.look.draft import kind_of

        return kind_of(self)

    def write(self, folder: str | Path = "look") -> Path:
        """Write index.html, masks/, track.csv and scene.yaml into a folder; gives the path of the page."""
        from nablasim.sysid.look.page import write

        return write(self, Path(folder))


def find(file: str | Path, region: Region | None, place: tuple[float, float] | None, fps: float | None) -> Look:
    """What `sysid.look` does."""
    clip = read_clip(file, region=region, fps=fps)
    still = steadied(clip.frames)
    diagonal = float(np.hypot(*clip.frames.shape[1:3]))
    inside = clip.inside
    background = background_of(still.frames)
    gains = np.stack([gain_of(f, background, inside) for f in still.frames])
    for _ in range(2):
        blobs = [blobs_of(k, f, background, gains[k], inside) for k, f in enumerate(still.frames)]
        chains = chains_of(blobs, diagonal)
        cleared = background if still.moved else without_ghosts(still.frames, background, chains)
        if cleared is background:
            break
        background = cleared
    judged = _judged(chains, clip, diagonal)
    behind = _behind(still, background, judged)
    if behind is not None or not judged or judged[0].score < LEAST:
        again = _again(still, behind or background, gains, clip, diagonal)
        if again and (not judged or again[0].score > judged[0].score):
            judged = again
    chosen, warnings = _choose(clip, judged, place)
    sights = follow(still, gains, inside, chosen.chain, chosen.moving)
    # What is cut off by the edge of the picture is not where it seems to be.
    whole = [s for s in sights if not s.border]
    if len(whole) < 5:
        raise CannotLook(
            f"what moves in {clip.path.name} is seen as a whole in {len(whole)} frames only: film it from farther "
            "away, or give another --region"
        )
    places, when = np.array([s.place for s in whole]), clip.times[[s.frame for s in whole]]
    events = events_of(when, places, chosen.chain.size)
    return _result(clip, still, whole, events, [*clip.notes, *warnings, *_camera(still, clip)], gains)


def _judged(chains: list[Chain], clip: Clip, diagonal: float) -> list[Judged]:
    return sorted((judge(c, clip.times, diagonal) for c in chains), key=lambda j: -j.score)


def _again(
    still: Steadied, background: Background, gains: NDArray[np.float32], clip: Clip, diagonal: float
) -> list[Judged]:
    """Perhaps it was hidden by itself, where it is slow and part of the background, or it hangs on a string."""
    best: list[Judged] = []
    for hangs in (False, True):
        blobs = [blobs_of(k, f, background, gains[k], clip.inside, hangs=hangs) for k, f in enumerate(still.frames)]
        judged = _judged(chains_of(blobs, diagonal), clip, diagonal)
        if judged and (not best or judged[0].score > best[0].score):
            best = judged
    return best


def _behind(still: Steadied, background: Background, judged: list[Judged]) -> Background | None:
    """The background without what slowed down in front of it for long, if that is in the median."""
    if not judged or still.moved:
        return None
    chains = [j.chain for j in judged[:5]]
    chain = max(chains, key=lambda c: float(np.linalg.norm(np.ptp(c.places, axis=0))) * len(c.blobs))
    behind = background_of(still.frames, hidden_by(still.frames, chain, widened=True))
    differs = np.abs(behind.still - background.still).max(axis=-1) > DIFFERS
    return behind if differs.sum() > LACKING * chain.size**2 else None


def _choose(clip: Clip, judged: list[Judged], place: tuple[float, float] | None) -> tuple[Judged, list[str]]:
    name = clip.path.name
    if not judged:
        raise CannotLook(f"nothing moves in {name}: check the file, or give another --region")
    if place is not None:
        at = np.array([float(clip.from_original(v)) for v in place])
        passing = [j for j in judged if _passes(j.chain, at)]
        if not passing:
            raise CannotLook(
                f"nothing that moves in {name} passes x = {place[0]:g}, y = {place[1]:g}: give a place on the way of "
                "the object, in pixels from the upper left corner"
            )
        return passing[0], []
    best = judged[0]
    if best.score < LEAST:
        raise CannotLook(
            f"nothing in {name} moves freely for long enough: no thing flies, slides, rolls or swings by itself. "
            "--object x,y names a place that the object passes, --region x,y,w,h where to look"
        )
    rival = next((j for j in judged[1:] if j.score * CLEAR > best.score), None)
    if rival is None:
        return best, []
    x, y = (float(clip.to_original(v)) for v in rival.chain.places[len(rival.chain.places) // 2])
    first, last = int(rival.chain.frames[0]), int(rival.chain.frames[-1])
    return best, [f"something else moves freely too, in frames {first} to {last}: --object {x:.0f},{y:.0f} picks that"]


def _passes(chain: Chain, at: NDArray[np.float64]) -> bool:
    off = np.linalg.norm(chain.places - at, axis=1)
    boxes = [
        b.left - 3 <= at[0] <= b.left + b.width + 3 and b.top - 3 <= at[1] <= b.top + b.height + 3 for b in chain.blobs
    ]
    return bool(any(boxes) or off.min() < chain.size)


def _camera(still: Steadied, clip: Clip) -> list[str]:
    if not still.moved:
        return []
    return [f"the camera moves, by up to {clip.factor * still.moved:.0f} pixels: places are corrected for what the "
            "background does; a tripod is better"]  # fmt: skip


def _result(
    clip: Clip, still: Steadied, sights: list[Sight], events: Events, warnings: list[str], gains: NDArray[np.float32]
) -> Look:
    free = sights[events.first : events.last + 1]
    rows, patches = [], {}
    for s in free:
        x, y = still.filmed(s.frame, s.x, s.y)
        width, height = s.patch.extent
        rows.append((s.frame, clip.times[s.frame], float(clip.to_original(x)), float(clip.to_original(y)),
                     clip.factor * width, clip.factor * height))  # fmt: skip
        shift = np.rint([x - s.x, y - s.y]).astype(int)
        patches[s.frame] = type(s.patch)(s.patch.left + int(shift[0]), s.patch.top + int(shift[1]), s.patch.alpha)
    track = np.rec.array(rows, dtype=[("frame", "i8"), *((c, "f8") for c in COLUMNS[1:])])
    across, alone = clip.factor * chords(free, clip.times), clear(free)
    flicker = float(np.ptp(gains.mean(axis=1)))
    if flicker > 0.05:
        warnings.append(f"the light changes by {flicker:.0%} during the clip: it was taken out frame by frame")
    missing = int(free[-1].frame - free[0].frame + 1 - len(free))
    if missing:
        warnings.append(f"the object is not seen in {missing} of {missing + len(free)} frames of its motion")
    number = np.arange(len(clip.times))
    impacts = tuple(round(float(np.interp(t, clip.times, number))) for t in events.impacts)
    return Look(
        path=clip.path, track=track, across=np.where(alone, across, np.nan), clear=alone,
        steady=np.array([[float(clip.to_original(v)) for v in s.place] for s in free]),
        masks=Masks((len(clip.times), *clip.size), clip.factor, patches, _mask_noise(free)),
        release=int(free[0].frame), impacts=impacts, contacts=events.impacts, swings=events.swings,
        warnings=tuple(warnings), times=clip.times, rate=clip.rate, size=clip.size,
        noise=clip.factor * events.sigma, told=clip.told, vouched=clip.vouched, alone=clip.alone,
        own=clip.own,
        moved=clip.factor * still.moved, clip=clip,
    )  # fmt: skip


def _mask_noise(sights: list[Sight]) -> float:
    """How much the area changes from frame to frame, as a deviation of each pixel at the edge."""
    mass = np.array([s.patch.mass for s in sights])
    if len(mass) < 4:
        return 0.1
    edge = np.sqrt(4 * np.pi * np.median(mass))
    return float(max(0.02, 1.4826 * np.median(np.abs(np.diff(mass, 2))) / np.sqrt(6) / np.sqrt(edge)))
