"""Which chain moves freely: pieces of constant acceleration between impacts, or a swing.

Fifth step of `look`. What is let alone flies, slides and rolls with a constant acceleration from one impact to the
next, or swings; a hand does neither for long, changes its shape, and comes from outside of the picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.look.blobs import Blob
from nablasim.sysid.look.chains import Chain

LONG = 5
"""Frames of a piece that counts: a parabola goes through any three places."""
PRICE = 14.0
"""Squared standard deviations that a further piece must save."""
TINY = 6.0
"""Pixels: what is smaller is more likely an edge that shakes."""
CYCLES = 0.8
"""Periods that must be seen before a motion is called a swing."""

Places = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Piece:
    """A stretch of constant acceleration: observations `first` to `last` (inclusive) of a track."""

    first: int
    last: int
    start: float
    """s, from which its time counts"""
    terms: NDArray[np.float64]
    """(3, 2) place, velocity and half of the acceleration at `start`"""
    rms: float

    def at(self, t: float | NDArray[np.float64]) -> Places:
        s = np.asarray(t, np.float64) - self.start
        return np.stack([s**0, s, s**2], axis=-1) @ self.terms

    def velocity(self, t: float) -> NDArray[np.float64]:
        return np.asarray(self.terms[1] + 2 * (t - self.start) * self.terms[2])

    @property
    def acceleration(self) -> NDArray[np.float64]:
        return np.asarray(2 * self.terms[2])

    def __len__(self) -> int:
        return self.last - self.first + 1


def pieces_of(times: NDArray[np.float64], places: Places, sigma: float) -> list[Piece]:
    """The cheapest way to cut a track into pieces of constant acceleration, for places with noise `sigma` (pixels)."""
    n = len(times)
    if n < 3:
        return []
    cost = _squares(times, places) / sigma**2
    best, cut = np.full(n + 1, np.inf), np.zeros(n + 1, int)
    best[0] = 0.0
    for j in range(1, n + 1):
        total = best[:j] + cost[:j, j - 1] + PRICE
        cut[j] = int(np.argmin(total))
        best[j] = total[cut[j]]
    found, j = [], n
    while j > 0:
        found.append((int(cut[j]), j - 1))
        j = int(cut[j])
    return [fit_piece(times, places, a, b) for a, b in reversed(found) if b - a >= 2]


def fit_piece(times: NDArray[np.float64], places: Places, first: int, last: int) -> Piece:
    """Least squares of one piece."""
    t, p = times[first : last + 1], places[first : last + 1]
    middle = float(t.mean())
    design = np.stack([np.ones_like(t), t - middle, (t - middle) ** 2], axis=-1)
    terms, *_ = np.linalg.lstsq(design, p, rcond=None)
    rms = float(np.sqrt(np.mean((design @ terms - p) ** 2)))
    return Piece(first, last, middle, np.asarray(terms, np.float64), rms)


def _squares(times: NDArray[np.float64], places: Places) -> NDArray[np.float64]:
    """(n, n): the sum of squares that is left of places i to j by a parabola; windows of three or fewer cost nothing.

    Running sums in extended precision: a short window of a long track is a small difference of large numbers.
    """
    n = len(times)
    scale = float(np.ptp(times)) or 1.0
    t = ((times - times.mean()) / scale).astype(np.longdouble)
    p = (places - places.mean(axis=0)).astype(np.longdouble)
    powers = np.stack([t**k for k in range(5)])
    mixed = np.stack([p[:, c] * t**k for c in range(2) for k in range(3)])
    own = (p**2).sum(axis=1)[None]
    sums = np.concatenate(
        [np.zeros((12, 1), np.longdouble), np.cumsum(np.concatenate([powers, mixed, own]), axis=1)], 1
    )
    left = np.zeros((n, n))
    for i in range(n - 3):
        window = sums[:, i + 4 :] - sums[:, i : i + 1]
        left[i, i + 3 :] = np.maximum(_remainder(window), 0).astype(np.float64)
    left[np.tril_indices(n, -1)] = np.inf
    # Two or one places on their own are no piece: they would cut a track for free.
    for short in (0, 1, 2):
        k = np.arange(n - short)
        left[k, k + short] = 4.0 * (3 - short)
    return left


def _remainder(sums: NDArray[np.longdouble]) -> NDArray[np.longdouble]:
    """Sum of squares after a parabola, of windows (12, m) of moments: Gram and Schmidt on 1, t, t²."""
    s0, s1, s2, s3, s4 = sums[:5]
    mean = s1 / s0
    # Moments about the window's own middle.
    c2 = s2 - s1 * mean
    c3 = s3 - 3 * mean * s2 + 3 * mean**2 * s1 - mean**3 * s0
    c4 = s4 - 4 * mean * s3 + 6 * mean**2 * s2 - 4 * mean**3 * s1 + mean**4 * s0
    left = sums[11].copy()
    for c in (0, 1):
        m0, m1, m2 = sums[5 + 3 * c : 8 + 3 * c]
        d1 = m1 - mean * m0
        d2 = m2 - 2 * mean * m1 + mean**2 * m0
        left = left - m0**2 / s0 - d1**2 / c2
        curve = d2 - c3 / c2 * d1 - c2 / s0 * m0
        left = left - curve**2 / (c4 - c3**2 / c2 - c2**2 / s0)
    return np.asarray(left)


# -- swings
@dataclass(frozen=True)
class Swing:
    """x = middle + e^(-decay t) (a cos ωt + b sin ωt), along the longer way of the motion."""

    omega: float
    decay: float
    amplitude: float
    rms: float
    cycles: float


def swing_of(times: NDArray[np.float64], places: Places) -> Swing | None:
    """A swing along the main direction of a track, if it is one."""
    if len(times) < 8:
        return None
    middle = places - places.mean(axis=0)
    way = np.linalg.svd(middle, full_matrices=False)[2][0]
    x, t = middle @ way, times - times[0]
    length, gap = float(t[-1]), float(np.median(np.diff(t)))
    best: Swing | None = None
    for omega in np.geomspace(2 * np.pi * CYCLES / length, np.pi / (3 * gap), 240):
        for decay in np.array([0.0, 0.02, 0.06, 0.15]) * omega:
            fade = np.exp(-decay * t)
            design = np.stack([np.ones_like(t), fade * np.cos(omega * t), fade * np.sin(omega * t)], axis=-1)
            terms, *_ = np.linalg.lstsq(design, x, rcond=None)
            rms = float(np.sqrt(np.mean((design @ terms - x) ** 2)))
            if best is None or rms < best.rms:
                best = Swing(float(omega), float(decay), float(np.hypot(*terms[1:])), rms, omega * length / (2 * np.pi))
    return best


# -- the choice
@dataclass(frozen=True, eq=False)
class Judged:
    """A chain, how freely it moves, and why."""

    chain: Chain
    score: float
    kind: str
    """flight or swing"""
    pieces: list[Piece]
    swing: Swing | None

    @property
    def moving(self) -> list[Blob]:
        """Patches in which it moves: held by a hand, a piece of the hand may be in them."""
        places, blobs = self.chain.places, self.chain.blobs
        spans = [blobs[p.first : p.last + 1] for p in self.pieces if way_of(places, p) > self.chain.size]
        found = [b for span in spans for b in span]
        return found if len(found) >= 5 and self.kind == "flight" else blobs


def way_of(places: Places, piece: Piece) -> float:
    """Pixels that a piece goes."""
    return float(np.linalg.norm(np.diff(places[piece.first : piece.last + 1], axis=0), axis=1).sum())


def judge(chain: Chain, times: NDArray[np.float64], diagonal: float) -> Judged:
    """How much of a chain is free motion: frames that are explained, less what speaks for a hand or a shadow."""
    places, when = chain.places, times[chain.frames]
    size = chain.size
    sigma = min(0.3 + 0.03 * size, 0.002 * diagonal + 0.3)
    pieces = pieces_of(when, places, sigma)
    explained = 0.0
    for piece in pieces:
        path = way_of(places, piece)
        if len(piece) >= LONG and piece.rms < 1.5 * sigma and path > 1.2 * size:
            explained += len(piece) * min(1.0, path / (4 * size))
    kind, swing = "flight", None
    if len(places) >= 12 and len(pieces) > 1:
        swing = swing_of(when, places)
        if swing is not None and swing.amplitude > size / 2 and swing.rms < 0.06 * swing.amplitude + sigma:
            swung = len(places) * (1 - min(1.0, 4 * swing.rms / swing.amplitude))
            if swung > explained:
                kind, explained = "swing", swung
    blobs = chain.blobs
    border = float(np.mean([b.border for b in blobs]))
    changes = float(np.std([np.log(b.size) for b in blobs]))
    shadow = float(np.mean([b.shadow for b in blobs]))
    full = float(np.clip(np.median([b.fullness for b in blobs]) / 0.6, 0.2, 1.0))
    full *= min(1.0, size / TINY)
    score = explained * (1 - border) ** 2 * np.exp(-((changes / 0.45) ** 2)) * (1 - 0.5 * shadow) * full
    return Judged(chain, float(score), kind, pieces, swing)
