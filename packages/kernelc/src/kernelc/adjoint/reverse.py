"""Reverse mode, from IR to IR.

The adjoint of a block first runs the block's own computation again (its *primal*, without effects), then walks its
statements backwards. Inside a branch or a loop the same happens in turn:

    If    the same side is taken again, as the adjoint of an If
    Loop  the primal loop pushes the carried values of each iteration; the adjoint loop runs the iterations in
          reverse order, pops them, runs the body again from there, and walks it backwards

Everything is kept at first; pruning then removes what the backward walk does not read, so an additive accumulator is
never pushed. Loads add to the adjoint of the array, stores take it and set it to zero. Arrays that a thread reads
after writing are restored on the way by the undo log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .. import ir
from ..errors import NotDifferentiable
from ..types import BOOL, INT64, Scalar, leaves
from .activity import Activity, analyse, analyse_block
from .clone import Cloner, Names, fresh, inline, name
from .hazards import hazards, writes_hazard
from .quotients import factors, share
from .rules import Rules, add
from .ties import Ties

Adjoints = dict[ir.Value, ir.Value]


@dataclass
class _Memory:
    """What the primal copy of a statement left for its adjoint."""

    tape: ir.Tape | None = None
    count: ir.Value | None = None
    mark: ir.Value | None = None


@dataclass
class AdjointKernel:
    """The adjoint as a kernel, and what the runtime must know of it."""

    kernel: ir.Kernel
    activity: Activity
    tapes: dict[ir.Tape, list[ir.Value]] = field(default_factory=dict)


def adjoint(kernel: ir.Kernel, seeds: Iterable[int], *, singular: str = "zero") -> AdjointKernel:
    """The adjoint kernel for a launch in which the arrays at `seeds` carry gradients."""
    seeds = frozenset(seeds)
    activity = analyse(kernel, seeds)
    check_atomics(kernel, activity)
    dangerous = hazards(kernel)
    reverser = _Reverser(kernel.body, activity, dangerous, singular, Ties(kernel, seeds))
    body, _ = reverser.region(kernel.body, {}, {})
    result = kernel.with_body(body, f"{kernel.name}_adjoint")
    result = ir.fuse_adjoint(share(drop_idle_logs(ir.prune(result), dangerous)))
    return AdjointKernel(ir.verify(result), activity, _tapes(result))


def gradient_block(block: ir.Block, singular: str) -> ir.Block:
    """A block of its own: partial derivatives of the one real that `block` yields, by its parameters."""
    reals = [p for p in block.params if p.type.is_float]
    reverser = _Reverser(block, analyse_block(block, reals), set(), singular)
    out = block.yields[0]
    seeded, outer = reverser.region(ir.Block([], block.body, []), {}, {out: ir.const(out.type, 1)})
    zero = {p: ir.const(p.type, 0) for p in block.params}
    seeded.params = block.params
    seeded.yields = [outer.get(p, zero[p]) for p in block.params]
    return ir.prune_block(seeded)


class _Reverser:
    def __init__(
        self, block: ir.Block, activity: Activity, dangerous: set[int], singular: str, ties: Ties | None = None
    ):
        self.varied = activity.varied
        self.arrays = activity.arrays
        self.dangerous = dangerous
        self.rules = Rules(singular, block, ties)
        self.cloner = Cloner(dangerous, loose=factors(block, dangerous))

    # -- one block
    def region(self, block: ir.Block, outer: Names, seeds: Adjoints) -> tuple[ir.Block, Adjoints]:
        """Primal copy, then backward walk. Returns the block, and the adjoints of values from outside of it."""
        b = ir.Builder()
        return b.block, self.into(b, block, dict(outer), seeds)

    def into(self, b: ir.Builder, block: ir.Block, m: Names, seeds: Adjoints) -> Adjoints:
        memories = [self.primal(b, stmt, m) for stmt in block.body]
        adj = dict(seeds)
        inside = {v for stmt in block.body for v in stmt.outputs()}
        for stmt, memory in zip(reversed(block.body), reversed(memories), strict=True):
            b.span = stmt.span
            self.backward(b, stmt, m, adj, memory)
        return {v: g for v, g in adj.items() if v not in inside}

    def primal(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> _Memory:
        b.span = stmt.span
        memory = _Memory()
        if isinstance(stmt, ir.Loop):
            self.taped_loop(b, stmt, m, memory)
            return memory
        if (isinstance(stmt, (ir.Store, ir.Atomic)) and stmt.array.position in self.dangerous) or (
            isinstance(stmt, ir.If) and any(writes_hazard(x, self.dangerous) for x in stmt.blocks())
        ):
            memory.mark = self.mark(b)
        self.cloner.statement(b, stmt, m)
        return memory

    def mark(self, b: ir.Builder) -> ir.Value:
        out = ir.Value(INT64, "mark")
        b.emit(ir.Mark(out, b.span))
        return out

    # -- loops
    def taped_loop(self, b: ir.Builder, stmt: ir.Loop, m: Names, memory: _Memory) -> None:
        """The primal loop, which pushes the carried values of every iteration and counts the iterations."""
        memory.tape = ir.Tape(f"line {stmt.span.line}" if stmt.span else "loop", stmt.span, stmt)
        inner = dict(m)
        params = fresh(stmt.body.params, inner)
        counts = stmt.stop is not None
        body = ir.Builder(ir.Block(), stmt.span)
        kept = params[1:]
        if writes_hazard(stmt.body, self.dangerous):
            kept = [*kept, self.mark(body)]
        body.emit(ir.Push(memory.tape, kept, stmt.span))
        for inner_stmt in stmt.body.body:
            self.cloner.statement(body, inner_stmt, inner)
        yields = name(stmt.body.yields, inner)
        inits, outs = name(stmt.inits, m), fresh(stmt.outs, m)
        trips = m.get(stmt.trips, stmt.trips) if stmt.trips is not None else None
        if counts:
            # The counter is carried, because the way out of the loop is not known before.
            so_far, total = ir.Value(params[0].type, "count"), ir.Value(params[0].type, "count")
            params, inits, outs = [*params, so_far], [*inits, ir.const(so_far.type, 0)], [*outs, total]
            yields.append(body.op("add", so_far, ir.const(so_far.type, 1)))
            memory.count = total
        else:
            memory.count = trips
        body.block.params, body.block.yields = params, yields
        stop = inner.get(stmt.stop, stmt.stop) if stmt.stop is not None else None
        b.emit(ir.Loop(outs, trips, inits, body.block, stop, stmt.span, stmt.down))

    def backward_loop(self, b: ir.Builder, stmt: ir.Loop, m: Names, adj: Adjoints, memory: _Memory) -> None:
        params = stmt.body.params[1:]
        given = [adj.pop(out, None) for out in stmt.outs]
        moving = [i for i, p in enumerate(params) if p in self.varied]
        if all(given[i] is None for i in moving) and not self.touches(stmt.body):
            if memory.mark is not None or writes_hazard(stmt.body, self.dangerous):
                self.unwind(b, stmt, m, memory)
            return
        assert memory.tape is not None and memory.count is not None
        _check_tapes(stmt)
        body = ir.Builder(ir.Block(), stmt.span)
        inner = dict(m)
        (k,) = fresh(stmt.body.params[:1], inner)
        self.pop(body, stmt, memory.tape, inner)
        incoming = {i: ir.Value(params[i].type, f"adj_{params[i].name}") for i in moving}
        seeds: Adjoints = {}
        for i in moving:
            y = stmt.body.yields[i]
            if y in self.varied:
                seeds[y] = add(body, seeds.get(y), incoming[i])
        outer = self.into(body, stmt.body, inner, seeds)
        leaving = [outer.pop(params[i], None) for i in moving]
        sums = {v: ir.Value(v.type, f"adj_{v.name}") for v in outer}
        body.block.yields = [
            *(g if g is not None else ir.const(params[i].type, 0) for i, g in zip(moving, leaving, strict=True)),
            *(body.op("add", sums[v], g) for v, g in outer.items()),
        ]
        body.block.params = [k, *incoming.values(), *sums.values()]
        inits = [
            *(self.or_zero(given[i], params[i].type) for i in moving),
            *(self.or_zero(None, v.type) for v in outer),
        ]
        outs = [ir.Value(v.type, v.name) for v in body.block.params[1:]]
        # A loop that already counts down is the reverse sweep of a kc.grad: its own goes up.
        b.emit(ir.Loop(outs, memory.count, inits, body.block, None, stmt.span, down=not stmt.down))
        for i, out in zip(moving, outs, strict=False):
            self.give(b, adj, stmt.inits[i], out)
        for v, out in zip(outer, outs[len(moving) :], strict=True):
            self.give(b, adj, v, out)

    def pop(self, body: ir.Builder, stmt: ir.Loop, tape: ir.Tape, inner: Names) -> None:
        outs = fresh(stmt.body.params[1:], inner)
        if writes_hazard(stmt.body, self.dangerous):
            mark = ir.Value(INT64, "mark")
            body.emit(ir.Pop([*outs, mark], tape, stmt.span))
            body.emit(ir.Undo(mark, stmt.span))
        else:
            body.emit(ir.Pop(outs, tape, stmt.span))

    def unwind(self, b: ir.Builder, stmt: ir.Loop, m: Names, memory: _Memory) -> None:
        """A loop without adjoint whose stores must still be taken back."""
        assert memory.tape is not None and memory.count is not None
        body = ir.Builder(ir.Block(), stmt.span)
        body.block.params = [ir.Value(stmt.body.params[0].type, "k")]
        self.pop(body, stmt, memory.tape, dict(m))
        b.emit(ir.Loop([], memory.count, [], body.block, None, stmt.span, down=True))

    def or_zero(self, value: ir.Value | None, type: Scalar) -> ir.Value:
        return value if value is not None else ir.const(type, 0)

    def touches(self, block: ir.Block) -> bool:
        """Whether a block writes to an array that carries an adjoint."""
        return any(isinstance(s, (ir.Store, ir.Atomic)) and s.array.position in self.arrays for s in block.walk())

    # -- branches
    def backward_if(self, b: ir.Builder, stmt: ir.If, m: Names, adj: Adjoints, memory: _Memory) -> None:
        given = [adj.pop(out, None) for out in stmt.outs]
        if memory.mark is not None:
            b.emit(ir.Undo(memory.mark, stmt.span))
        if all(g is None for g in given) and not any(self.touches(x) for x in stmt.blocks()):
            return
        blocks, outers = [], []
        for block in stmt.blocks():
            inner = ir.Builder(ir.Block(), stmt.span)
            seeds: Adjoints = {}
            for y, g in zip(block.yields, given, strict=True):
                if g is not None and y in self.varied:
                    seeds[y] = add(inner, seeds.get(y), g)
            outers.append(self.into(inner, block, dict(m), seeds))
            blocks.append(inner.block)
        values = list(dict.fromkeys([*outers[0], *outers[1]]))
        outs = [ir.Value(v.type, f"adj_{v.name}") for v in values]
        for block, outer in zip(blocks, outers, strict=True):
            block.yields = [outer.get(v, ir.const(v.type, 0)) for v in values]
        b.emit(ir.If(outs, m.get(stmt.cond, stmt.cond), blocks[0], blocks[1], stmt.span))
        for v, out in zip(values, outs, strict=True):
            self.give(b, adj, v, out)

    # -- simple statements
    def backward(self, b: ir.Builder, stmt: ir.Stmt, m: Names, adj: Adjoints, memory: _Memory) -> None:
        if isinstance(stmt, ir.Op):
            self.backward_op(b, stmt, m, adj)
        elif isinstance(stmt, ir.Load):
            self.backward_load(b, stmt, m, adj)
        elif isinstance(stmt, ir.Store):
            if memory.mark is not None:
                b.emit(ir.Undo(memory.mark, stmt.span))
            self.backward_store(b, stmt, m, adj)
        elif isinstance(stmt, ir.Atomic):
            if memory.mark is not None:
                b.emit(ir.Undo(memory.mark, stmt.span))
            self.backward_atomic(b, stmt, m, adj)
        elif isinstance(stmt, ir.If):
            self.backward_if(b, stmt, m, adj, memory)
        elif isinstance(stmt, ir.Loop):
            self.backward_loop(b, stmt, m, adj, memory)
        elif isinstance(stmt, ir.Call):
            self.backward_call(b, stmt, m, adj)

    def give(self, b: ir.Builder, adj: Adjoints, value: ir.Value, g: ir.Value) -> None:
        """Add to the adjoint of a value that has one."""
        if value in self.varied:
            adj[value] = add(b, adj.get(value), g)

    def backward_op(self, b: ir.Builder, stmt: ir.Op, m: Names, adj: Adjoints) -> None:
        g = adj.pop(stmt.out, None)
        if g is None:
            return
        args = name(stmt.args, m)
        if stmt.op == "cast":
            self.give(b, adj, stmt.args[0], b.cast(stmt.args[0].type, g))
        elif stmt.guard:
            self.give(b, adj, stmt.args[1], g)  # a product, also where it is zero
        elif stmt.op == "select":
            zero = ir.const(g.type, 0)
            if stmt.args[1] in self.varied:
                self.give(b, adj, stmt.args[1], b.op("select", args[0], g, zero))
            if stmt.args[2] in self.varied:
                self.give(b, adj, stmt.args[2], b.op("select", args[0], zero, g))
        else:
            active = [v in self.varied for v in stmt.args]
            parts = self.rules.pull(b, stmt, args, m[stmt.out], g, active)
            for value, part in zip(stmt.args, parts, strict=True):
                if part is not None:
                    self.give(b, adj, value, part)

    def backward_load(self, b: ir.Builder, stmt: ir.Load, m: Names, adj: Adjoints) -> None:
        found = [(c, g) for c, v in zip(stmt.comps, stmt.outs, strict=True) if (g := adj.pop(v, None)) is not None]
        if not found or stmt.array.position not in self.arrays:
            return
        comps, values = zip(*found, strict=True)
        grad = stmt.array.partner("grad")
        kinds = leaves(grad.type.element)
        fitting = [b.cast(kinds[c], g) for c, g in zip(comps, values, strict=True)]
        b.emit(ir.Atomic("add", grad, name(stmt.index, m), comps, fitting, (), stmt.span))

    def backward_store(self, b: ir.Builder, stmt: ir.Store, m: Names, adj: Adjoints) -> None:
        reals = [(c, v) for c, v in zip(stmt.comps, stmt.values, strict=True) if v.type.is_float]
        if not reals or stmt.array.position not in self.arrays:
            return
        comps = [c for c, _ in reals]
        grad, index = stmt.array.partner("grad"), name(stmt.index, m)
        taken = self.adjoints_at(b, grad, index, reals)
        kinds = leaves(grad.type.element)
        b.emit(ir.Store(grad, index, comps, [ir.const(kinds[c], 0) for c in comps], stmt.span))
        for (_, value), g in zip(reals, taken, strict=True):
            self.give(b, adj, value, g)

    def adjoints_at(
        self, b: ir.Builder, grad: ir.ArrayRef, index: list[ir.Value], reals: list[tuple[int, ir.Value]]
    ) -> list[ir.Value]:
        """The adjoints of leaves of an element, in the types of the values that were written there."""
        kinds, comps = leaves(grad.type.element), [c for c, _ in reals]
        found = b.load(grad, index, comps, [kinds[c] for c in comps])
        return [b.cast(v.type, g) for (_, v), g in zip(reals, found, strict=True)]

    def backward_atomic(self, b: ir.Builder, stmt: ir.Atomic, m: Names, adj: Adjoints) -> None:
        if stmt.array.position not in self.arrays or not any(v in self.varied for v in stmt.values):
            if stmt.kind == "add" or stmt.array.position not in self.arrays:
                return
        reals = [(c, v) for c, v in zip(stmt.comps, stmt.values, strict=True) if v.type.is_float]
        comps, types = [c for c, _ in reals], [v.type for _, v in reals]
        grad, index = stmt.array.partner("grad"), name(stmt.index, m)
        taken = self.adjoints_at(b, grad, index, reals)
        if stmt.kind == "add":
            for (_, value), g in zip(reals, taken, strict=True):
                self.give(b, adj, value, g)
            return
        # Minimum and maximum: the lowest thread that holds the final content takes the adjoint and leaves zero, unless
        # the content was there before.
        final = b.load(stmt.array.partner("final"), index, comps, types)
        start = b.load(stmt.array, index, comps, types)
        for (comp, value), g, end, begin in zip(reals, taken, final, start, strict=True):
            holds = b.op("and", b.op("eq", m.get(value, value), end), b.op("ne", begin, end))
            wins, zero = ir.Value(BOOL, "wins"), ir.const(g.type, 0)
            b.emit(ir.Claim(wins, grad, index, comp, holds, stmt.span))
            self.give(b, adj, value, b.op("select", wins, g, zero))
            cleared = ir.Block([], [ir.Store(grad, index, [comp], [zero], stmt.span)])
            b.emit(ir.If([], wins, cleared, ir.Block(), stmt.span))

    def backward_call(self, b: ir.Builder, stmt: ir.Call, m: Names, adj: Adjoints) -> None:
        given = [adj.pop(out, None) for out in stmt.outs]
        if all(g is None for g in given):
            return
        seeds = [self.or_zero(g, out.type) for g, out in zip(given, stmt.outs, strict=True)]
        results = inline(b, stmt.function.adjoint, [*name(stmt.args, m), *seeds])
        for value, g in zip(stmt.args, results, strict=True):
            if value.type.is_float:
                self.give(b, adj, value, g)


def _check_tapes(loop: ir.Loop) -> None:
    """A loop that fills a tape for another loop, or empties it, cannot be run again in the reverse sweep."""
    inside = list(loop.body.walk())
    if {s.tape for s in inside if isinstance(s, ir.Push)} != {s.tape for s in inside if isinstance(s, ir.Pop)}:
        raise NotDifferentiable("the gradient of a loop, taken by kc.grad, cannot be differentiated again", loop.span)


def check_atomics(kernel: ir.Kernel, activity: Activity) -> None:
    """An array that several threads take the minimum or maximum of must not be written in another way as well."""
    kinds: dict[int, str] = {}
    for stmt in kernel.body.walk():
        if isinstance(stmt, (ir.Store, ir.Atomic)) and stmt.array.position in activity.arrays:
            kind = stmt.kind if isinstance(stmt, ir.Atomic) else "store"
            if kind in ("min", "max") and any(s.is_half for s in leaves(stmt.array.type.element)):
                raise NotDifferentiable(
                    f"{stmt.array.name} holds numbers that are rounded when they are stored: which thread won an "
                    f"atomic {kind} cannot be told", stmt.span, advice="take it in an array of float")  # fmt: skip
            kind = "write" if kind in ("add", "store") else kind
            other = kinds.setdefault(stmt.array.position, kind)
            if other != kind:
                raise NotDifferentiable(
                    f"{stmt.array.name} is changed by an atomic {kind if kind != 'write' else other} and otherwise "
                    "in the same kernel: which thread won cannot be told", stmt.span,
                    advice="do the two in two launches")  # fmt: skip


def drop_idle_logs(kernel: ir.Kernel, dangerous: set[int]) -> ir.Kernel:
    """Stores are logged only for arrays whose content the adjoint really reads."""
    read = {s.array.position for s in kernel.body.walk() if isinstance(s, ir.Load) and s.array.role == "value"}
    idle = dangerous - read
    if not idle:
        return kernel
    _remove(kernel.body, lambda s: isinstance(s, (ir.Store, ir.Atomic)) and s.logged and s.array.position in idle)
    if not any(isinstance(s, (ir.Store, ir.Atomic)) and s.logged for s in kernel.body.walk()):
        _remove(kernel.body, lambda s: isinstance(s, ir.Undo))
    return drop_idle_logs(ir.prune(kernel), dangerous - idle)


def _remove(block: ir.Block, dead: object) -> None:
    assert callable(dead)
    block.body[:] = [s for s in block.body if not dead(s)]
    for stmt in block.body:
        for inner in stmt.blocks():
            _remove(inner, dead)


def _tapes(kernel: ir.Kernel) -> dict[ir.Tape, list[ir.Value]]:
    return {s.tape: list(s.values) for s in kernel.body.walk() if isinstance(s, ir.Push)}
