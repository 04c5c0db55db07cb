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
from nablasim.physics.laws.contact.neighbours import handed_out, listed, stiffest
from nablasim.physics.laws.contact.pairing_kernels import Defaults, Partners, pair_of_bodies, pair_with_particle
from nablasim.physics.laws.contact.passing_kernels import FAMILIES as PASSING
from nablasim.physics.laws.contact.passing_kernels import thinness
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

    def rows(self, s: Step, kind: Any, *more: Column | Index, four: Any = None, **named: Any) -> Any:
        """The table in kernels: `kind` is a bundle of more columns, and of the law of each contact.

        four: stands for the numbers of the table.
        """
        four = self.four if four is None else four
        contact = s.bundle(compliant_kernels.Contact, self.law, self.touch, self.smoothing, four=four)
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
        cls.columns, cls.indices = cls.contact.columns, (cls.one, cls.other, cls.contact.law)

    def finish(self, a: Arrays) -> None:
        given = [self.contact.defaults(a), a[self.one], a[self.other], partners(a)]
        kc.launch(pair_of_bodies, a.rows(self.name), given, [a[self.contact.four]], parts=a.parts)

    def pairs(self, s: Step) -> Any:
        """Who meets in each row, and by which numbers: in every step others, where there are many bodies."""
        if not handed_out(s, self.family).any():
            return self.contact.rows(s, kernels.Pairs, self.one, self.other)
        one, other = listed(s, self.family, (self.one, self.other))
        if self.contact.four.name not in s.notes:
            s.notes[self.contact.four.name] = four = s.scratch(self.contact.four.name, s.rows(self.name), kc.float4)
            given = [self.contact.defaults(s), one, other, partners(s)]
            kc.launch(pair_of_bodies, s.rows(self.name), given, [four], parts=s.parts)
        return self.contact.rows(s, kernels.Pairs, one=one, other=other, four=s.notes[self.contact.four.name])

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

    def limits(self, a: Arrays) -> list[Limit]:
        changing = handed_out(a, self.family)
        four, one, other = (a.numpy(q)[~changing] for q in (self.contact.four, self.one, self.other))
        rates = b.contact_rates(a, planes=False)
        k = (rates[one] + rates[other]) * four[:, 0]
        found = [b.contact_limit(body, a.rows("bodies"), k) for body in (one, other)]
        if changing.any():
            body, k = stiffest(a, rates, self.contact.defaults(a), int(changing.argmax()))
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
