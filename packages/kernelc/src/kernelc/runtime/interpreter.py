"""Runs IR in Python, thread by thread, slow and obvious: the oracle for the back ends, the place for a breakpoint."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import ir
from ..builtins import TABLE
from ..types import BFLOAT16, BOOL, INT64, UINT64, Composite, Scalar, Struct, Type, leaves
from . import reports
from .halves import from_bfloat16, to_bfloat16


@dataclass
class Memory:
    """What a launch refers to: arrays by parameter position and role, leaves of value parameters, the grid."""

    arrays: dict[tuple[int, str], np.ndarray[Any, Any]]
    values: dict[ir.Value, Any]
    dim: tuple[int, ...]
    record: dict[tuple[int, int], int] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    shadow: dict[Any, dict[type, int]] | None = None
    watched: frozenset[int] = frozenset()
    """Debug mode: which thread did what to a number. None in a reverse sweep."""


def interpret(kernel: ir.Kernel, memory: Memory, kind: type[Thread] | None = None) -> None:
    """Run every thread of the grid in ascending order. `kind`: a thread that does more, for instance check itself."""
    with np.errstate(all="ignore"):
        for thread, tid in enumerate(np.ndindex(*memory.dim)):
            (kind or Thread)(kernel, memory, thread, tid).run()


_PATHS: dict[Type, list[tuple[tuple[str, ...], tuple[int, ...]]]] = {}


def _paths(element: Type) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
    """For each leaf the struct fields and then the trailing index that lead to it."""
    if element not in _PATHS:
        if isinstance(element, Struct):
            found = [((n, *f), i) for n, t in element.fields for f, i in _paths(t)]
        elif isinstance(element, Composite):
            found = [((), tuple(i)) for i in np.ndindex(*element.shape)]
        else:
            found = [((), ())]
        _PATHS[element] = found
    return _PATHS[element]


class Thread:
    """One thread of a launch."""

    def __init__(self, kernel: ir.Kernel, memory: Memory, thread: int, tid: tuple[int, ...]):
        self.kernel, self.memory, self.thread, self.tid = kernel, memory, thread, tid
        self.env: dict[ir.Value, Any] = dict(memory.values)
        self.tapes: dict[ir.Tape, list[list[Any]]] = {}
        self.undo: list[tuple[np.ndarray[Any, Any], Any, Any]] = []

    def run(self) -> None:
        self.block(self.kernel.body)

    def get(self, value: ir.Value) -> Any:
        if isinstance(value, ir.Const):
            return value.type.numpy.type(value.value)
        return self.env[value]

    def block(self, block: ir.Block) -> None:
        for stmt in block.body:
            getattr(self, f"run_{type(stmt).__name__}")(stmt)

    def run_Op(self, s: ir.Op) -> None:
        args = [self.get(a) for a in s.args]
        if s.op == "select":
            self.env[s.out] = args[1] if args[0] else args[2]
        elif s.op == "cast":
            self.env[s.out] = _cast(s.out.type, args[0])
        else:
            self.env[s.out] = s.out.type.numpy.type(TABLE.scalar(s.op).python(*args))

    def fail(self, code: int, text: str, stmt: ir.Stmt, array: str = "", index: tuple[int, ...] = ()) -> None:
        error = reports.failed(code, text, stmt.span, self.kernel.name, self.thread)
        error.array, error.index = array, index
        raise error

    def run_Query(self, s: ir.Query) -> None:
        if s.what == "asked":
            self.env[s.out] = True  # its adjoints are made for those arrays alone that carry a gradient
            return
        if s.what == "shape":
            assert s.array is not None
            number = self.memory.arrays[s.array.position, "value"].shape[s.axis]
        else:
            number = (self.tid if s.what == "tid" else self.memory.dim)[s.axis]
        self.env[s.out] = np.int32(number)

    # -- memory
    def place(
        self, array: ir.ArrayRef, index: Sequence[ir.Value], comp: int, stmt: ir.Stmt
    ) -> tuple[np.ndarray[Any, Any], Any]:
        at = self.bounds(array, index, stmt)
        data = self.memory.arrays[array.position, array.role]
        fields, rest = _paths(array.type.element)[comp]
        for name in fields:
            data = data[name]
        return data, at + rest

    def bounds(self, array: ir.ArrayRef, index: Sequence[ir.Value], stmt: ir.Stmt) -> tuple[int, ...]:
        """The index as numbers, if it is one of the array."""
        shape = self.memory.arrays[array.position, array.role].shape
        at = tuple(int(self.get(i)) for i in index)
        for axis, i in enumerate(at):
            if not 0 <= i < shape[axis]:
                name = reports.label(array)
                self.fail(2, reports.bounds_text(name, len(at), axis, i, shape[axis]), stmt, name, (i,))
        return at

    def run_Load(self, s: ir.Load) -> None:
        for out, comp in zip(s.outs, s.comps, strict=True):
            data, at = self.place(s.array, s.index, comp, s)
            # Memory of others may have any byte where a bool is: all but zero are true.
            held = data.view(np.uint8)[at] != 0 if out.type is BOOL else _held(s.array, comp, data[at])
            self.env[out] = out.type.numpy.type(held)

    def run_Store(self, s: ir.Store) -> None:
        for value, comp in zip(s.values, s.comps, strict=True):
            data, at = self.place(s.array, s.index, comp, s)
            if s.logged:
                self.undo.append((data, at, data[at].copy()))
            data[at] = _stored(s.array, comp, self.get(value))

    def run_Atomic(self, s: ir.Atomic) -> None:
        for k, (value, comp) in enumerate(zip(s.values, s.comps, strict=True)):
            data, at = self.place(s.array, s.index, comp, s)
            if s.logged:
                self.undo.append((data, at, data[at].copy()))
            old, new = value.type.numpy.type(_held(s.array, comp, data[at])), self.get(value)
            if s.outs:
                self.env[s.outs[k]] = old
            if s.kind in _CHANGES:
                new = _CHANGES[s.kind](old, new)
            elif s.kind == "cas":
                new = new if old == self.get(s.expected[k]) else old
            data[at] = _stored(s.array, comp, new)

    # -- control
    def run_If(self, s: ir.If) -> None:
        block = s.then if self.get(s.cond) else s.orelse
        self.block(block)
        self.env.update(zip(s.outs, [self.get(v) for v in block.yields], strict=True))

    def run_Loop(self, s: ir.Loop) -> None:
        carried = [self.get(v) for v in s.inits]
        if s.trips is None:
            counter: Iterable[int] = itertools.count()
        else:
            counter = range(int(self.get(s.trips)))
            counter = reversed(counter) if s.down else counter
        for k in counter:
            self.env[s.body.params[0]] = s.body.params[0].type.numpy.type(k)
            self.env.update(zip(s.body.params[1:], carried, strict=True))
            self.block(s.body)
            carried = [self.get(v) for v in s.body.yields]
            if s.stop is not None and self.get(s.stop):
                break
        self.env.update(zip(s.outs, carried, strict=True))

    def run_Call(self, s: ir.Call) -> None:
        body = s.function.body
        self.env.update(zip(body.params, [self.get(a) for a in s.args], strict=True))
        self.block(body)
        self.env.update(zip(s.outs, [self.get(v) for v in body.yields], strict=True))

    # -- reports
    def run_Check(self, s: ir.Check) -> None:
        if not self.get(s.cond):
            if s.code == 2:
                index, size = (int(self.get(v)) for v in s.payload)
                self.fail(2, reports.bounds_text(s.message, 1, 0, index, size), s, s.message, (index,))
            self.fail(s.code, reports.assert_text(s.message) if s.code == 1 else s.message, s)

    def run_Print(self, s: ir.Print) -> None:
        values = iter(s.values)
        self.memory.printed.append("".join(self.shown(next(values)) if p is None else p for p in s.parts))

    def shown(self, value: ir.Value) -> str:
        number = self.get(value)
        return str(number) if value.type in (INT64, UINT64) else reports.printed(iter([number]), value.type.name)

    # -- loop tape, undo log, record
    def run_Push(self, s: ir.Push) -> None:
        self.tapes.setdefault(s.tape, []).append([self.get(v) for v in s.values])

    def run_Pop(self, s: ir.Pop) -> None:
        self.env.update(zip(s.outs, self.tapes[s.tape].pop(), strict=True))

    def run_Mark(self, s: ir.Mark) -> None:
        self.env[s.out] = np.int64(len(self.undo))

    def run_Undo(self, s: ir.Undo) -> None:
        while len(self.undo) > self.get(s.mark):
            data, at, old = self.undo.pop()
            data[at] = old

    def run_Record(self, s: ir.Record) -> None:
        self.memory.record[self.thread, int(self.get(s.sequence))] = int(self.get(s.value))

    def run_Claim(self, s: ir.Claim) -> None:
        # Threads run in order, and whoever takes an adjoint leaves zero.
        self.env[s.out] = self.get(s.cond)

    def run_Recall(self, s: ir.Recall) -> None:
        self.env[s.out] = s.out.type.numpy.type(self.memory.record[self.thread, int(self.get(s.sequence))])


_CHANGES: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _held(array: ir.ArrayRef, comp: int, content: Any) -> Any:
    """What memory holds, as a number."""
    return from_bfloat16(content)[()] if leaves(array.type.element)[comp] is BFLOAT16 else content


def _stored(array: ir.ArrayRef, comp: int, value: Any) -> Any:
    """A number as memory holds it: integers wrap, reals are rounded to the nearest, halves to even."""
    kind = leaves(array.type.element)[comp]
    return to_bfloat16(value)[()] if kind is BFLOAT16 else np.asarray(value).astype(kind.numpy)[()]


def _cast(kind: Scalar, value: Any) -> Any:
    """Reals to integers: towards zero, saturating; a NaN gives zero."""
    if kind.is_int and isinstance(value, np.floating):
        if np.isnan(value):
            return kind.numpy.type(0)
        limits = np.iinfo(kind.numpy)
        if np.isinf(value):
            return kind.numpy.type(limits.max if value > 0 else limits.min)
        return kind.numpy.type(min(max(int(value), limits.min), limits.max))
    return np.asarray(value).astype(kind.numpy)[()]
