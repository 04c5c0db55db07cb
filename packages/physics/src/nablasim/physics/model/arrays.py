"""The columns of a model as arrays of kernelc: what laws read and write, when they are set up and in every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.model.draft import Column, Index
from nablasim.physics.model.layout import Layout

Array = Any
"""An array of kernelc, as `kc.array` and `kc.zeros` make it."""


class Arrays:
    """The columns and indices of a layout as arrays of kernelc, for all copies of the scene."""

    def __init__(self, layout: Layout, real: str, table: Mapping[str, Array], present: frozenset[str]):
        self.layout, self.real, self._table, self.present = layout, real, table, present
        self.solves: Any = None
        """Where steps that solve equations write how well they did: `solvers.backward_euler.Solves`."""
        self.alarms: dict[str, Array] = {}
        """What steps found that must not be: whole numbers by system and row; see `Step.alarm`."""
        self.tangents = False
        """Whether steps are recorded for their tangents, instead of for the way back."""
        self._bundles: dict[tuple[Any, ...], Any] = {}
        self._kept: WeakKeyDictionary[kc.Tape, dict[str, Array]] = WeakKeyDictionary()

    def __getitem__(self, what: Column | Index) -> Array:
        return self._table[what.name]

    def numpy(self, what: Column | Index) -> NDArray[Any]:
        """The content of a column or an index."""
        return self[what].numpy()

    def index(self, name: str) -> Array:
        """The array of an index of the layout."""
        return self._table[name]

    def rows(self, table: str) -> int:
        """How many rows a table has: the threads of a launch over it."""
        return self.layout.rows(table)

    @property
    def parts(self) -> int:
        """How many parts the rows of every table fall into, which share nothing: the copies of the scene."""
        return self.layout.worlds

    def has(self, column: Column) -> bool:
        """Whether a column is in use: not all of it zero, varied in time, or asked for a gradient; added to by rows."""
        if column.by:
            return any(self.layout.rows(table) for table in column.by)
        return not column.optional or column.name in self.present

    def bundle(self, kind: Any, *what: Column | Index, **named: Any) -> Any:
        """Columns and indices as one argument of kernels, made once: `kind` is a struct of kernelc that holds arrays.

        A member has the name that stands behind the dot, or that of the keyword. One that is optional there is None
        where a column is not in use (see `has`). What else has a keyword, such as another bundle, is a member as it is.
        """
        members = {w.name.partition(".")[2]: w for w in what} | named
        key = (kind, *members.items())
        if key not in self._bundles:
            optional = {name for name, member in kind.fields if isinstance(member, kc.types.Optional)}
            self._bundles[key] = kind(**{name: self._member(w, name in optional) for name, w in members.items()})
        return self._bundles[key]

    def _member(self, what: Any, optional: bool) -> Any:
        if optional and isinstance(what, Column) and not self.has(what):
            return None
        return self[what] if isinstance(what, (Column, Index)) else what

    def end(
        self, state: Mapping[str, Array], sums: Mapping[str, Array], dt: Array, first: Array, tape: kc.Tape
    ) -> Step:
        """The end of step first[0] in this state: for forces that are looked at there."""
        return Step(self, state, None, sums, dt, first, 0, tape, ahead=kc.zeros(1, **of_real(float, self.real)))

    def scratch(self, name: str, shape: int | tuple[int, ...], element: Any = float) -> Array:
        """Memory of this step (or of the set-up) alone. Where launches only add to it, `.zero_()` it first."""
        return kc.zeros(shape, dtype=element, **of_real(element, self.real))


class Step(Arrays):
    """One step while it is recorded: the state before, sums of its own, and the state after."""

    def __init__(self, base: Arrays, before: Mapping[str, Array], after: Mapping[str, Array] | None,
                 own: Mapping[str, Array], dt: Array, first: Array, k: int, tape: kc.Tape | None,
                 ahead: Array | None = None):  # fmt: skip
        super().__init__(base.layout, base.real, {**base._table, **before, **own}, base.present)
        self.base, self._after = base, after
        self.tape = tape
        """The tape that records the step, for operations of its own; None where forces are only looked at."""
        self.dt = dt
        """The length of the step (s), an array of one number."""
        self.ahead = dt if ahead is None else ahead
        """How far contacts look ahead (s) to the velocity at the end of the step; zero where that is the state."""
        self.first, self.k = first, k
        """This is step first[0] + k of the rollout, counted in substeps."""
        self.notes: dict[str, Any] = {}
        """What systems leave for others in this step."""

    def stand_in(self, made: Mapping[Column, Array]) -> None:
        """Let arrays be state columns from here on in this step; before anything asked for those."""
        self._table = {**self._table, **{column.name: array for column, array in made.items()}}
        self._bundles.clear()

    def kept(self, name: str, shape: int | tuple[int, ...], element: Any = float) -> Array:
        """Memory that the steps of a tape share, zero at first: for what saves work, and never changes a result."""
        known = {} if self.tape is None else self.base._kept.setdefault(self.tape, {})
        if name not in known:
            known[name] = kc.zeros(shape, dtype=element, **of_real(element, self.real))
        return known[name]

    def alarm(self, system: str, more: int = 0) -> Array:
        """Memory of all steps of a program, for what must not happen: for each row of a system's table a whole number,
        and so many more that the error has to know.

        A launch that leaves another number than zero there ends the rollout with the error `System.alarmed`.
        """
        if system not in self.base.alarms:
            self.base.alarms[system] = kc.zeros((self.rows(system), 1 + more), dtype=int)
        return self.base.alarms[system]

    def next(self, column: Column) -> Array:
        """Where the state after the step goes."""
        assert self._after is not None, "forces and energies do not advance the state"
        return self._after[column.name]


def of_real(element: Any, real: str) -> dict[str, Any]:
    """How to ask `kc.zeros` for elements in the precision of a model; indices have none."""
    return {} if element is int else {"real": kc.float64 if real == "float64" else kc.float32}
