"""Fuses products into sums: a * b + c with one rounding, as the machine can.

It is done here and not by the C++ compiler, because the adjoint contains copies of the primal computation: all of
them must round alike, or a copy might take another branch. Copies are `exact`: they are never fused anew.

In a kernel as it was written, a product that somebody else uses as well stays one number for all. In the adjoint it is
fused nevertheless: else the last bit of a gradient would depend on which other gradients are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import nodes as n
from .builder import Builder


def fuse(kernel: n.Kernel) -> n.Kernel:
    """The kernel with products fused into the sums that alone use them, in place."""
    once: set[n.Value] = set()
    more: set[n.Value] = set()
    for value in _uses(kernel.body):
        (more if value in once else once).add(value)
    return _fuse(kernel, more)


def fuse_adjoint(kernel: n.Kernel) -> n.Kernel:
    """An adjoint kernel with all products fused into the sums that use them, in place."""
    return _fuse(kernel, set())


def _fuse(kernel: n.Kernel, shared: set[n.Value]) -> n.Kernel:
    fused: set[n.Value] = set()
    _block(kernel.body, shared, fused)
    fused.difference_update(_uses(kernel.body))
    _remove(kernel.body, fused)
    return kernel


def _uses(block: n.Block) -> Iterator[n.Value]:
    """Every value that a block uses, as often as it does."""
    for stmt in block.walk():
        yield from stmt.inputs()
        for inner in stmt.blocks():
            yield from inner.yields
        if isinstance(stmt, n.Loop) and stmt.stop is not None:
            yield stmt.stop


def _block(block: n.Block, shared: set[n.Value], fused: set[n.Value]) -> None:
    """Fuse the products of a block, but for those in `shared`; `fused` are those that have become part of a sum."""
    products: dict[n.Value, n.Op] = {}
    b = Builder(n.Block())
    for stmt in block.body:
        for inner in stmt.blocks():
            _block(inner, shared, fused)
        if isinstance(stmt, n.Op) and not stmt.exact and stmt.out.type.is_float:
            if stmt.op == "mul" and stmt.out not in shared:
                products[stmt.out] = stmt
            elif stmt.op in ("add", "sub") and (product := _fused(b, stmt, products)) is not None:
                fused.add(product)
                continue
        b.emit(stmt)
    block.body[:] = b.block.body


def _fused(b: Builder, stmt: n.Op, products: dict[n.Value, n.Op]) -> n.Value | None:
    """Emit a fused form of a sum or difference if one of its sides is a product, which is returned."""
    x, y = stmt.args
    first = x in products
    product, other = (products[x], y) if first else (products.get(y), x)
    if product is None or x is y:  # twice a product is exact as it is
        return None
    left, right = product.args
    b.span = stmt.span
    if stmt.op == "sub":
        if first:
            other = b.op("neg", other)
        else:
            left = b.op("neg", left)
    b.emit(n.Op(stmt.out, "fma", (left, right, other), stmt.span))
    return product.out


def _remove(block: n.Block, dead: set[n.Value]) -> None:
    """Leave out the operations that give the values `dead`."""
    if not dead:
        return
    block.body[:] = [s for s in block.body if not (isinstance(s, n.Op) and s.out in dead)]
    for stmt in block.body:
        for inner in stmt.blocks():
            _remove(inner, dead)
