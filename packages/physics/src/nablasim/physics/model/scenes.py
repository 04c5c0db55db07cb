"""Different scenes as one layout: in every table the rows of one follow those of another.

What belongs to scene k has "k/" in front of its name. Scenes share no row, so nothing of one acts on another; what is
looked for in space keeps them apart by number, as it does with the copies of a scene.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.model.draft import Index, Parameter, Place, Real, Rows, Thing
from nablasim.physics.model.layout import Layout

KEPT = 4
"""How many batches of different scenes the first one remembers, with all that was compiled for them."""


def named(scene: int, name: str) -> str:
    """What a name of a scene is in a batch of different ones."""
    return f"{scene}/{name}"


def joined(scenes: Sequence[Layout]) -> Layout:
    """One layout of several scenes; the same one for the same scenes, so that what was compiled is used again."""
    key, known = tuple(scenes), scenes[0].batches
    if key not in known:
        older = [other for other in known if isinstance(other, tuple)]
        if len(older) >= KEPT:
            del known[older[0]]
        known[key] = _join(key)
    return known[key]


def _join(scenes: tuple[Layout, ...]) -> Layout:
    moves = _moves(scenes)
    kinds = {name: index for scene in scenes for name, index in scene.kinds.items()}
    tables = {table for scene in scenes for table in scene.count}
    return Layout(
        columns={name: column for scene in scenes for name, column in scene.columns.items()},
        kinds=kinds,
        count={table: sum(scene.count.get(table, 0) for scene in scenes) for table in sorted(tables)},
        indices={name: np.concatenate([move.index(kind) for move in moves if name in move.scene.indices])
                 for name, kind in kinds.items()},
        constants=tuple((move.place(p), value) for move in moves for p, value in move.scene.constants),
        parameters={made.name: made for move in moves for made in map(move.parameter, move.scene.parameters.values())},
        things={made.name: made for move in moves for made in map(move.thing, move.scene.things.values())},
        surfaces={named(move.number, n): surface for move in moves for n, surface in move.scene.surfaces.items()},
        scenes=scenes,
    )  # fmt: skip


class _Move:
    """From a scene to its place in the batch."""

    def __init__(self, number: int, scene: Layout, start: dict[str, int]):
        self.number, self.scene, self._start = number, scene, start

    def rows(self, rows: Rows) -> Rows:
        return replace(rows, start=rows.start + self._start.get(rows.table, 0))

    def place(self, place: Place) -> Place:
        return replace(place, rows=self.rows(place.rows))

    def index(self, index: Index) -> NDArray[np.int32]:
        shift = 0 if index.to is None else self._start.get(index.to, 0)
        return self.scene.indices[index.name] + np.int32(shift)

    def parameter(self, p: Parameter) -> Parameter:
        choice = None if p.choice is None else (named(self.number, p.choice[0]), p.choice[1])
        return replace(p, name=named(self.number, p.name), places=tuple(map(self.place, p.places)), choice=choice)

    def thing(self, thing: Thing) -> Thing:
        rows = {table: self.rows(mine) for table, mine in thing.rows.items()}
        return replace(thing, name=named(self.number, thing.name), rows=rows)


def _moves(scenes: Sequence[Layout]) -> list[_Move]:
    start: dict[str, int] = {}
    made = []
    for number, scene in enumerate(scenes):
        made.append(_Move(number, scene, dict(start)))
        for table, count in scene.count.items():
            start[table] = start.get(table, 0) + count
    return made


# -- what their columns hold
_LAST: WeakKeyDictionary[Layout, dict[str, tuple[list[Real], Real]]] = WeakKeyDictionary()
"""The columns of a batch as they were joined last, and from what."""


def joined_columns(layout: Layout, scenes: Sequence[Mapping[str, Real]]) -> dict[str, Real]:
    """The columns of a batch from those of its scenes, (1, rows, *element).

    Where all scenes have the same ones as last time, so has the batch: what is loaded already is known by that.
    """
    last, made = _LAST.setdefault(layout, {}), {}
    for name in layout.steady:
        parts = [columns[name] for columns in scenes if name in columns]
        before, whole = last.get(name, ([], None))
        if whole is None or len(before) != len(parts) or not all(map(is_, before, parts)):
            whole = np.concatenate(parts, axis=1)
            whole.flags.writeable = False
            last[name] = parts, whole
        made[name] = whole
    return made


# -- who a row belongs to
def world_of(layout: Layout, table: str) -> NDArray[np.intp]:
    """For every row of a table, which scene or copy of a batch it is of: nothing acts between them."""
    counts = [scene.rows(table) for scene in layout.scenes] or [layout.rows(table)]
    return np.repeat(np.arange(len(counts)), counts)


def scene_of(layout: Layout, table: str) -> NDArray[np.intp]:
    """The same, where copies of a scene count as one."""
    if not layout.scenes:
        return np.zeros(layout.rows(table), np.intp)
    if layout.copies is not None:
        return np.tile(scene_of(layout.scenes[0], table), layout.copies)
    found, first = [np.zeros(0, np.intp)], 0
    for scene in layout.scenes:
        found.append(scene_of(scene, table) + first)
        first += different(scene)
    return np.concatenate(found)


def different(layout: Layout) -> int:
    """How many different scenes there are."""
    if layout.copies is not None:
        return different(layout.scenes[0])
    return sum(map(different, layout.scenes)) or 1
