"""What changes during a rollout, at one time: the state columns of all objects, and views of them by object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from nablasim.physics.checks import nearest
from nablasim.physics.model.draft import Column, Real
from nablasim.physics.model.layout import Layout


class Part:
    """The part of one object: an attribute for each quantity, such as `x` and `v`, cut out when it is asked for."""

    def __init__(self, name: str, cuts: Mapping[str, Callable[[], Any]]):
        self._name, self._cuts = name, cuts
        self._more: dict[str, Callable[[], Any]] = {}

    @property
    def names(self) -> list[str]:
        return list(self._cuts)

    def add(self, name: str, cut: Callable[[], Any]) -> None:
        """Something else of the object that is made when it is asked for, and is not part of its state."""
        self._more[name] = cut

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_more", ()):
            value = self.__dict__[name] = self._more[name]()
            return value
        if name.startswith("_") or name not in self._cuts:
            raise AttributeError(f"{self._name!r} has no {name!r}: it has {', '.join(self._cuts) or 'nothing'}")
        value = self.__dict__[name] = self._cuts[name]()
        return value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._cuts, *self._more]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(getattr(self, name).shape)}" for name in self._cuts)
        return f"<{self._name}: {shapes}>"


class State:
    """Positions, velocities and the like of everything at one time. `state["gear"].x` is (n, 3).

    In a batch the first axis is the copy. `columns` has the same by column, (worlds, rows, *element).
    """

    def __init__(self, layout: Layout, columns: Mapping[str, Real]):
        self.layout, self.columns = layout, dict(columns)

    @property
    def scenes(self) -> list[State]:
        """The states of the scenes of a batch one by one."""
        return [self._scene(k, scene) for k, scene in enumerate(self.layout.scenes)] or [self]

    def _scene(self, k: int, scene: Layout) -> State:
        made = {}
        for name in self.columns.keys() & scene.columns.keys():
            column = scene.columns[name]
            flat = self.columns[name].reshape(1, -1, *column.shape)
            made[name] = flat[:, self.layout.scene_rows(column.table)[k]]
        return State(scene, made)

    def __getitem__(self, name: str) -> Part:
        if name not in self:
            raise KeyError(f"no object {name!r} has a state: {nearest(name, list(self))}")
        return part(self.layout, name, self.columns, lambda values, rows: values[:, rows], self.layout.copies is None)

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        tables = {self.layout.columns[name].table for name in self.columns}
        return (t.name for t in self.layout.things.values() if tables & set(t.rows) and t.kind != "link")

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
    thing = layout.things[name]

    def of(column: str, rows: slice) -> Any:
        mine = cut(columns[column], rows)
        mine = mine[0] if single else mine
        return _without_rows(mine, layout.columns[column]) if thing.single else mine

    cuts = {}
    for column in columns:
        table, _, quantity = column.partition(".")
        if table in thing.rows:
            cuts[quantity] = partial(of, column, thing.rows[table].slice)
    return Part(name, cuts)
