"""Calls that know the launch: static values, threads, loads and stores, atomics; and where a gradient stops."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .. import types as t
from ..errors import NoOverload, NotDifferentiable, TypeMismatch
from ..ir import (
    Atomic,
    Op,
    Record,
    Store,
    Value,
    const,
)
from .constructors import Constructors
from .convert import Restart
from .source import MISSING, Capture, StaticCapture, freeze
from .values import (
    ArrayVal,
    Known,
    TupleVal,
    Weak,
    describe,
    flatten,
    known_type,
    of_type,
)

_FOLLOWED = (ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
"""Of these alone the names and attributes that a `kc.static` reads say whether it gives something else by now."""
_OF_INTEGERS = ("and", "or", "xor", "exchange", "cas")


class LaunchCalls(Constructors):
    """Lowers intrinsics; `intrinsics.py` says which there are."""

    def call_static(self, node: ast.Call) -> Any:
        if len(node.args) != 1 or node.keywords:
            raise self.fail(NoOverload, "kc.static() takes one expression", node, advice="write kc.static(expression)")
        constants = {n: known for n, v in self.frame.env.items() if (known := _constant(v)) is not MISSING}
        code = compile(ast.Expression(node.args[0]), self.frame.source.file, "eval")
        for part in ast.walk(node.args[0]):
            self.static_read(part)
        try:
            found = StaticCapture(self.frame.source, code, constants)
        except Exception as error:
            unknown = getattr(error, "name", "") if isinstance(error, NameError) else ""
            if unknown in self.frame.env or unknown in self.frame.source.locals:
                text = f"kc.static: {unknown!r} is not known while compiling"
                raise self.fail(TypeMismatch, text, node, advice="use constants and names from outside only") from None
            raise self.fail(TypeMismatch, f"kc.static: {type(error).__name__}: {error}", node,
                            advice="the expression runs in Python while the kernel is compiled") from None  # fmt: skip
        if not all(isinstance(part, _FOLLOWED) for part in ast.walk(node.args[0])):
            self.capture(found)
        return self.wrap(found.result)

    def static_read(self, node: ast.AST) -> Any:
        """What a name or a chain of attributes means, captured on the way."""
        if isinstance(node, ast.Name):
            if node.id in self.frame.env:
                value = self.frame.env[node.id]
                return value.object if isinstance(value, Known) else MISSING
            value, capture = self.frame.source.lookup(node.id)
            self.capture(capture)
            return value
        if isinstance(node, ast.Attribute):
            base = self.static_read(node.value)
            value = getattr(base, node.attr, MISSING) if base is not MISSING else MISSING
            if value is not MISSING:
                self.capture(Capture(base, node.attr, value, freeze(value)))
            return value
        return MISSING

    def call_where(self, node: ast.Call) -> Any:
        if len(node.args) != 3 or node.keywords:
            raise self.fail(NoOverload, "kc.where() takes three arguments", node,
                            advice="write kc.where(condition, a, b)")  # fmt: skip
        test, a, b = node.args
        cond = self.truth(self.expr(test), test)
        if isinstance(cond, Weak):
            return self.expr(a if cond.value else b)
        return self.conditional(cond, lambda: self.expr(a), lambda: self.expr(b), node)

    def call_stop_grad(self, args: list[Any], node: ast.AST) -> Any:
        if len(args) != 1:
            raise self.fail(NoOverload, "kc.stop_grad() takes one value", node, advice="write kc.stop_grad(x)")
        value = self.strengthen(args[0])
        leaves = flatten(value)
        if leaves is None:
            raise self.fail(TypeMismatch, f"kc.stop_grad() of {describe(value)}", node,
                            advice="stop the gradient of what is read from it")  # fmt: skip
        outs = []
        for leaf in leaves:
            if leaf.type.is_float:
                out = Value(leaf.type, leaf.name)
                self.b.emit(Op(out, "stop_grad", (leaf,), self.b.span))
                leaf = out
            outs.append(leaf)
        return of_type(known_type(value), outs)

    def call_tid(self, args: list[Any], node: ast.AST, count: int = 1) -> Any:
        if args:
            raise self.fail(
                NoOverload, "kc.tid() takes no arguments", node, advice="write i = kc.tid(), i, j = kc.tid()"
            )
        span = self.span(node)
        if self.dims is not None and self.dims[0] != count:
            here, there = f"{count} ind{'ex' if count == 1 else 'ices'}", f"{self.dims[0]} at line {self.dims[1].line}"
            raise self.fail(TypeMismatch, f"kc.tid() gives {here} here, but {there}", node,
                            advice="unpack it in the same way everywhere: the grid has one number of axes")  # fmt: skip
        self.dims = self.dims or (count, span)
        values = self.tids[:count]
        return values[0] if count == 1 else TupleVal(tuple(values))

    def call_load(self, args: list[Any], node: ast.AST) -> Any:
        array, index = self.array_arguments(args, 1, "load(a, i)", node)
        return self.subscript(array, index, node)

    def call_store(self, args: list[Any], node: ast.AST) -> Any:
        array, index = self.array_arguments(args[:-1], 1, "store(a, i, v)", node)
        self.store(array, self.array_index(array, index, node), args[-1], node)
        return None

    def array_arguments(self, args: Sequence[Any], least: int, usage: str, node: ast.AST) -> tuple[ArrayVal, list[Any]]:
        if len(args) <= least or not isinstance(args[0], ArrayVal):
            name, found = usage.split("(")[0], describe(args[0]) if args else "nothing"
            text = f"the first argument of kc.{name}() is an array, not {found}"
            if args and isinstance(args[0], ArrayVal):
                text = f"kc.{name}() got too few arguments"
            raise self.fail(NoOverload, text, node, advice=f"write kc.{usage}")
        return args[0], list(args[1:])

    def store(self, base: ArrayVal, index: list[Value], value: Any, node: ast.AST) -> None:
        kind = base.array.type.element
        leaves = flatten(self.convert(value, kind, node, f"the value for {base.array.name}")) or []
        self.b.emit(Store(base.array, index, range(len(leaves)), leaves, self.b.span))

    def call_atomic_add(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("add", args, node)

    def call_atomic_sub(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("sub", args, node)

    def call_atomic_min(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("min", args, node)

    def call_atomic_max(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("max", args, node)

    def call_atomic_and(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("and", args, node)

    def call_atomic_or(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("or", args, node)

    def call_atomic_xor(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("xor", args, node)

    def call_atomic_exchange(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("exchange", args, node)

    def call_atomic_cas(self, args: list[Any], node: ast.AST) -> Any:
        return self.atomic("cas", args, node)

    def atomic(self, kind: str, args: list[Any], node: ast.AST, *, used: bool = True) -> Any:
        values = 2 if kind == "cas" else 1
        usage = f"atomic_{kind}(a, i, {'expected, new' if kind == 'cas' else 'v'})"
        array, index = self.array_arguments(args[:-values], 1, usage, node)
        where = self.array_index(array, index, node)
        element = array.array.type.element
        if kind in _OF_INTEGERS and not (isinstance(element, t.Scalar) and element.is_int):
            raise self.fail(NoOverload, f"kc.atomic_{kind}() is for arrays of integers, and {array.array.name} holds "
                            f"{element!r}", node, advice="make it an array of int, or of another integer")  # fmt: skip
        what = f"the value for {array.array.name}"
        *expected, new = [self.convert(v, element, node, what) for v in args[-values:]]
        leaves = flatten(new) or []
        return self.emit_atomic(kind, array, where, range(len(leaves)), leaves, node, used=used, expected=expected)

    def emit_atomic(
        self, kind: str, base: ArrayVal, index: list[Value], comps: Sequence[int], leaves: list[Value], node: ast.AST,
        *, used: bool, expected: Sequence[Value] = (),
    ) -> Any:  # fmt: skip
        if kind == "sub":
            kind, leaves = "add", [self.b.op("neg", v) for v in leaves]
        if any(v.type is t.BOOL for v in leaves):
            raise self.fail(
                NoOverload, f"no atomics on bools ({base.array.name})", node, advice="make it an array of int"
            )
        if not used:
            self.b.emit(Atomic(kind, base.array, index, comps, leaves, (), self.b.span, expected=expected))
            return None
        if any(v.type.is_float for v in leaves):
            advice = "use the result of integer atomics only, or read the array in a later launch"
            raise self.fail(NotDifferentiable, "the old content that a real atomic returns depends on the order of the "
                            "threads: it cannot be used", node, advice=advice)  # fmt: skip
        return self.recorded_atomic(kind, base, index, comps, leaves, expected)

    def recorded_atomic(
        self, kind: str, base: ArrayVal, index: list[Value], comps: Sequence[int], leaves: list[Value],
        expected: Sequence[Value],
    ) -> Any:  # fmt: skip
        """An integer atomic whose result is used: the forward sweep records it, because no replay gets it again."""
        if not self.records:
            raise Restart
        outs = [Value(v.type, f"{base.array.name}.old") for v in leaves]
        self.b.emit(Atomic(kind, base.array, index, comps, leaves, outs, self.b.span, expected=expected))
        for out in outs:
            sequence = self.frame.env["$seq"]
            self.b.emit(Record(sequence, out, self.b.span))
            self.frame.env["$seq"] = self.b.op("add", sequence, const(t.INT64, 1))
        return of_type(self.element_of(base.array), outs)


def _constant(value: Any) -> Any:
    """What a value is in Python, if that is known while compiling; else MISSING."""
    if isinstance(value, Weak):
        return value.value
    if isinstance(value, Known):
        return value.object
    if isinstance(value, TupleVal):
        items = tuple(_constant(v) for v in value.items)
        return MISSING if MISSING in items else items
    return MISSING
