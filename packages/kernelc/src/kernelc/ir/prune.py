"""Removes what nobody needs: unused results, carried values, branches, loops, and slots of loop tapes.

This is also how the adjoint decides what is to be recorded: it keeps everything, and what its reverse sweep does
not read is pruned, down to the single carried value.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import nodes as n

_EFFECTS = (n.Store, n.Atomic, n.Check, n.Print, n.Undo, n.Record)


def prune(kernel: n.Kernel) -> n.Kernel:
    """The kernel without dead statements. The original is left as it is."""
    body, _ = _Pruner().block(kernel.body, set())
    return kernel.with_body(body)


def prune_block(block: n.Block) -> n.Block:
    """A block whose yields are all needed, without dead statements."""
    body, _ = _Pruner().block(block, set(block.yields))
    return body


class _Pruner:
    def __init__(self) -> None:
        # Slots of each tape that the reverse sweep pops. The pops stand after the pushes, so going backwards
        # meets them first.
        self.slots: dict[n.Tape, set[int]] = {}

    def block(self, block: n.Block, live: set[n.Value]) -> tuple[n.Block, set[n.Value]]:
        """Prune a block, given what is needed after it; returns what is needed before it."""
        live = set(live)
        kept: list[n.Stmt] = []
        for stmt in reversed(block.body):
            for new in reversed(self.statement(stmt, live)):
                kept.append(new)
                live.difference_update(new.outputs())
                live.update(new.inputs())
        kept.reverse()
        live.difference_update(block.params)
        return n.Block(block.params, kept, block.yields), live

    def statement(self, stmt: n.Stmt, live: set[n.Value]) -> Sequence[n.Stmt]:
        """What is left of a statement."""
        if isinstance(stmt, n.If):
            return self.if_(stmt, live)
        if isinstance(stmt, n.Loop):
            return self.loop(stmt, live)
        if isinstance(stmt, n.Pop):
            slots = self.slots.setdefault(stmt.tape, set())
            slots.update(i for i, v in enumerate(stmt.outs) if v in live)
            return [n.Pop([stmt.outs[i] for i in sorted(slots)], stmt.tape, stmt.span)] if slots else []
        if isinstance(stmt, n.Push):
            slots = self.slots.get(stmt.tape, set())
            return [n.Push(stmt.tape, [stmt.values[i] for i in sorted(slots)], stmt.span)] if slots else []
        if isinstance(stmt, _EFFECTS) or any(v in live for v in stmt.outputs()):
            return [stmt]
        return []

    def if_(self, stmt: n.If, live: set[n.Value]) -> Sequence[n.Stmt]:
        keep = [i for i, out in enumerate(stmt.outs) if out in live]
        blocks = []
        for block in (stmt.then, stmt.orelse):
            yields = [block.yields[i] for i in keep]
            pruned, needs = self.block(n.Block([], block.body, yields), live | set(yields))
            blocks.append(pruned)
            live.update(needs)
        outs = [stmt.outs[i] for i in keep]
        if not blocks[0].body and not blocks[1].body:
            # Nothing is left but the choice.
            pairs = zip(outs, blocks[0].yields, blocks[1].yields, strict=True)
            return [n.Op(out, "select", (stmt.cond, x, y), stmt.span) for out, x, y in pairs]
        return [n.If(outs, stmt.cond, blocks[0], blocks[1], stmt.span)]

    def loop(self, stmt: n.Loop, live: set[n.Value]) -> Sequence[n.Stmt]:
        """A carried value is needed if its result is, or if the body needs it: found by iteration."""
        params, yields = stmt.body.params, stmt.body.yields
        keep = {i for i, out in enumerate(stmt.outs) if out in live}
        outer = live.difference(stmt.outs)
        if not keep and not self.block(n.Block([], stmt.body.body, []), outer)[0].body:
            return []
        while True:
            wanted = [yields[i] for i in sorted(keep)]
            seeds = set(outer)
            seeds.update(wanted)
            if stmt.stop is not None:
                seeds.add(stmt.stop)
            body, _ = self.block(n.Block([], stmt.body.body, wanted), seeds)
            needed = seeds.copy()
            for inner in body.walk():
                needed.update(inner.inputs())
                for block in inner.blocks():
                    needed.update(block.yields)
                if isinstance(inner, n.Loop) and inner.stop is not None:
                    needed.add(inner.stop)
            more = {i for i in range(len(yields)) if params[i + 1] in needed}
            if more <= keep:
                break
            keep |= more
        order = sorted(keep)
        body.params = [params[0], *(params[i + 1] for i in order)]
        defined = set(body.params)
        for inner in body.walk():
            defined.update(inner.outputs())
            for block in inner.blocks():
                defined.update(block.params)
        live.update(v for v in needed if v not in defined and not isinstance(v, n.Const))
        outs, inits = [stmt.outs[i] for i in order], [stmt.inits[i] for i in order]
        return [n.Loop(outs, stmt.trips, inits, body, stmt.stop, stmt.span, stmt.down)]
