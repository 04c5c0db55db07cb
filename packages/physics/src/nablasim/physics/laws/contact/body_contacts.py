"""Compliant contact with the surfaces of bodies: of bodies with bodies, and of particles with bodies.

Contacts are found afresh in every step, by looking at every pair; those that are too far apart, by the balls that hold
the bodies, cost next to nothing. Each family of surfaces has tables of its own, since it has kernels of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.checks import filled
from nablasim.physics.errors import PassedThrough
from nablasim.physics.geometry import CAPSULE, GRID, MESH, SPHERE
from nablasim.physics.laws.contact import body_contacts_kernels as kernels
from nablasim.physics.laws.contact import compliant_kernels, planes
from nablasim.physics.laws.contact.body_contacts_kernels import FAMILIES
from nablasim.physics.laws.contact.pairing_kernels import Defaults, Partners, pair_of_bodies, pair_with_particle
from nablasim.physics.laws.contact.passing_kernels import FAMILIES as PASSING
from nablasim.physics.laws.contact.passing_kernels import thinness
from nablasim.physics.laws.deformable import particles as p
from nablasim.physics.laws.limits import CONTACT_SAFETY, Limit, step_rate
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.bodies_kernels import FREE, LINK, NONE
from nablasim.physics.laws.rigid.surfaces import BOUND, surfaces
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows, owner

if TYPE_CHECKING:
    from nablasim.physics.model import Arrays, Step


UNITS = {"ke": "N/m", "kd": "N s/m", "kf": "N s/m", "mu": "1", "rate": "1/s", "ratio": "1"}


@dataclass(frozen=True)
class Contact:
    """The columns of a table of contacts."""

    table: str

    @property
    def given(self) -> tuple[Column, ...]:
        """ke, kd, kf, mu, rate and ratio: what holds where the bodies of a row have no numbers of their own."""
        return tuple(Column(f"{self.table}.{quantity}") for quantity in UNITS)

    @property
    def four(self) -> Column:
        """[ke, kd, kf, mu] that hold."""
        return Column(f"{self.table}.four", kc.float4, role="derived")

    @property
    def law(self) -> Index:
        return Index(f"{self.table}.law")

    @property
    def touch(self) -> Column:
        return Column(f"{self.table}.touch")

    @property
    def smoothing(self) -> Column:
        return Column(f"{self.table}.smoothing")

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.given, self.four, self.touch, self.smoothing)

    def defaults(self, a: Arrays) -> Any:
        return a.bundle(Defaults, *self.given)

    def rows(self, s: Step, kind: Any, *more: Column | Index) -> Any:
        """The table in kernels: `kind` is a bundle of more columns, and of the law of each contact."""
        contact = s.bundle(compliant_kernels.Contact, self.four, self.law, self.touch, self.smoothing)
        return s.bundle(kind, *more, contact=contact)


def partners(a: Arrays) -> Any:
    """Bodies as those that others touch."""
    return a.bundle(Partners, b.FOUR, b.MASS, b.MOTION)


class Pairs(System):
    """The points of one body against the surface of another one."""

    family: ClassVar[str]
    contact: ClassVar[Contact]
    one: ClassVar[Index]
    other: ClassVar[Index]

    def __init_subclass__(cls) -> None:
        cls.name = f"{cls.family}_pairs"
        cls.contact = Contact(cls.name)
        cls.one, cls.other = (Index(f"{cls.name}.{q}", to="bodies") for q in ("one", "other"))
        cls.columns, cls.indices = cls.contact.columns, (cls.one, cls.other, cls.contact.law)

    def finish(self, a: Arrays) -> None:
        given = [self.contact.defaults(a), a[self.one], a[self.other], partners(a)]
        kc.launch(pair_of_bodies, a.rows(self.name), given, [a[self.contact.four]], parts=a.parts)

    def pairs(self, s: Step) -> Any:
        return self.contact.rows(s, kernels.Pairs, self.one, self.other)

    def forces(self, s: Step) -> None:
        given = [b.moving(s), surfaces(s), self.pairs(s), s.ahead]
        kc.launch(FAMILIES[self.family].pair_forces, s.rows(self.name), given, [b.forces(s)], parts=s.parts)

    def watch(self, s: Step) -> None:
        given = [b.before(s), b.after(s), surfaces(s), self.pairs(s), s.dt]
        kc.launch(PASSING[self.family], s.rows(self.name), given, [s.alarm(self.name)], parts=s.parts)

    def alarmed(self, a: Arrays, row: int, value: int, dt: float) -> Exception:
        one, other = (owner(a.layout, "bodies", int(a.numpy(index)[row]))[0] for index in (self.one, self.other))
        kind, size, bound = (a.numpy(c)[a.numpy(self.other)[row]] for c in (b.KIND, b.SIZE, BOUND))
        thin = thinness(int(kind), *map(float, size), float(bound[3]))
        return PassedThrough(one, other, value / 1000, dt, float(thin))

    def energy(self, s: Step) -> Any:
        e = s.scratch(f"{self.name}.energy", s.rows(self.name))
        given = [b.moving(s), surfaces(s), self.pairs(s)]
        kc.launch(FAMILIES[self.family].pair_energies, s.rows(self.name), given, [e])
        return e

    def limits(self, a: Arrays) -> list[Limit]:
        four, one, other = a.numpy(self.contact.four), a.numpy(self.one), a.numpy(self.other)
        rates = b.contact_rates(a, planes=False)
        k = (rates[one] + rates[other]) * four[:, 0]
        return [b.contact_limit(body, a.rows("bodies"), k) for body in (one, other)]


class ShapePairs(Pairs):
    family = "shape"


class MeshPairs(Pairs):
    family = "mesh"


class GridPairs(Pairs):
    family = "grid"


class Hits(System):
    """Particles against the surfaces of bodies, which feel them as well."""

    touches = True
    family: ClassVar[str]
    contact: ClassVar[Contact]
    particle: ClassVar[Index]
    body: ClassVar[Index]

    def __init_subclass__(cls) -> None:
        cls.name = f"{cls.family}_hits"
        cls.contact = Contact(cls.name)
        cls.particle = Index(f"{cls.name}.particle", to="particles")
        cls.body = Index(f"{cls.name}.body", to="bodies")
        cls.columns, cls.indices = cls.contact.columns, (cls.particle, cls.body, cls.contact.law)

    def finish(self, a: Arrays) -> None:
        given = [self.contact.defaults(a), a[self.particle], a[self.body], partners(a), a[p.MASS]]
        kc.launch(pair_with_particle, a.rows(self.name), given, [a[self.contact.four]], parts=a.parts)

    def hits(self, s: Step) -> Any:
        return self.contact.rows(s, kernels.Hits, self.particle, self.body)

    def forces(self, s: Step) -> None:
        given = [planes.pushed(s), b.moving(s), surfaces(s), self.hits(s), s.ahead]
        sums = [s[p.CONTACT_F], b.forces(s)]
        kc.launch(FAMILIES[self.family].hit_forces, s.rows(self.name), given, sums, parts=s.parts)

    def energy(self, s: Step) -> Any:
        e = s.scratch(f"{self.name}.energy", s.rows(self.name))
        given = [planes.pushed(s), b.moving(s), surfaces(s), self.hits(s)]
        kc.launch(FAMILIES[self.family].hit_energies, s.rows(self.name), given, [e])
        return e

    def limits(self, a: Arrays) -> list[Limit]:
        four, particle, body = a.numpy(self.contact.four), a.numpy(self.particle), a.numpy(self.body)
        # Both sides give way: as if the particle were lighter.
        softer = 1 + a.numpy(p.MASS)[particle] * b.contact_rates(a, planes=False)[body]
        most, weight = np.zeros(a.rows("particles")), a.numpy(p.WEIGHT)[particle]
        # Dampers of what nothing moves are taken at the end of the step.
        damper = four[:, 1] * np.isin(a.numpy(b.MOTION)[body], (FREE, LINK))
        np.maximum.at(most, particle, step_rate(four[:, 0] * softer, damper * softer, weight))
        return [Limit("particles", most, "its contact (ke, kd)", "soften the contact", safety=CONTACT_SAFETY)]


class ShapeHits(Hits):
    family = "shape"


class MeshHits(Hits):
    family = "mesh"


class GridHits(Hits):
    family = "grid"


# ------------------------------------------------------------------------------------------------------------ adding
@dataclass(frozen=True)
class Law:
    """How the damping of a contact sets in, and how far kinks are rounded: see `Scene.add_plane`."""

    damping: str = "smooth"
    touch: float = 5e-3
    smoothing: float = 0.0

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

    @property
    def family(self) -> str:
        return {MESH: "mesh", GRID: "grid"}.get(self.kind, "shape")

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
    points, surfaces = _meetings(bodies)
    if draft.apart:
        meet = [frozenset((bodies[i].row, bodies[k].row)) not in draft.apart for i, k in zip(points, surfaces)]
        points, surfaces = points[meet], surfaces[meet]
    known = [law, *laws.values()]
    numbered = {name: 1 + k for k, name in enumerate(laws)}
    own = np.array([numbered.get(body.name, 0) for body in bodies], int)
    said = np.array([sum(1 << k for k, q in enumerate(UNITS) if q in body.given) for body in bodies], int)
    row = np.array([body.row for body in bodies], int)
    family = np.array([body.family for body in bodies], str)
    for name in dict.fromkeys(family[surfaces]):
        one, other = (side[family[surfaces] == name] for side in (points, surfaces))
        given, how = said[one] | said[other], np.where(own[other] > 0, own[other], own[one])
        starts = np.flatnonzero(np.diff(given, prepend=-1) | np.diff(how, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(one)]):
            rows = draft.rows(f"{name}_pairs", int(end - start))
            draft.index(f"{rows.table}.one", row[one[start:end]])
            draft.index(f"{rows.table}.other", row[other[start:end]])
            both = frozenset(q for k, q in enumerate(UNITS) if given[start] >> k & 1)
            add_numbers(draft, rows, both, numbers, known[how[start]])


def meeting_bodies(draft: Draft) -> list[Meeting]:
    """The bodies of a scene."""
    kind, motion, count = (draft.whole(index) for index in (b.KIND, b.MOTION, b.POINT_COUNT))
    found = []
    for thing in draft.things.values():
        if "bodies" in thing.rows:
            row = thing.rows["bodies"].start
            given = frozenset(q for q in UNITS if f"{thing.name}.{q}" in draft.parameters)
            free = bool(motion[row] in (FREE, LINK))
            found.append(Meeting(thing.name, row, int(kind[row]), free, int(count[row]), given))
    return found


def _meetings(bodies: list[Meeting]) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Whose points meet whose surface, of every two of which one is free: their numbers in the list.

    A ball is where its centre says: the points of what it touches would count it twice.
    """
    free, round, count = (np.array([getattr(body, q) for body in bodies], int)
                          for q in ("free", "roundness", "points"))  # fmt: skip
    one, other = np.triu_indices(len(bodies), 1)
    one, other = (side[(free[one] | free[other]) > 0] for side in (one, other))
    points, surfaces = np.stack([one, other], axis=1), np.stack([other, one], axis=1)
    ahead = round[points] > round[surfaces]
    alike = round[points] == round[surfaces]
    meet = ahead | alike & ((round[points] == 0) | (np.arange(2) == 0))
    meet &= count[points] > 0
    return points[meet], surfaces[meet]


def add_numbers(draft: Draft, rows: Rows, given: frozenset[str], numbers: Mapping[str, float | None], law: Law) -> None:
    contact = Contact(rows.table)
    draft.index(contact.law.name, np.full(rows.count, planes.LAWS.index(law.damping)))
    draft.constant(contact.touch, rows, law.touch)
    draft.constant(contact.smoothing, rows, law.smoothing)
    # What nothing depends on is no parameter.
    known = given | {quantity for quantity, value in numbers.items() if value is not None}
    used = {"ke", "kd", "kf", "mu"} - given
    used |= {"rate"} if {"ke", "kd", "kf"} - known else set()
    used |= {"ratio"} if "kd" not in known else set()
    for column, quantity in zip(contact.given, UNITS):
        value = numbers[quantity]
        draft.constant(column, rows, NONE)
        if quantity in used and value is not None:
            draft.parameter(f"contact.{quantity}", column, rows, value, unit=UNITS[quantity], bounds=(0.0, None),
                            uniform=True, about="of contacts of bodies that have no numbers of their own")  # fmt: skip
