"""Values whose adjoint may be exactly zero although others are not: they feed a choice, a branch or a loop.

Where the other side was taken, such a value may be infinite or NaN, and zero times that must stay zero.
"""

from __future__ import annotations

from .. import ir


def gated_values(block: ir.Block) -> set[ir.Value]:
    """Values that feed a selection, or that are used in a nested block, and all that feeds those."""
    gated: set[ir.Value] = set()
    _sources(block, gated)
    while True:
        before = len(gated)
        _spread(block, gated)
        if len(gated) == before:
            return gated


def _sources(block: ir.Block, gated: set[ir.Value]) -> set[ir.Value]:
    """Collect the starting points; returns the values that the block uses from outside."""
    used: set[ir.Value] = set(block.yields)
    defined: set[ir.Value] = set(block.params)
    for stmt in block.body:
        if isinstance(stmt, ir.Op) and stmt.op == "select":
            gated.update(stmt.args[1:])
        if isinstance(stmt, ir.Loop):
            gated.update(stmt.inits)
        used.update(stmt.inputs())
        for inner in stmt.blocks():
            outer = _sources(inner, gated)
            gated.update(outer)
            used.update(outer)
        defined.update(stmt.outputs())
    return used - defined


def _spread(block: ir.Block, gated: set[ir.Value]) -> None:
    for stmt in reversed(block.body):
        outs = stmt.outputs()
        for inner in stmt.blocks():
            if isinstance(stmt, ir.Loop):
                gated.update(y for y, p in zip(inner.yields, inner.params[1:], strict=True) if p in gated)
            gated.update(y for y, out in zip(inner.yields, outs, strict=True) if out in gated)
            _spread(inner, gated)
        if isinstance(stmt, (ir.Op, ir.Call)) and any(out in gated for out in outs):
            gated.update(stmt.inputs())
        if isinstance(stmt, ir.Loop):
            gated.update(i for i, p in zip(stmt.inits, stmt.body.params[1:], strict=True) if p in gated)
