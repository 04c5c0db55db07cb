"""A tape whose launches are recorded again: what is the same only runs, and programs are those of the first time.

Recording a launch takes ten times as long as running it. Where a stretch of steps launches what another one did, with
the same arrays and numbers, nothing of what was found out about it has changed but the contents.
"""

from __future__ import annotations

from operator import is_not
from typing import Any

from ..config import config
from . import launches, recording, reports, strips
from .arrays import Array
from .entries import Entry
from .kernels import Plan
from .storage import clock
from .tape import Tape


class Changed(Exception):
    """What is launched is not what was launched."""


class Stretch(Tape):
    """A tape that knows what it copied before which step."""

    def __init__(self, length: int):
        super().__init__()
        self.length = length
        """How many steps it stands for."""
        self.generation = config._generation
        self.grads: list[Any] = []
        """The memory of gradients that its sweeps were made for."""

    def expect(self, grads: list[Any]) -> None:
        """Sweeps add to this memory: made for another one, they are made anew."""
        if self.grads and any(map(is_not, self.grads, grads)):
            self._sweeps.clear()
            self._last = None

    @property
    def is_plain(self) -> bool:
        """Whether its steps are launches on the CPU that leave nothing but what they write, and copies of arrays."""
        return self._replayable and not config.debug and all(map(_is_plain, self.entries))

    def fits(self, length: int) -> bool:
        """Whether it may stand for other steps, so many."""
        return length == self.length and self.generation == config._generation


def _is_plain(entry: Entry) -> bool:
    if entry.plan is None:
        return entry.backward is None
    return entry.device == "cpu" and entry.record is None and not entry.watched and not entry.plan.stale()


class Retraced:
    """Stands in for a tape, and runs what is launched if it is what the tape has recorded there; raises `Changed`."""

    def __init__(self, tape: Stretch):
        self.tape, self.at = tape, 0

    def __enter__(self) -> Retraced:
        recording.start(self)
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        recording.stop(self)
        if kind is None:
            if self.at != len(self.tape.entries):
                raise Changed
            now = clock.tick()
            for storage in self.tape._written:
                storage.wrote(now)
            self.tape._replayed = self.tape._seen = now

    def __getattr__(self, name: str) -> Any:
        raise Changed  # something is asked of the tape that only recording knows

    def _next(self) -> Entry:
        if self.at == len(self.tape.entries):
            raise Changed
        entry = self.tape.entries[self.at]
        for copy, root in self.tape._before.get(self.at, ()):
            copy[...] = root._data
        self.at += 1
        return entry

    def _launch(
        self, plan: Plan, args: list[Any], dim: tuple[int, ...], device: str, parts: int = 1, block: bytes | None = None
    ) -> None:
        entry = self._next()
        if entry.plan is not plan or entry.dim != dim or entry.device != device or entry.parts != parts:
            raise Changed
        if any(map(is_not, entry.args, args)) and not all(map(_same, entry.args, args)):
            raise Changed
        total, head = launches.packed(dim)
        binary = launches.prepare(plan, total)
        try:
            block = block or launches.block_of(plan, args, head)
            failure = strips.launch(binary, block, total, args, parts)
        finally:
            launches.bump(plan, args)
        if failure is not None or binary.prints:
            reports.report(binary.code, failure, plan.kernel.name)

    def _write(self, target: Array, kind: str, source: Any) -> bool:
        entry = self._next()
        reads = [source] if isinstance(source, Array) else []
        if entry.plan is not None or not entry.what.startswith(kind) or (source is not None and not reads):
            raise Changed
        if len(entry.reads) != len(reads) or not all(map(_same, [*entry.writes, *entry.reads], [target, *reads])):
            raise Changed
        return False


def _same(one: Any, other: Any) -> bool:
    """The same memory, or the same number."""
    if one is other:
        return True
    if one.__class__ is not other.__class__:
        return False
    if one.__class__ is Array:
        return one._storage is other._storage and one._words == other._words and one.element is other.element
    return isinstance(one, (int, float)) and one == other and (bool(one) or str(one) == str(other))
