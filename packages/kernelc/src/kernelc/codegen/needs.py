"""How much memory the loop tape of a thread takes, as far as a launch tells before it runs.

Known where every loop that keeps something has a number of iterations that follows from the sizes of arrays, the grid
and the values that are passed. Elsewhere the forward launch counts (cuda.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from .. import ir
from ..builtins import TABLE
from ..records import record
from .cuda import Counted

_FRUGAL = 4096
"""Bytes up to which a loop that may be left early gets room for all of its iterations."""


@record
class Launch:
    """What is known of a launch: its grid, the shapes of arrays by position, and the leaves of values."""

    dim: tuple[int, ...]
    shapes: Mapping[int, tuple[int, ...]]
    values: Mapping[ir.Value, Any] = field(default_factory=dict)


@record
class Need:
    """Per thread: bytes of loop tape, entries of the undo log, records of atomics. None: not known before."""

    tape: int | None = 0
    undo: int | None = 0
    records: int | None = 0


class _Unknown(Exception):
    pass


def frame_size(values: list[ir.Value]) -> int:
    """Bytes of one iteration on the loop tape: whole words."""
    return (sum(v.type.size for v in values) + 7) // 8 * 8


def largest_frame(kernel: ir.Kernel) -> int:
    """The bytes without which a kernel cannot push anything; 0 if it never does."""
    return max((frame_size(s.values) for s in _pushes(kernel.body)), default=0)


def _pushes(block: ir.Block) -> list[ir.Push]:
    """What a block pushes, in the functions that it calls as well."""
    found = [s for s in block.walk() if isinstance(s, ir.Push)]
    calls = [s.function.body for s in block.walk() if isinstance(s, ir.Call)]
    return found + [s for body in calls for s in _pushes(body)]


def need_of(kernel: ir.Kernel, launch: Launch) -> Need:
    """What a thread needs at most, where it follows from the launch."""
    known = _Known(kernel, launch)

    def attempt(count: Callable[[ir.Block], int]) -> int | None:
        try:
            return count(kernel.body)
        except _Unknown:
            return None

    return Need(attempt(lambda b: known.tape(b)[1]), attempt(known.undo), attempt(known.records))


def counted_for(primal: ir.Kernel, adjoint: ir.Kernel) -> Counted | None:
    """What a forward launch counts for an adjoint; None if counting cannot tell.

    It cannot where the kernel has loop tapes of its own, those of a `kc.grad`.
    """
    pushes = _pushes(adjoint.body)
    if any(s.tape.loop is None for s in pushes) or _pushes(primal.body):
        return None
    frames = {s.tape.loop: frame_size(s.values) for s in pushes if s.tape.loop is not None}
    stores = (s for s in adjoint.body.walk() if isinstance(s, (ir.Store, ir.Atomic)) and s.logged)
    return Counted(frames, frozenset(s.array.position for s in stores))


class _Known:
    def __init__(self, kernel: ir.Kernel, launch: Launch):
        self.launch = launch
        self.makers = {v: s for s in kernel.body.walk() if not s.blocks() for v in s.outputs()}
        self.numbers: dict[ir.Value, Any] = dict(launch.values)

    # -- numbers
    def number(self, value: ir.Value) -> Any:
        if isinstance(value, ir.Const):
            return value.type.numpy.type(value.value)
        if value not in self.numbers:
            self.numbers[value] = self.made(self.makers.get(value), value)
        return self.numbers[value]

    def made(self, stmt: ir.Stmt | None, value: ir.Value) -> Any:
        if isinstance(stmt, ir.Query) and stmt.what == "shape" and stmt.array is not None:
            return value.type.numpy.type(self.launch.shapes[stmt.array.position][stmt.axis])
        if isinstance(stmt, ir.Query) and stmt.what == "dim":
            return value.type.numpy.type(self.launch.dim[stmt.axis])
        if not isinstance(stmt, ir.Op):
            raise _Unknown
        args = [self.number(a) for a in stmt.args]
        with np.errstate(all="ignore"):
            if stmt.op == "select":
                return args[1] if args[0] else args[2]
            if stmt.op == "cast":
                if not np.isfinite(args[0]):
                    raise _Unknown
                return np.asarray(args[0]).astype(value.type.numpy)[()]
            return value.type.numpy.type(TABLE.scalar(stmt.op).python(*args))

    def knows(self, value: ir.Value) -> bool:
        try:
            self.number(value)
        except _Unknown:
            return False
        return True

    def trips(self, loop: ir.Loop) -> int:
        if loop.trips is None:
            raise _Unknown
        return max(0, int(self.number(loop.trips)))

    # -- heights
    def tape(self, block: ir.Block) -> tuple[int, int]:
        """By how much a block leaves the tape higher, and how high it gets, in bytes."""
        height = most = 0
        for stmt in block.body:
            grows, peak = self.tape_of(stmt)
            most = max(most, height + peak)
            height += grows
        return height, most

    def tape_of(self, stmt: ir.Stmt) -> tuple[int, int]:
        if isinstance(stmt, ir.Push):
            size = frame_size(stmt.values)
            return size, size
        if isinstance(stmt, ir.Pop):
            return -frame_size(stmt.outs), 0
        if isinstance(stmt, ir.If):
            sides = [self.tape(b) for b in stmt.blocks()]
            return max(g for g, _ in sides), max(p for _, p in sides)
        if isinstance(stmt, ir.Call) and _pushes(stmt.function.body):
            raise _Unknown
        if not isinstance(stmt, ir.Loop):
            return 0, 0
        grows, peak = self.tape(stmt.body)
        if not grows and not peak:
            return 0, 0
        if grows <= 0 and stmt.trips is not None and not self.knows(stmt.trips):
            return 0, peak  # the way back through a loop: not higher than before it
        trips = self.trips(stmt)
        if trips == 0:
            return 0, 0
        most = peak + max(0, (trips - 1) * grows)
        if stmt.stop is not None and most > _FRUGAL:
            raise _Unknown
        return trips * grows, most

    def undo(self, block: ir.Block) -> int:
        """How many stores a block logs; what is taken back in between is not considered."""
        return self.total(block, lambda s: len(s.comps) if isinstance(s, (ir.Store, ir.Atomic)) and s.logged else 0)

    def records(self, block: ir.Block) -> int:
        return self.total(block, lambda s: 1 if isinstance(s, ir.Record) else 0)

    def total(self, block: ir.Block, count: Callable[[Any], int]) -> int:
        found = 0
        for stmt in block.body:
            found += count(stmt)
            if isinstance(stmt, ir.If):
                found += max(self.total(b, count) for b in stmt.blocks())
            elif isinstance(stmt, ir.Loop) and (once := self.total(stmt.body, count)):
                found += once * self.trips(stmt)
                if stmt.stop is not None and found > _FRUGAL // 8:
                    raise _Unknown
        return found
