"""When frames were taken: from the time stamps of a container to seconds.

Containers round: 30 frames per second are 0.033, 0.067, 0.1 s in a .webm. Stamps that are an even rate up to their
rounding are that rate, also where frames were dropped; all others are taken as they are. Nothing is averaged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEARLY = 0.02
"""Of the time between frames: how much stamps of a clock that is even may shake. Phones' do, by less."""


@dataclass(frozen=True, eq=False)
class Beat:
    """An even rate with gaps: frame k is taken at `counts[k] * spacing`."""

    counts: NDArray[np.int64]
    spacing: float
    off: float
    """s, by which the stamps differ from it at most"""

    @property
    def times(self) -> NDArray[np.float64]:
        return np.asarray(self.counts * self.spacing, np.float64)


def beat_of(times: NDArray[np.float64], within: float) -> Beat | None:
    """The even rate of times that grow from zero, if they are one within so many seconds."""
    if len(times) < 2:
        return None
    gaps = np.diff(times)
    # Gap by gap: a rate that is a little off would lose count over a long video.
    counts = np.concatenate([[0], np.cumsum(np.rint(gaps / np.median(gaps)).astype(np.int64))])
    spacing = float(counts @ times) / float(counts @ counts)
    off = float(np.abs(counts * spacing - times).max())
    return Beat(counts, spacing, off) if off <= within and (np.diff(counts) > 0).all() else None


def times_of(stamps: NDArray[np.int64], tick: float) -> tuple[NDArray[np.float64], float]:
    """Seconds from the first frame on, and frames per second (where a rate is not even: what is usual)."""
    times = np.asarray(stamps * tick, np.float64)
    if len(times) < 2:
        return times, 0.0
    beat = beat_of(times, tick)
    if beat is None:
        return times, 1 / float(np.median(np.diff(times)))
    rate = _known(beat, tick)
    return np.asarray(beat.counts / rate, np.float64), rate


def told(times: NDArray[np.float64], fps: float) -> NDArray[np.float64]:
    """Times of frames that were taken at another rate than the file says (slow motion): gaps stay gaps."""
    if len(times) < 2:
        return times
    usual = float(np.median(np.diff(times)))
    beat = beat_of(times, NEARLY * usual)
    return beat.counts / fps if beat is not None else times / (usual * fps)


def _known(beat: Beat, tick: float) -> float:
    """The rate; a usual one (30, or 30/1.001) where that is what the stamps can be."""
    rate, reach = 1 / beat.spacing, int(beat.counts[-1])
    for usual in (round(rate), round(1.001 * rate) / 1.001):
        if usual > 0 and abs(reach / usual - reach / rate) <= tick:
            return float(usual)
    return rate
