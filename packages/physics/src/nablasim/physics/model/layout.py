"""How a scene lies in memory: a `Draft` that is frozen, with all of its tables, columns, indices and parameters.

`time/program.py` makes arrays of it. A batch is the same layout
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
from numpy.typing import NDArray

from nablasim.physics.model.draft import Column, Draft, Index, Parameter, Place, Real, Thing
from nablasim.physics.model.surfaces import Surface


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
    _check(draft, columns, kinds, indices)
    constants = tuple((place, value) for place, value in draft.constants if place.rows.count)
    # What goes nowhere has no effect: it is not offered.
    parameters = {}
    for name, p in draft.parameters.items():
        if all(place.rows.count for place in p.places):
            parameters[name] = p
        elif placed := tuple(place for place in p.places if place.rows.count):
            parameters[name] = replace(p, places=placed)
    return Layout(columns, kinds, dict(draft.count), indices, constants, parameters, dict(draft.things),
                  dict(draft.surfaces))  # fmt: skip


def _check(
    draft: Draft, columns: Mapping[str, Column], kinds: Mapping[str, Index], indices: Mapping[str, NDArray[np.int32]]
) -> None:
    """Kernels do not look where indices lead: an adder that forgets one, or counts wrong, is told here."""
    places = [*(p for p, _ in draft.constants), *(p for q in draft.parameters.values() for p in q.places)]
    strange = [p.column for p in places if p.rows.count and p.column not in columns]
    strange += [name for name, parts in draft.indices.items() if name not in kinds and any(map(len, parts))]
    if strange:
        raise ValueError(f"{strange[0]!r} was written, but no system has it: name it in `columns` or `indices` of one, "
                         "and let laws.register know that one before the scene is built")  # fmt: skip
    for name, kind in kinds.items():
        rows, given = draft.count.get(kind.table, 0), indices[name]
        if len(given) != rows:
            raise ValueError(f"{name!r} was given for {len(given)} of the {rows} rows of {kind.table!r}: "
                             "call draft.index with a number for each row")  # fmt: skip
        if kind.to is None or not given.size:
            continue
        there = draft.count.get(kind.to, 0)
        if given.min() < 0 or given.max() >= there + kind.begins:
            wrong = given[(given < 0) | (given >= there + kind.begins)].flat[0]
            raise ValueError(f"{name!r} points at row {wrong} of {kind.to!r}, which has {there}")


def owner(layout: Layout, table: str, row: int) -> tuple[str, int]:
    """The object that a row of a table belongs to, and the row's number in it; in a batch the copy, too."""
    copy, row = divmod(row, layout.count[table])
    for thing in layout.things.values():
        rows = thing.rows.get(table)
        if rows is not None and rows.start <= row < rows.start + rows.count:
            return thing.name + (f" (copy {copy})" if layout.copies else ""), row - rows.start
    # A law from elsewhere may have rows that belong to no object: then they are known by their parameters.
    for parameter in layout.parameters.values():
        for place in parameter.places:
            if place.rows.table == table and place.rows.start <= row < place.rows.start + place.rows.count:
                return parameter.name.rpartition(".")[0] or table, row - place.rows.start
    return table, row
