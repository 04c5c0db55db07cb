"""Pieces of memory: when each was written, its gradient, and which others share bytes with it.

Versions belong to memory, not to what wraps it: whoever makes an array finds every live one over the same bytes, and a
write to either is a write to both. An array that is alone, as almost all are, pays nothing for it when it is written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

from .. import _native
from .memory import Data, address_of, shares, span

if TYPE_CHECKING:
    from .arrays import Array

_numbers = count(1)


class Clock:
    """Counts writes to arrays, of whatever memory: while it stands still, nobody has written anything."""

    def __init__(self) -> None:
        self.now, self._next = 0, count(1).__next__

    def tick(self) -> int:
        self.now = now = self._next()  # in this order: two threads never get the same time
        return now


clock = Clock()


class Members:
    """The arrays that look at one piece of memory, as long as they live. By identity: `==` of arrays raises."""

    def __init__(self, first: Array):
        self._known: dict[int, ref[Array]] = {}
        self.add(first)

    def add(self, array: Array) -> None:
        known, key = self._known, id(array)
        known[key] = ref(array, lambda _: known.pop(key, None))

    def __iter__(self) -> Iterator[Array]:
        return iter([a for r in list(self._known.values()) if (a := r()) is not None])


class Storage:
    """A piece of memory: when it was written, its gradient, and which arrays look at it."""

    __slots__ = (
        "__weakref__", "_place", "borrowed", "carries", "data", "grad", "grad_at", "kin", "members", "number", "ours",
        "readers", "repeats", "source", "tensors", "version",
    )  # fmt: skip

    def __init__(self, source: Data | None = None) -> None:
        self.number = next(_numbers)
        self.version = 0
        self.carries = False
        self.grad: Data | None = None
        self.grad_at: tuple[Data | None, int] = (None, 0)
        """A gradient and its address, which NumPy is slow to tell."""
        self.source = source
        """What a weak array was made from, in double precision, until its first launch decides on the precision."""
        self.ours = False
        """Allocated here: nobody else refers to the memory, but who got it from us."""
        self.borrowed = False
        """Shared with somebody who must not see our writes: the first one goes to a copy."""
        self.members: Members | None = None
        self.repeats: list[Any] | None = None
        """What is kept of tapes that may be recorded again: it goes with this memory (repeats.py)."""
        self.readers: list[Any] | None = None
        """Weak references to the tapes of torch operations that will read it as it is."""
        self.data: Data | None = None
        """All of it. Held, so that its addresses belong to nobody else while this lives."""
        self.kin: list[ref[Storage]] = []
        """The others that have a byte in common with this one, and may be gone by now."""
        self.tensors: list[Callable[[], Any]] | None = None
        """Tensors of torch over this memory, as long as they live: torch is told of writes."""
        self._place: _native.Place | None = None

    def lie(self, data: Data, address: int) -> None:
        """The memory is this, from here on; find out who else looks at it."""
        if self.kin:
            self._part()
        self.data, self._place = data, None
        if not data.size:
            return
        low, extent = span(data, address)
        me: ref[Storage] = ref(self)
        self._place = _native.Place(low, low + extent, me)
        for other in self._place.others():
            storage = other()
            if storage is not None and shares(data, storage.data):
                storage._forget_the_dead()
                storage.kin.append(me)
                self.kin.append(other)
                self.version = max(self.version, storage.version)

    def _part(self) -> None:
        for storage in self.relatives():
            storage.kin = [other for other in storage.kin if other() is not self]
        self.kin = []

    def _forget_the_dead(self) -> None:
        """Memory that every launch wraps anew has many relatives that do not live long."""
        for other in [other for other in self.kin if other() is None]:
            self.kin.remove(other)

    def relatives(self) -> list[Storage]:
        """The live storages that have a byte in common with this one."""
        return [storage for other in self.kin if (storage := other()) is not None]

    def grad_address(self) -> int:
        """Where the gradient begins."""
        grad, (known, address) = self.grad, self.grad_at
        assert grad is not None
        if known is not grad:
            address = address_of(grad)
            self.grad_at = (grad, address)
        return address

    def wrote(self, now: int) -> None:
        """The memory was written at this time."""
        self.version = now
        if self.kin or self.tensors:
            self.spread(now)

    def spread(self, now: int) -> None:
        """Tell those who share bytes of a write."""
        if self.tensors:
            self._tell_torch()
        for storage in self.relatives():
            storage.version = max(storage.version, now)
            if storage.tensors:
                storage._tell_torch()

    def show(self, tensor: Callable[[], Any]) -> None:
        """A tensor of torch shares the memory; `tensor` gives it, or None when it is gone."""
        self.tensors = [*(t for t in self.tensors or () if t() is not None), tensor]

    def _tell_torch(self) -> None:
        """Count a write as torch does its own: what it has saved of a tensor for a gradient is no longer true."""
        for get in self.tensors or ():
            tensor = get()
            if tensor is not None and not tensor.is_inference():
                sys.modules["torch"].autograd.graph.increment_version(tensor)
