"""Which values are the same in all lanes of a group (uniform) and which differ (varying), and whether lanes pay."""

from __future__ import annotations

from .. import ir


def varying_values(kernel: ir.Kernel) -> set[ir.Value]:
    """Values that may differ between the threads of a group."""
    # With blocks only the place in the block differs: a group is never part of two.
    first = kernel.dims - 1 if kernel.block else 0
    tids = (s for s in kernel.body.walk() if isinstance(s, ir.Query) and s.what == "tid")
    found: set[ir.Value] = {s.out for s in tids if s.axis >= first}
    tapes: dict[ir.Tape, list[bool]] = {}
    while True:
        before = len(found) + sum(sum(t) for t in tapes.values())
        _block(kernel.body, found, tapes)
        if len(found) + sum(sum(t) for t in tapes.values()) == before:
            return found


def _block(block: ir.Block, varying: set[ir.Value], tapes: dict[ir.Tape, list[bool]]) -> None:
    for stmt in block.body:
        _statement(stmt, varying, tapes)


def _statement(stmt: ir.Stmt, varying: set[ir.Value], tapes: dict[ir.Tape, list[bool]]) -> None:
    if isinstance(stmt, ir.If):
        for block in stmt.blocks():
            _block(block, varying, tapes)
        for out, x, y in zip(stmt.outs, stmt.then.yields, stmt.orelse.yields, strict=True):
            if stmt.cond in varying or x in varying or y in varying:
                varying.add(out)
    elif isinstance(stmt, ir.Loop):
        _loop(stmt, varying, tapes)
    elif isinstance(stmt, ir.Push):
        slots = tapes.setdefault(stmt.tape, [False] * len(stmt.values))
        for i, v in enumerate(stmt.values):
            slots[i] = slots[i] or v in varying
    elif isinstance(stmt, ir.Pop):
        varying.update(v for v, differs in zip(stmt.outs, tapes.get(stmt.tape, ()), strict=False) if differs)
    elif isinstance(stmt, ir.Call) or any(v in varying for v in stmt.inputs()):
        varying.update(stmt.outputs())


def _loop(stmt: ir.Loop, varying: set[ir.Value], tapes: dict[ir.Tape, list[bool]]) -> None:
    params = stmt.body.params[1:]
    varying.update(p for p, v in zip(params, stmt.inits, strict=True) if v in varying)
    _block(stmt.body, varying, tapes)
    divergent = is_divergent(stmt, varying)
    for p, out, y in zip(params, stmt.outs, stmt.body.yields, strict=True):
        if divergent or y in varying or p in varying:
            varying.update((p, out))


def is_divergent(stmt: ir.Loop, varying: set[ir.Value]) -> bool:
    """Whether threads of a group may leave the loop at different times."""
    return (stmt.trips is not None and stmt.trips in varying) or (stmt.stop is not None and stmt.stop in varying)


def lanes_refused(kernel: ir.Kernel) -> str:
    """Why a kernel runs thread by thread instead of in lanes; empty if it may run in lanes."""
    if kernel.dims == 0:
        return "it does not ask for its thread index"
    for stmt in kernel.body.walk():
        if isinstance(stmt, ir.Print):
            return "it prints"
        if isinstance(stmt, (ir.Record, ir.Recall)) or (isinstance(stmt, ir.Atomic) and stmt.outs):
            return "it uses what atomics return"
        if isinstance(stmt, ir.Atomic) and stmt.kind in ("min", "max"):
            return "the winner of an atomic minimum or maximum is the lowest thread"
        if isinstance(stmt, ir.Atomic) and stmt.kind != "add" and _order_matters(stmt, kernel):
            return f"what an atomic {stmt.kind} leaves depends on the order of the threads"
        if isinstance(stmt, ir.Load) and stmt.array.role == "final":
            return "the winner of an atomic minimum or maximum is the lowest thread"
        if isinstance(stmt, (ir.Mark, ir.Undo)):
            return "it restores arrays that a thread reads after writing"
    return ""


def _order_matters(stmt: ir.Atomic, kernel: ir.Kernel) -> bool:
    """Whether threads that change an element by and, or, xor also do something else to the array."""
    if stmt.kind in ("exchange", "cas"):
        return True
    used = [s for s in kernel.body.walk() if isinstance(s, (ir.Load, ir.Store, ir.Atomic)) and s.array is stmt.array]
    return not all(isinstance(s, ir.Atomic) and s.kind == stmt.kind for s in used)
