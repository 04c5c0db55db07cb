"""Keeps an element that only one thread touches in values, from its first use to its last.

A thread that updates its own element in place then reads and writes memory once. Nothing has to be restored while
going back, and the kernel can run in lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import ir
from ..types import leaves
from .clone import Cloner, Names, fresh, name

Access = ir.Load | ir.Store | ir.Atomic


def promote(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with every array promoted whose elements are each used by one thread, at one place."""
    accesses = _accesses(kernel)
    for array in kernel.arrays():
        found = accesses.get(array, [])
        if _is_private(kernel, found):
            home = _home(kernel.body, array)
            if home is not None:
                kernel = _Promoter(array, home, found).kernel(kernel)
                accesses = _accesses(kernel)
    return kernel


def _accesses(kernel: ir.Kernel) -> dict[ir.ArrayRef, list[Access]]:
    """Who reads and writes each array."""
    found: dict[ir.ArrayRef, list[Access]] = {}
    for s in kernel.body.walk():
        if isinstance(s, Access):
            found.setdefault(s.array, []).append(s)
    return found


def _is_private(kernel: ir.Kernel, accesses: Sequence[Access]) -> bool:
    """Whether all accesses mean the thread's own element, and some of them meet there."""
    if len(accesses) < 2 or all(isinstance(s, ir.Load) for s in accesses):
        return False
    if any(s.is_stored for s in leaves(accesses[0].array.type.element)):
        return False  # what is read again was rounded, or has wrapped
    if any(isinstance(s, ir.Atomic) and (s.kind != "add" or s.outs) for s in accesses):
        return False
    axes = {s.out: s.axis for s in kernel.body.walk() if isinstance(s, ir.Query) and s.what == "tid"}
    own = sorted(axes.get(v, -1) for v in accesses[0].index) == list(range(kernel.dims)) and kernel.dims > 0
    return own and all(s.index == accesses[0].index for s in accesses)


def _touches(stmt: ir.Stmt, array: ir.ArrayRef) -> bool:
    inner = (s for block in stmt.blocks() for s in block.walk())
    return any(isinstance(s, Access) and s.array is array for s in (stmt, *inner))


def _home(block: ir.Block, array: ir.ArrayRef) -> ir.Block | None:
    """The innermost block with all accesses, if it surely begins with one: only then may the element be read there."""
    used = [s for s in block.body if _touches(s, array)]
    if used and isinstance(used[0], Access):
        return block
    if len(used) == 1 and isinstance(used[0], ir.If):
        sides = [b for b in used[0].blocks() if any(_touches(s, array) for s in b.body)]
        return _home(sides[0], array) if len(sides) == 1 else None
    return None


class _Promoter(Cloner):
    """Copies a kernel, with the element of `array` in `now`, one value per leaf, inside of the block `home`."""

    def __init__(self, array: ir.ArrayRef, home: ir.Block, accesses: Sequence[Access]):
        super().__init__(effects=True)
        self.exact = False
        self.array, self.home, self.first = array, home, accesses[0]
        self.now: list[ir.Value] = []
        writes = [s for s in accesses if not isinstance(s, ir.Load)]
        self.changed = sorted({c for s in writes for c in s.comps})
        self.last = writes[-1]

    def kernel(self, kernel: ir.Kernel) -> ir.Kernel:
        body = self.block(kernel.body, {})
        return ir.verify(kernel.with_body(body))

    def block(self, source: ir.Block, m: Names) -> ir.Block:
        b = ir.Builder()
        for stmt in source.body:
            if stmt is self.first:
                self.begin(b, m)
            self.statement(b, stmt, m)
        if source is self.home:
            values = [self.now[c] for c in self.changed]
            b.emit(ir.Store(self.array, name(self.last.index, m), self.changed, values, self.last.span))
        b.block.yields = name(source.yields, m)
        return b.block

    def begin(self, b: ir.Builder, m: Names) -> None:
        """What the element holds before its first use; nothing is read if that use overwrites all of it."""
        kinds = leaves(self.array.type.element)
        b.span = self.first.span
        if isinstance(self.first, ir.Store) and sorted(self.first.comps) == list(range(len(kinds))):
            self.now = name(self.first.values, m)
        else:
            self.now = b.load(self.array, name(self.first.index, m), range(len(kinds)), kinds)

    def statement(self, b: ir.Builder, stmt: ir.Stmt, m: Names) -> None:
        if isinstance(stmt, ir.Record):
            b.emit(ir.Record(m.get(stmt.sequence, stmt.sequence), m.get(stmt.value, stmt.value), stmt.span))
        elif isinstance(stmt, Access) and stmt.array is self.array:
            b.span = stmt.span
            self.access(b, stmt, m)
        else:
            super().statement(b, stmt, m)

    def access(self, b: ir.Builder, stmt: Access, m: Names) -> None:
        if isinstance(stmt, ir.Load):
            m.update((out, self.now[c]) for out, c in zip(stmt.outs, stmt.comps, strict=True))
            return
        now = list(self.now)
        for c, value in zip(stmt.comps, name(stmt.values, m), strict=True):
            now[c] = value if isinstance(stmt, ir.Store) else b.op("add", now[c], value)
        self.now = now

    # -- control flow carries the element along
    def if_(self, b: ir.Builder, stmt: ir.If, m: Names) -> None:
        if not self.now or not _touches(stmt, self.array):
            super().if_(b, stmt, m)
            return
        cond, before = m.get(stmt.cond, stmt.cond), self.now
        then, self.now = self.side(stmt.then, m), before
        orelse, self.now = self.side(stmt.orelse, m), before
        outs = fresh(stmt.outs, m)
        merged = list(before)
        for c, (x, y) in enumerate(zip(then[1], orelse[1], strict=True)):
            if x is not y:
                merged[c] = ir.Value(x.type, self.array.name)
                outs.append(merged[c])
                then[0].yields.append(x)
                orelse[0].yields.append(y)
            else:
                merged[c] = x
        self.now = merged
        b.emit(ir.If(outs, cond, then[0], orelse[0], stmt.span))

    def side(self, block: ir.Block, m: Names) -> tuple[ir.Block, list[ir.Value]]:
        made = self.block(block, dict(m))
        return made, self.now

    def loop(self, b: ir.Builder, stmt: ir.Loop, m: Names) -> None:
        if not self.now or not _touches(stmt, self.array):
            super().loop(b, stmt, m)
            return
        carried = sorted(self.written(stmt.body.walk()))
        inner = dict(m)
        params = fresh(stmt.body.params, inner)
        trips = m.get(stmt.trips, stmt.trips) if stmt.trips is not None else None
        inits = name(stmt.inits, m) + [self.now[c] for c in carried]
        after = list(self.now)
        for c in carried:
            self.now = [*self.now[:c], ir.Value(self.now[c].type, self.array.name), *self.now[c + 1 :]]
            params.append(self.now[c])
            after[c] = ir.Value(self.now[c].type, self.array.name)
        body = self.block(stmt.body, inner)
        body.params = params
        body.yields.extend(self.now[c] for c in carried)
        stop = inner.get(stmt.stop, stmt.stop) if stmt.stop is not None else None
        outs = fresh(stmt.outs, m) + [after[c] for c in carried]
        self.now = after
        b.emit(ir.Loop(outs, trips, inits, body, stop, stmt.span, stmt.down))

    def written(self, stmts: Iterable[ir.Stmt]) -> set[int]:
        writes = (s for s in stmts if isinstance(s, (ir.Store, ir.Atomic)) and s.array is self.array)
        return {c for s in writes for c in s.comps}
