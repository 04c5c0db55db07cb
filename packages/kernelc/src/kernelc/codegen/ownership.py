"""Which launches may run in parallel with the same bits: those whose atomics stay on elements of their own thread."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ir


def thread_indices(kernel: ir.Kernel) -> dict[ir.Value, int]:
    """Values that are an axis of `tid()`, with the axis."""
    return {s.out: s.axis for s in kernel.body.walk() if isinstance(s, ir.Query) and s.what == "tid"}


def is_own(index: Sequence[ir.Value], axes: dict[ir.Value, int], dims: int) -> bool:
    """Whether no other thread can have this index: it names every axis of the grid once."""
    return sorted(axes.get(v, -1) for v in index) == list(range(dims)) and dims > 0


def is_parallel(kernel: ir.Kernel) -> bool:
    """Whether threads may run at the same time without changing a bit.

    Sums depend on their order, and the winner of a minimum is the lowest thread: atomics on elements that other
    threads may touch keep the launch in order. So do prints.
    """
    axes = thread_indices(kernel)
    for stmt in kernel.body.walk():
        if isinstance(stmt, ir.Atomic) and (stmt.outs or not is_own(stmt.index, axes, kernel.dims)):
            return False
        if isinstance(stmt, (ir.Record, ir.Recall)):
            return False
        if isinstance(stmt, ir.Store) and (stmt.array.role == "grad" or stmt.logged):
            if not is_own(stmt.index, axes, kernel.dims):
                return False
    return kernel.dims > 0
