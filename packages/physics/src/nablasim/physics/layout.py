"""How a scene lies in memory: tables of rows, columns of reals, indices between tables, and the named parameters.

`Scene` fills a `Draft`, which freezes into a `Layout`; `program.py` makes arrays of it. A batch is the same layout
with every table repeated: row r of copy b is row b·rows + r, and indices are shifted with it. Systems do not notice.
Different scenes lie one after the other in the same way; `scenes.py` joins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import finite
from nablasim.physics.surfaces import Surface

Real = NDArray[np.floating[Any]]

_SHAPES: dict[Any, tuple[int, ...]] = {
    float: (), kc.float2: (2,), kc.float3: (3,), kc.float4: (4,), kc.quat: (4,), kc.mat33: (3, 3)
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A real array with one element per row of a table. `name` is "table.quantity", such as "springs.ke".

    role: "given" (filled from parameters and constants), "derived" (written once per rollout by `System.setup`),
        "state" (goes from step to step; starts as given), "sum" (zero at the start of each step; systems add to it).
    per_step: a given column that a rollout may vary in time, by `control`.
    optional: where all of it is zero and no gradient is asked for, `has(name)` is false and a system may leave it out.
    by: tables whose rows a sum comes from; where none of them has any, `has(name)` is false.
    """

    name: str
    element: Any = float
    role: str = "given"
    per_step: bool = False
    optional: bool = False
    by: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        return self.name.partition(".")[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one element in NumPy."""
        return _SHAPES[self.element]


@dataclass(frozen=True)
class Index:
    """A whole-number array with `width` numbers per row: rows of the table `to`, or plain numbers if that is None."""

    name: str
    to: str | None = None
    width: int = 1

    @property
    def table(self) -> str:
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class Rows:
    """Some consecutive rows of a table: an object's part of it."""

    table: str
    start: int
    count: int

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.count)

    def __iter__(self) -> Any:
        return iter(range(self.start, self.start + self.count))


@dataclass(frozen=True)
class Place:
    """Where the value of a parameter goes: rows of a column."""

    column: str
    rows: Rows


@dataclass(frozen=True, eq=False)
class Parameter:
    """A quantity that can be replaced and optimised, by name.

    `shape` is that of the value it has now; `full` is the largest that it can take, one element per row. Smaller ones
    are broadcast, and their gradient is the sum. `bounds` are sensible, for optimisers; `None` is no bound.
    """

    name: str
    value: Any
    unit: str
    bounds: tuple[float | None, float | None]
    full: tuple[int, ...]
    element: tuple[int, ...]
    places: tuple[Place, ...]
    choice: tuple[str, str] | None = None
    """(group, option): of the options in a group, such as density or mass, one is in force."""
    dormant: bool = False
    """Not in force until it is replaced: what stands for something that is otherwise computed."""
    about: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    def __repr__(self) -> str:
        low, high = ("" if b is None else f"{b:g}" for b in self.bounds)
        return f"Parameter({self.name!r}, shape={self.shape}, unit={self.unit!r}, bounds=[{low}, {high}])"

    def aligned(self, shape: tuple[int, ...], copies: int | None) -> tuple[int, ...] | None:
        """A value of this shape as (copies or 1, rows or 1, *element), ready to be broadcast; None if it does not fit.

        In a batch the first axis is the copy, if it can be; otherwise all copies have the same value.
        """
        by_copy = self.by_copy(shape, copies)
        one = self._aligned(shape[1:] if by_copy else shape)
        return None if one is None else (shape[0] if by_copy else 1, *one)

    def by_copy(self, shape: tuple[int, ...], copies: int | None) -> bool:
        """Whether the first axis of a value of this shape is the copy."""
        if copies is None or shape[:1] != (copies,) or not (shape[1:] or not self.element):
            return False
        return self._aligned(shape[1:]) is not None

    def _aligned(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        if shape == ():
            return (1,) * (1 + len(self.element))
        if shape in (self.element, (1, *self.element)):  # Arrays of kernelc have at least one dimension.
            return (1, *self.element)
        return shape if shape == self.full else None


@dataclass(frozen=True)
class Thing:
    """A named object of the scene and its rows of each table."""

    name: str
    kind: str
    rows: Mapping[str, Rows]
    single: bool = False
    """One row for all of it, as of a rigid body: its state is shown without an axis of rows."""


@dataclass
class Draft:
    """A layout while it is written. Adders of systems call `rows`, then `index`, `constant` and `parameter`."""

    count: dict[str, int] = field(default_factory=dict)
    indices: dict[str, list[NDArray[np.int32]]] = field(default_factory=dict)
    constants: list[tuple[Place, Real]] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    things: dict[str, Thing] = field(default_factory=dict)
    surfaces: dict[str, Surface] = field(default_factory=dict)

    def copy(self) -> Draft:
        """The same, to be written on independently."""
        return Draft(dict(self.count), {k: list(v) for k, v in self.indices.items()}, list(self.constants),
                     dict(self.parameters), dict(self.things), dict(self.surfaces))  # fmt: skip

    def thing(self, name: str, kind: str, *rows: Rows, single: bool = False) -> None:
        """A named object that owns these rows, beside those that it has already."""
        known = self.things.get(name, Thing(name, kind, {}))
        made = {**known.rows, **{r.table: r for r in rows}}
        self.things[name] = Thing(name, kind, made, single or known.single)

    def surface(self, name: str, faces: ArrayLike, points: ArrayLike | None = None) -> None:
        """What of an object can be drawn; see `Surface`."""
        body = None if points is None else np.array(points, np.float64)
        self.surfaces[name] = Surface(np.array(faces, np.int32), body)

    def rows(self, table: str, count: int) -> Rows:
        """New rows at the end of a table."""
        start = self.count.get(table, 0)
        self.count[table] = start + count
        return Rows(table, start, count)

    def index(self, name: str, values: ArrayLike) -> None:
        """The whole numbers of the rows that were added last: rows of the table they refer to, in the whole draft."""
        self.indices.setdefault(name, []).append(np.array(values, np.int32))

    def whole(self, index: Index) -> NDArray[np.int32]:
        """An index as it is so far."""
        empty = np.zeros((0,) if index.width == 1 else (0, index.width), np.int32)
        return np.concatenate([empty, *self.indices.get(index.name, [])]).astype(np.int32)

    def constant(self, column: Column, rows: Rows, value: ArrayLike) -> None:
        """Content of a column that nobody optimises."""
        self.constants.append((Place(column.name, rows), np.array(value, np.float64)))

    def parameter(
        self,
        name: str,
        column: Column,
        rows: Rows,
        value: ArrayLike,
        *,
        unit: str,
        bounds: tuple[float | None, float | None] = (None, None),
        uniform: bool = False,
        choice: tuple[str, str] | None = None,
        dormant: bool = False,
        about: str = "",
    ) -> None:
        """Content of a column under a name. `uniform`: one element for all rows, such as gravity.

        Naming a parameter again adds a place where its value goes.
        """
        if name in self.parameters:
            known = self.parameters[name]
            self.parameters[name] = replace(known, places=(*known.places, Place(column.name, rows)))
            return
        full = column.shape if uniform else (rows.count, *column.shape)
        made = Parameter(name, np.array(value, np.float64), unit, bounds, full, column.shape,
                         (Place(column.name, rows),), choice, dormant, about)  # fmt: skip
        if made.aligned(made.shape, None) is None:
            raise ValueError(f"{name} has shape {made.shape}; expected one value, or shape {full}")
        finite(name, made.value)
        self.parameters[name] = made


@dataclass(frozen=True, eq=False)
class Layout:
    """A finished draft: what never changes between rollouts of a model. Compiled programs are kept with it."""

    columns: Mapping[str, Column]
    kinds: Mapping[str, Index]
    count: Mapping[str, int]
    indices: Mapping[str, NDArray[np.int32]]
    constants: tuple[tuple[Place, Real], ...]
    parameters: Mapping[str, Parameter]
    things: Mapping[str, Thing]
    surfaces: Mapping[str, Surface] = field(default_factory=dict)
    copies: int | None = None
    scenes: tuple[Layout, ...] = ()
    """Those of a batch, one after the other in every table: one scene again and again, or different ones."""
    programs: dict[Any, Any] = field(default_factory=dict)
    batches: dict[Any, Layout] = field(default_factory=dict)
    """Batches that begin with this scene, by the number of copies, or by their scenes."""

    def __getstate__(self) -> dict[str, Any]:
        # What was compiled stays in this process.
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "programs": {}, "batches": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    @property
    def worlds(self) -> int:
        return 1 if self.copies is None else self.copies

    def rows(self, table: str) -> int:
        """All rows of a table, of every copy."""
        return self.count.get(table, 0) * self.worlds

    def batched(self, copies: int) -> Layout:
        """The same scene many times; the same layout for the same number."""
        if copies not in self.batches:
            names = [f.name for f in fields(self) if f.name not in ("copies", "scenes", "programs", "batches")]
            same = {name: getattr(self, name) for name in names}
            self.batches[copies] = Layout(**same, copies=copies, scenes=(self,) * copies)
        return self.batches[copies]

    def scene_rows(self, table: str) -> list[slice]:
        """The rows of each scene of a batch."""
        ends = np.cumsum([0, *(scene.rows(table) for scene in self.scenes)])
        return [slice(int(low), int(high)) for low, high in pairwise(ends)]

    def tiled(self, name: str) -> NDArray[np.int32]:
        """An index of every copy, each shifted to its own rows."""
        one, to = self.indices[name], self.kinds[name].to
        step = 0 if to is None else self.count.get(to, 0)
        shift = step * np.arange(self.worlds, dtype=np.int32).reshape(-1, *[1] * one.ndim)
        return np.ascontiguousarray((one[None] + shift).reshape(-1, *one.shape[1:]), np.int32)

    @cached_property
    def steady(self) -> dict[str, Real]:
        """The columns as the constants leave them, (worlds, rows, *element) in double precision."""
        made: dict[str, Real] = {
            name: np.zeros((self.worlds, self.count.get(c.table, 0), *c.shape))
            for name, c in self.columns.items()
            if c.role in ("given", "state")
        }
        for place, value in self.constants:
            made[place.column][:, place.rows.slice] = value
        return made

    @cached_property
    def by_column(self) -> dict[str, list[Parameter]]:
        """The parameters that go to each column."""
        found: dict[str, list[Parameter]] = {name: [] for name in self.columns}
        for parameter in self.parameters.values():
            for column in {place.column for place in parameter.places}:
                found[column].append(parameter)
        return found

    @cached_property
    def optional(self) -> list[str]:
        """The given columns that may be left out where they are zero."""
        return [name for name in self.steady if self.columns[name].optional]

    @cached_property
    def choices(self) -> dict[str, dict[str, str]]:
        """By group, the parameters that exclude each other, and which option each belongs to."""
        found: dict[str, dict[str, str]] = {}
        for name, parameter in self.parameters.items():
            if parameter.choice is not None:
                group, option = parameter.choice
                found.setdefault(group, {})[name] = option
        return found

    def fill(self, column: str, values: Mapping[str, Real], real: str) -> Real:
        """A given or state column, (worlds, rows, *element), from the values of those parameters that are there."""
        steady, by = self.steady[column], self.by_column[column]
        if len(by) == 1 and by[0].name in values and values[by[0].name].size == steady.size:
            made = np.array(values[by[0].name], real).reshape(steady.shape)
        else:
            made = steady.astype(real)
            for parameter in by:
                if parameter.name in values:
                    self.write({column: made}, parameter, values[parameter.name])
        made.flags.writeable = False
        return made

    def write(self, columns: Mapping[str, Real], parameter: Parameter, value: Real, lead: int = 0) -> None:
        """Put the value of a parameter into its columns, (worlds, rows, *element).

        `lead` axes in front of both, such as steps, are kept.
        """
        front, shape = value.shape[:lead], value.shape[lead:]
        spread = value.reshape(*front, *self._aligned(parameter, shape))
        for place in parameter.places:
            if place.column in columns:
                columns[place.column][(*[slice(None)] * (lead + 1), place.rows.slice)] = spread

    def read_gradient(
        self, grads: Mapping[str, Real], parameter: Parameter, shape: tuple[int, ...], lead: int = 0
    ) -> Real:
        """The gradient by a parameter's value of this shape, from those by the columns: sums where it was broadcast."""
        if len(parameter.places) == 1:
            whole = grads[parameter.places[0].column]
            if whole.size == prod(shape):
                return whole.reshape(shape).copy()
        aligned = (*shape[:lead], *self._aligned(parameter, shape[lead:]))
        parts = []
        for place in parameter.places:
            if place.column in grads:
                part = grads[place.column][(*[slice(None)] * (lead + 1), place.rows.slice)]
                axes = tuple(i for i, n in enumerate(aligned) if n == 1 and part.shape[i] != 1)
                # By row in double precision: as exact for a million rows as for one, and the same bits in a batch.
                parts.append(np.sum(part, axis=axes, dtype=np.float64, keepdims=True) if axes else part)
        total = parts[0].copy() if len(parts) == 1 else sum(parts, np.zeros(aligned))
        return total.reshape(shape)

    def _aligned(self, parameter: Parameter, shape: tuple[int, ...]) -> tuple[int, ...]:
        aligned = parameter.aligned(tuple(shape), self.copies)
        assert aligned is not None, (parameter, shape)
        return aligned


def finish(draft: Draft, systems: Iterable[Any]) -> Layout:
    """Freeze a draft that holds rows of these systems."""
    used = list(systems)
    columns = {c.name: c for system in used for c in system.columns}
    kinds = {i.name: i for system in used for i in system.indices}
    indices = {name: draft.whole(kind) for name, kind in kinds.items()}
    constants = tuple((place, value) for place, value in draft.constants if place.rows.count)
    # What goes nowhere has no effect: it is not offered.
    placed = {n: tuple(place for place in p.places if place.rows.count) for n, p in draft.parameters.items()}
    parameters = {n: replace(p, places=placed[n]) for n, p in draft.parameters.items() if placed[n]}
    return Layout(columns, kinds, dict(draft.count), indices, constants, parameters, dict(draft.things),
                  dict(draft.surfaces))  # fmt: skip
