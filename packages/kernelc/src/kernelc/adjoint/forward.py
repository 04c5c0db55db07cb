"""Forward mode, from IR to IR: every active value gets a tangent beside it; arrays get tangent arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import ir
from .activity import Activity, analyse
from .clone import Cloner, Names, fresh, inline, name
from .rules import Rules, add, scale


def tangent(kernel: ir.Kernel, seeds: Iterable[int], *, singular: str = "zero") -> ir.Kernel:
    """The kernel with the derivative of everything it writes in the direction of the tangent arrays at `seeds`."""
    activity = analyse(kernel, seeds)
    pusher = _Pusher(activity, singular)
    b = ir.Builder()
    m: Names = {}
    for stmt in kernel.body.body:
        pusher.statement(b, stmt, m)
    return ir.verify(kernel.with_body(b.block, f"{kernel.name}_tangent"))


class _Pusher(Cloner):
    """Copies statements with their effects, and adds the tangents. `dot` maps original values to tangents."""

    def __init__(self, activity: Activity, singular: str):
        super().__init__(effects=True)
        self.varied, self.arrays = activity.varied, activity.arrays
        self.rules = Rules(singular, ir.Block())
        self.dot: Names = {}

    def tangents(self, values: Sequence[ir.Value]) -> list[ir.Value | None]:
        return [self.dot.get(v) if v in self.varied else None for v in values]

    def or_zero(self, value: ir.Value) -> ir.Value:
        return self.dot.get(value) or ir.const(value.type, 0)

    def statement(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        if isinstance(stmt, ir.Record):
            b.emit(ir.Record(m.get(stmt.sequence, stmt.sequence), m.get(stmt.value, stmt.value), stmt.span))
            return
        if isinstance(stmt, ir.Atomic) and stmt.kind != "add" and stmt.array.position in self.arrays:
            self.extremum(b, stmt, m)
            return
        super().statement(b, stmt, m)
        if isinstance(stmt, ir.Op):
            self.operation(b, stmt, m)
        elif isinstance(stmt, ir.Load) and stmt.array.position in self.arrays:
            self.load(b, stmt, m)
        elif isinstance(stmt, (ir.Store, ir.Atomic)) and stmt.array.position in self.arrays:
            self.write(b, stmt, m)
        elif isinstance(stmt, ir.Call):
            self.call(b, stmt, m)

    def operation(self, b: ir.Builder, stmt: ir.Op, m: Names) -> None:
        if stmt.out not in self.varied:
            return
        args, tangents = name(stmt.args, m), self.tangents(stmt.args)
        if stmt.op == "cast":
            assert tangents[0] is not None
            self.dot[stmt.out] = b.cast(stmt.out.type, tangents[0])
        elif stmt.op == "select":
            self.dot[stmt.out] = b.op("select", args[0], *(self.or_zero(v) for v in stmt.args[1:]))
        else:
            total = self.rules.push(b, stmt, args, m[stmt.out], tangents)
            if total is not None:
                self.dot[stmt.out] = total

    def reals(self, stmt: ir.Load | ir.Store | ir.Atomic, values: Sequence[ir.Value]) -> list[tuple[int, ir.Value]]:
        return [(c, v) for c, v in zip(stmt.comps, values, strict=True) if v.type.is_float]

    def load(self, b: ir.Builder, stmt: ir.Load, m: Names) -> None:
        found = self.reals(stmt, stmt.outs)
        if found:
            dots = b.load(
                stmt.array.partner("tangent"), name(stmt.index, m), [c for c, _ in found], [v.type for _, v in found]
            )
            self.dot.update(zip([v for _, v in found], dots, strict=True))

    def write(self, b: ir.Builder, stmt: ir.Store | ir.Atomic, m: Names) -> None:
        found = self.reals(stmt, stmt.values)
        if not found:
            return
        array, index = stmt.array.partner("tangent"), name(stmt.index, m)
        comps, dots = [c for c, _ in found], [self.or_zero(v) for _, v in found]
        if isinstance(stmt, ir.Store):
            b.emit(ir.Store(array, index, comps, dots, stmt.span))
        else:
            b.emit(ir.Atomic("add", array, index, comps, dots, (), stmt.span))

    def extremum(self, b: ir.Builder, stmt: ir.Atomic, m: Names) -> None:
        """A thread that changes the content brings its tangent along; threads run in order."""
        index, found = name(stmt.index, m), self.reals(stmt, stmt.values)
        comps, types = [c for c, _ in found], [v.type for _, v in found]
        old = b.load(stmt.array, index, comps, types)
        dots = b.load(stmt.array.partner("tangent"), index, comps, types)
        better = "lt" if stmt.kind == "min" else "gt"
        new = [
            b.op("select", b.op(better, m.get(v, v), o), self.or_zero(v), d)
            for (_, v), o, d in zip(found, old, dots, strict=True)
        ]
        b.emit(ir.Atomic(stmt.kind, stmt.array, index, stmt.comps, name(stmt.values, m), (), stmt.span))
        b.emit(ir.Store(stmt.array.partner("tangent"), index, comps, new, stmt.span))

    def call(self, b: ir.Builder, stmt: ir.Call, m: Names) -> None:
        """A function with its own adjoint: each row of its Jacobian is the adjoint of one result."""
        tangents = self.tangents(stmt.args)
        if all(v is None for v in tangents):
            return
        args = name(stmt.args, m)
        for k, out in enumerate(stmt.outs):
            if not out.type.is_float:
                continue
            seeds = [ir.const(o.type, 1 if i == k else 0) for i, o in enumerate(stmt.outs)]
            row = inline(b, stmt.function.adjoint, [*args, *seeds])
            total: ir.Value | None = None
            for slope, dot in zip(row, tangents, strict=True):
                if dot is not None:
                    total = add(b, total, scale(b, dot, slope))
            if total is not None:
                self.dot[out] = total

    # -- control flow carries the tangents along
    def if_(self, b: ir.Builder, stmt: ir.If, m: Names) -> None:
        cond = m.get(stmt.cond, stmt.cond)
        moving = [i for i, out in enumerate(stmt.outs) if out in self.varied]
        blocks = []
        for source in stmt.blocks():
            block = self.block(source, dict(m))
            block.yields.extend(self.or_zero(source.yields[i]) for i in moving)
            blocks.append(block)
        outs = fresh(stmt.outs, m)
        for i in moving:
            self.dot[stmt.outs[i]] = ir.Value(stmt.outs[i].type, f"dot_{stmt.outs[i].name}")
            outs.append(self.dot[stmt.outs[i]])
        b.emit(ir.If(outs, cond, blocks[0], blocks[1], stmt.span))

    def loop(self, b: ir.Builder, stmt: ir.Loop, m: Names) -> None:
        inner = dict(m)
        params = fresh(stmt.body.params, inner)
        moving = [i for i, p in enumerate(stmt.body.params[1:]) if p in self.varied]
        inits = name(stmt.inits, m) + [self.or_zero(stmt.inits[i]) for i in moving]
        for i in moving:
            p = stmt.body.params[i + 1]
            self.dot[p] = ir.Value(p.type, f"dot_{p.name}")
            params.append(self.dot[p])
        body = self.block(stmt.body, inner)
        body.yields.extend(self.or_zero(stmt.body.yields[i]) for i in moving)
        body.params = params
        trips = m.get(stmt.trips, stmt.trips) if stmt.trips is not None else None
        stop = inner.get(stmt.stop, stmt.stop) if stmt.stop is not None else None
        outs = fresh(stmt.outs, m)
        for i in moving:
            self.dot[stmt.outs[i]] = ir.Value(stmt.outs[i].type, f"dot_{stmt.outs[i].name}")
            outs.append(self.dot[stmt.outs[i]])
        b.emit(ir.Loop(outs, trips, inits, body, stop, stmt.span, stmt.down))
