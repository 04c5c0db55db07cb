"""Rows of contacts between bodies, and of particles with bodies: who may touch whom, and by which numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.checks import STICK, filled
from nablasim.physics.geometry import CAPSULE, FIELD, GRID, MESH, SPHERE
from nablasim.physics.laws.contact import compliant_kernels, planes
from nablasim.physics.laws.contact.body_contacts import UNITS, Contact
from nablasim.physics.laws.contact.hard_kernels import HARD
from nablasim.physics.laws.contact.neighbours import COUNT, FAMILIES, MANY, START, add_swarm, room
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.bodies_kernels import FREE, LINK, NONE
from nablasim.physics.model import Column, Draft, Rows

Ints = NDArray[np.int_]


@dataclass(frozen=True)
class Law:
    """How the damping of a contact sets in, and how far kinks are rounded: see `Scene.add_plane`."""

    damping: str = "smooth"
    touch: float = 5e-3
    smoothing: float = 0.0
    hard: bool = False

    def check(self, name: str) -> Law:
        if self.damping not in planes.LAWS:
            raise ValueError(f'{name}: damping is "smooth" or "linear", not {self.damping!r}')
        filled(f"{name}.touch", self.touch, (), positive=True)
        filled(f"{name}.smoothing", self.smoothing, (), positive=True, allow_zero=True)
        return self


@dataclass(frozen=True)
class Meeting:
    """A body as one that others meet."""

    name: str
    row: int
    kind: int
    free: bool
    points: int
    given: frozenset[str]
    """Which of ke, kd, kf, mu it has of its own."""
    sticks: bool = False
    """Whether things stick to it."""
    carried: bool = False
    """By a link of a robot, of which not all touch each other."""

    @property
    def family(self) -> str:
        return {MESH: "mesh", GRID: "grid", FIELD: "grid"}.get(self.kind, "shape")

    @property
    def roundness(self) -> int:
        """How well its own points, which are balls, say where it is: exactly, nearly, or only as corners do."""
        return {SPHERE: 2, CAPSULE: 1}.get(self.kind, 0)


def add_contacts(draft: Draft, *, numbers: Mapping[str, float | None], law: Law, laws: Mapping[str, Law]) -> None:
    """Contacts of all bodies with each other and with all particles: called when everything else is there.

    `numbers`, those of `UNITS`, and `law` hold where bodies have none of their own; `laws` are those of obstacles.
    """
    law.check("contact")
    for quantity, value in numbers.items():
        if value is not None:
            filled(f"contact.{quantity}", value, (), positive=True, allow_zero=True)
    bodies = meeting_bodies(draft)
    _add_pairs(draft, bodies, numbers, law, laws)
    particles = draft.count.get("particles", 0)
    for one in bodies if particles else ():
        rows = draft.rows(f"{one.family}_hits", particles)
        draft.index(f"{rows.table}.particle", np.arange(particles))
        draft.index(f"{rows.table}.body", np.full(particles, one.row))
        add_numbers(draft, rows, one.given, numbers, laws.get(one.name, law))


def _add_pairs(
    draft: Draft, bodies: list[Meeting], numbers: Mapping[str, float | None], law: Law, laws: Mapping[str, Law]
) -> None:
    """Rows of all pairs of bodies, by arrays: neighbours in a table that have the same numbers are filled together."""
    swarm, two = _apart(bodies, laws)
    points, surfaces = _meetings(bodies, *two)
    if draft.apart:
        meet = [frozenset((bodies[i].row, bodies[k].row)) not in draft.apart for i, k in zip(points, surfaces)]
        points, surfaces = points[meet], surfaces[meet]
    known = [law, *laws.values()]
    numbered = {name: 1 + k for k, name in enumerate(laws)}
    sticks = np.array([body.sticks or numbers["kf"] == STICK for body in bodies], bool)
    own = np.array([numbered.get(body.name, 0) for body in bodies], int)
    said = np.array([sum(1 << k for k, q in enumerate(UNITS) if q in body.given) for body in bodies], int)
    row = np.array([body.row for body in bodies], int)
    family = np.array([body.family for body in bodies], str)
    for name in dict.fromkeys(family[surfaces]):
        one, other = (side[family[surfaces] == name] for side in (points, surfaces))
        given, how = said[one] | said[other], np.where(own[other] > 0, own[other], own[one])
        stick = (sticks[one] | sticks[other]).astype(int)
        starts = np.flatnonzero(np.diff(given, prepend=-1) | np.diff(how, prepend=-1) | np.diff(stick, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(one)]):
            rows = draft.rows(f"{name}_pairs", int(end - start))
            draft.index(f"{rows.table}.one", row[one[start:end]])
            draft.index(f"{rows.table}.other", row[other[start:end]])
            both = frozenset(q for k, q in enumerate(UNITS) if given[start] >> k & 1)
            add_numbers(draft, rows, both, numbers, known[how[start]], pairs=True, sticks=bool(stick[start]))
    if swarm:
        _add_swarm(draft, swarm, numbers, law)


def _apart(bodies: list[Meeting], laws: Mapping[str, Law]) -> tuple[list[Meeting], tuple[Ints, Ints]]:
    """The bodies that find each other as they move, if there are many; and all pairs of two that do not."""
    free = np.array([body.free and not body.carried and body.name not in laws for body in bodies], bool)
    if free.sum() < MANY:
        return [], np.triu_indices(len(bodies), 1)
    rest, moving = np.flatnonzero(~free), np.flatnonzero(free)
    i, j = np.triu_indices(len(rest), 1)
    one = np.concatenate([rest[i], np.repeat(rest, len(moving))])
    other = np.concatenate([rest[j], np.tile(moving, len(rest))])
    return [bodies[k] for k in moving], (np.minimum(one, other), np.maximum(one, other))


def _add_swarm(draft: Draft, swarm: list[Meeting], numbers: Mapping[str, float | None], law: Law) -> None:
    """Rows of pairs that are handed out as bodies come near each other."""
    bodies = np.array([body.row for body in swarm], int)
    add_swarm(draft, bodies, np.array([body.roundness for body in swarm], int), law.smoothing)
    given = frozenset.intersection(*(body.given for body in swarm))
    for family in FAMILIES:
        many = room(len(swarm), [body.roundness for body in swarm if body.family == family])
        rows = draft.rows(f"{family}_pairs", many)
        draft.index(START[family].name, [rows.start])
        draft.index(COUNT[family].name, [many])
        for side in ("one", "other"):
            draft.index(f"{rows.table}.{side}", np.full(many, bodies[0]))
        if many:
            sticks = numbers["kf"] == STICK or any(body.sticks for body in swarm)
            mixed = any("ke" in body.given for body in swarm)
            add_numbers(draft, rows, given, numbers, law, pairs=True, sticks=sticks, mixed=mixed)


def meeting_bodies(draft: Draft) -> list[Meeting]:
    """The bodies of a scene."""
    stuck = {place.rows.start for place, kf in draft.constants if place.column == b.KF.name and kf == STICK}
    kind, motion, count = (draft.whole(index) for index in (b.KIND, b.MOTION, b.POINT_COUNT))
    found = []
    for thing in draft.things.values():
        if "bodies" in thing.rows:
            row = thing.rows["bodies"].start
            given = frozenset(q for q in UNITS if f"{thing.name}.{q}" in draft.parameters)
            free, carried = bool(motion[row] in (FREE, LINK)), thing.kind == "link"
            found.append(Meeting(thing.name, row, int(kind[row]), free, int(count[row]), given,
                                 row in stuck, carried))  # fmt: skip
    return found


def _meetings(bodies: list[Meeting], one: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Whose points meet whose surface, of two of which one is free: their numbers in the list.

    A ball is where its centre says: the points of what it touches would count it twice.
    """
    free, round, count = (np.array([getattr(body, q) for body in bodies], int)
                          for q in ("free", "roundness", "points"))  # fmt: skip
    one, other = (side[(free[one] | free[other]) > 0] for side in (one, other))
    points, surfaces = np.stack([one, other], axis=1), np.stack([other, one], axis=1)
    ahead = round[points] > round[surfaces]
    alike = round[points] == round[surfaces]
    meet = ahead | alike & ((round[points] == 0) | (np.arange(2) == 0))
    meet &= count[points] > 0
    return points[meet], surfaces[meet]


def add_numbers(draft: Draft, rows: Rows, given: frozenset[str], numbers: Mapping[str, float | None], law: Law,
                pairs: bool = False, sticks: bool = False, mixed: bool = False) -> None:  # fmt: skip
    """What holds in some rows. `pairs` of bodies may be hard, or firm: without a ke of their own, or where they stick.
    `mixed`: some of them have a ke, and others have none.

    What sticks to springs that are taken as they are when a step begins rocks from corner to corner, and walks.
    """
    contact = Contact(rows.table)
    by_mass = "ke" not in given and numbers["ke"] is None
    firm = pairs and law.damping == "smooth" and (by_mass or sticks)
    number = compliant_kernels.FIRM if firm else planes.LAWS.index(law.damping)
    if law.hard and pairs:
        number = HARD
    draft.index(contact.law.name, np.full(rows.count, number))
    draft.constant(contact.touch, rows, law.touch)
    draft.constant(contact.smoothing, rows, law.smoothing)
    # What nothing depends on is no parameter.
    known = given | {quantity for quantity, value in numbers.items() if value is not None}
    used = {"ke", "kd", "kf", "mu"} - given
    used |= {"rate"} if {"ke", "kd", "kf"} - known else set()
    used |= {"ratio"} if "kd" not in known else set()
    for column, quantity in zip(contact.given, UNITS):
        name, value = quantity, numbers[quantity]
        if quantity == "rate" and value is None:
            name, value = planes.usual_rate(firm)
        draft.constant(column, rows, STICK if value == STICK else NONE)
        if value != STICK and quantity in used and value is not None:
            _by_mass(draft, name, column, rows, value, UNITS[quantity])
    if pairs:
        soft = planes.RATE if numbers["rate"] is None else numbers["rate"]
        draft.constant(contact.soft, rows, soft)
        if firm and mixed:
            _by_mass(draft, "rate", contact.soft, rows, soft, UNITS["rate"])


def _by_mass(draft: Draft, quantity: str, column: Column, rows: Rows, value: float, unit: str) -> None:
    draft.parameter(f"contact.{quantity}", column, rows, value, unit=unit, bounds=(0.0, None),
                    uniform=True, about="of contacts of bodies that have no numbers of their own")  # fmt: skip
