"""Quotients by one divisor: the adjoint of a / b divides by b again, and one reciprocal serves both.

A product with 1 / b may differ from the quotient in its last bit. That is harmless for a factor of a gradient, but not
for a value that decides something, or from which the primal computation is run again. So the copy of a quotient takes
part only if sums, products and quotients alone use the original, and if no other copy needs it. (Where 1 / b overflows,
so does the derivative of a / b.)
"""

from __future__ import annotations

from collections import defaultdict

from .. import ir

_SMOOTH = frozenset(("add", "sub", "mul", "neg", "fma", "div"))


def factors(block: ir.Block) -> set[ir.Value]:
    """Quotients of a primal block whose last bit decides nothing."""
    found = {s.out for s in block.walk() if isinstance(s, ir.Op) and s.op == "div"}
    found.difference_update(block.yields)
    for stmt in block.walk():
        if isinstance(stmt, ir.Store) or (isinstance(stmt, ir.Atomic) and stmt.kind == "add"):
            found.difference_update(stmt.index)
        elif not (isinstance(stmt, ir.Op) and stmt.op in _SMOOTH):
            found.difference_update(stmt.inputs())
        for inner in stmt.blocks():
            found.difference_update(inner.yields)
        if isinstance(stmt, ir.Loop) and stmt.stop is not None:
            found.discard(stmt.stop)
    return found


def share(kernel: ir.Kernel) -> ir.Kernel:
    """An adjoint kernel with quotients by one divisor as products with its reciprocal, in place."""
    needed = {v for stmt in kernel.body.walk() if _is_primal(stmt) for v in stmt.inputs()}
    _block(kernel.body, needed)
    return kernel


def _is_primal(stmt: ir.Stmt) -> bool:
    """Whether a statement of an adjoint runs the primal computation again."""
    if isinstance(stmt, ir.Op):
        return stmt.exact
    return isinstance(stmt, (ir.Push, ir.Call)) or (isinstance(stmt, (ir.Store, ir.Atomic)) and stmt.logged)


def _block(block: ir.Block, needed: set[ir.Value]) -> None:
    quotients: dict[ir.Value, list[ir.Op]] = defaultdict(list)
    for stmt in block.body:
        for inner in stmt.blocks():
            _block(inner, needed)
        if isinstance(stmt, ir.Op) and stmt.op == "div" and not isinstance(stmt.args[1], ir.Const):
            if ir.is_const(stmt.args[0], 1) or not (stmt.exact or stmt.out in needed):
                quotients[stmt.args[1]].append(stmt)
    shared = {stmt: found for found in quotients.values() if len(found) > 1 for stmt in found}
    if not shared:
        return
    b, reciprocals = ir.Builder(), dict[ir.Value, ir.Value]()
    for stmt in block.body:
        if stmt not in shared:
            b.emit(stmt)
            continue
        over, by = stmt.args
        b.span = stmt.span
        if by not in reciprocals:
            whole = next((s for s in shared[stmt] if ir.is_const(s.args[0], 1)), None)
            reciprocals[by] = whole.out if whole else ir.Value(by.type)
            b.emit(ir.Op(reciprocals[by], "div", (ir.const(by.type, 1), by), b.span, exact=whole is not None))
        if stmt.out is not reciprocals[by]:
            b.emit(ir.Op(stmt.out, "mul", (reciprocals[by], over), b.span))
    block.body[:] = b.block.body
