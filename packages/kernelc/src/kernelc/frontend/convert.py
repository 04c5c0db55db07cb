"""Conversions between numbers and types: literals adapt, integers meet reals as in Python, precisions never mix."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .. import types as t
from ..errors import MixedPrecision, SourceError, Span, TypeMismatch
from ..ir import ArrayRef, Builder, Value, const
from .source import Capture, Source, Stack, StaticCapture, origin_of
from .values import (
    AbsentVal,
    Agg,
    ArrayVal,
    BundleVal,
    Known,
    ShapeVal,
    TupleVal,
    Weak,
    describe,
    is_number,
    type_name,
    type_of,
)


@dataclass
class Frame:
    """One function being lowered: the kernel, or a function inlined into it."""

    source: Source
    env: dict[str, Any] = field(default_factory=dict)
    types: dict[str, t.Type] = field(default_factory=dict)
    returns: t.Type | None = None
    is_kernel: bool = False
    loop_depth: int = 0
    trial: int = 0
    bare_return: bool = False
    unrolled: int = 1


class Restart(Exception):
    """Lowering must begin anew, because the kernel turned out to use results of atomics."""


class ReturnType(Exception):
    """Carries what a function returns out of a trial lowering of a loop."""

    def __init__(self, value: Any):
        self.value = value


class Convert:
    """State shared by all parts of the lowering, and conversions."""

    def __init__(self, source: Source, real: t.Scalar):
        self.real = real
        self.b = Builder()
        self.frame = Frame(source)
        self.captures: dict[tuple[int, str], Capture | StaticCapture] = {}
        self.stack = Stack()
        self.tids: list[Value] = []
        self.dims: tuple[int, Span] | None = None
        self.records = False
        self.customs: dict[Any, Any] = {}
        self.caller: Span | None = None
        self.copies = 0

    # -- places and errors
    def span(self, node: ast.AST) -> Span:
        """Where a node stands; inside of a library function, where the user called it."""
        source = origin_of(node, self.frame.source)
        return self.caller or source.span(node)

    def at(self, node: ast.AST) -> Span:
        """Stamp what follows with the node's place."""
        self.b.span = self.span(node)
        return self.b.span

    def fail(self, kind: type[SourceError], message: str, node: ast.AST, *, advice: str = "") -> SourceError:
        return kind(message, self.span(node), advice=advice)

    # -- numbers
    def strengthen(self, value: Any) -> Any:
        """A literal that gets a name takes the language's default type."""
        if isinstance(value, Weak):
            return const(self.weak_type(value), value.value)
        if isinstance(value, TupleVal):
            return TupleVal(tuple(self.strengthen(v) for v in value.items))
        return value

    def weak_type(self, value: Weak) -> t.Scalar:
        if isinstance(value.value, bool):
            return t.BOOL
        if isinstance(value.value, int):
            return t.INT32 if -(2**31) <= value.value < 2**31 else t.INT64
        return self.real

    def number(self, value: Any, kind: t.Scalar, node: ast.AST, what: str = "this value") -> Value:
        """Convert implicitly, as far as Python would: literals to anything that holds them, integers to reals."""
        if kind.is_stored:
            return self.stored_number(value, kind, node, what)
        if isinstance(value, Weak):
            if fits(value, kind):
                return const(kind, value.value)
        elif isinstance(value, Value):
            if value.type is kind:
                return value
            if value.type.kind in "biu" and kind.is_float:
                return self.b.cast(kind, value)
            if value.type.kind in "b" and kind.is_int:
                return self.b.cast(kind, value)
            if value.type.is_int and kind is t.INT64 and value.type is not t.UINT64:
                return self.b.cast(kind, value)
            if value.type is t.UINT32 and kind is t.UINT64:
                return self.b.cast(kind, value)
            if value.type.is_float and kind.is_float:
                raise self.fail(MixedPrecision, f"{what} is {value.type}, but {kind} is needed here", node)
        if isinstance(value, Weak) and isinstance(value.value, int) and kind.is_int:
            advice = "write it as a real, with a decimal point" if kind is t.INT64 else "use kc.int64(...), or a real"
            raise self.fail(TypeMismatch, f"{value.value} does not fit {kind}", node, advice=advice)
        raise self.mismatch(value, kind, node, what)

    def stored_number(self, value: Any, kind: t.Scalar, node: ast.AST, what: str) -> Value:
        """What an array of a storage type is given: a number that kernels compute with, which the store converts."""
        if kind.is_half:
            if isinstance(value, Value) and value.type.is_float:
                return value
            kind = self.real if is_number(value) else kind
            return self.number(value, kind, node, what) if is_number(value) else self.unfit(value, kind, node, what)
        if isinstance(value, Weak):
            if fits(value, kind):
                return const(t.INT32, value.value)
        elif isinstance(value, Value) and value.type in (t.BOOL, t.INT32):
            return self.b.cast(t.INT32, value)
        return self.unfit(value, kind, node, what)

    def unfit(self, value: Any, kind: t.Scalar, node: ast.AST, what: str) -> Value:
        if isinstance(value, Weak) and isinstance(value.value, int):
            raise self.fail(TypeMismatch, f"{value.value} does not fit {kind}", node,
                            advice="int(...) of a variable wraps when it is stored")  # fmt: skip
        if isinstance(value, Value):
            raise self.fail(TypeMismatch, f"{what} is {describe(value)}, but {kind} is needed here", node,
                            advice="convert it: int(...), which wraps when it is stored")  # fmt: skip
        raise self.mismatch(value, kind, node, what)

    def mismatch(self, value: Any, kind: t.Type, node: ast.AST, what: str) -> SourceError:
        if is_number(value) and isinstance(kind, t.Scalar):
            short = {"int32": "int", "bool": "bool"} if type_of(value) is not t.INT64 else {}
            advice = f"convert it: {short.get(kind.name, f'kc.{kind}')}(...)"
        elif isinstance(kind, t.ArrayType) and not isinstance(value, AbsentVal):
            found = repr(value.type) if isinstance(value, ArrayVal) else describe(value)
            return self.fail(TypeMismatch, f"{what} is {found}, but {kind!r} is needed here", node,
                             advice="pass an array of that type and that many dimensions")  # fmt: skip
        elif isinstance(value, ArrayVal) and not t.has_arrays(kind):
            advice = f"index it: {value.array.name if not value.prefix else 'row'}[{', '.join('ijkl'[: value.ndim])}]"
        elif isinstance(value, AbsentVal):
            advice = f"ask first: `if {value.name} is not None:`"
        elif isinstance(value, BundleVal):
            advice = f"use a member: {value.name}.{value.type.names[0]}"
        elif isinstance(value, Known):
            advice = "pass a value; a function has to be called"
        elif isinstance(kind, t.Scalar):
            advice = "use one component of it"
        else:
            advice = f"make one: {kind!r}(...)" if isinstance(kind, t.Struct) else "build a value of that type"
        return self.fail(TypeMismatch, f"{what} is {describe(value)}, but {type_name(kind)} is needed here", node,
                         advice=advice)  # fmt: skip

    def common(self, a: Any, b: Any, node: ast.AST) -> tuple[Value, Value]:
        """Two numbers in the type in which Python would compute with them."""
        kind = self.common_type(a, b, node)
        return self.number(a, kind, node), self.number(b, kind, node)

    def common_type(self, a: Any, b: Any, node: ast.AST) -> t.Scalar:
        if isinstance(a, Weak) and isinstance(b, Weak):
            return self.weak_type(Weak(a.value + b.value))
        if isinstance(a, Weak):
            a, b = b, a
        left: t.Scalar = a.type
        if isinstance(b, Weak):
            if isinstance(b.value, float):
                return left if left.is_float else self.real
            if left.kind == "b":
                return t.BOOL if isinstance(b.value, bool) else self.weak_type(b)
            if left is t.UINT64 and not holds(left, b.value):
                raise self.fail(TypeMismatch, f"{b.value} does not fit uint64", node,
                                advice="convert the other side: kc.int64(...)")  # fmt: skip
            return left if left.is_float or holds(left, b.value) else t.INT64
        right: t.Scalar = b.type
        if left is right:
            return left
        if left.is_float and right.is_float:
            inside = self.caller is not None  # of a library function, whose source is not the user's
            raise self.fail(MixedPrecision, _both_sides(left, right, ast.Pass() if inside else node), node)
        if left.is_float or right.is_float:
            return left if left.is_float else right
        if "b" in (left.kind, right.kind):
            return right if left.kind == "b" else left
        if t.UINT64 in (left, right):
            if t.UINT32 in (left, right):
                return t.UINT64
            raise self.fail(TypeMismatch, f"no integer holds both {left} and {right}", node,
                            advice="convert one side: kc.uint64(...) or kc.int64(...)")  # fmt: skip
        return t.INT64

    def arithmetic(self, a: Any, b: Any, node: ast.AST) -> tuple[Value, Value]:
        """As `common`, but conditions count as integers."""
        left, right = self.common(a, b, node)
        if left.type is t.BOOL:
            return self.b.cast(t.INT32, left), self.b.cast(t.INT32, right)
        return left, right

    def as_real(self, value: Any, node: ast.AST) -> Value:
        """A number as a real of its own precision."""
        if isinstance(value, Value) and value.type.is_float:
            return value
        return self.number(value, self.real, node)

    def as_index(self, value: Any, node: ast.AST, what: str = "an index") -> Value:
        if isinstance(value, Weak) and isinstance(value.value, int):
            return const(t.INT32 if abs(value.value) < 2**31 else t.INT64, value.value)
        if isinstance(value, Value) and value.type.is_int:
            return value
        advice = "use int(...)" if is_number(value) else "write one index per dimension, each an integer"
        raise self.fail(TypeMismatch, f"{what} is an integer, not {describe(value)}", node, advice=advice)

    # -- values of any type
    def convert(self, value: Any, kind: t.Type, node: ast.AST, what: str = "this value") -> Any:
        """Convert implicitly to a type, or say what does not fit."""
        if isinstance(kind, t.Optional):
            nothing = isinstance(value, AbsentVal) or (isinstance(value, Known) and value.object is None)
            name = describe(value).partition(",")[0]
            return AbsentVal(name) if nothing else self.convert(value, kind.kind, node, what)
        if isinstance(kind, t.Scalar):
            if is_number(value):
                return self.number(value, kind, node, what)
        elif isinstance(kind, t.Tuple) and isinstance(value, TupleVal) and len(kind.items) == len(value.items):
            return TupleVal(tuple(self.convert(v, k, node, what) for v, k in zip(value.items, kind.items, strict=True)))
        elif (isinstance(kind, t.ArrayType) and isinstance(value, ArrayVal)) or isinstance(value, BundleVal):
            if value.type == kind:
                return value
        elif isinstance(value, Agg):
            if value.type == kind:
                return value
            if isinstance(value.type, t.Composite) and isinstance(kind, t.Composite):
                if value.type.with_scalar(kind.scalar) == kind:
                    leaves = tuple(self.number(v, kind.scalar, node, what) for v in value.leaves)
                    return Agg(kind.with_scalar(leaves[0].type), leaves)
            if isinstance(kind, t.Struct) and value.type == t.computed(kind, self.real):
                return value
        raise self.mismatch(value, kind, node, what)

    def resolved(self, annotation: Any) -> t.Type:
        """The type that an annotation means here. Arrays may hold numbers that values cannot be."""
        kind = t.resolve(t.as_type(annotation), self.real)
        if isinstance(kind, (t.Scalar, t.Composite)):
            t.check_value(kind)
        return t.computed(kind, self.real)

    def element_of(self, array: ArrayRef) -> t.Type:
        """What a kernel computes with where it reads an element."""
        return t.computed(array.type.element, self.real)

    def wrap(self, value: Any) -> Any:
        """A Python object as the front end sees it: numbers are literals, tuples of numbers are tuples."""
        import numpy as np

        if isinstance(value, (bool, np.bool_)):
            return Weak(bool(value))
        if isinstance(value, (int, np.integer)):
            return Weak(int(value))
        if isinstance(value, (float, np.floating)):
            return Weak(float(value))
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            return TupleVal(tuple(self.wrap(v) for v in value))
        return Known(value)

    def capture(self, capture: Capture | StaticCapture | None) -> None:
        if capture is not None:
            self.captures.setdefault((id(capture.holder), capture.name), capture)


def fits(literal: Weak, kind: t.Scalar) -> bool:
    """Whether a literal may become a number of this type."""
    number = literal.value
    return kind.is_float or isinstance(number, bool) or (isinstance(number, int) and holds(kind, number))


def _both_sides(left: t.Scalar, right: t.Scalar, node: ast.AST) -> str:
    """Which side of an expression has which precision."""
    if isinstance(node, ast.BinOp):
        return f"{ast.unparse(node.left)} is {left}, but {ast.unparse(node.right)} is {right}"
    if isinstance(node, ast.AugAssign):
        return f"{ast.unparse(node.target)} is {left}, but {ast.unparse(node.value)} is {right}"
    return f"one value here is {left}, and another is {right}"


def holds(kind: t.Scalar, number: int) -> bool:
    """Whether an integer type holds a number."""
    if kind.kind not in "iu":
        return False
    bits = 8 * kind.size
    low, high = (0, 1 << bits) if kind.kind == "u" else (-1 << (bits - 1), 1 << (bits - 1))
    return low <= number < high


__all__ = ["Convert", "Frame", "Restart", "ReturnType", "ShapeVal", "fits", "holds", "type_of"]
