"""A kernel that computes values and their tangents together: forward mode in the place of the kernel, not beside it.

It is a kernel as any other, with tangents as parameters. So it has an adjoint, and can be lifted again.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import ir
from ..records import record
from .activity import Activity, analyse
from .clone import Names, name
from .forward import _Pusher


@record
class Tangents:
    """The parameters of a lifted kernel: those of the kernel, by position, and their tangents."""

    order: tuple[tuple[int, bool], ...]
    """For each parameter its position in the kernel, and whether it is the tangent there."""

    @classmethod
    def of(cls, kernel: ir.Kernel, seeds: frozenset[int], inputs: int) -> Tangents:
        """Inputs, tangents of inputs, outputs, tangents of outputs: the last parameters are the outputs, as before."""
        active, n = sorted(analyse(kernel, seeds, forward=True).arrays | seeds), len(kernel.params)
        before, after = [i for i in active if i < inputs], [i for i in active if i >= inputs]
        order = [(i, False) for i in range(inputs)] + [(i, True) for i in before]
        return cls((*order, *((i, False) for i in range(inputs, n)), *((i, True) for i in after)))


def lift(
    kernel: ir.Kernel, seeds: frozenset[int], names: Sequence[str], shape: Tangents, *, singular: str
) -> ir.Kernel:  # fmt: skip
    """The kernel with tangents, its parameters in the order of `shape` and under the names given."""
    pusher = _Companion(kernel, analyse(kernel, seeds, forward=True), singular)
    b = ir.Builder()
    m: Names = {}
    for stmt in kernel.body.body:
        pusher.statement(b, stmt, m)
    refs: dict[tuple[int, bool], ir.ArrayRef] = {}
    params = []
    for at, (label, (i, dotted)) in enumerate(zip(names, shape.order, strict=True)):
        known = kernel.params[i]
        if known.array is not None:
            refs[i, dotted] = ir.ArrayRef(label, known.array.type, at)
        params.append(ir.Param(label, refs.get((i, dotted)), known.leaves))
    planes = {plane.position: i for i, (plane,) in pusher.planes.items()}
    for stmt in b.block.walk():
        array = getattr(stmt, "array", None)
        if array is not None:
            place = array.position
            stmt.array = refs[planes.get(place, place), place in planes]  # type: ignore[attr-defined]
    made = ir.Kernel(f"{kernel.name}_lifted", params, b.block, kernel.real, kernel.span, kernel.dims, kernel.block)
    return ir.verify(ir.prune(made))


class _Companion(_Pusher):
    """Copies statements with their effects, and adds one tangent of each."""

    def __init__(self, kernel: ir.Kernel, activity: Activity, singular: str):
        super().__init__(kernel, activity, 1, singular, set(), activity.varied)
        self.effects = True

    def statement(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        if isinstance(stmt, ir.Record):
            b.emit(ir.Record(m.get(stmt.sequence, stmt.sequence), m.get(stmt.value, stmt.value), stmt.span))
        elif isinstance(stmt, ir.Atomic) and stmt.kind != "add" and stmt.array.position in self.arrays:
            b.span = stmt.span
            self.extremum(b, stmt, m)
        else:
            super().statement(b, stmt, m)

    def extremum(self, b: ir.Builder, stmt: ir.Atomic, m: Names) -> None:
        """A thread that changes the content brings its tangent along; threads run in order."""
        index, found = name(stmt.index, m), self.reals(stmt, stmt.values)
        comps, types = [c for c, _ in found], [v.type for _, v in found]
        (plane,) = self.planes[stmt.array.position]
        old, dots = b.load(stmt.array, index, comps, types), b.load(plane, index, comps, types)
        better = "lt" if stmt.kind == "min" else "gt"
        new = [b.op("select", b.op(better, m.get(v, v), o), self.or_zero(v)[0], d)
               for (_, v), o, d in zip(found, old, dots, strict=True)]  # fmt: skip
        b.emit(ir.Atomic(stmt.kind, stmt.array, index, stmt.comps, name(stmt.values, m), (), stmt.span))
        b.emit(ir.Store(plane, index, comps, new, stmt.span))
