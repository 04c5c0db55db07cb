"""`kc.jacobian`: the derivative of arrays of a tape by others as a sparse matrix, from few tangents.

Columns that have no row in common share a tangent. Which rows a column has is found by pushing sets of inputs through
the tape (adjoint/pattern.py); a random tangent then shows that nothing was missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import types as t
from ..errors import WrongChoice, WrongDtype, WrongUse, public
from . import launches
from .arrays import Array, as_view
from .compile import tangent_name
from .entries import Entry
from .memory import Data, is_on_gpu
from .storage import Storage
from .tangents import Planes, Push
from .tape import Tape

_COLUMNS = 64
"""Inputs of which a word holds a set; and tangents of a dense matrix that are pushed at once."""


@public
def jacobian(
    tape: Tape, outputs: Sequence[Array] | Array, inputs: Sequence[Array] | Array, sparsity: str = "auto"
) -> Any:
    """The derivative of `outputs` by `inputs` where the tape ran: rows are the outputs in their order, columns the
    inputs, all flattened.

    sparsity: "auto" gives a matrix of scipy.sparse (CSR), from as many tangents as its columns need colours; "dense" a
        NumPy array, from one tangent for each column.
    """
    if sparsity not in ("auto", "dense"):
        raise WrongChoice(f"sparsity cannot be {sparsity!r}", advice='choose one of "auto", "dense"')
    rows, columns = (_listed(arrays) for arrays in (outputs, inputs))
    if sparsity == "dense":
        return _dense(tape, rows, columns)
    sparse = _scipy_sparse()
    found = _pattern(tape, rows, columns)
    if found is not None:
        made = _coloured(tape, rows, columns, sparse, *found)
        if _holds(tape, rows, columns, made):
            return made
    return sparse.csr_matrix(_dense(tape, rows, columns))


def _listed(arrays: Sequence[Array] | Array) -> list[Array]:
    found = [arrays] if isinstance(arrays, Array) else list(arrays)
    for a in found:
        if not isinstance(a, Array) or isinstance(a.element, t.Struct) or a.real is None:
            what = repr(a.element) if isinstance(a, Array) else type(a).__name__
            raise WrongDtype(f"kc.jacobian takes arrays of reals and vectors, not {what}",
                             advice="copy the field of a struct to an array of its own")  # fmt: skip
    return found


def _scipy_sparse() -> Any:
    try:
        from scipy import sparse
    except ImportError:
        raise WrongUse("a sparse Jacobian needs SciPy, which is not installed",
                       advice='pip install scipy, or ask for sparsity="dense"') from None  # fmt: skip
    return sparse


def _size(arrays: Sequence[Array]) -> int:
    return sum(a._data.size for a in arrays)


def _parts(arrays: Sequence[Array], flat: Data) -> dict[Array, Data]:
    """Numbers for all columns, for each array: (k, columns) → (k, *shape)."""
    found, at = {}, 0
    for a in arrays:
        found[a] = flat[:, at : at + a._data.size].reshape(len(flat), *a._data.shape)
        at += a._data.size
    return found


def _pushed(tape: Tape, rows: Sequence[Array], columns: Sequence[Array], directions: Data) -> Data:
    """J · each direction: (k, columns) → (k, rows)."""
    dots = tape.jvp(_parts(columns, directions), rows)
    return np.concatenate([dots[a].numpy().reshape(len(directions), -1) for a in rows], axis=1)


def _dense(tape: Tape, rows: Sequence[Array], columns: Sequence[Array]) -> Data:
    n = _size(columns)
    blocks = []
    for first in range(0, n, _COLUMNS):
        unit = np.zeros((min(_COLUMNS, n - first), n))
        unit[np.arange(len(unit)), first + np.arange(len(unit))] = 1
        blocks.append(_pushed(tape, rows, columns, unit))
    return np.concatenate(blocks).T.copy() if blocks else np.zeros((_size(rows), 0))


# -- which entries there are
def _pattern(tape: Tape, rows: Sequence[Array], columns: Sequence[Array]) -> tuple[Data, Data] | None:
    """Rows and columns of the entries that may differ from zero, by column; None where it cannot be found out."""
    if any(is_on_gpu(a._data) for a in (*rows, *columns)) or any(e.device == "cuda" for e in tape.entries):
        return None
    n = _size(columns)
    words = -(-n // _COLUMNS)
    sets = np.zeros((words, n), np.int64)
    bits = np.int64(1) << (np.arange(n, dtype=np.int64) % _COLUMNS)
    sets[np.arange(n) // _COLUMNS, np.arange(n)] = bits
    known = [tape._known(a) for a in columns]
    wanted = [tape._known(a) for a in rows]
    try:
        marks = _Marks(tape, known, wanted, words)
    except _Unknown:
        return None
    marks.give(dict(zip(known, _parts(columns, sets).values(), strict=True)))
    launches.apply_settings()
    tape._report(marks.program.run(), marks.codes)
    flat = np.concatenate([np.stack(marks.take(a)).reshape(words, -1) for a in wanted], axis=1)
    found = np.unpackbits(np.ascontiguousarray(flat.T).astype("<i8").view(np.uint8), axis=1, bitorder="little")[:, :n]
    column, row = np.nonzero(found.T)
    return row, column


class _Unknown(Exception):
    """What depends on what cannot be followed."""


class _Marks(Push):
    """Builds the program that pushes words of inputs instead of tangents."""

    def _planes(self, a: Array) -> Planes:
        if a.root._data.dtype.names is not None:
            raise _Unknown
        return Planes(np.empty(a.root._data.shape, np.int64), self.width)

    def dtype(self, a: Array) -> np.dtype[Any]:
        return np.dtype(np.int64)

    def _drop(self, storage: Storage) -> None:
        self.dots.pop(storage, None)

    def _launch(self, entry: Entry) -> None:
        plan, args = entry.plan, entry.args
        assert plan is not None
        seeds = frozenset(i for i in plan.arrays if args[i].real is not None and args[i]._storage in self.dots)
        if not seeds:
            return
        which = tangent_name(self.width, pattern=True)
        made = plan.variant.pattern(which, seeds)
        if made is None:
            raise _Unknown
        if made.works:
            # In order, one by one: threads may add to the same set.
            self._add(entry, (which, seeds), made, self._added(entry, made), apart=False)

    def _operation(self, entry: Entry) -> None:
        """Of an operation nothing is known: all that it writes depends on all that it reads."""
        reads = [as_view(a, d) for a in entry.reads if a._storage in self.dots for d in self.dots[a._storage].each]
        if not reads:
            for a in entry.writes:
                self._clear(a)
            return
        given = [self.dots[a._storage].each for a in entry.reads if a._storage in self.dots]
        shown = [a for a in entry.reads if a._storage in self.dots]
        into = [(a, self._ready(a).each) for a in entry.writes if a.real is not None]

        def run() -> None:
            for j in range(len(given[0])):
                union = np.bitwise_or.reduce([
                    np.bitwise_or.reduce(as_view(a, each[j]), axis=None) for a, each in zip(shown, given, strict=True)
                ])  # fmt: skip
                for a, each in into:
                    as_view(a, each[j])[...] = union

        self.program.add_call(run)


# -- few tangents for many columns
def _colours(row: Data, column: Data, rows: int, columns: int) -> Data:
    """A number for each column: two that have a row in common have different ones. Greedy, in their order."""
    taken = [0] * rows  # a bit for each colour
    colours = np.zeros(columns, np.int64)
    ends = np.searchsorted(column, np.arange(columns + 1))
    for c in range(columns):
        mine = row[ends[c] : ends[c + 1]].tolist()
        met = 0
        for r in mine:
            met |= taken[r]
        colour = (~met & (met + 1)).bit_length() - 1
        colours[c] = colour
        for r in mine:
            taken[r] |= 1 << colour
    return colours


def _coloured(tape: Tape, rows: Sequence[Array], columns: Sequence[Array], sparse: Any, row: Data, column: Data) -> Any:
    n, m = _size(columns), _size(rows)
    colours = _colours(row, column, m, n)
    count = int(colours.max(initial=-1)) + 1
    entries = np.zeros(len(row), np.result_type(*[a._data.dtype for a in rows]))
    for first in range(0, count, _COLUMNS):
        there = min(_COLUMNS, count - first)
        mine = (colours >= first) & (colours < first + there)
        seeds = np.zeros((there, n))
        seeds[colours[mine] - first, np.flatnonzero(mine)] = 1
        dots = _pushed(tape, rows, columns, seeds)
        chosen = mine[column]
        entries[chosen] = dots[colours[column[chosen]] - first, row[chosen]]
    return sparse.csr_matrix((entries, (row, column)), shape=(m, n))


def _holds(tape: Tape, rows: Sequence[Array], columns: Sequence[Array], made: Any) -> bool:
    """Whether the matrix moves a random direction as the tape does."""
    direction = np.random.default_rng(0).uniform(-1, 1, made.shape[1])
    want = _pushed(tape, rows, columns, direction[None])[0]
    got, size = made @ direction, abs(made) @ np.abs(direction)
    coarse = np.finfo(made.dtype).eps * (64 + made.shape[1])
    return bool(np.all((np.abs(got - want) <= coarse * np.maximum(size, np.abs(want))) | (got == want)))
