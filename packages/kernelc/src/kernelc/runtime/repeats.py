"""Loops that record the same launches in every iteration: what an earlier tape has found out about them is taken over.

Recording a launch takes several times as long as running it. When a tape is dropped that recorded what another one had
recorded before, its steps and programs are kept, and the next tape that begins with the same launch goes along them:
each launch is compared and run, no more. Where they part, all that was launched so far is recorded after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from .. import _native
from ..config import config
from . import launches, strips
from .arrays import Array
from .reports import report
from .reverse import Sweep
from .storage import Storage, clock
from .versions import STATE, is_leaf

if TYPE_CHECKING:
    from .entries import Entry
    from .kernels import Plan
    from .tape import Tape

MOST = 4
"""How many programs are kept that begin with the same launch, and how many by one piece of memory."""
_SAMPLE = 32
_MOST_BYTES = 1 << 26
"""What is kept holds memory. Where launches work on much, and take long, recording takes little beside them."""


class Kept:
    """What a tape knew when it was dropped.

    It belongs to the largest piece of memory that its launches work on, and goes with it: Python collects the circle.
    """

    def __init__(self, tape: Tape):
        self.state: dict[str, Any] = {}
        self.entries: list[Entry] = tape.entries
        self.home: Storage = max(tape._versions, key=lambda s: 0 if s.data is None else s.data.nbytes)
        self.on_overwrite, self.generation = tape.on_overwrite, config._generation
        self.misses = 0

    def take_over(self, tape: Tape) -> None:
        """Keep what a tape knows that goes. The caller's weights go with it; other programs than sweeps are rare."""
        tape._last = None
        tape._sweeps = {key: sweep for key, sweep in tape._sweeps.items() if sweep.__class__ is Sweep}
        self.state = {name: tape.__dict__[name] for name in STATE}

    def add(self) -> None:
        """Let tapes find it."""
        self.plan.repeats.append(ref(self))
        del self.plan.repeats[:-MOST]
        self.home.repeats = [*(self.home.repeats or ()), self][-MOST:]

    def take(self) -> bool:
        """Take it out, for one tape alone; whether nobody else did."""
        try:
            self.plan.repeats.remove(ref(self))
        except ValueError:
            return False
        self.home.repeats = [other for other in self.home.repeats or () if other is not self] or None
        return True

    @property
    def plan(self) -> Plan:
        plan = self.entries[0].plan
        assert plan is not None
        return plan


class Repeat:
    """A tape that goes along what another one has recorded."""

    def __init__(self, tape: Tape, kept: Kept):
        self.tape, self.kept, self.entries = tape, kept, kept.entries
        self.at = 0
        self.before = kept.state["_before"]
        self.begin = self.clock = clock.now
        """When it began, and when its memory was last found as its launches had left it."""
        self.wrote: dict[Storage, int] = {}
        """When its launches have written what they write."""
        self.failed: list[Storage] = []
        """What a launch may have written that failed."""
        self.patience = 1000 + 8 * len(self.entries)
        """How often it is worth looking at a piece of memory while others write theirs."""

    def launch(
        self, plan: Plan, args: Sequence[Any], dim: tuple[int, ...], parts: int, block: bytes
    ) -> bool:  # fmt: skip
        """Run a launch if it is what was recorded here; else nothing happens."""
        if self.at == len(self.entries):
            return False
        entry = self.entries[self.at]
        if entry.plan is not plan or entry.block != block or entry.parts != parts:
            return False  # the block has the sizes, the addresses and the numbers, bit by bit
        then, flags = entry.args, entry.flags
        for i in plan.arrays:
            a = args[i]
            if a._storage is not then[i]._storage or is_leaf(a) is not (i in flags):
                return False
        if not self._is_undisturbed():
            return False
        self._copy()
        launches.apply_settings()
        total = launches.packed(dim)[0]
        binary = plan.binaries[total >= plan.width]
        try:
            if binary.strips or binary.rows:
                failure = strips.launch(binary, block, total, then, parts)
            else:
                failure = _native.launch(binary.entry, block, total, binary.parallel)
        except BaseException:
            self._note_failed(entry)
            raise
        if failure is not None:
            self._note_failed(entry)
        else:
            self._note(entry.written)
        if failure is not None or binary.prints:
            report(binary.code, failure, plan.kernel.name)
        self.at += 1
        return True

    def write(self, target: Array, kind: str, source: Any) -> bool:
        """Run `zero_` or `assign` if that is what was recorded here."""
        if self.at == len(self.entries) or not (source is None or isinstance(source, Array)):
            return False
        entry = self.entries[self.at]
        given = [target] if source is None else [target, source]
        then = [*entry.writes, *entry.reads]
        if entry.plan is not None or not entry.what.startswith(kind) or len(given) != len(then):
            return False
        if not all(map(_is_same, given, then)) or [is_leaf(a) for a in given] != entry.flags:
            return False
        if not self._is_undisturbed():
            return False
        self._copy()
        target._put(source)
        self._note(entry.writes)
        self.at += 1
        return True

    def _copy(self) -> None:
        """Keep what this step overwrites, as when it was recorded."""
        for copy, root in self.before.get(self.at, ()):
            copy[...] = root._data

    def _note(self, written: Sequence[Array]) -> None:
        now = clock.tick()
        for a in written:
            self.wrote[a._storage] = now
            a._storage.wrote(now)
        if now == self.clock + 1:
            self.clock = now

    def _note_failed(self, entry: Entry) -> None:
        self._note(entry.written)
        self.failed = [a._storage for a in entry.written]

    def _is_undisturbed(self) -> bool:
        """Whether nobody else has written the memory of the tape since it began: then all is as it was recorded."""
        now = clock.now
        if now == self.clock:
            return True
        known = self.kept.state["_versions"]
        self.patience -= len(known)
        if self.patience < 0 or self._disturbed(known):
            return False
        self.clock = now
        return True

    def _disturbed(self, storages: Any) -> list[Storage]:
        begin, wrote = self.begin, self.wrote
        return [s for s in storages if s.version > begin and s.version != wrote.get(s)]

    # -- how it ends
    def finish(self) -> bool:
        """Give all that was known to the tape, if it has launched all of it."""
        if self.at != len(self.entries) or not self._is_undisturbed():
            return False
        kept, tape = self.kept, self.tape
        kept.state["_replayed"] = kept.state["_seen"] = clock.now
        tape.__dict__.update(kept.state)
        kept.state, kept.misses = {}, 0
        tape._again, tape._kept, tape._sweeps_are_old = None, kept, True
        return True

    def give_up(self) -> None:
        """Record what was launched so far as if it had never been recorded before."""
        tape, done = self.tape, self.entries[: self.at]
        used = {a._storage: None for entry in done for a in entry.arrays}
        lost = self._disturbed(used)
        tape._again = None
        tape.begin()
        tape._dry = Dry(self.before)
        try:
            for entry in done:
                tape._dry.at = entry.number
                if entry.plan is not None:
                    tape._record_launch(entry.plan, entry.args, entry.dim, "cpu", entry.parts, entry.block)
                else:
                    source = entry.reads[0] if entry.reads else None
                    tape._write(entry.writes[0], entry.what.rstrip("_"), source)
        finally:
            tape._dry = None
        uses = tape._ledger.uses
        for storage, (_, place) in self.kept.state["_ledger"].uses.items():
            if storage in uses:
                uses[storage] = (uses[storage][0], place)
        for storage in (*lost, *self.failed):  # not by a step that is recorded: as if it were written now
            storage.wrote(clock.tick())
        self.kept.misses += 1
        if self.kept.misses < 3:
            self.kept.add()
        else:
            self.kept.plan.repeats_pay = False


class Dry:
    """Steps are recorded that have run already; what they have overwritten is in the copies of another tape."""

    def __init__(self, before: dict[int, list[tuple[np.ndarray[Any, Any], Array]]]):
        self.before, self.at = before, 0

    def copy_of(self, root: Array) -> np.ndarray[Any, Any]:
        (copy,) = [copy for copy, of in self.before[self.at] if of._storage is root._storage]
        return copy.copy()


def find(tape: Tape, plan: Plan, parts: int, block: bytes) -> Repeat | None:
    """What was kept of a tape that began with this launch."""
    for known in plan.repeats[::-1]:
        kept = known()
        if kept is None:
            plan.repeats.remove(known)
        elif kept.generation == config._generation and kept.on_overwrite == tape.on_overwrite:
            first = kept.entries[0]
            if first.block == block and first.parts == parts and kept.take():
                for name in STATE:
                    del tape.__dict__[name]
                return Repeat(tape, kept)
    return None


def look(tape: Tape) -> None:
    """A tape was closed: keep what it knows when it goes, if another one has recorded the same before."""
    entries = tape.entries
    plan = entries[0].plan if entries else None
    if plan is None or not plan.repeats_pay or tape._opened != 1:
        return
    # Only whether it pays depends on this: what is launched again is compared.
    stride = max(1, len(entries) // _SAMPLE)
    sample = [entries[0], *entries[::-stride]]
    key = (len(entries), *[hash((id(e.plan), e.block, *[a._storage.number for a in e.arrays])) for e in sample])
    if key in plan.seen and is_plain(tape) and _held_by(tape) <= _MOST_BYTES:
        tape._kept = Kept(tape)
    plan.seen[key] = None
    while len(plan.seen) > 4 * MOST:
        plan.seen.pop(next(iter(plan.seen)), None)


def keep(tape: Tape, kept: Kept) -> None:
    """A tape goes that others may go along."""
    if tape._opened == 1 and not kept.plan.stale():
        kept.take_over(tape)
        kept.add()


def _held_by(tape: Tape) -> int:
    """The bytes of all that its launches work on, but the largest piece, and of its copies."""
    sizes = [0 if s.data is None else s.data.nbytes for s in tape._versions]
    return sum(sizes) - max(sizes, default=0) + tape.memory()


def is_plain(tape: Tape) -> bool:
    """Whether its steps are launches on the CPU that leave nothing but what they write, and copies of arrays."""
    ledger = tape._ledger
    known = not ledger.twins and not ledger.foreign and not tape._keepers and tape._replayable
    return known and not config.debug and all(map(_is_plain, tape.entries))


def _is_plain(entry: Entry) -> bool:
    if entry.plan is None:
        return entry.backward is None and (entry.what == "zero_" or bool(entry.reads))
    return (
        entry.device == "cpu" and entry.record is None and entry.block != b"" and not entry.watched
        and all(entry.args[i].origin is None for i in entry.plan.arrays)
    )  # fmt: skip


def _is_same(one: Array, other: Array) -> bool:
    """The same memory, seen as the same."""
    return one._storage is other._storage and one._words == other._words and one.element == other.element
