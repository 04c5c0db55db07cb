"""Which memory a tape knows: one array per piece of memory, however often it was wrapped, and no hidden overlaps."""

from __future__ import annotations

from typing import Any

from ..errors import Overlap, Place, TapeError, caller_place, line_of
from .arrays import Array
from .entries import Entry
from .storage import Storage


class Ledger:
    """The arrays that a tape has seen, by address."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}
        self.uses: dict[Storage, tuple[Entry | None, Place]] = {}
        """What used a piece of memory first, and the user's line that did."""
        self.twins: dict[Storage, Storage] = {}
        self.busy: dict[Storage, None] = {}
        self.detached = False
        """Whether what shares the memory of a leaf may be meant as a constant, as `t.detach()` of torch is."""
        self.foreign: dict[Storage, str] = {}

    def canonical(self, a: Array, entry: Entry | None = None) -> Array:
        """The array under which the tape knows this very memory: a NumPy buffer may be wrapped anew by each launch."""
        if a._storage in self.uses or a._data.size == 0:
            return a
        key = (a._words, a.element)
        known = self.known.setdefault(key, a)
        if known._storage is a._storage:
            return a
        if a.requires_grad and not known.requires_grad and not known._carries:
            # What the tape has seen of this memory so far carried no gradient.
            self.known[key] = a
            return a
        if a.requires_grad and known.requires_grad:
            first, second = self.use(known._storage), _described(entry, a._storage, caller_place())
            raise Overlap(f"{first} and {second} share the same memory, and both require gradients",
                          advice="use one of them twice")  # fmt: skip
        if known.requires_grad and self.detached and known.root is known:
            first, second = self.use(known._storage), _described(entry, a._storage, caller_place())
            raise Overlap(f"{second} shares memory with {first}, which requires a gradient: whether it does, too, "
                          "cannot be told", advice="use the array that the function was given; or a constant with "
                          "memory of its own: t.detach().clone()")  # fmt: skip
        return known

    def enter(self, a: Array, entry: Entry | None = None, ours: int = 0) -> None:
        """Remember the memory of an array; find out whether it overlaps memory known under another identity.

        ours: how many frames, from the caller's on, cannot be the user's.
        """
        storage = a._storage
        if self.foreign and storage in self.foreign:
            raise TapeError(
                f"an array was written {self.foreign[storage]}, so this tape cannot know its gradient",
                advice="record all launches that lead to the loss on one tape, or begin anew: a.zero_()",
            )
        if storage in self.uses or a._data.size == 0:
            return
        self.uses[storage] = (entry, caller_place(1 + ours))
        if storage.kin:
            for other in storage.relatives():
                if other in self.uses:
                    self.overlap(storage, other)

    def overlap(self, a: Storage, b: Storage) -> None:
        self.twins[a], self.twins[b] = b, a
        if a in self.busy or b in self.busy:
            self.refuse(b, a)

    def mark(self, storage: Storage) -> None:
        """The memory is written, or carries a gradient: from here on it must have one identity."""
        self.busy[storage] = None
        if self.twins and storage in self.twins:
            self.refuse(self.twins[storage], storage)

    def refuse(self, a: Storage, b: Storage) -> None:
        raise Overlap(
            f"{self.use(a)} and {self.use(b)} share memory, and one of them is written or carries a gradient",
            advice="make one kc.array of the memory, and use views of it: a[1:4]")  # fmt: skip

    def use(self, storage: Storage) -> str:
        """Who used a piece of memory first, in words."""
        entry, place = self.uses.get(storage, (None, None))
        return _described(entry, storage, place)


def _described(entry: Entry | None, storage: Storage, place: Place) -> str:
    line = line_of(place)
    where = f" at {line[0]}:{line[1]}" if line is not None else ""
    if entry is None:
        return f"an array{where}"
    return f"{entry.name_of(storage)} of {entry.label}{where}"
