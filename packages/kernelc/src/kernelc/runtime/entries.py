"""A step of the tape, and what its adjoint will read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from ..errors import Span, TapeError
from .arrays import Array
from .cuda.launching import Count
from .kernels import Plan
from .memory import Data
from .storage import Storage

Need = tuple[Storage, int]
"""Memory, and the version of it that is read."""


NOTHING: Any = MappingProxyType[Any, Any]({})
"""Of steps without needs. It cannot be written to: those with needs have dictionaries of their own."""


class Entry:
    """One step of the tape: a launch, a write from Python, or an operation that the user recorded.

    What most steps do not have is an attribute of the class: loops record thousands of them.
    """

    args: list[Any]
    seeds: frozenset[int] | None = None
    adjoint: frozenset[int] = frozenset()
    """The seeds of the adjoint that will run: those above, or more (compile.Variant.served)."""
    active: frozenset[int] = frozenset()
    needs: dict[int, Need] = NOTHING
    finals: dict[int, Need] = NOTHING
    found: dict[int, Need] = NOTHING
    """By argument: what it held when the launch began, whoever needs it."""
    after: dict[int, Need] = NOTHING
    """Of arrays of minima and maxima: what they held when it had run."""
    block: bytes = b""
    """The argument block that it was launched with, if that is on the CPU."""
    flags: Any = ()
    """Which arrays were leaves: of a launch their positions, of a write from Python a flag for each."""
    record: Any = None
    count: Count | None = None
    """On a GPU: what the adjoint keeps per thread, where the launch has to count it."""
    backward: Callable[[], Any] | None = None
    tangent: Callable[..., Any] | None = None
    linear: Callable[..., Any] | None = None
    """Of an operation that is linear where it is: adjoints of what it writes → those of what it reads."""
    bend: Callable[..., Any] | None = None
    """Of an operation with second derivatives: tangents of what it reads, gradients of what it writes and how these
    move → gradients of what it reads, and how they move."""
    place: Span | None = None
    """Where an operation was recorded."""
    writes: Sequence[Array] = ()
    reads: Sequence[Array] = ()

    def __init__(
        self, what: str, number: int, plan: Plan | None = None, dim: tuple[int, ...] = (), device: str = "cpu",
        parts: int = 1, name: str = "",
    ):  # fmt: skip
        self.what, self.number, self.plan, self.dim, self.device, self.parts = what, number, plan, dim, device, parts
        self.name = name
        if plan is None:
            self.args = []

    @property
    def label(self) -> str:
        """What it is, in a message."""
        name = self.plan.kernel.name if self.plan is not None else self.name
        return f"{self.what} {self.number} ({name})" if name else f"{self.what} {self.number}"

    @property
    def written(self) -> Sequence[Array]:
        return [self.args[i] for i in self.plan.variant.written] if self.plan is not None else self.writes

    @property
    def read(self) -> Sequence[Array]:
        return [self.args[i] for i in self.plan.variant.read] if self.plan is not None else self.reads

    @property
    def arrays(self) -> list[Array]:
        """All that it works on."""
        return [self.args[i] for i in self.plan.arrays] if self.plan is not None else [*self.writes, *self.reads]

    def dense(self, i: int, final: Data) -> Data:
        """What an array of minima or maxima held when the launch had run: adjoints and tangents count through it."""
        assert self.plan is not None
        if not final.flags.c_contiguous:
            name = list(self.plan.kernel.params)[i]
            raise TapeError(f"{self.label} takes atomic minima or maxima in {name!r}, which has gaps in memory: it has "
                            "no derivative there", self.span,
                            advice="write to a contiguous array of its own, and copy that")  # fmt: skip
        return final

    def keeps(self, storage: Storage) -> bool:
        """Whether something of what the memory holds stays, or is read, when this step begins."""
        if self.backward is not None:
            return False  # recorded after it ran: it has written the memory itself
        whole = [a for a in self.writes if a._storage is storage and a._data.size == a.root._data.size]
        return not whole or any(a._storage is storage for a in self.reads)

    def name_of(self, storage: Storage) -> str:
        """What an array of this memory is to the step, in words."""
        if self.plan is not None:
            names = zip(self.plan.kernel.params, self.args, strict=True)
            return next((repr(name) for name, a in names if a.__class__ is Array and a._storage is storage), "an array")
        return "the target" if any(a._storage is storage for a in self.writes) else "the source"

    @property
    def watched(self) -> frozenset[int]:
        """Arrays on which the threads of this launch might depend on each other, and a gradient with them."""
        if self.plan is None or not self.active or not self.plan.variant.watched:
            return frozenset()
        return self.plan.variant.watched & (self.active | set(self.plan.variant.read))

    @property
    def span(self) -> Span | None:
        """The kernel that was launched, or where an operation was recorded, in the user's source."""
        return self.plan.kernel.source.head if self.plan is not None else self.place

    @contextmanager
    def restored(self, copies: Mapping[Need, Any]) -> Iterator[None]:
        """While it is open, what an operation has read is back where it was overwritten since."""
        moved = [(self.reads[i].root._data, copies[need]) for i, need in self.needs.items() if need in copies]
        today = [live.copy() for live, _ in moved]
        for live, then in moved:
            live[...] = then
        try:
            yield
        finally:
            for (live, _), now in zip(moved, today, strict=True):
                live[...] = now
