"""When the object was let go, and when it hit something: from pieces of constant acceleration to frames and times.

Eighth step of `look`. The motion's law is that of its longest piece. A piece before it that does not obey the law is
the hand's; two pieces whose speeds do not meet have an impact between them, at the time at which their places meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.look.motion import Piece, Places, fit_piece, pieces_of, swing_of, way_of

JUMP = 0.3
"""Of the speed: a change by more, at once, is an impact."""
OBEYS = 0.04
"""Of its way: how far a piece may be from the law of the longest one (drag, perspective)."""
RESTS = 0.35
"""Pixels per frame: what is slower rests."""


@dataclass(frozen=True, eq=False)
class Events:
    """`first` and `last`: the observations of the free motion; `impacts`: their times (s)."""

    first: int
    last: int
    impacts: tuple[float, ...]
    pieces: tuple[Piece, ...]
    sigma: float
    """Pixels: noise of a place."""
    swings: bool


def noise_of(places: Places) -> float:
    """Pixels: from third differences, which leave nothing of a motion but its noise."""
    if len(places) < 6:
        return 0.5
    third = np.diff(places, 3, axis=0)
    return max(0.05, float(1.4826 * np.median(np.abs(third)) / np.sqrt(20)))


def events_of(times: NDArray[np.float64], places: Places, size: float) -> Events:
    """Cut a track into what happened. `size` of the object in pixels."""
    sigma = noise_of(places)
    swing = swing_of(times, places) if len(times) >= 12 else None
    tolerated = max(2 * sigma, 0.012 * size + 0.15)
    pieces = pieces_of(times, places, tolerated)
    if not pieces:
        return Events(0, len(times) - 1, (), (), sigma, False)
    swings = (
        swing is not None and swing.amplitude > 0.5 * size and len(pieces) > 2
        and swing.rms < 0.06 * swing.amplitude and swing.cycles > 0.8
    )  # fmt: skip
    if swings:
        return Events(_start_of_swing(times, places), len(times) - 1, (), tuple(pieces), sigma, True)
    lawful = _lawful(times, places, pieces, tolerated)
    first, last = lawful[0].first, lawful[-1].last
    first = _let_go(times, places, lawful[0], first, tolerated)
    impacts = [t for a, b in pairwise(lawful) if (t := _impact(times, places, a, b, tolerated)) is not None]
    return Events(first, last, tuple(impacts), tuple(lawful), sigma, False)


def _lawful(times: NDArray[np.float64], places: Places, pieces: list[Piece], sigma: float) -> list[Piece]:
    """Pieces from the first to the last that obey the law of the main one; what does not obey it in between stays."""
    main = max(pieces, key=lambda p: way_of(places, p) * len(p) ** 0.5)
    good = [p is main or _obeys(times, places, p, main.acceleration, sigma) for p in pieces]
    at = pieces.index(main)
    first = at
    while first > 0 and (good[first - 1] or (first > 1 and good[first - 2] and len(pieces[first - 1]) <= 4)):
        first -= 1
    while not good[first]:
        first += 1
    kept = [p for p, ok in zip(pieces[first:], good[first:]) if ok or len(p) > 4 or p is main]
    # A caught ball: what comes last and moves against the law is the hand's again; what rests has only come to rest.
    while len(kept) > 1 and kept[-1] is not main and not _obeys(times, places, kept[-1], main.acceleration, sigma):
        if _rests(times, kept[-1]):
            break
        kept.pop()
    return kept


def _rests(times: NDArray[np.float64], piece: Piece) -> bool:
    gap = float(np.median(np.diff(times)))
    ends = (piece.velocity(times[piece.first]), piece.velocity(times[piece.last]))
    return float(np.hypot(*(ends[0] + ends[1])) / 2 * gap) < RESTS


def _obeys(
    times: NDArray[np.float64], places: Places, piece: Piece, acceleration: NDArray[np.float64], sigma: float
) -> bool:
    """Whether a piece is about as well explained with the acceleration of another one."""
    t, p = times[piece.first : piece.last + 1], places[piece.first : piece.last + 1]
    if _rests(times, piece) and len(piece) > 2:
        return False
    left = p - 0.5 * (t - piece.start)[:, None] ** 2 * acceleration
    design = np.stack([np.ones_like(t), t - piece.start], axis=-1)
    terms, *_ = np.linalg.lstsq(design, left, rcond=None)
    rms = float(np.sqrt(np.mean((design @ terms - left) ** 2)))
    return rms < max(2.5 * sigma, OBEYS * way_of(places, piece))


def _let_go(times: NDArray[np.float64], places: Places, piece: Piece, first: int, sigma: float) -> int:
    """The first observation of the free motion, from the piece that it begins with: earlier ones may still obey it.

    Something dropped from rest begins where the parabola turns: before that it was held.
    """
    refit = fit_piece(times, places, piece.first, min(piece.last, piece.first + 24))
    while first > 0 and np.linalg.norm(refit.at(times[first - 1]) - places[first - 1]) < 2.5 * sigma:
        first -= 1
    half = float(refit.terms[2] @ refit.terms[2])
    if half > 0 and first < piece.last - 3:
        turn = refit.start - float(refit.terms[1] @ refit.terms[2]) / (2 * half)
        early = turn < times[piece.first] + 0.3 * (refit.start - times[piece.first])
        held = places[: int(np.searchsorted(times, turn))]
        slow = float(np.linalg.norm(refit.velocity(turn))) * float(np.median(np.diff(times)))
        if early and len(held) > 2 and slow < 2 * RESTS and np.linalg.norm(np.ptp(held[-4:], axis=0)) < 4 * sigma + 1:
            first = max(first, int(np.searchsorted(times, turn)))
    return first


def _start_of_swing(times: NDArray[np.float64], places: Places) -> int:
    """The first observation after which it moves: it may be held before."""
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    moves = steps > max(RESTS, 0.15 * float(np.percentile(steps, 90)))
    return int(np.argmax(moves)) if moves.any() else 0


def _impact(times: NDArray[np.float64], places: Places, a: Piece, b: Piece, sigma: float) -> float | None:
    """The time at which two pieces meet, if their speeds do not."""
    gap = float(np.median(np.diff(times)))
    ends = (float(times[a.last]), float(times[b.first]))
    middle = (ends[0] + ends[1]) / 2
    jump = b.velocity(middle) - a.velocity(middle)
    speed = max(float(np.hypot(*a.velocity(middle))), float(np.hypot(*b.velocity(middle))))
    size = float(np.hypot(*jump))
    # Speeds at the ends of short pieces are noisy: about 4 sigma / (n^1/2 duration).
    noise = sum(4 * sigma / (len(p) ** 0.5 * max(times[p.last] - times[p.first], gap)) for p in (a, b))
    if size < max(JUMP * speed, 3 * noise) or size * gap < RESTS:
        return None
    # Along the jump both are parabolas: the root of their difference that is nearest to the joint.
    n = jump / size
    grid = np.linspace(ends[0] - 1.5 * gap, ends[1] + 1.5 * gap, 241)
    apart = (b.at(grid) - a.at(grid)) @ n
    crossings = np.flatnonzero(np.sign(apart[:-1]) != np.sign(apart[1:]))
    if not len(crossings):
        return middle
    roots = [grid[k] + (grid[k + 1] - grid[k]) * apart[k] / (apart[k] - apart[k + 1]) for k in crossings]
    return float(min(roots, key=lambda t: abs(t - middle)))
