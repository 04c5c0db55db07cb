"""Arrays that one thread may read after it wrote them: their old content must be restored while going back."""

from __future__ import annotations

from .. import ir
from ..records import record


@record
class _Access:
    order: int
    loops: tuple[ir.Stmt, ...]


def hazards(kernel: ir.Kernel) -> set[int]:
    """Positions of arrays with a read that may follow a write in the same thread."""
    reads: dict[int, list[_Access]] = {}
    writes: dict[int, list[_Access]] = {}
    counter = 0

    def visit(block: ir.Block, loops: tuple[ir.Stmt, ...]) -> None:
        nonlocal counter
        for stmt in block.body:
            counter += 1
            if isinstance(stmt, ir.Load):
                reads.setdefault(stmt.array.position, []).append(_Access(counter, loops))
            elif isinstance(stmt, (ir.Store, ir.Atomic)):
                writes.setdefault(stmt.array.position, []).append(_Access(counter, loops))
            for inner in stmt.blocks():
                visit(inner, (*loops, stmt) if isinstance(stmt, ir.Loop) else loops)

    visit(kernel.body, ())
    return {
        position
        for position, stores in writes.items()
        if any(_may_follow(read, store) for read in reads.get(position, ()) for store in stores)
    }


def _may_follow(read: _Access, write: _Access) -> bool:
    if read.order > write.order:
        return True
    return bool(read.loops and write.loops and read.loops[0] is write.loops[0])


def writes_hazard(block: ir.Block, arrays: set[int]) -> bool:
    """Whether a block stores to one of these arrays."""
    return any(isinstance(s, (ir.Store, ir.Atomic)) and s.array.position in arrays for s in block.walk())
