"""Which memory a tape knows, in which versions, and what it keeps of those that are overwritten. Base of the tape.

Every piece of memory has a version. A recorded launch knows which versions its adjoint will read; when a later launch
is about to overwrite one of them, a copy is kept first. The reverse sweep then reads the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import numpy as np

from .. import _native
from ..errors import Overwritten, WrongChoice, public
from . import recording, strips
from .arrays import Array
from .entries import Entry, Need
from .ledger import Ledger
from .memory import add_copy, dense_copy
from .seeds import Asked
from .storage import Storage, clock

STATE = (
    "_active", "_before", "_cleared", "_clearing", "_codes", "_copies", "_forward", "_inputs", "_keepers", "_last",
    "_ledger", "_needed", "_replayable", "_replayed", "_results", "_scratch", "_seen", "_sweeps", "_versions",
    "_written", "entries",
)  # fmt: skip
"""What a tape knows of what it has recorded."""


class Versions:
    """What a tape remembers of memory, beside its steps and programs."""

    _dry: Any = None
    """While steps are recorded that have run already (repeats.Dry)."""
    _by_leaves = True
    """Whether leaves carry, and what was written from them; else `_carries` knows."""

    @public
    def __init__(self, on_overwrite: str = "copy"):
        if on_overwrite not in ("copy", "error"):
            raise WrongChoice(f"on_overwrite cannot be {on_overwrite!r}", advice='choose one of "copy", "error"')
        self.on_overwrite = on_overwrite
        self._turn = RLock()
        """Held by the thread whose sweep, replay or push it is."""
        self.begin()

    def begin(self) -> None:
        """Know nothing."""
        self.entries: list[Entry] = []
        self._forward: Any = _native.Program()  # a tape that never runs again has something else that takes steps
        self._codes: dict[int, Any] = {}
        self._needed: dict[Need, Entry] = {}
        self._copies: dict[Need, np.ndarray[Any, Any]] = {}
        self._versions: dict[Storage, int] = {}
        self._replayed = self._seen = -1
        """When the program ran last, and when it was last found that nobody else has written its memory."""
        self._written: dict[Storage, None] = {}
        self._active: dict[Storage, Array] = {}
        self._inputs: set[Storage] = set()
        """No leaves, but sweeps add to their gradients all the same; and gradients that are read after a sweep."""
        self._results: set[Storage] = set()
        self._ledger = Ledger()
        self._scratch = strips.Scratch()
        self._keepers: list[Callable[[], int]] = []
        self._sweeps: dict[Any, Any] = {}
        """Programs that were made for a question, backwards or along."""
        self._last: Asked | None = None
        self._replayable = True
        self._before: dict[int, list[tuple[np.ndarray[Any, Any], Array]]] = {}
        """By step: the copies that were made before it, and of what."""
        self._clearing, self._cleared = _native.Program(), list[np.ndarray[Any, Any]]()

    def _carries(self, array: Array) -> bool:
        if is_leaf(array) or array._storage in self._active:
            return True
        outer = recording.outer(self)
        return bool(outer) and any(other._carries(array) for other in outer)

    def _carries_storage(self, storage: Storage) -> bool:
        return storage in self._active or any(storage in other._active for other in recording.outer(self))

    def _activate(self, carriers: Sequence[Array]) -> None:
        """These arrays carry a gradient on this tape."""
        for a in carriers:
            if a._storage not in self._active:
                self._ledger.mark(a._storage)
                self._active[a._storage] = a.root
                a._storage.carries = True

    def _touch(self, used: Sequence[Array], entry: Entry | None = None) -> None:
        """Remember which memory belongs to this tape; nobody else may have written it in between."""
        ledger = self._ledger
        for a in used:
            storage = a._storage
            if storage not in ledger.uses or ledger.foreign:
                ledger.enter(a, entry)
            known = self._versions.setdefault(storage, storage.version)
            if known != storage.version:
                if storage.version <= self._replayed:
                    self._rename(storage, known)
                else:
                    self._check_outside(storage, known, entry)
                self._versions[storage] = storage.version

    def _check_outside(self, storage: Storage, known: int, entry: Entry | None) -> None:
        """A write from outside between two recorded launches: what was read before is gone."""
        if (storage, known) in self._needed and (storage, known) not in self._copies:
            reader, did = self._needed[storage, known], "read"
        elif entry is not None and entry.keeps(storage) and storage in self._active and storage in self._written:
            # What it holds now does not come from where its gradient would go.
            wrote = next(e for e in reversed(self.entries) if any(a._storage is storage for a in e.written))
            reader, did = wrote, "wrote"
        else:
            return
        raise Overwritten(f"an array that {reader.label} {did} was written from outside the tape", reader.span,
                          advice="write it with .assign() or .zero_() while the tape records")  # fmt: skip

    def _rename(self, storage: Storage, before: int) -> None:
        """The tape ran again: its memory holds what the recorded launches need, under another version."""
        old, new = (storage, before), (storage, storage.version)
        if old in self._needed:
            self._needed[new] = self._needed.pop(old)
        for entry in self.entries:
            for noted in (entry.needs, entry.finals, entry.found, entry.after):
                for i in [i for i, need in noted.items() if need == old]:
                    noted[i] = new

    def _bump(self, a: Array, now: int, outer: Sequence[Versions]) -> None:
        """A step has written an array; `outer` are the tapes around this one."""
        storage = a._storage
        self._versions[storage] = now
        if self._dry is None:
            storage.wrote(now)
        else:
            storage.version = now
        if storage not in self._written:
            if storage not in self._ledger.busy:
                self._ledger.mark(storage)
            self._written[storage] = None
        for around in outer:
            # A tape around this one does not see this launch: it must not go on with what it wrote.
            if storage in self._active or storage in around._active:
                around._ledger.foreign[storage] = "by a launch that an inner tape recorded"

    def _protect(self, targets: Sequence[Array], entry: Entry) -> None:
        """Copy what is about to be overwritten, if a reverse sweep will read it."""
        for a in targets:
            need = (a._storage, a._storage.version)
            if need not in self._needed or need in self._copies:
                continue
            reader = self._needed[need]
            if self.on_overwrite == "error":
                raise Overwritten(f"{entry.label} overwrites what the reverse sweep of {reader.label} needs",
                                  entry.span or reader.span,
                                  advice='write to another array, or use kc.Tape(on_overwrite="copy")')  # fmt: skip
            root, dry = a.root, self._dry
            copy = self._copies[need] = dense_copy(root._data) if dry is None else dry.copy_of(root)
            self._before.setdefault(len(self.entries), []).append((copy, root))
            add_copy(self._forward, copy, root._data)
            self._forward.keep(root)

    def _writer(self, a: Array) -> Entry | None:
        """The launch that wrote an array last."""
        for entry in reversed(self.entries):
            plan = entry.plan
            if plan is not None and any(entry.args[i]._storage is a._storage for i in plan.variant.written):
                return entry
        return None

    def _reader(self, storage: Storage) -> Entry | None:
        """A launch that used a piece of memory."""
        for entry in self.entries:
            if entry.plan is not None and any(entry.args[i]._storage is storage for i in entry.plan.arrays):
                return entry
        return None

    def _check_versions(self) -> None:
        now = clock.now
        if now == self._seen:
            return
        replayed = self._replayed
        for storage, version in self._versions.items():
            if storage.version > replayed and storage.version > version:
                reader = self._reader(storage)
                what = f"an array of {reader.label}" if reader is not None else "an array of this tape"
                raise Overwritten(
                    f"{what} was written from outside after it was recorded", reader.span if reader else None,
                    advice="call tape.replay() first, so that the recorded values are those of today")  # fmt: skip
        self._seen = now


def is_leaf(array: Array) -> bool:
    """Whether an array is marked, or part of one that is."""
    return array.requires_grad or (array._parent is not None and array.root.requires_grad)
