"""Checks the intermediate representation between passes: every value is assigned once, before it is used, and fits."""

from __future__ import annotations

from collections.abc import Iterable

from ..builtins import TABLE
from ..errors import CompilerBug
from ..types import BOOL, computed, leaves
from . import nodes as n


class MalformedIR(CompilerBug, AssertionError):
    """A pass broke the representation: an error of the compiler, never of its user."""


def verify(kernel: n.Kernel) -> n.Kernel:
    """Raise MalformedIR unless the kernel is well formed; returns it."""
    defined: set[n.Value] = set()
    for param in kernel.params:
        defined.update(param.leaves)
    _block(kernel.body, defined, kernel.name)
    return kernel


def _malformed(stmt: n.Stmt | None, text: str, name: str) -> MalformedIR:
    return MalformedIR(f"{name}: {text} in {type(stmt).__name__}", stmt.span if stmt else None)


def _need(condition: bool, stmt: n.Stmt | None, text: str, name: str) -> None:
    if not condition:
        raise _malformed(stmt, text, name)


# The texts of these are made only where they are needed: every value passes here after every pass.
def _use(values: Iterable[n.Value], defined: set[n.Value], stmt: n.Stmt, name: str) -> None:
    for v in values:
        if v not in defined and not isinstance(v, n.Const):
            raise _malformed(stmt, f"{v!r} is used before it is assigned", name)


def _define(values: Iterable[n.Value], defined: set[n.Value], stmt: n.Stmt, name: str) -> None:
    for v in values:
        if v in defined or isinstance(v, n.Const):
            raise _malformed(stmt, f"{v!r} is assigned twice", name)
        defined.add(v)


def _same(left: Iterable[n.Value], right: Iterable[n.Value], stmt: n.Stmt, what: str, name: str) -> None:
    a, b = [v.type for v in left], [v.type for v in right]
    if a != b:
        raise _malformed(stmt, f"{what}: {a} against {b}", name)


def _block(block: n.Block, outer: set[n.Value], name: str) -> set[n.Value]:
    defined = set(outer)
    defined.update(block.params)
    for stmt in block.body:
        _use(stmt.inputs(), defined, stmt, name)
        _statement(stmt, defined, name)
        _define(stmt.outputs(), defined, stmt, name)
    return defined


def _statement(stmt: n.Stmt, defined: set[n.Value], name: str) -> None:
    if isinstance(stmt, n.If):
        _need(stmt.cond.type is BOOL, stmt, "a condition is a bool", name)
        for block in stmt.blocks():
            inner = _block(block, defined, name)
            _use(block.yields, inner, stmt, name)
            _same(block.yields, stmt.outs, stmt, "yields and results", name)
    elif isinstance(stmt, n.Loop):
        _need(not stmt.down or (stmt.trips is not None and stmt.stop is None), stmt, "a loop down is counted", name)
        inner = _block(stmt.body, defined, name)
        _use(stmt.body.yields, inner, stmt, name)
        if stmt.stop is not None:
            _use((stmt.stop,), inner, stmt, name)
        _same(stmt.inits, stmt.body.params[1:], stmt, "initial and carried", name)
        _same(stmt.body.yields, stmt.outs, stmt, "yields and results", name)
        _same(stmt.inits, stmt.outs, stmt, "initial and results", name)
    elif isinstance(stmt, n.Op) and stmt.op == "select":
        _same(stmt.args[1:2], stmt.args[2:3], stmt, "select", name)
    elif isinstance(stmt, n.Op) and stmt.op != "cast":
        _need(len(stmt.args) == len(TABLE.scalar(stmt.op).params), stmt, f"{stmt.op} has wrong arguments", name)
        if len({a.type for a in stmt.args}) != 1:
            raise _malformed(stmt, f"{stmt.op} mixes {stmt.args}", name)
    elif isinstance(stmt, (n.Load, n.Store, n.Atomic)):
        types = leaves(stmt.array.type.element)
        values = stmt.outs if isinstance(stmt, n.Load) else stmt.values
        _need(len(stmt.index) == stmt.array.type.ndim, stmt, "index count", name)
        fits = len(stmt.comps) == len(values) and all(
            v.type.is_float if types[c].is_half else v.type is computed(types[c], v.type)
            for c, v in zip(stmt.comps, values, strict=True)
        )  # fmt: skip
        _need(fits, stmt, "element type", name)
        if isinstance(stmt, n.Atomic) and stmt.kind == "cas":
            _same(stmt.expected, stmt.values, stmt, "expected and new", name)
