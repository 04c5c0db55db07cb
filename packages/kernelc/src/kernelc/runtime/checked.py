"""Debug mode of the interpreter: the same checks, in the same words, as those that compiled kernels make."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ir
from . import reports
from .creation import UNINITIALISED
from .interpreter import Thread

_SEVERAL = -1


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
        """Remember who stored to a number, and who else touched it."""
        shadow = self.memory.shadow
        self.bounds(s.array, s.index, s)
        if shadow is None or s.array.role != "value":
            return
        key = (s.array.position, *self.at(s), comp)
        stored, touched = shadow.get(key, (None, None))
        if stored is not None and stored != self.thread:
            self.race(s, stored)
        if not isinstance(s, ir.Store):
            shadow[key] = (stored, self.thread if touched in (None, self.thread) else _SEVERAL)
            return
        if touched is not None and touched != self.thread:
            self.race(s, touched)
        shadow[key] = (self.thread, touched)

    def race(self, s: ir.Load | ir.Store | ir.Atomic, other: int) -> None:
        array, index = reports.label(s.array), self.at(s)
        self.fail(6, reports.race_text(array, index, other), s, array, index)

    def at(self, s: ir.Load | ir.Store | ir.Atomic) -> tuple[Any, ...]:
        return tuple(int(self.get(i)) for i in s.index)
