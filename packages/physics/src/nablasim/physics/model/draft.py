"""What a scene collects before it is frozen: tables of rows, columns of reals, indices between tables, parameters.

`Scene` and the adders of the laws fill a `Draft`; `layout.py` freezes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import finite, nearest
from nablasim.physics.model.surfaces import Surface

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
    """A whole-number array with `width` numbers per row: rows of the table `to`, or plain numbers if that is None.

    begins: the numbers say where rows begin, and may be one past the last where there are none.
    """

    name: str
    to: str | None = None
    width: int = 1
    begins: bool = False

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


ACROSS = 1e-4
"""Central differences around zero may step across it by so much."""


def shown(bounds: tuple[float | None, float | None]) -> str:
    """Bounds as a part of what is printed; nothing where there are none."""
    low, high = ("None" if b is None else f"{b:g}" for b in bounds)
    return f", bounds=({low}, {high})" if bounds != (None, None) else ""


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
        return f"Parameter({self.name!r}, shape={self.shape}, unit={self.unit!r}{shown(self.bounds)})"

    def checked(self, numbers: Real) -> Real:
        """The numbers, if they are some that a scene would take as well."""
        low, quantity = self.bounds[0], self.name.rpartition(".")[2]
        weighs = quantity in ("mass", "density")  # bodies and particles say more of these, with the row
        if low is not None and low >= 0 and not weighs and (numbers < -ACROSS).any():
            raise ValueError(f"{self.name} must not be negative, and is {numbers.min():g}")
        if self.element == (4,) and quantity == "rot" and not numbers.any(axis=-1).all():
            raise ValueError(f"{self.name} is a quaternion (x, y, z, w), and not zero; ph.quat(axis, angle) makes one")
        return numbers

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
    links: Mapping[str, int] = field(default_factory=dict)
    """Of a robot: the row of each link among its nodes."""


class Things(dict[str, Thing]):
    """The objects of a scene by name. `things[name]` of one that is not there offers those that are."""

    def __missing__(self, name: str) -> Thing:
        raise KeyError(f"there is no object {name!r}: {nearest(name, self)}")


@dataclass(frozen=True)
class Mark:
    """How much a draft holds."""

    count: Mapping[str, int]
    indices: Mapping[str, int]
    constants: int
    named: tuple[int, ...]


@dataclass
class Draft:
    """A layout while it is written. Adders of systems call `rows`, then `index`, `constant` and `parameter`."""

    count: dict[str, int] = field(default_factory=dict)
    indices: dict[str, list[NDArray[np.int32]]] = field(default_factory=dict)
    constants: list[tuple[Place, Real]] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    things: Things = field(default_factory=Things)
    surfaces: dict[str, Surface] = field(default_factory=dict)
    apart: set[frozenset[int]] = field(default_factory=set)
    """Pairs of rows of bodies that never touch."""
    changed: list[tuple[dict[str, Any], str, Any]] = field(default_factory=list, repr=False)
    """What stood in the place of what was written over since the last mark, and where."""

    def mark(self) -> Mark:
        """What `back_to` goes back to: how much there is, since a scene of n objects is not copied n times."""
        self.changed.clear()
        lengths = {name: len(parts) for name, parts in self.indices.items()}
        return Mark(dict(self.count), lengths, len(self.constants), tuple(map(len, self._named)))

    def back_to(self, mark: Mark) -> None:
        """Forget what was written since a mark, the last one that was made."""
        self.count = dict(mark.count)
        self.indices = {name: self.indices[name][:n] for name, n in mark.indices.items()}
        del self.constants[mark.constants :]
        for table, n in zip(self._named, mark.named):
            while len(table) > n:
                table.popitem()  # The last one that was added.
        for table, name, before in reversed(self.changed):
            if name in table:
                table[name] = before

    @property
    def _named(self) -> tuple[dict[str, Any], ...]:
        return self.parameters, self.things, self.surfaces

    def _put(self, table: dict[str, Any], name: str, value: Any) -> None:
        if name in table:
            self.changed.append((table, name, table[name]))
        table[name] = value

    def copy(self) -> Draft:
        """The same, to be written on independently."""
        return Draft(dict(self.count), {k: list(v) for k, v in self.indices.items()}, list(self.constants),
                     dict(self.parameters), Things(self.things), dict(self.surfaces), set(self.apart))  # fmt: skip

    def thing(
        self, name: str, kind: str, *rows: Rows, single: bool = False, links: Mapping[str, int] | None = None
    ) -> None:
        """A named object that owns these rows, beside those that it has already."""
        known = self.things.get(name, Thing(name, kind, {}))
        made = {**known.rows, **{r.table: r for r in rows}}
        self._put(self.things, name, Thing(name, kind, made, single or known.single, links or known.links))

    def surface(self, name: str, faces: ArrayLike, points: ArrayLike | None = None, **links: Any) -> None:
        """What of an object can be drawn; see `Surface`."""
        body = None if points is None else np.asarray(points, np.float64)
        self._put(self.surfaces, name, Surface(np.asarray(faces, np.int32), body, **links))

    def rows(self, table: str, count: int) -> Rows:
        """New rows at the end of a table."""
        start = self.count.get(table, 0)
        self.count[table] = start + count
        return Rows(table, start, count)

    def index(self, index: Index | str, values: ArrayLike) -> None:
        """The whole numbers of the rows that were added last: rows of the table they refer to, in the whole draft."""
        name = index.name if isinstance(index, Index) else index
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

        Naming a parameter again, with the same value, adds a place where it goes.
        """
        if name in self.parameters:
            known = self.parameters[name]
            new = np.array(value, np.float64)
            if not np.array_equal(known.value, new, equal_nan=True):
                raise ValueError(f"there is a parameter {name!r} already, whose value is {known.value}, not {new}: "
                                 f"give this one another name")  # fmt: skip
            self._put(self.parameters, name, replace(known, places=_with(known.places, column, rows, uniform)))
            return
        full = column.shape if uniform else (rows.count, *column.shape)
        made = Parameter(name, np.array(value, np.float64), unit, bounds, full, column.shape,
                         (Place(column.name, rows),), choice, dormant, about)  # fmt: skip
        if made.aligned(made.shape, None) is None:
            raise ValueError(f"{name} has shape {made.shape}; expected one value, or shape {full}")
        finite(name, made.value)
        self.parameters[name] = made


def _with(places: tuple[Place, ...], column: Column, rows: Rows, uniform: bool) -> tuple[Place, ...]:
    """The places of a parameter and one more; rows that follow those of the last one are joined with them."""
    last = places[-1]
    follows = last.column == column.name and last.rows.start + last.rows.count == rows.start
    if uniform and follows:
        joined = Rows(rows.table, last.rows.start, last.rows.count + rows.count)
        return (*places[:-1], Place(column.name, joined))
    return (*places, Place(column.name, rows))
