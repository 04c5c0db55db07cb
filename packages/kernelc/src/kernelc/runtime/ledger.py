"""Which memory a tape knows: one array per piece of memory, however often it was wrapped, and no hidden overlaps."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from ..errors import Overlap, TapeError
from .arrays import Array, Storage


class Ledger:
    """The arrays that a tape has seen, by address."""

    def __init__(self) -> None:
        self.known: dict[Any, Array] = {}
        self.ranges: list[tuple[int, int, int]] = []
        self.longest = 0
        self.storages: dict[int, Storage] = {}
        self.twins: dict[Storage, Storage] = {}
        self.busy: dict[Storage, None] = {}
        self.foreign: dict[Storage, str] = {}

    def canonical(self, a: Array) -> Array:
        """The array under which the tape knows this very memory: a NumPy buffer may be wrapped anew by each launch."""
        if id(a._storage) in self.storages or a._data.size == 0:
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
            raise Overlap("two arrays that require gradients share the same memory", advice="use one of them twice")
        return known

    def enter(self, a: Array) -> None:
        """Remember the memory of an array; find out whether it overlaps memory known under another identity."""
        storage = a._storage
        if storage in self.foreign:
            raise TapeError(f"an array was written {self.foreign[storage]}, so this tape cannot know its gradient",
                            advice="record all launches that lead to the loss on one tape")  # fmt: skip
        if id(storage) in self.storages or a._data.size == 0:
            return
        self.storages[id(storage)] = storage
        low, extent = _range(a.root)
        for other in self.sharing(low, low + extent):
            self.overlap(storage, self.storages[other])
        insort(self.ranges, (low, low + extent, id(storage)))
        self.longest = max(self.longest, extent)

    def sharing(self, low: int, high: int) -> list[int]:
        """The storages that have bytes between two addresses."""
        found, at = [], bisect_left(self.ranges, (low - self.longest, 0, 0))
        while at < len(self.ranges) and self.ranges[at][0] < high:
            if self.ranges[at][1] > low:
                found.append(self.ranges[at][2])
            at += 1
        return found

    def overlap(self, a: Storage, b: Storage) -> None:
        self.twins[a], self.twins[b] = b, a
        if a in self.busy or b in self.busy:
            self.refuse()

    def mark(self, storage: Storage) -> None:
        """The memory is written, or carries a gradient: from here on it must have one identity."""
        self.busy[storage] = None
        if storage in self.twins:
            self.refuse()

    def refuse(self) -> None:
        raise Overlap(
            "two arrays on this tape share memory, and one of them is written or carries a gradient",
            advice="make one kc.array of the memory, and use views of it: a[1:4]")  # fmt: skip


def _range(a: Array) -> tuple[int, int]:
    """The lowest address of an array, and how many bytes it spans."""
    data, low = a._data, a._address
    if data.flags.c_contiguous:
        return low, data.nbytes
    steps = [(n - 1) * s for n, s in zip(data.shape, data.strides, strict=True)]
    return low + sum(s for s in steps if s < 0), sum(map(abs, steps)) + data.itemsize
