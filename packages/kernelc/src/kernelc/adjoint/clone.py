"""Copies statements under a renaming of values. The reverse sweep runs such copies to get primal values back."""

from __future__ import annotations

from collections.abc import Sequence, Set

from .. import ir

Names = dict[ir.Value, ir.Value]


def name(values: Sequence[ir.Value], m: Names) -> list[ir.Value]:
    """The values under their new names; what is not renamed stays itself (constants, parameters)."""
    return [m.get(v, v) for v in values]


def fresh(values: Sequence[ir.Value], m: Names) -> list[ir.Value]:
    """New names for results."""
    out = []
    for v in values:
        m[v] = ir.Value(v.type, v.name)
        out.append(m[v])
    return out


class Cloner:
    """Copies the primal computation of a kernel, without its effects.

    Stores go to `hazards` only, and are logged there: these arrays are read again by the same thread. Results of
    atomics are recalled from the record of the forward sweep.
    """

    def __init__(self, hazards: Set[int] = frozenset(), *, effects: bool = False, loose: Set[ir.Value] = frozenset()):
        self.hazards = hazards
        self.effects = effects
        self.loose = loose
        """Results whose last bit decides nothing: their copies need not be exact."""
        self.tapes: dict[ir.Tape, ir.Tape] = {}
        self.exact = True
        """Whether the original runs as well, so that the copy must give the same bits."""

    def statement(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        b.span = stmt.span
        if isinstance(stmt, ir.Op):
            m[stmt.out] = ir.Value(stmt.out.type, stmt.out.name)
            exact = self.exact and stmt.out not in self.loose
            b.emit(ir.Op(m[stmt.out], stmt.op, name(stmt.args, m), stmt.span, exact, stmt.guard))
        elif isinstance(stmt, ir.Query):
            (out,) = fresh((stmt.out,), m)
            b.emit(ir.Query(out, stmt.what, stmt.axis, stmt.array, stmt.span))
        elif isinstance(stmt, ir.Load):
            index = name(stmt.index, m)
            b.emit(ir.Load(fresh(stmt.outs, m), stmt.array, index, stmt.comps, stmt.span))
        elif isinstance(stmt, ir.Call):
            args = name(stmt.args, m)
            b.emit(ir.Call(fresh(stmt.outs, m), stmt.function, args, stmt.span))
        elif isinstance(stmt, ir.If):
            self.if_(b, stmt, m)
        elif isinstance(stmt, ir.Loop):
            self.loop(b, stmt, m)
        elif isinstance(stmt, ir.Record) and not self.effects:
            # The value was computed by an atomic that is not run again.
            sequence = m.get(stmt.sequence, stmt.sequence)
            (out,) = fresh((stmt.value,), m)
            b.emit(ir.Recall(out, sequence, stmt.span))
        else:
            self.effect(b, stmt, m)

    def effect(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        logged = not self.effects
        if isinstance(stmt, (ir.Store, ir.Atomic)) and (self.effects or stmt.array.position in self.hazards):
            index, values = name(stmt.index, m), name(stmt.values, m)
            if isinstance(stmt, ir.Store):
                b.emit(ir.Store(stmt.array, index, stmt.comps, values, stmt.span, logged))
            else:
                outs = fresh(stmt.outs, m) if self.effects else ()
                expected = name(stmt.expected, m)
                b.emit(ir.Atomic(stmt.kind, stmt.array, index, stmt.comps, values, outs, stmt.span, logged, expected))
        elif self.effects and isinstance(stmt, ir.Check):
            payload = name(stmt.payload, m)
            b.emit(ir.Check(m.get(stmt.cond, stmt.cond), stmt.code, stmt.message, payload, stmt.span))
        elif self.effects and isinstance(stmt, ir.Print):
            b.emit(ir.Print(stmt.parts, name(stmt.values, m), stmt.span))
        elif isinstance(stmt, (ir.Push, ir.Pop)):
            # The loop tape of a gradient inside the kernel; every copy has its own.
            tape = self.tapes.setdefault(stmt.tape, ir.Tape(stmt.tape.name, stmt.tape.span))
            if isinstance(stmt, ir.Push):
                b.emit(ir.Push(tape, name(stmt.values, m), stmt.span))
            else:
                b.emit(ir.Pop(fresh(stmt.outs, m), tape, stmt.span))

    def block(self, source: ir.Block, m: Names) -> ir.Block:
        b = ir.Builder()
        for stmt in source.body:
            self.statement(b, stmt, m)
        b.block.yields = name(source.yields, m)
        return b.block

    def if_(self, b: ir.Builder, stmt: ir.If, m: Names) -> None:
        cond = m.get(stmt.cond, stmt.cond)
        then, orelse = self.block(stmt.then, dict(m)), self.block(stmt.orelse, dict(m))
        b.emit(ir.If(fresh(stmt.outs, m), cond, then, orelse, stmt.span))

    def loop(self, b: ir.Builder, stmt: ir.Loop, m: Names) -> None:
        inner = dict(m)
        params = fresh(stmt.body.params, inner)
        trips = m.get(stmt.trips, stmt.trips) if stmt.trips is not None else None
        inits = name(stmt.inits, m)
        body = self.block(stmt.body, inner)
        body.params = params
        stop = inner.get(stmt.stop, stmt.stop) if stmt.stop is not None else None
        b.emit(ir.Loop(fresh(stmt.outs, m), trips, inits, body, stop, stmt.span, stmt.down))


def inline(b: ir.Builder, block: ir.Block, args: Sequence[ir.Value]) -> list[ir.Value]:
    """Copy a block of its own into the builder, with arguments for its parameters; returns what it yields."""
    m: Names = dict(zip(block.params, args, strict=True))
    cloner = Cloner(effects=True)
    for stmt in block.body:
        cloner.statement(b, stmt, m)
    return name(block.yields, m)
