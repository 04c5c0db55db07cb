"""Fuses products into the sums that alone use them: a * b + c with one rounding, as the machine can.

It is done here and not by the C++ compiler, because the adjoint contains copies of the primal computation: all of
them must round alike, or a copy might take another branch. Copies are `exact`: they are never fused anew.
"""

from __future__ import annotations

from collections import Counter

from . import nodes as n
from .builder import Builder


def fuse(kernel: n.Kernel) -> n.Kernel:
    """The kernel with products fused into sums, in place."""
    uses: Counter[n.Value] = Counter()
    for stmt in kernel.body.walk():
        uses.update(stmt.inputs())
        for block in stmt.blocks():
            uses.update(block.yields)
        if isinstance(stmt, n.Loop) and stmt.stop is not None:
            uses[stmt.stop] += 1
    _block(kernel.body, uses)
    return kernel


def _block(block: n.Block, uses: Counter[n.Value]) -> None:
    products: dict[n.Value, n.Op] = {}
    b = Builder(n.Block())
    dead: set[n.Value] = set()
    for stmt in block.body:
        for inner in stmt.blocks():
            _block(inner, uses)
        if isinstance(stmt, n.Op) and not stmt.exact and stmt.out.type.is_float:
            if stmt.op == "mul" and uses[stmt.out] == 1:
                products[stmt.out] = stmt
            elif stmt.op in ("add", "sub") and _fused(b, stmt, products, dead):
                continue
        b.emit(stmt)
    block.body[:] = [s for s in b.block.body if not (isinstance(s, n.Op) and s.out in dead)]


def _fused(b: Builder, stmt: n.Op, products: dict[n.Value, n.Op], dead: set[n.Value]) -> bool:
    """Emit a fused form of a sum or difference if one of its sides is a product that nobody else uses."""
    x, y = stmt.args
    product = products.pop(x, None)
    other, first = y, product is not None
    if product is None:
        product, other = products.pop(y, None), x
    if product is None:
        return False
    dead.add(product.out)
    left, right = product.args
    b.span = stmt.span
    if stmt.op == "sub":
        if first:
            other = b.op("neg", other)
        else:
            left = b.op("neg", left)
    b.emit(n.Op(stmt.out, "fma", (left, right, other), stmt.span))
    return True
