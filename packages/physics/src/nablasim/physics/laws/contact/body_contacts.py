"""Compliant contact with the surfaces of bodies: of bodies with bodies, and of particles with bodies.

Contacts are found afresh in every step, by looking at every pair; those that are too far apart, by the balls that hold
the bodies, cost next to nothing. Each family of surfaces has tables of its own, since it has kernels of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import kernelc as kc
from nablasim.physics.errors import PassedThrough
from nablasim.physics.laws.contact import body_contacts_kernels as kernels
from nablasim.physics.laws.contact import compliant_kernels, planes
from nablasim.physics.laws.contact.body_contacts_kernels import FAMILIES
from nablasim.physics.laws.contact.hard_kernels import HARD
from nablasim.physics.laws.contact.neighbours import handed_out, listed, stiffest
from nablasim.physics.laws.contact.pairing_kernels import (
    Defaults,
    Partners,
    pair_of_bodies,
    pair_of_neighbours,
    pair_with_particle,
)
from nablasim.physics.laws.contact.passing_kernels import FAMILIES as PASSING
from nablasim.physics.laws.contact.passing_kernels import thinness
from nablasim.physics.laws.contact.reports import Touches, of_hits, of_pairs
from nablasim.physics.laws.deformable import particles as p
from nablasim.physics.laws.limits import CONTACT_SAFETY, Limit, step_rate
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.bodies_kernels import FREE, LINK
from nablasim.physics.laws.rigid.surfaces import BOUND, surfaces
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Index, owner

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
    def soft(self) -> Column:
        """The rate of pairs that find each other and have a ke: what is solved for has another one."""
        return Column(f"{self.table}.soft_rate")

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

    def rows(
        self, s: Step, kind: Any, *more: Column | Index, four: Any = None, law: Any = None, **named: Any
    ) -> Any:
        """The table in kernels: `kind` is a bundle of more columns, and of the law of each contact.

        four, law: stand for the numbers and the laws of the table.
        """
        four, law = (self.four if four is None else four), (self.law if law is None else law)
        contact = s.bundle(compliant_kernels.Contact, self.touch, self.smoothing, four=four, law=law)
        return s.bundle(kind, *more, contact=contact, **named)


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
        cls.columns, cls.indices = (*cls.contact.columns, cls.contact.soft), (cls.one, cls.other, cls.contact.law)

    def finish(self, a: Arrays) -> None:
        given = [self.contact.defaults(a), a[self.one], a[self.other], partners(a)]
        kc.launch(pair_of_bodies, a.rows(self.name), given, [a[self.contact.four]], parts=a.parts)

    def pairs(self, s: Step) -> Any:
        """Who meets in each row, and by which numbers: in every step others, where there are many bodies."""
        if not handed_out(s, self.family).any():
            return self.contact.rows(s, kernels.Pairs, self.one, self.other)
        one, other = listed(s, self.family, (self.one, self.other))
        if self.contact.four.name not in s.notes:
            n, scene, who = s.rows(self.name), self.contact.defaults(s), partners(s)
            four, law = s.scratch(self.contact.four.name, n, kc.float4), s.scratch(self.contact.law.name, n, int)
            given = [s[self.contact.law], scene, s[self.contact.soft], one, other, who]
            kc.launch(pair_of_neighbours, n, given, [four, law], parts=s.parts)
            s.notes[self.contact.four.name] = four, law
        four, law = s.notes[self.contact.four.name]
        return self.contact.rows(s, kernels.Pairs, one=one, other=other, four=four, law=law)

    def forces(self, s: Step) -> None:
        given = [b.moving(s), surfaces(s), self.pairs(s), s.ahead]
        kc.launch(FAMILIES[self.family].pair_forces, s.rows(self.name), given, [b.forces(s)], parts=s.parts)

    def watch(self, s: Step) -> None:
        given = [b.before(s), b.after(s), surfaces(s), self.pairs(s), s.dt]
        kc.launch(PASSING[self.family], s.rows(self.name), given, [s.alarm(self.name, 2)], parts=s.parts)

    def alarmed(self, a: Arrays, row: int, said: list[int], dt: float) -> Exception:
        speed, *two = said
        one, other = (owner(a.layout, "bodies", body)[0] for body in two)
        kind, size, bound = (a.numpy(c)[two[1]] for c in (b.KIND, b.SIZE, BOUND))
        thin = thinness(int(kind), *map(float, size), float(bound[3]))
        return PassedThrough(one, other, speed / 1000, dt, float(thin))

    def energy(self, s: Step) -> Any:
        e = s.scratch(f"{self.name}.energy", s.rows(self.name))
        given = [b.moving(s), surfaces(s), self.pairs(s)]
        kc.launch(FAMILIES[self.family].pair_energies, s.rows(self.name), given, [e])
        return e

    def contacts(self, s: Step) -> list[Touches]:
        return of_pairs(s, self.family, self.pairs(s))

    def limits(self, a: Arrays) -> list[Limit]:
        steady = ~handed_out(a, self.family)
        four, one, other = (a.numpy(q)[steady] for q in (self.contact.four, self.one, self.other))
        rates = b.contact_rates(a, planes=False)
        k = (rates[one] + rates[other]) * four[:, 0] * (a.numpy(self.contact.law)[steady] < HARD)
        found = [b.contact_limit(body, a.rows("bodies"), k) for body in (one, other)]
        changing = np.flatnonzero(~steady)
        if len(changing) and (law := int(a.numpy(self.contact.law)[changing[0]])) != HARD:
            body, k = stiffest(a, rates, self.contact.defaults(a), int(changing[0]), firm=law == compliant_kernels.FIRM)
            found.append(b.contact_limit(body, a.rows("bodies"), k))
        return found


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

    def contacts(self, s: Step) -> list[Touches]:
        given = [planes.pushed(s), b.moving(s), surfaces(s), self.hits(s)]
        return of_hits(s, self.family, given, s.numpy(self.particle), s.numpy(self.body))

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
