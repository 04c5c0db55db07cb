"""Quotients in adjoints: the adjoint of a / b divides by b again, and one reciprocal serves both.

A product with 1 / b may differ from the quotient in its last bit. That is harmless for a factor of a gradient, but not
for a value that decides something, or from which the primal computation is run again. So the copy of a quotient takes
part only if sums, products and quotients alone use the original, and if nothing that the reverse sweep may read is
computed from it. (Where 1 / b overflows, so does the derivative of a / b.)

Nothing here looks at which arrays carry a gradient: a gradient has the same bits whoever else asks for one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from .. import ir
from ..builtins import TABLE

_SMOOTH = frozenset(("add", "sub", "mul", "neg", "fma", "div"))


def factors(block: ir.Block, dangerous: set[int]) -> set[ir.Value]:
    """Quotients of a primal block whose last bit decides nothing. `dangerous`: arrays that copies write to."""
    found = {s.out for s in block.walk() if isinstance(s, ir.Op) and s.op == "div"}
    if not found:
        return found
    read = _read_back(block, dangerous)
    found.difference_update(block.yields)
    for stmt in block.walk():
        if isinstance(stmt, ir.Store) or (isinstance(stmt, ir.Atomic) and stmt.kind == "add"):
            found.difference_update(stmt.index if stmt.array.position not in dangerous else stmt.inputs())
        elif not (isinstance(stmt, ir.Op) and stmt.op in _SMOOTH and stmt.out not in read):
            found.difference_update(stmt.inputs())
        for inner in stmt.blocks():
            found.difference_update(inner.yields)
        if isinstance(stmt, ir.Loop) and stmt.stop is not None:
            found.discard(stmt.stop)
    return found


def _read_back(block: ir.Block, dangerous: set[int]) -> set[ir.Value]:
    """Values of which a reverse sweep may need a copy, if every array that it reads carries a gradient."""
    varied = _varied(block)
    sources: dict[ir.Value, list[ir.Value]] = {}
    """What the copy of a value is computed from."""
    pending: list[ir.Value] = []
    for stmt in block.walk():
        if isinstance(stmt, ir.Op):
            sources[stmt.out] = list(stmt.args)
            pending.extend(_read_by_rules(stmt, varied))
        elif isinstance(stmt, ir.If):
            pending.append(stmt.cond)
            for out, x, y in zip(stmt.outs, stmt.then.yields, stmt.orelse.yields, strict=True):
                sources[out] = [x, y]
        elif isinstance(stmt, ir.Loop):
            pending.extend(v for v in (stmt.trips, stmt.stop) if v is not None)
            for out, p, x, y in zip(stmt.outs, stmt.body.params[1:], stmt.inits, stmt.body.yields, strict=True):
                sources[out] = sources[p] = [x, y]
        elif isinstance(stmt, ir.Store) or (isinstance(stmt, ir.Atomic) and stmt.kind == "add"):
            pending.extend(stmt.index if stmt.array.position not in dangerous else stmt.inputs())
        else:
            pending.extend(stmt.inputs())
    found: set[ir.Value] = set()
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending.extend(sources.get(value, ()))
    return found


def _varied(block: ir.Block) -> set[ir.Value]:
    """Reals that may depend on arrays; those that are carried through loops count as such."""
    found: set[ir.Value] = set(block.params)
    for stmt in block.walk():
        if isinstance(stmt, ir.Loop):
            found.update(v for v in (*stmt.body.params, *stmt.outs) if v.type.is_float)
        elif not isinstance(stmt, ir.Op) or any(v in found for v in stmt.args):
            found.update(v for v in stmt.outputs() if v.type.is_float)
    return found


def _read_by_rules(stmt: ir.Op, varied: set[ir.Value]) -> Iterator[ir.Value]:
    """What the reverse of an operation reads of its arguments and its result."""
    if stmt.op == "select":
        yield stmt.args[0]
    elif stmt.op != "cast":
        row = TABLE.scalar(stmt.op)
        places = dict(zip(row.params, stmt.args, strict=True)) | {"y": stmt.out}
        rules = [p for p, v in zip(row.partials, stmt.args, strict=True) if p is not None and v in varied]
        if rules and row.regular is not None:
            rules.append(row.regular)
        for name in {name for rule in rules for name in rule.names()}:
            if name in places:
                yield places[name]


def share(kernel: ir.Kernel) -> ir.Kernel:
    """An adjoint kernel with the quotients of gradients as products with one reciprocal of their divisor, in place."""
    decisive = {v for s in kernel.body.walk() if isinstance(s, ir.Op) and not _is_smooth(s) for v in s.args}
    _block(kernel.body, decisive)
    return kernel


def _is_smooth(stmt: ir.Op) -> bool:
    return stmt.op in _SMOOTH or stmt.op == "select"


def _block(block: ir.Block, decisive: set[ir.Value]) -> None:
    for stmt in block.body:
        for inner in stmt.blocks():
            _block(inner, decisive)
    divisions = (s for s in block.body if isinstance(s, ir.Op) and s.op == "div")
    quotients = [s for s in divisions if not isinstance(s.args[1], ir.Const)]
    loose = [s for s in quotients if not (s.exact or s.out in decisive or ir.is_const(s.args[0], 1))]
    # Half of 1 / b is 1 / b halved, to the last bit: such a quotient need not change for the sake of others.
    divisors = {s.args[1] for s in loose if not _is_power_of_two(s.args[0])}
    if divisors:
        block.body[:] = _with_reciprocals(block.body, quotients, {s for s in loose if s.args[1] in divisors})


def _is_power_of_two(value: ir.Value) -> bool:
    return isinstance(value, ir.Const) and abs(math.frexp(value.value)[0]) == 0.5


def _with_reciprocals(body: Iterable[ir.Stmt], quotients: list[ir.Op], loose: set[ir.Op]) -> list[ir.Stmt]:
    """Statements with products instead of the quotients `loose`. A reciprocal that is there stands at its first use."""
    there = {s.args[1]: s for s in reversed(quotients) if ir.is_const(s.args[0], 1)}
    b, reciprocals = ir.Builder(), dict[ir.Value, ir.Value]()
    for stmt in body:
        if not isinstance(stmt, ir.Op) or (stmt not in loose and there.get(stmt.args[-1]) is not stmt):
            b.emit(stmt)
            continue
        over, by = stmt.args
        b.span = stmt.span
        if by not in reciprocals:
            whole = there.get(by)
            reciprocals[by] = whole.out if whole else ir.Value(by.type)
            b.emit(ir.Op(reciprocals[by], "div", (ir.const(by.type, 1), by), b.span, exact=whole is not None))
        if stmt in loose:
            b.emit(ir.Op(stmt.out, "mul", (reciprocals[by], over), b.span))
    return b.block.body
