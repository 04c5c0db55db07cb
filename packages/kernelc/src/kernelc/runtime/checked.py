"""Debug mode of the interpreter: the same checks, in the same words, as those that compiled kernels make."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ir
from . import reports
from .creation import UNINITIALISED
from .interpreter import Thread

_SEVERAL = -1
_FOES: dict[type, tuple[type, ...]] = {
    ir.Store: (ir.Store, ir.Load, ir.Atomic), ir.Load: (ir.Store, ir.Atomic), ir.Atomic: (ir.Store, ir.Load),
}  # fmt: skip
"""What another thread must not have done to the same number."""


class CheckedThread(Thread):
    """Looks at what is computed, stored, and read."""

    def run_Op(self, s: ir.Op) -> None:
        # An adjoint forms derivatives before it knows that they are not asked for: only what it stores is checked.
        forward = self.memory.shadow is not None
        args = [self.get(a) for a in s.args]
        if forward and s.op in ("div", "floordiv", "mod") and args[1] == 0:
            self.fail(4, reports.zero_text(s.op), s)
        super().run_Op(s)
        if forward and s.op not in ("select", "cast") and s.out.type.is_float:
            if np.isnan(self.env[s.out]) and not np.isnan(args).any():
                self.fail(3, reports.nan_text(s.op), s)

    def run_Load(self, s: ir.Load) -> None:
        for comp in s.comps:
            self.touch(s, comp)
            self.uninitialised(s, comp)
        super().run_Load(s)

    def run_Store(self, s: ir.Store) -> None:
        self.no_nan(s)
        for comp in s.comps:
            self.touch(s, comp)
        super().run_Store(s)

    def run_Atomic(self, s: ir.Atomic) -> None:
        self.no_nan(s)
        for comp in s.comps:
            self.touch(s, comp)
            self.uninitialised(s, comp)
        super().run_Atomic(s)

    # -- what can be wrong with an element
    def no_nan(self, s: ir.Store | ir.Atomic) -> None:
        self.bounds(s.array, s.index, s)
        if any(v.type.is_float and np.isnan(self.get(v)) for v in s.values):
            array, index = reports.label(s.array), self.at(s)
            self.fail(3, reports.stored_text(array, index), s, array, index)

    def uninitialised(self, s: ir.Load | ir.Atomic, comp: int) -> None:
        if s.array.role != "value":
            return
        data, at = self.place(s.array, s.index, comp, s)
        size = data.dtype.itemsize
        if size in (4, 8) and bool(np.all(np.asarray(data[at]).reshape(1).view(np.uint32) == UNINITIALISED)):
            array, index = reports.label(s.array), self.at(s)
            self.fail(5, reports.unwritten_text(array, index), s, array, index)

    def touch(self, s: ir.Load | ir.Store | ir.Atomic, comp: int) -> None:
        """Remember who stored to a number, who read it, and who changed it by atomics (codegen/cpp.py: race)."""
        self.bounds(s.array, s.index, s)
        if self.memory.shadow is None or s.array.role != "value":
            return
        who = self.memory.shadow.setdefault((s.array.position, *self.at(s), comp), {})
        for foe in _FOES[type(s)]:
            if who.get(foe, self.thread) != self.thread:
                self.race(s, who[foe])
        who[type(s)] = self.thread if who.get(type(s), self.thread) == self.thread else _SEVERAL

    def race(self, s: ir.Load | ir.Store | ir.Atomic, other: int) -> None:
        array, index = reports.label(s.array), self.at(s)
        other = other if len(index) <= 2 else _SEVERAL  # as compiled kernels, which have no room for both
        self.fail(6, reports.race_text(array, index, other), s, array, index)

    def at(self, s: ir.Load | ir.Store | ir.Atomic) -> tuple[Any, ...]:
        return tuple(int(self.get(i)) for i in s.index)


class WatchedThread(CheckedThread):
    """Looks only at whether threads depend on each other, on the arrays at the positions `memory.watched`."""

    run_Op = Thread.run_Op

    def no_nan(self, s: ir.Store | ir.Atomic) -> None:
        pass

    def uninitialised(self, s: ir.Load | ir.Atomic, comp: int) -> None:
        pass

    def touch(self, s: ir.Load | ir.Store | ir.Atomic, comp: int) -> None:
        if s.array.position in self.memory.watched:
            super().touch(s, comp)
