"""Which states of a long rollout are kept, and in which order the rest is computed again.

Steps are grouped into segments; a segment's states are all in memory while it is swept backward. Of the rest, only
some states between segments are kept. With a state before every segment (two levels) everything is computed twice;
with fewer, Griewank and Walther's binomial schedule (revolve) needs the fewest repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil, isqrt
from typing import Any

AUTO_BYTES = 256 * 1024**2
"""What `checkpoint="auto"` may use before it computes states twice."""
LONGEST = 1024
"""Steps that "auto" records on one tape: recording takes time, once."""
SHORT = 64
"""Steps on the tape of a rollout without gradients."""


@dataclass(frozen=True)
class Plan:
    """`steps` cut into segments of `length` (the last may be shorter), with at most `kept` states between them."""

    steps: int
    length: int
    kept: int

    @property
    def segments(self) -> int:
        return ceil(self.steps / self.length) if self.steps else 0

    def bounds(self, segment: int) -> tuple[int, int]:
        """The first step of a segment, and the one after its last."""
        return segment * self.length, min(self.steps, (segment + 1) * self.length)

    def first_sweep(self) -> set[int]:
        """The segments before which the state is kept on the way forward; 0 is always kept."""
        return set(_splits(0, self.segments, self.kept))


def plan(
    checkpoint: str | int, *, steps: int, frame: int, state_bytes: int, step_bytes: int, differentiable: bool
) -> Plan:
    """The plan for a wish: "auto", "all", "sqrt", or a budget: a number of states, or of bytes from 1 MB on.

    `frame` is the number of steps between frames, `state_bytes` and `step_bytes` what a kept state and a recorded step
    take.
    """
    _check_wish(checkpoint)
    if not differentiable:
        return Plan(steps, _fitted(min(steps, SHORT), frame, steps), 1)
    # 2 sqrt(N) states in all are least where a segment is sqrt(N) steps: N/L kept ones and L recorded.
    root = max(1, isqrt(steps * max(1, state_bytes) // max(1, step_bytes)))
    if checkpoint == "all":
        return Plan(steps, max(1, steps), 1)
    if checkpoint == "sqrt":
        return _two_levels(steps, _fitted(root, frame, steps))
    if checkpoint == "auto":
        if steps <= LONGEST and steps * step_bytes <= AUTO_BYTES:
            return Plan(steps, max(1, steps), 1)
        return _within(AUTO_BYTES, steps, frame, state_bytes, step_bytes, min(LONGEST, max(root, SHORT)))
    assert isinstance(checkpoint, int)
    budget = checkpoint if checkpoint >= MEGABYTE else checkpoint * state_bytes
    return _within(budget, steps, frame, state_bytes, step_bytes, root)


def _check_wish(checkpoint: Any) -> None:
    """Also where nothing is kept: a wish that means nothing would be found only when gradients are asked for."""
    whole = isinstance(checkpoint, int) and not isinstance(checkpoint, bool)
    if not (checkpoint >= 1 if whole else checkpoint in ("auto", "all", "sqrt")):
        raise ValueError(
            f'checkpoint is "auto", "all", "sqrt", a number of states or (from {MEGABYTE} on) of bytes, '
            f"not {checkpoint!r}"
        )


MEGABYTE = 1024**2
"""A whole number from here on is a budget of bytes, below one of states."""


def _within(budget: int, steps: int, frame: int, state_bytes: int, step_bytes: int, longest: int) -> Plan:
    """Half of the budget for recorded steps, half for kept states."""
    length = max(1, min(longest, budget // (2 * max(1, step_bytes)), steps))
    length = _fitted(length, frame, steps)
    kept = max(1, (budget - length * step_bytes) // max(1, state_bytes))
    return Plan(steps, length, min(kept, max(1, ceil(steps / length))))


def _two_levels(steps: int, length: int) -> Plan:
    return Plan(steps, length, max(1, ceil(steps / length)))


def _fitted(length: int, frame: int, steps: int) -> int:
    """A length near the wished one such that frames fall on the same places of every segment, if there is one.

    Each pattern of frames in a segment is a reverse sweep of its own, which takes time to prepare.
    """
    length = max(1, min(length, steps or 1))
    if length >= frame:
        return length - length % frame
    return next((d for d in range(length, length // 2, -1) if frame % d == 0), length)


def backward_order(
    plan: Plan, advance: Callable[[int, int], None], keep: Callable[[int], None], drop: Callable[[int], None]
) -> Iterator[int]:
    """Yield segments from last to first, each when the state before it is the one that was advanced to or kept.

    `advance(a, b)` runs segments a ... b - 1 from the state kept before a; `keep(b)` keeps the state reached;
    `drop(b)` forgets it. States of `first_sweep` are kept already.
    """
    known = plan.first_sweep()
    todo: list[tuple[int, int, int]] = [(0, plan.segments, plan.kept)]
    while todo:
        low, high, kept = todo.pop()
        if kept == 0:
            drop(low)  # A state whose turn is over.
        elif high - low == 1:
            yield low
        elif kept == 1:
            # No room: from the start again for each.
            for segment in range(high - 1, low, -1):
                advance(low, segment)
                yield segment
            yield low
        elif high > low:
            middle = _split(low, high, kept)
            if middle not in known:
                advance(low, middle)
                keep(middle)
            known.discard(middle)
            todo += [(low, middle, kept), (middle, middle, 0), (middle, high, kept - 1)]


def _splits(low: int, high: int, kept: int) -> list[int]:
    """The states that the way forward keeps: those that the reverse order begins with."""
    found = [low] if high > low else []
    while kept > 1 and high - low > 1:
        low = _split(low, high, kept)
        kept -= 1
        found.append(low)
    return found


@cache
def _cost(length: int, kept: int) -> int:
    """Segments that run again when `length` of them are reversed with room for `kept` states, the first included."""
    if length <= 1:
        return 0
    if kept >= length:
        return 0
    if kept == 1:
        return length * (length - 1) // 2
    return min(m + _cost(length - m, kept - 1) + _cost(m, kept) for m in range(1, length))


def _split(low: int, high: int, kept: int) -> int:
    """Where to keep the next state: binomial, so that neither part needs more repetitions than needed."""
    length = high - low
    if kept >= length:
        return low + 1
    if length <= 64:
        return low + min(range(1, length), key=lambda m: m + _cost(length - m, kept - 1) + _cost(m, kept))
    # beta(s, r) = (s + r)! / (s! r!) segments can be reversed with s states and r repetitions of each.
    repeats, reach = 1, kept + 1
    while reach < length:
        repeats += 1
        reach = reach * (kept + repeats) // repeats
    before = reach * repeats // (kept + repeats)  # beta(s, r - 1)
    return low + max(1, min(length - 1, before))
