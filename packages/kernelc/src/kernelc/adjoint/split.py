"""`loop_tape="sqrt"`: a loop of n iterations becomes √n loops of √n, so that only 2√n states are kept at a time."""

from __future__ import annotations

from .. import ir
from ..types import BOOL, FLOAT64
from .clone import Cloner, Names, fresh, name

_UNKNOWN_LENGTH = 256
"""Iterations per inner loop where the number of iterations is not known before."""


def split_loops(kernel: ir.Kernel) -> ir.Kernel:
    """The same kernel with every loop split in two."""
    b = ir.Builder()
    cloner = _Splitter(effects=True)
    m: Names = {}
    for stmt in kernel.body.body:
        cloner.statement(b, stmt, m)
    return ir.verify(kernel.with_body(b.block))


class _Splitter(Cloner):
    def statement(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        if isinstance(stmt, ir.Record):
            b.emit(ir.Record(m.get(stmt.sequence, stmt.sequence), m.get(stmt.value, stmt.value), stmt.span))
            return
        super().statement(b, stmt, m)

    def loop(self, b: ir.Builder, stmt: ir.Loop, m: Names) -> None:
        if stmt.down:
            # The reverse sweep of a kc.grad: it counts down, and what it needs was kept by the loop before.
            super().loop(b, stmt, m)
            return
        kind = stmt.body.params[0].type
        trips = m.get(stmt.trips, stmt.trips) if stmt.trips is not None else None
        length, outer_trips = self.lengths(b, trips, kind)
        outer = ir.Builder(ir.Block(), stmt.span)
        chunk = ir.Value(kind, "chunk")
        carried = [ir.Value(v.type, v.name) for v in stmt.inits]
        first = outer.op("mul", chunk, length)
        inner_trips = length if trips is None else outer.op("min", length, outer.op("sub", trips, first))
        results, stopped = self.inner(outer, stmt, m, first, inner_trips, carried)
        outer.block.params, outer.block.yields = [chunk, *carried], results
        inits = name(stmt.inits, m)
        b.emit(ir.Loop(fresh(stmt.outs, m), outer_trips, inits, outer.block, stopped, stmt.span))

    def lengths(
        self, b: ir.Builder, trips: ir.Value | None, kind: ir.Value | object
    ) -> tuple[ir.Value, ir.Value | None]:
        if trips is None:
            return ir.const(kind, _UNKNOWN_LENGTH), None  # type: ignore[arg-type]
        root = b.op("ceil", b.op("sqrt", b.cast(FLOAT64, trips)))
        length = b.op("max", b.cast(trips.type, root), ir.const(trips.type, 1))
        rounded = b.op("sub", b.op("add", trips, length), ir.const(trips.type, 1))
        return length, b.op("floordiv", rounded, length)

    def inner(
        self, b: ir.Builder, stmt: ir.Loop, m: Names, first: ir.Value, trips: ir.Value, carried: list[ir.Value]
    ) -> tuple[list[ir.Value], ir.Value | None]:
        scope = dict(m)
        body = ir.Builder(ir.Block(), stmt.span)
        step = ir.Value(first.type, "step")
        params = fresh(stmt.body.params[1:], scope)
        scope[stmt.body.params[0]] = body.op("add", first, step)
        for inner_stmt in stmt.body.body:
            self.statement(body, inner_stmt, scope)
        yields = name(stmt.body.yields, scope)
        outs = [ir.Value(v.type, v.name) for v in carried]
        if stmt.stop is None:
            body.block.params, body.block.yields = [step, *params], yields
            b.emit(ir.Loop(outs, trips, carried, body.block, None, stmt.span))
            return outs, None
        # Whether the inner loop was left early is carried out of it.
        stop = scope.get(stmt.stop, stmt.stop)
        flag, left = ir.Value(BOOL, "stopped"), ir.Value(BOOL, "stopped")
        body.block.params, body.block.yields = [step, *params, flag], [*yields, stop]
        b.emit(ir.Loop([*outs, left], trips, [*carried, ir.FALSE], body.block, stop, stmt.span))
        return outs, left
