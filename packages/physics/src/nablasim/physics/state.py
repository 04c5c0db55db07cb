"""What changes during a rollout, at one time: the state columns of all objects, and views of them by object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nablasim.physics.checks import nearest
from nablasim.physics.layout import Column, Layout, Real


class Part:
    """The part of one object: an attribute for each quantity, such as `x` and `v`."""

    def __init__(self, name: str, values: Mapping[str, Any]):
        self._name, self._values = name, dict(values)

    @property
    def names(self) -> list[str]:
        return list(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"{self._name!r} has no {name!r}: it has {', '.join(self._values) or 'nothing'}")
        return self._values[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in self._values.items())
        return f"<{self._name}: {shapes}>"


class State:
    """Positions, velocities and the like of everything at one time. `state["gear"].x` is (n, 3).

    In a batch the first axis is the copy. `columns` has the same by column, (worlds, rows, *element).
    """

    def __init__(self, layout: Layout, columns: Mapping[str, Real]):
        self.layout, self.columns = layout, dict(columns)

    def __getitem__(self, name: str) -> Part:
        if name not in self:
            raise KeyError(f"no object {name!r} has a state: {nearest(name, list(self))}")
        return part(self.layout, name, self.columns, lambda values, rows: values[:, rows], self.layout.copies is None)

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        tables = {self.layout.columns[name].table for name in self.columns}
        return (t.name for t in self.layout.things.values() if tables & set(t.rows))

    def replace(self, values: Mapping[str, Any]) -> State:
        """Another state with some quantities exchanged: {"gear.x": (n, 3)}."""
        made = {name: column.copy() for name, column in self.columns.items()}
        for name, value in values.items():
            thing, _, quantity = name.rpartition(".")
            getattr(self[thing], quantity)
            for table, rows in self.layout.things[thing].rows.items():
                if f"{table}.{quantity}" in made:
                    made[f"{table}.{quantity}"][:, rows.slice] = value
        return State(self.layout, made)


def _without_rows(values: Any, column: Column) -> Any:
    """The values of the only row; the axis of rows is the last before the components."""
    # Arrays of kernelc do not show components as axes.
    inner = 0 if type(values).__module__.startswith("kernelc") else len(column.shape)
    return values[(*[slice(None)] * (values.ndim - 1 - inner), 0)]


def part(layout: Layout, name: str, columns: Mapping[str, Any], cut: Any, single: bool) -> Part:
    """The part of an object in columns; `cut(values, slice)` takes some rows, leaving the copies first."""
    found = {}
    for column, values in columns.items():
        table, _, quantity = column.partition(".")
        rows = layout.things[name].rows.get(table)
        if rows is not None:
            mine = cut(values, rows.slice)
            mine = mine[0] if single else mine
            found[quantity] = _without_rows(mine, layout.columns[column]) if layout.things[name].single else mine
    return Part(name, found)
