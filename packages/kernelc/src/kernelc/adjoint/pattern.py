"""Which numbers depend on which, from IR to IR: forward mode in which a tangent is a set of inputs, 64 in a word.

What a result is computed from is the union of what its arguments are computed from, whatever the slopes are: nothing
that depends on an input is missed. Branches count as they are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import ir
from ..types import INT64, Composite, Scalar
from .activity import analyse
from .clone import Names, name
from .forward import Dots, TangentKernel, _Pusher
from .hazards import hazards


def pattern(kernel: ir.Kernel, seeds: Iterable[int], *, width: int = 1) -> TangentKernel | None:
    """The kernel that pushes `width` words of inputs to everything that is written; None where structs are moved."""
    activity = analyse(kernel, frozenset(seeds), forward=True)
    moved = [a for a in kernel.arrays() if a.position in activity.arrays]
    if not all(isinstance(a.type.element, (Scalar, Composite)) for a in moved):
        return None
    pusher = _Marker(kernel, activity, width, "zero", hazards(kernel), activity.varied)
    return pusher.push(kernel.body)


class _Marker(_Pusher):
    """`dot` maps original values to sets."""

    suffix = "pattern"

    def scalar(self, scalar: Scalar) -> Scalar:
        return INT64

    def or_zero(self, value: ir.Value) -> Dots:
        return self.dot.get(value) or [ir.const(INT64, 0)] * self.width

    def fresh_dots(self, value: ir.Value) -> Dots:
        self.dot[value] = [ir.Value(INT64, f"set_{value.name}") for _ in range(self.width)]
        return self.dot[value]

    def union(self, b: ir.Builder, values: Sequence[ir.Value]) -> Dots:
        found = [self.or_zero(v) for v in values if v in self.varied]
        totals: Dots = found[0] if found else [ir.const(INT64, 0)] * self.width
        for dots in found[1:]:
            totals = [x if x is y else b.op("bitor", x, y) for x, y in zip(totals, dots, strict=True)]
        return totals

    def operation(self, b: ir.Builder, stmt: ir.Op, m: Names) -> None:
        if stmt.out not in self.varied:
            return
        if stmt.op == "select":
            super().operation(b, stmt, m)
        else:
            self.dot[stmt.out] = self.union(b, stmt.args)

    def write(self, b: ir.Builder, stmt: ir.Store | ir.Atomic, m: Names) -> None:
        found = self.reals(stmt, stmt.values)
        index, comps = name(stmt.index, m), [c for c, _ in found]
        for plane, places, dots in self.spread(stmt.array, comps, [self.or_zero(v) for _, v in found]):
            if isinstance(stmt, ir.Atomic):
                old = b.load(plane, index, places, [INT64] * len(places))
                dots = [b.op("bitor", x, y) for x, y in zip(old, dots, strict=True)]
            b.emit(ir.Store(plane, index, places, dots, stmt.span))

    def extremum(self, b: ir.Builder, stmt: ir.Atomic, m: Names) -> None:
        """Whoever wins: it is among those that took part."""
        self.write(b, stmt, m)

    def call(self, b: ir.Builder, stmt: ir.Call, m: Names) -> None:
        if any(v in self.varied for v in stmt.args):
            total = self.union(b, stmt.args)
            self.dot.update((out, total) for out in stmt.outs if out.type.is_float)
