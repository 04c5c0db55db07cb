"""Which launches may run in parallel with the same bits: those whose atomics stay on elements of their own thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .. import ir
from ..records import record
from ..types import leaves


@record
class Accesses:
    """What of a kernel decides who owns what. Kernels are asked for it several times in a row, and some are long."""

    memory: tuple[ir.Load | ir.Store | ir.Atomic, ...]
    axes: dict[ir.Value, int]
    """Values that are an axis of `tid()`, with the axis."""
    in_order: bool
    """Whether it does what has an order beside memory: it prints, records or recalls."""


@lru_cache(maxsize=16)
def accesses(kernel: ir.Kernel) -> Accesses:
    """The kernel's accesses, in the order of the text. Kernels are not changed once they are asked for it."""
    memory: list[ir.Load | ir.Store | ir.Atomic] = []
    axes: dict[ir.Value, int] = {}
    in_order = False
    for s in kernel.body.walk():
        if isinstance(s, (ir.Load, ir.Store, ir.Atomic)):
            memory.append(s)
        elif isinstance(s, ir.Query):
            if s.what == "tid":
                axes[s.out] = s.axis
        elif isinstance(s, (ir.Print, ir.Record, ir.Recall)):
            in_order = True
    return Accesses(tuple(memory), axes, in_order)


def thread_indices(kernel: ir.Kernel) -> dict[ir.Value, int]:
    """Values that are an axis of `tid()`, with the axis."""
    return accesses(kernel).axes


def is_own(index: Sequence[ir.Value], axes: dict[ir.Value, int], dims: int) -> bool:
    """Whether no other thread can have this index: it names every axis of the grid once."""
    return sorted(axes.get(v, -1) for v in index) == list(range(dims)) and dims > 0


def is_parallel(kernel: ir.Kernel) -> bool:
    """Whether threads may run at the same time without changing a bit.

    Sums depend on their order, and the winner of a minimum is the lowest thread: atomics on elements that other
    threads may touch keep the launch in order. So do prints and what atomics return.
    """
    if kernel.dims == 0 or accesses(kernel).in_order:
        return False
    return not crowded_arrays(kernel)


def is_parallel_by_rows(kernel: ir.Kernel) -> bool:
    """Whether threads that differ in the first index of the grid may run at the same time without changing a bit.

    They may if everything that threads add to together begins with that index: x[i, anything]. The threads of one row
    then run in order.
    """
    if kernel.dims < 2 or accesses(kernel).in_order:
        return False
    axes = thread_indices(kernel)
    return all(axes.get(index[0]) == 0 for places in crowded_arrays(kernel).values() for index in places)


def crowded_arrays(kernel: ir.Kernel) -> dict[ir.ArrayRef, set[tuple[ir.Value, ...]]]:
    """Arrays whose elements several threads may change, and the indices at which they are used."""
    axes = thread_indices(kernel)
    shared: set[ir.ArrayRef] = set()
    places: dict[ir.ArrayRef, set[tuple[ir.Value, ...]]] = {}
    for stmt in accesses(kernel).memory:
        places.setdefault(stmt.array, set()).add(tuple(stmt.index))
        # A plain store to an element of another thread is a race of the user's; one of the adjoint is ours to prevent.
        if isinstance(stmt, ir.Atomic) or (isinstance(stmt, ir.Store) and (stmt.array.role == "grad" or stmt.logged)):
            shared.add(stmt.array)
    # One place per thread: x[i, j] and x[j, i] are each a thread's own, but together they are not.
    return {a: places[a] for a in shared
            if len(places[a]) > 1 or not is_own(next(iter(places[a])), axes, kernel.dims)}  # fmt: skip


def strip_arrays(kernel: ir.Kernel) -> list[ir.ArrayRef]:
    """Arrays that keep a launch in order only because threads add to shared elements of them.

    Such a launch can run in strips: each strip of threads adds to a copy of its own, and the copies are added up in
    the order of the strips. The strips depend on the size of the launch alone, so the bits do, too. Empty if the launch
    must be in order for another reason as well, or need not be.
    """
    if kernel.dims == 0 or accesses(kernel).in_order:
        return []
    summed: dict[ir.ArrayRef, bool] = {}
    for stmt in accesses(kernel).memory:
        sums = isinstance(stmt, ir.Atomic) and stmt.kind == "add" and not stmt.outs and not stmt.logged
        summed[stmt.array] = summed.get(stmt.array, True) and sums
    crowded = crowded_arrays(kernel)
    kinds = {a: set(leaves(a.type.element)) for a in crowded}
    # Copies of numbers that are rounded when they are stored would be rounded twice.
    fits = all(summed[a] and len(kinds[a]) == 1 and all(s.is_float and not s.is_stored for s in kinds[a])
               for a in crowded)  # fmt: skip
    return sorted(crowded, key=lambda a: a.position) if fits else []


def first_arrays(kernel: ir.Kernel) -> frozenset[int]:
    """Gradients that a kernel does nothing to but to add once to every element: what it adds may also be written."""
    return frozenset(p for p, used in _whole_gradients(kernel).items() if [type(s) for s in used] == [ir.Atomic])


def taken_arrays(kernel: ir.Kernel) -> frozenset[int]:
    """Gradients that a kernel does nothing to but to read every element and set it to zero."""
    both = {ir.Load, ir.Store}
    return frozenset(p for p, used in _whole_gradients(kernel).items() if {type(s) for s in used} == both)


def _whole_gradients(kernel: ir.Kernel) -> dict[int, list[ir.Load | ir.Store | ir.Atomic]]:
    """By position of the array: all accesses to a gradient, where each thread surely changes all of its own element,
    once, and touches no other."""
    axes = thread_indices(kernel)
    always = {id(s) for s in kernel.body.body}
    uses: dict[int, list[ir.Load | ir.Store | ir.Atomic]] = {}
    for s in accesses(kernel).memory:
        if s.array.role == "grad":
            uses.setdefault(s.array.position, []).append(s)

    def fits(s: ir.Load | ir.Store | ir.Atomic) -> bool:
        if id(s) not in always or kernel.dims == 0 or [axes.get(v, -1) for v in s.index] != list(range(kernel.dims)):
            return False
        if isinstance(s, ir.Load):
            return True
        whole = sorted(s.comps) == list(range(len(leaves(s.array.type.element)))) and not s.logged
        if isinstance(s, ir.Atomic):
            return whole and s.kind == "add" and not s.outs
        return whole and all(isinstance(v, ir.Const) and v.value == 0 for v in s.values)

    return {
        p: used for p, used in uses.items()
        if all(map(fits, used)) and sum(not isinstance(s, ir.Load) for s in used) == 1
    }  # fmt: skip


def watched_arrays(kernel: ir.Kernel) -> frozenset[int]:
    """Positions of arrays on which threads of one launch might depend on each other, as far as the indices tell.

    They are stored to, or read beside being changed, at places that are not provably a thread's own. A launch whose
    threads depend on each other has no derivative that its threads could compute one by one.
    """
    axes = thread_indices(kernel)
    places: dict[int, set[tuple[ir.Value, ...]]] = {}
    kinds: dict[int, set[str]] = {}
    for stmt in accesses(kernel).memory:
        places.setdefault(stmt.array.position, set()).add(tuple(stmt.index))
        kinds.setdefault(stmt.array.position, set()).add(type(stmt).__name__)
    return frozenset(
        p
        for p, used in kinds.items()
        if used not in ({"Load"}, {"Atomic"})
        and not (len(places[p]) == 1 and is_own(next(iter(places[p])), axes, kernel.dims))
    )
