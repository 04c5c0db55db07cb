"""Forward mode, from IR to IR: every active value gets tangents beside it, every active array gets arrays of them.

A tangent kernel runs beside the kernel it is made of, not in its place. It computes again what slopes need, reads
contents where the reverse sweep would, and changes nothing but tangents; what is linear needs nothing computed again.
It pushes several tangents at once: slopes are then computed once for all of them. The tangents are parameters behind
those of the kernel, so that nothing after this pass knows of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .. import ir
from ..errors import NotDifferentiable
from ..types import BOOL, INT64, ArrayType, Composite, Scalar, Type, Vec, leaves
from .activity import Activity, analyse, analyse_block, key
from .clone import Cloner, Names, fresh, inline, name
from .hazards import hazards
from .reverse import check_atomics, drop_idle_logs
from .rules import Rules, add, scale

Dots = list[ir.Value]
"""The tangents of one value."""


@dataclass
class TangentKernel:
    """A kernel that pushes `width` tangents, and what the runtime must know of it."""

    kernel: ir.Kernel
    width: int
    arrays: set[int]
    """The arrays that carry a tangent, by position (activity.key)."""
    planes: dict[int, list[ir.ArrayRef]] = field(default_factory=dict)
    """By the same: the parameters that hold the tangents, one for each, or one in which they lie side by side."""
    claims: dict[int, ir.ArrayRef] = field(default_factory=dict)
    """By position, for minima and maxima: ones where no thread has won yet."""

    def __post_init__(self) -> None:
        walk = list(self.kernel.body.walk())
        loads = [s.array for s in walk if isinstance(s, ir.Load)]
        first = self.first
        self.reads = frozenset(a.position for a in loads if a.role == "value" and a.position < first)
        self.finals = frozenset(a.position for a in loads if a.role == "final")
        self.works = any(isinstance(s, (ir.Store, ir.Atomic)) and s.array.position >= first for s in walk)
        """Whether it does anything at all."""
        self.whole = frozenset(k for k, refs in self.planes.items() if self._stores_whole(refs[0]))
        """Arrays of which each thread surely stores all of its own element, and touches no other."""

    def _stores_whole(self, plane: ir.ArrayRef) -> bool:
        kernel = self.kernel
        axes = {s.out: s.axis for s in kernel.body.walk() if isinstance(s, ir.Query) and s.what == "tid"}
        uses = [s for s in kernel.body.walk() if isinstance(s, (ir.Load, ir.Store, ir.Atomic)) and s.array is plane]
        if len(uses) != 1 or not isinstance(uses[0], ir.Store) or uses[0] not in kernel.body.body or not kernel.dims:
            return False
        own = [axes.get(v, -1) for v in uses[0].index] == list(range(kernel.dims))
        return own and len(set(uses[0].comps)) == len(leaves(plane.type.element))

    @property
    def first(self) -> int:
        """The first parameter that was added."""
        added = [a.position for refs in self.planes.values() for a in refs]
        return min(added, default=len(self.kernel.params))

    def spread(self, positions: Iterable[int]) -> frozenset[int]:
        """Positions of arrays, and of all that was added for them."""
        found = frozenset(positions)
        added = [a.position for k, refs in self.planes.items() if max(k, ~k) in found for a in refs]
        return found.union(added, (a.position for k, a in self.claims.items() if k in found))


def lies_side_by_side(kind: ArrayType, width: int) -> bool:
    """Whether several tangents of a number lie side by side: then one access to memory reaches all of them."""
    return width > 1 and isinstance(kind.element, (Scalar, Composite))


def tangent(
    kernel: ir.Kernel, seeds: Iterable[int], *, width: int = 1, carried: Iterable[int] = (), singular: str = "zero"
) -> TangentKernel:
    """The kernel that pushes tangents of the arrays at `seeds` to everything that is written.

    carried: other arrays that carry a gradient; they have a say in which side of a tie gets how much.
    """
    seeds = frozenset(seeds)
    activity = analyse(kernel, seeds, forward=True)
    check_atomics(kernel, activity)
    _check_halves(kernel, activity)
    sides = analyse(kernel, seeds.union(carried), forward=True).varied if carried else activity.varied
    pusher = _Pusher(kernel, activity, width, singular, hazards(kernel), sides)
    return pusher.push(kernel.body)


def second(adjoint: ir.Kernel, moving: Iterable[int], *, width: int = 1, singular: str = "zero") -> TangentKernel:
    """The adjoint kernel with its tangents: gradients, and how they change along directions of arrays.

    moving: what has tangents when it begins: the contents of arrays, by position, and adjoints, by ~position.
    """
    activity = analyse(adjoint, frozenset(moving), forward=True)
    pusher = _AdjointPusher(adjoint, activity, width, singular, set(), activity.varied)
    return pusher.push(adjoint.body)


def _check_halves(kernel: ir.Kernel, activity: Activity) -> None:
    """Tangents have the type of their array, and of halves they would be too coarse."""
    for array in kernel.arrays():
        if array.position in activity.arrays and any(s.is_half for s in leaves(array.type.element)):
            raise NotDifferentiable(f"{array.name} holds halves, which carry no tangents", kernel.span,
                                    advice="use an array of float, or the reverse sweep: tape.backward")  # fmt: skip


def tangent_block(block: ir.Block, singular: str) -> ir.Block:
    """(parameters, a tangent of each) → tangents of what the block yields; it has no arrays."""
    reals = [p for p in block.params if p.type.is_float]
    activity = analyse_block(block, reals, forward=True)
    pusher = _Pusher(None, activity, 1, singular, set(), activity.varied)
    b = ir.Builder()
    m: Names = {}
    params = fresh(block.params, m)
    dots = [ir.Value(p.type, f"dot_{p.name}") for p in block.params]
    pusher.dot.update((p, [d]) for p, d in zip(block.params, dots, strict=True) if p.type.is_float)
    for stmt in block.body:
        pusher.statement(b, stmt, m)
    b.block.params = [*params, *dots]
    b.block.yields = [pusher.or_zero(y)[0] for y in block.yields]
    return ir.prune_block(b.block)


class _Pusher(Cloner):
    """Copies statements without their effects, and adds the tangents. `dot` maps original values to tangents."""

    undoes = False
    """Whether tangents are taken back where contents are."""
    suffix = "tangent"

    def __init__(
        self, kernel: ir.Kernel | None, activity: Activity, width: int, singular: str, dangerous: set[int],
        sides: set[ir.Value],
    ):  # fmt: skip
        super().__init__(dangerous)
        self.kernel, self.width, self.dangerous, self.sides = kernel, width, dangerous, sides
        self.varied, self.arrays = activity.varied, activity.arrays
        self.slots = activity.slots or {}
        self.rules = Rules(singular, ir.Block())
        self.dot: dict[ir.Value, Dots] = {}
        self.factors: dict[ir.Value, tuple[ir.Value, ...]] = {}
        self.added: list[ir.Param] = []
        self.planes: dict[int, list[ir.ArrayRef]] = {}
        self.claims: dict[int, ir.ArrayRef] = {}
        for array in kernel.arrays() if kernel is not None else ():
            for which in (array, array.partner("grad")):
                if key(which) in self.arrays:
                    count = 1 if lies_side_by_side(which.type, width) else width
                    self.planes[key(which)] = [self.parameter(which, "tangent") for _ in range(count)]

    def push(self, body: ir.Block) -> TangentKernel:
        """The kernel of which this is the body, with its tangents."""
        b = ir.Builder()
        m: Names = {}
        mark = ir.Value(INT64, "mark")
        if self.dangerous:
            b.emit(ir.Mark(mark, None))
        for stmt in body.body:
            self.statement(b, stmt, m)
        if self.dangerous:
            b.emit(ir.Undo(mark, None))
        return self.finish(b.block)

    def scalar(self, scalar: Scalar) -> Scalar:
        """The type of the tangents of a number."""
        return scalar

    def kind(self, array: ir.ArrayRef) -> ArrayType:
        """The type of an array of tangents."""
        element: Type = array.type.element
        if isinstance(element, Composite):
            element = element.with_scalar(self.scalar(element.scalar))
        elif isinstance(element, Scalar):
            element = self.scalar(element)
        if lies_side_by_side(array.type, self.width):
            element = Vec(len(leaves(element)) * self.width, leaves(element)[0])
        return ArrayType(element, array.type.ndim)

    def spread(
        self, array: ir.ArrayRef, comps: Sequence[int], dots: Sequence[Dots]
    ) -> Iterator[tuple[ir.ArrayRef, list[int], Dots]]:  # fmt: skip
        """The tangents of leaves of an element as accesses to the arrays that hold them."""
        planes, width = self.planes[key(array)], self.width
        if len(planes) < width:
            yield planes[0], [c * width + j for c in comps for j in range(width)], [d for each in dots for d in each]
        else:
            yield from ((plane, list(comps), [d[j] for d in dots]) for j, plane in enumerate(planes))

    def load_dots(
        self, b: ir.Builder, array: ir.ArrayRef, index: Sequence[ir.Value], comps: Sequence[int],
        types: Sequence[Scalar],
    ) -> list[Dots]:  # fmt: skip
        """The tangents of each of these leaves of an element."""
        planes, width = self.planes[key(array)], self.width
        if len(planes) < width:
            flat = b.load(planes[0], index, [c * width + j for c in comps for j in range(width)],
                          [t for t in types for _ in range(width)])  # fmt: skip
            return [flat[n * width : (n + 1) * width] for n in range(len(comps))]
        loaded = [b.load(plane, index, comps, types) for plane in planes]
        return [[dots[n] for dots in loaded] for n in range(len(comps))]

    def parameter(self, array: ir.ArrayRef, what: str, role: str = "value") -> ir.ArrayRef:
        """One more array of the kernel, as another one is."""
        assert self.kernel is not None
        of = array.name if array.role == "value" else f"{array.name}.{array.role}"
        kind = self.kind(array) if what == "tangent" else array.type
        made = ir.ArrayRef(f"{of}.{what}", kind, len(self.kernel.params) + len(self.added), role)
        self.added.append(ir.Param(made.name, made if role == "value" else made.partner("value")))
        return made

    def finish(self, body: ir.Block) -> TangentKernel:
        kernel = self.kernel
        assert kernel is not None
        suffix = self.suffix if self.width == 1 else f"{self.suffix}{self.width}"
        made = ir.Kernel(f"{kernel.name}_{suffix}", [*kernel.params, *self.added], body, kernel.real, kernel.span,
                         kernel.dims, kernel.block, derivative=True)  # fmt: skip
        made = ir.fuse_adjoint(drop_idle_logs(ir.prune(made), self.dangerous))
        return TangentKernel(ir.verify(made), self.width, self.arrays, self.planes, self.claims)

    # -- tangents of values
    def tangents(self, values: Sequence[ir.Value]) -> list[Dots | None]:
        return [self.dot.get(v) if v in self.varied else None for v in values]

    def or_zero(self, value: ir.Value) -> Dots:
        return self.dot.get(value) or [ir.const(value.type, 0)] * self.width

    def fresh_dots(self, value: ir.Value) -> Dots:
        self.dot[value] = [ir.Value(value.type, f"dot_{value.name}") for _ in range(self.width)]
        return self.dot[value]

    # -- statements
    def statement(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        if isinstance(stmt, ir.Atomic) and stmt.kind != "add" and key(stmt.array) in self.arrays:
            b.span = stmt.span
            self.extremum(b, stmt, m)
            super().statement(b, stmt, m)
            return
        super().statement(b, stmt, m)
        if isinstance(stmt, ir.Op):
            self.operation(b, stmt, m)
        elif isinstance(stmt, ir.Load) and key(stmt.array) in self.arrays:
            self.load(b, stmt, m)
        elif isinstance(stmt, (ir.Store, ir.Atomic)) and key(stmt.array) in self.arrays:
            self.write(b, stmt, m)
        elif isinstance(stmt, ir.Call):
            self.call(b, stmt, m)

    def effect(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        if isinstance(stmt, (ir.Push, ir.Pop)):
            self.tape(b, stmt, m)
        else:
            super().effect(b, stmt, m)

    def tape(self, b: ir.Builder, stmt: ir.Push | ir.Pop, m: Names) -> None:
        """The loop tape of a gradient inside the kernel keeps the tangents beside the values."""
        moving = sorted(self.slots.get(stmt.tape, ()))
        tape = self.tapes.setdefault(stmt.tape, ir.Tape(stmt.tape.name, stmt.tape.span))
        if isinstance(stmt, ir.Push):
            dots = [d for i in moving for d in self.or_zero(stmt.values[i])]
            b.emit(ir.Push(tape, [*name(stmt.values, m), *dots], stmt.span))
        else:
            outs = fresh(stmt.outs, m)
            dots = [d for i in moving for d in self.fresh_dots(stmt.outs[i])]
            b.emit(ir.Pop([*outs, *dots], tape, stmt.span))

    def guarded(self, b: ir.Builder, stmt: ir.Op, asked: ir.Value, dot: ir.Value, direction: int) -> ir.Value:
        """The tangent of a guarded product: zero only where none of its factors moves, either."""
        for factor in self.factors.get(stmt.args[0], ()):
            moves = self.or_zero(factor)[direction]
            asked = b.op("or", asked, b.op("ne", moves, ir.const(moves.type, 0)))
        return b.guard(asked, dot)

    def compare(self, stmt: ir.Op) -> None:
        """Remember what is compared with zero: the factors of products that are guarded by it."""
        if stmt.op == "ne" and ir.is_const(stmt.args[1], 0):
            self.factors[stmt.out] = (stmt.args[0],)
        elif stmt.op == "or" and all(v in self.factors for v in stmt.args):
            self.factors[stmt.out] = tuple(f for v in stmt.args for f in self.factors[v])

    def operation(self, b: ir.Builder, stmt: ir.Op, m: Names) -> None:
        self.compare(stmt)
        if stmt.out not in self.varied:
            return
        args, tangents = name(stmt.args, m), self.tangents(stmt.args)
        if stmt.op == "cast":
            assert tangents[0] is not None
            self.dot[stmt.out] = [b.cast(stmt.out.type, d) for d in tangents[0]]
        elif stmt.guard:
            dots = self.or_zero(stmt.args[1])
            self.dot[stmt.out] = [self.guarded(b, stmt, args[0], d, j) for j, d in enumerate(dots)]
        elif stmt.op == "select":
            pairs = zip(*(self.or_zero(v) for v in stmt.args[1:]), strict=True)
            self.dot[stmt.out] = [b.op("select", args[0], x, y) for x, y in pairs]
        else:
            shared = sum(v in self.sides for v in stmt.args)
            total = self.rules.push(b, stmt, args, m[stmt.out], tangents, shared)
            if total is not None:
                self.dot[stmt.out] = total

    def reals(self, stmt: ir.Load | ir.Store | ir.Atomic, values: Sequence[ir.Value]) -> list[tuple[int, ir.Value]]:
        return [(c, v) for c, v in zip(stmt.comps, values, strict=True) if v.type.is_float]

    def load(self, b: ir.Builder, stmt: ir.Load, m: Names) -> None:
        found = self.reals(stmt, stmt.outs)
        if not found:
            return
        comps, types = [c for c, _ in found], [self.scalar(v.type) for _, v in found]
        loaded = self.load_dots(b, stmt.array, name(stmt.index, m), comps, types)
        self.dot.update((v, dots) for (_, v), dots in zip(found, loaded, strict=True))

    def write(self, b: ir.Builder, stmt: ir.Store | ir.Atomic, m: Names) -> None:
        found = self.reals(stmt, stmt.values)
        if not found:
            return
        index, comps = name(stmt.index, m), [c for c, _ in found]
        logged = stmt.logged and self.undoes
        for plane, places, dots in self.spread(stmt.array, comps, [self.or_zero(v) for _, v in found]):
            if isinstance(stmt, ir.Store):
                b.emit(ir.Store(plane, index, places, dots, stmt.span, logged))
            elif any(v in self.varied for _, v in found):
                b.emit(ir.Atomic("add", plane, index, places, dots, (), stmt.span, logged))

    def extremum(self, b: ir.Builder, stmt: ir.Atomic, m: Names) -> None:
        """The lowest thread that holds the final content brings its tangent, unless the content was there before."""
        index, found = name(stmt.index, m), self.reals(stmt, stmt.values)
        comps, types = [c for c, _ in found], [v.type for _, v in found]
        position = stmt.array.position
        if position not in self.claims:
            self.claims[position] = self.parameter(stmt.array, "winners", "grad")
        claims = self.claims[position]
        final = b.load(stmt.array.partner("final"), index, comps, types)
        start = b.load(stmt.array, index, comps, types)
        for n, (comp, value) in enumerate(found):
            holds = b.op("and", b.op("eq", m.get(value, value), final[n]), b.op("ne", start[n], final[n]))
            wins = ir.Value(BOOL, "wins")
            b.emit(ir.Claim(wins, claims, index, comp, holds, stmt.span))
            (free,) = b.load(claims, index, [comp], [value.type])
            inner = ir.Builder(ir.Block(), stmt.span)
            for plane, places, dots in self.spread(stmt.array, [comp], [self.or_zero(value)]):
                inner.emit(ir.Store(plane, index, places, dots, stmt.span))
            inner.emit(ir.Store(claims, index, [comp], [ir.const(value.type, 0)], stmt.span))
            first = b.op("and", wins, b.op("ne", free, ir.const(value.type, 0)))
            b.emit(ir.If([], first, inner.block, ir.Block(), stmt.span))

    def call(self, b: ir.Builder, stmt: ir.Call, m: Names) -> None:
        """A function with its own adjoint: each row of its Jacobian is the adjoint of one result."""
        tangents = self.tangents(stmt.args)
        if all(v is None for v in tangents):
            return
        args = name(stmt.args, m)
        if stmt.function.symmetric:
            self.dot.update((out, []) for out in stmt.outs if out.type.is_float)
            for j in range(self.width):
                seeds = [self.or_zero(v)[j] for v in stmt.args]
                for out, dot in zip(stmt.outs, inline(b, stmt.function.adjoint, [*args, *seeds]), strict=True):
                    if out.type.is_float:
                        self.dot[out].append(dot)
            return
        for k, out in enumerate(stmt.outs):
            if not out.type.is_float:
                continue
            seeds = [ir.const(o.type, 1 if i == k else 0) for i, o in enumerate(stmt.outs)]
            row = inline(b, stmt.function.adjoint, [*args, *seeds])
            totals: list[ir.Value | None] = [None] * self.width
            for slope, dots in zip(row, tangents, strict=True):
                if dots is not None:
                    totals = [add(b, total, scale(b, dot, slope)) for total, dot in zip(totals, dots, strict=True)]
            self.dot[out] = [t if t is not None else ir.const(out.type, 0) for t in totals]

    # -- control flow carries the tangents along
    def if_(self, b: ir.Builder, stmt: ir.If, m: Names) -> None:
        cond = m.get(stmt.cond, stmt.cond)
        moving = [i for i, out in enumerate(stmt.outs) if out in self.varied]
        blocks = []
        for source in stmt.blocks():
            block = self.block(source, dict(m))
            block.yields.extend(d for i in moving for d in self.or_zero(source.yields[i]))
            blocks.append(block)
        outs = fresh(stmt.outs, m)
        outs.extend(d for i in moving for d in self.fresh_dots(stmt.outs[i]))
        b.emit(ir.If(outs, cond, blocks[0], blocks[1], stmt.span))

    def loop(self, b: ir.Builder, stmt: ir.Loop, m: Names) -> None:
        inner = dict(m)
        params = fresh(stmt.body.params, inner)
        moving = [i for i, p in enumerate(stmt.body.params[1:]) if p in self.varied]
        inits = name(stmt.inits, m) + [d for i in moving for d in self.or_zero(stmt.inits[i])]
        params.extend(d for i in moving for d in self.fresh_dots(stmt.body.params[i + 1]))
        body = self.block(stmt.body, inner)
        body.yields.extend(d for i in moving for d in self.or_zero(stmt.body.yields[i]))
        body.params = params
        trips = m.get(stmt.trips, stmt.trips) if stmt.trips is not None else None
        stop = inner.get(stmt.stop, stmt.stop) if stmt.stop is not None else None
        outs = fresh(stmt.outs, m)
        outs.extend(d for i in moving for d in self.fresh_dots(stmt.outs[i]))
        b.emit(ir.Loop(outs, trips, inits, body, stop, stmt.span, stmt.down))


class _AdjointPusher(_Pusher):
    """Copies an adjoint with its effects, those that are taken back included: so are their tangents."""

    undoes = True

    def statement(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        b.span = stmt.span
        if isinstance(stmt, (ir.Store, ir.Atomic)):
            index, values = name(stmt.index, m), name(stmt.values, m)
            if isinstance(stmt, ir.Store):
                b.emit(ir.Store(stmt.array, index, stmt.comps, values, stmt.span, stmt.logged))
            else:
                expected = name(stmt.expected, m)
                made = ir.Atomic(stmt.kind, stmt.array, index, stmt.comps, values, (), stmt.span, stmt.logged, expected)
                b.emit(made)
            if key(stmt.array) in self.arrays:
                self.check_extremum(stmt)
                self.write(b, stmt, m)
        elif isinstance(stmt, ir.Mark):
            (out,) = fresh((stmt.out,), m)
            b.emit(ir.Mark(out, stmt.span))
        elif isinstance(stmt, ir.Undo):
            b.emit(ir.Undo(m.get(stmt.mark, stmt.mark), stmt.span))
        elif isinstance(stmt, ir.Recall):
            sequence = m.get(stmt.sequence, stmt.sequence)
            (out,) = fresh((stmt.out,), m)
            b.emit(ir.Recall(out, sequence, stmt.span))
        elif isinstance(stmt, ir.Claim):
            index, cond = name(stmt.index, m), m.get(stmt.cond, stmt.cond)
            (out,) = fresh((stmt.out,), m)
            b.emit(ir.Claim(out, stmt.array, index, stmt.comp, cond, stmt.span))
        elif isinstance(stmt, ir.Check):
            payload = name(stmt.payload, m)
            b.emit(ir.Check(m.get(stmt.cond, stmt.cond), stmt.code, stmt.message, payload, stmt.span))
        else:
            super().statement(b, stmt, m)

    def check_extremum(self, stmt: ir.Store | ir.Atomic) -> None:
        if isinstance(stmt, ir.Atomic) and stmt.kind != "add":
            raise NotDifferentiable(
                f"{stmt.array.name} is read by the thread that takes its minimum or maximum: this has no second "
                "derivative here", stmt.span, advice="read it in another launch")  # fmt: skip
