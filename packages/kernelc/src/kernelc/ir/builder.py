"""Emits statements into a block, folding what is constant on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..builtins import TABLE
from ..errors import Span
from ..types import BOOL, FLOAT32, INT32, Scalar
from .nodes import ArrayRef, Block, Const, Load, Op, Query, Stmt, Value

_RESULT_IS_BOOL = frozenset(("compare", "test", "logic"))
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def const(type: Scalar, value: Any) -> Const:
    """A constant of the given type; integers wrap, reals are rounded to the type."""
    if type.kind == "b":
        return Const(type, bool(value))
    if type.is_int:
        bits = 8 * type.size
        wrapped = int(value) & ((1 << bits) - 1)
        if type.kind == "i" and wrapped >= 1 << (bits - 1):
            wrapped -= 1 << bits
        return Const(type, wrapped)
    if type is FLOAT32:
        with np.errstate(over="ignore"):
            return Const(type, float(np.float32(value)))
    return Const(type, float(value))


TRUE, FALSE = Const(BOOL, True), Const(BOOL, False)


def is_const(value: Value | None, number: Any) -> bool:
    """Whether the value is this constant. (Zero means +0.)"""
    return (
        isinstance(value, Const) and value.value == number and not (number == 0 and math.copysign(1, value.value) < 0)
    )


class Builder:
    """Appends to `block`; `span` is stamped on what is emitted."""

    def __init__(self, block: Block | None = None, span: Span | None = None):
        self.block = block if block is not None else Block()
        self.span = span

    def emit(self, stmt: Stmt) -> Stmt:
        self.block.body.append(stmt)
        return stmt

    def op(self, op: str, *args: Value, name: str = "") -> Value:
        """The result of a scalar operation on arguments of fitting type."""
        folded = _fold(op, args)
        if folded is not None:
            return folded
        if op == "not" and self.block.body:
            last = self.block.body[-1]
            # not (a < b) is a >= b for integers; for reals a NaN would tell them apart.
            if isinstance(last, Op) and last.out is args[0] and last.op in _NEGATED and last.args[0].type.is_int:
                return self.op(_NEGATED[last.op], *last.args, name=name)
        out = Value(_result_type(op, args), name)
        self.emit(Op(out, op, args, self.span))
        return out

    def guard(self, asked: Value, part: Value) -> Value:
        """`part`, a product with factors that `asked` compares with zero; zero where all of these are."""
        zero = const(part.type, 0)
        folded = _fold("select", (asked, part, zero))
        if folded is not None:
            return folded
        out = Value(part.type)
        self.emit(Op(out, "select", (asked, part, zero), self.span, guard=True))
        return out

    def cast(self, type: Scalar, value: Value) -> Value:
        """Convert to another scalar type (reals to integers towards zero)."""
        if value.type is type:
            return value
        if isinstance(value, Const) and math.isfinite(value.value):
            return const(type, value.value)
        if type is BOOL:
            return self.op("ne", value, const(value.type, 0))
        out = Value(type, value.name)
        self.emit(Op(out, "cast", (value,), self.span))
        return out

    def query(self, what: str, axis: int, array: ArrayRef | None = None) -> Value:
        what_of = what if what == "asked" else f"{what}{axis}"
        out = Value(BOOL if what == "asked" else INT32, f"{array.name}.{what_of}" if array else what_of)
        self.emit(Query(out, what, axis, array, self.span))
        return out

    def load(
        self, array: ArrayRef, index: Sequence[Value], comps: Sequence[int], types: Sequence[Scalar]
    ) -> list[Value]:
        outs = [Value(t, array.name) for t in types]
        self.emit(Load(outs, array, index, comps, self.span))
        return outs


def _result_type(op: str, args: Sequence[Value]) -> Scalar:
    if op == "select":
        return args[1].type
    return BOOL if TABLE.scalar(op).kind in _RESULT_IS_BOOL else args[0].type


def _fold(op: str, args: Sequence[Value]) -> Value | None:
    """The value of an operation that needs no statement, or None."""
    a = args[0]
    b = args[1] if len(args) > 1 else None
    if op == "select":
        if isinstance(a, Const):
            return args[1] if a.value else args[2]
        if args[1] is args[2]:
            return args[1]
        if isinstance(b, Const) and isinstance(args[2], Const) and b.type is BOOL and b.value and not args[2].value:
            return a
        return None
    if op == "add":
        return b if is_const(a, 0) else a if is_const(b, 0) else _fold_int(op, args)
    if op == "sub":
        return a if is_const(b, 0) else _fold_int(op, args)
    if op == "mul":
        return b if is_const(a, 1) else a if is_const(b, 1) else _fold_int(op, args)
    if op == "div":
        return a if is_const(b, 1) else None
    if op == "neg" and isinstance(a, Const):
        return const(a.type, -a.value)
    if op == "and":
        return b if is_const(a, True) else a if is_const(b, True) else FALSE if _has_false(args) else None
    if op == "or":
        return b if is_const(a, False) else a if is_const(b, False) else TRUE if _has_true(args) else None
    if op == "not" and isinstance(a, Const):
        return FALSE if a.value else TRUE
    return _fold_int(op, args)


def _has_false(args: Sequence[Value]) -> bool:
    return any(isinstance(a, Const) and not a.value for a in args)


def _has_true(args: Sequence[Value]) -> bool:
    return any(isinstance(a, Const) and a.value for a in args)


_INT_FOLDS: dict[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "min": min, "max": max,
}  # fmt: skip


def _fold_int(op: str, args: Sequence[Value]) -> Value | None:
    """Integers fold; reals do not, so that compiled and interpreted kernels round alike."""
    if op not in _INT_FOLDS or not all(isinstance(a, Const) and a.type.kind in "biu" for a in args):
        return None
    result = _INT_FOLDS[op](*(a.value for a in args if isinstance(a, Const)))
    return const(BOOL if isinstance(result, bool) else args[0].type, result)
