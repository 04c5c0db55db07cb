"""Removes what nobody needs: unused results, carried values, branches, loops, and slots of loop tapes.

This is also how the adjoint decides what is to be recorded: it keeps everything, and what its reverse sweep does
not read is pruned, down to the single carried value.

A value has one definition, so what is needed is found by following definitions from what has an effect, each once,
however deep loops are nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import nodes as n

_EFFECTS = (n.Store, n.Atomic, n.Check, n.Print, n.Undo, n.Record)


def prune(kernel: n.Kernel) -> n.Kernel:
    """The kernel without dead statements. The original is left as it is."""
    return kernel.with_body(_Needs(kernel.body, ()).rebuilt(kernel.body, kernel.body.yields))


def prune_block(block: n.Block) -> n.Block:
    """A block whose yields are all needed, without dead statements."""
    return _Needs(block, block.yields).rebuilt(block, block.yields)


class _Needs:
    """What is needed of a block: values, statements, and slots of tapes."""

    def __init__(self, block: n.Block, values: Iterable[n.Value]):
        self.values: set[n.Value] = set()
        self.statements: set[n.Stmt] = set()
        self.slots: dict[n.Tape, set[int]] = {}
        """Of each tape, what the reverse sweep pops."""
        self.maker: dict[n.Value, tuple[n.Stmt, int]] = {}
        """Where a value comes from, and as which of its results; a value that a loop carries is a result of the loop."""
        self.around: dict[n.Stmt, n.Stmt | None] = {}
        self.uses: dict[n.Tape, list[n.Push | n.Pop]] = {}
        self.wanted: list[n.Value] = list(values)
        self._read(block, None)
        while self.wanted:
            self._want(self.wanted.pop())

    def _read(self, block: n.Block, around: n.Stmt | None) -> None:
        for stmt in block.body:
            self.around[stmt] = around
            for i, out in enumerate(stmt.outputs()):
                self.maker[out] = stmt, i
            for inner in stmt.blocks():
                if isinstance(stmt, n.Loop):
                    for i, carried in enumerate(inner.params[1:]):
                        self.maker[carried] = stmt, i
                self._read(inner, stmt)
            if isinstance(stmt, (n.Push, n.Pop)):
                self.uses.setdefault(stmt.tape, []).append(stmt)
            elif isinstance(stmt, _EFFECTS):
                self._keep(stmt)

    def _keep(self, stmt: n.Stmt) -> None:
        """A statement is needed, and so is what decides whether it runs."""
        at: n.Stmt | None = stmt
        while at is not None and at not in self.statements:
            self.statements.add(at)
            if isinstance(at, n.If):
                self.wanted.append(at.cond)
            elif isinstance(at, n.Loop):
                self.wanted += [v for v in (at.trips, at.stop) if v is not None]
            elif not isinstance(at, n.Push):
                self.wanted += at.inputs()
            at = self.around[at]

    def _want(self, value: n.Value) -> None:
        """A value is needed, and so is what makes it."""
        if value in self.values:
            return
        self.values.add(value)
        if value not in self.maker:
            return  # a parameter, or a constant
        stmt, i = self.maker[value]
        self._keep(stmt)
        if isinstance(stmt, n.If):
            self.wanted += [stmt.then.yields[i], stmt.orelse.yields[i]]
        elif isinstance(stmt, n.Loop):
            self.wanted += [stmt.inits[i], stmt.body.yields[i], stmt.outs[i], stmt.body.params[i + 1]]
        elif isinstance(stmt, n.Pop):
            self._pop(stmt.tape, i)

    def _pop(self, tape: n.Tape, slot: int) -> None:
        """A slot of a tape is needed: whoever pushes or pops does so for each iteration, or the tape would not fit."""
        slots = self.slots.setdefault(tape, set())
        if slot not in slots:
            slots.add(slot)
            for stmt in self.uses[tape]:
                self._keep(stmt)
                if isinstance(stmt, n.Push):
                    self.wanted.append(stmt.values[slot])

    # -- what is left
    def rebuilt(self, block: n.Block, yields: Sequence[n.Value]) -> n.Block:
        kept: list[n.Stmt] = []
        for stmt in block.body:
            if stmt not in self.statements:
                continue
            if isinstance(stmt, n.If):
                kept += self._if(stmt)
            elif isinstance(stmt, n.Loop):
                kept.append(self._loop(stmt))
            elif isinstance(stmt, n.Push):
                values = [stmt.values[i] for i in sorted(self.slots[stmt.tape])]
                kept.append(n.Push(stmt.tape, values, stmt.span))
            elif isinstance(stmt, n.Pop):
                outs = [stmt.outs[i] for i in sorted(self.slots[stmt.tape])]
                kept.append(n.Pop(outs, stmt.tape, stmt.span))
            else:
                kept.append(stmt)
        return n.Block(block.params, kept, yields)

    def _if(self, stmt: n.If) -> Sequence[n.Stmt]:
        keep = [i for i, out in enumerate(stmt.outs) if out in self.values]
        outs = [stmt.outs[i] for i in keep]
        then, orelse = (self.rebuilt(n.Block([], b.body), [b.yields[i] for i in keep]) for b in stmt.blocks())
        if not then.body and not orelse.body:
            # Nothing is left but the choice.
            pairs = zip(outs, then.yields, orelse.yields, strict=True)
            return [n.Op(out, "select", (stmt.cond, x, y), stmt.span) for out, x, y in pairs]
        return [n.If(outs, stmt.cond, then, orelse, stmt.span)]

    def _loop(self, stmt: n.Loop) -> n.Loop:
        body = stmt.body
        keep = [i for i, out in enumerate(stmt.outs) if out in self.values]
        made = self.rebuilt(body, [body.yields[i] for i in keep])
        made.params = [body.params[0], *(body.params[i + 1] for i in keep)]
        outs, inits = [stmt.outs[i] for i in keep], [stmt.inits[i] for i in keep]
        return n.Loop(outs, stmt.trips, inits, made, stmt.stop, stmt.span, stmt.down)
