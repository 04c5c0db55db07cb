"""Compliant contact of particles with half-spaces: the ground, walls, slopes.

A row is a pair of a particle and a plane, with the plane's quantities repeated: every thread then has its own, the
reverse sweep adds up without collisions, and a batch has the same bits as its copies one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

import kernelc as kc
from nablasim.physics.checks import STICK, filled
from nablasim.physics.laws.contact import body_planes
from nablasim.physics.laws.contact.hard_kernels import HARD, hard_plane_forces
from nablasim.physics.laws.contact.planes_kernels import (
    Particles,
    plane_energies,
    plane_forces,
    plane_stiffness,
    unit_normals,
)
from nablasim.physics.laws.contact.planes_kernels import Planes as Pairs
from nablasim.physics.laws.contact.reports import Touches, blank, touches
from nablasim.physics.laws.contact.reports_kernels import report_planes
from nablasim.physics.laws.deformable.particles import CONTACT_F, GRAVITY, WEIGHT, F, V, X
from nablasim.physics.laws.rigid.bodies_kernels import NONE
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.laws.limits import Bounds
    from nablasim.physics.model import Arrays, Step

PARTICLE = Index("plane_contacts.particle", to="particles")
LAW = Index("plane_contacts.law")
KE, KD, KF, MU = (Column(f"plane_contacts.{q}") for q in ("ke", "kd", "kf", "mu"))
GIVEN_NORMAL = Column("plane_contacts.given_normal", kc.float3)
NORMAL = Column("plane_contacts.normal", kc.float3, role="derived")
OFFSET = Column("plane_contacts.offset")
TOUCH, SMOOTHING = Column("plane_contacts.touch"), Column("plane_contacts.smoothing")

LAWS = ("linear", "smooth")
USUAL = {"ke": 1e4, "kd": 1e2, "kf": 1e2}
"""What particles and links meet where a plane has no numbers of its own."""
RATE, BODY_RATE = 300.0, 3000.0
"""How fast things swing on each other that have no numbers of their own (1/s): with particles, and bodies alone, whose
contact a step solves for."""
RATE_UNITS = {"rate": "1/s", "ratio": "1"}


class Planes(System):
    """The four-parameter contact [ke, kd, kf, mu] of every particle with every plane."""

    name = "plane_contacts"
    touches = True
    columns = (KE, KD, KF, MU, GIVEN_NORMAL, NORMAL, OFFSET, TOUCH, SMOOTHING)
    indices = (PARTICLE, LAW)

    def setup(self, a: Arrays) -> None:
        kc.launch(unit_normals, a.rows("plane_contacts"), [a[GIVEN_NORMAL]], [a[NORMAL]])

    def forces(self, s: Step) -> None:
        n, given = s.rows("plane_contacts"), [pushed(s), pairs(s), s.ahead]
        kc.launch(plane_forces, n, given, [s[CONTACT_F]], parts=s.parts)
        if (s.numpy(LAW) == HARD).any():
            kc.launch(hard_plane_forces, n, given, [s[CONTACT_F]], parts=s.parts)

    def energy(self, s: Step) -> Any:
        n = s.rows("plane_contacts")
        e = s.scratch("plane_contacts.energy", n)
        kc.launch(plane_energies, n, [pushed(s), pairs(s)], [e])
        return e

    def contacts(self, s: Step) -> list[Touches]:
        n = s.rows(self.name)
        report = blank(s, n)
        kc.launch(report_planes, n, [pushed(s), pairs(s), s.dt], [report])
        return [touches(report, ("particles", s.numpy(PARTICLE)), (self.name, np.arange(n)))]

    def stiffness(self, a: Arrays, bounds: Bounds) -> None:
        kc.launch(plane_stiffness, a.rows("plane_contacts"), [a[PARTICLE], a[KE]], [bounds.contact_k])


def pushed(s: Step) -> Any:
    """Particles in kernels, with the other forces on them."""
    return s.bundle(Particles, X, V, F, WEIGHT, GRAVITY)


def pairs(s: Step) -> Any:
    """Pairs of particles and planes in kernels."""
    return s.bundle(Pairs, PARTICLE, NORMAL, OFFSET, KE, KD, KF, MU, LAW, TOUCH, SMOOTHING)


def add_plane(
    draft: Draft,
    name: str,
    *,
    normal: ArrayLike,
    offset: float,
    ke: float | None,
    kd: float | None,
    kf: float | None,
    mu: float,
    damping: str,
    touch: float,
    smoothing: float,
    hard: bool,
    by_mass: Mapping[str, float | None],
) -> None:
    """Pairs of one plane with all that the scene has: called when everything else is there.

    `by_mass` are the rate and the ratio by which the mass of a body says what the plane does not.
    """
    if damping not in LAWS:
        raise ValueError(f'{name}: damping is "smooth" or "linear", not {damping!r}')
    if np.shape(normal) != (3,) or not np.linalg.norm(normal) > 0:
        raise ValueError(f"{name}.normal is {normal!r}; expected three numbers that are not all zero")
    count = draft.count.get("particles", 0)
    particles, bodies = draft.rows("plane_contacts", count), body_planes.add_rows(draft)
    draft.index(PARTICLE.name, np.arange(count))
    draft.thing(name, "plane", particles, bodies)
    four = (("ke", ke, "N/m"), ("kd", kd, "N s/m"), ("kf", kf, "N s/m"), ("mu", mu, "1"))
    for quantity, value, _ in four:
        if value is None:
            continue
        filled(f"{name}.{quantity}", value, (), positive=True, allow_zero=True)
    used = four[3:] if hard else four  # Hard contact has neither springs nor dampers.
    filled(f"{name}.touch", touch, (), positive=True)
    filled(f"{name}.smoothing", smoothing, (), positive=True, allow_zero=True)
    for rows in (particles, bodies):  # Both tables have the same columns: one parameter goes to both.
        at = rows.table
        draft.index(f"{at}.law", np.full(rows.count, HARD if hard else LAWS.index(damping)))
        if rows is bodies:
            solved, sticks = damping == "smooth" and not hard, kf == STICK
            firm = solved and (ke is None or sticks)
            _add_by_mass(draft, rows, {q for q, value, _ in used if value is None}, by_mass, firm)
            if solved:
                body_planes.make_firm(draft, rows, by_mass=ke is None, sticks=sticks)
        for quantity, value, unit in used:
            column, unsaid = Column(f"{at}.{quantity}"), value is None
            if value == STICK:
                draft.constant(column, rows, STICK)
                continue
            if value is None:  # By the mass of bodies, until somebody gives it a value.
                value = USUAL[quantity]
                draft.constant(column, rows, NONE if rows is bodies else value)
            group = (f"{name}: {quantity}", quantity) if unsaid and bodies.count else None
            draft.parameter(f"{name}.{quantity}", column, rows, value, unit=unit, bounds=(0.0, None), uniform=True,
                            choice=group, dormant=group is not None)  # fmt: skip
        draft.parameter(f"{name}.normal", Column(f"{at}.given_normal", kc.float3), rows, normal, unit="1",
                        bounds=(-1.0, 1.0), uniform=True)  # fmt: skip
        draft.parameter(f"{name}.offset", Column(f"{at}.offset"), rows, offset, unit="m", uniform=True,
                        about="distance of the plane from the origin along its normal")  # fmt: skip
        draft.constant(Column(f"{at}.touch"), rows, touch)
        draft.constant(Column(f"{at}.smoothing"), rows, smoothing)


def usual_rate(firm: bool) -> tuple[str, float]:
    """The rate that holds where none was said, and its name."""
    return ("body_rate", BODY_RATE) if firm else ("rate", RATE)


def _add_by_mass(draft: Draft, rows: Rows, unsaid: set[str], by_mass: Mapping[str, float | None], firm: bool) -> None:
    """The rate and the ratio of rows of bodies: parameters where something depends on them."""
    needed = ({"rate"} if unsaid else set()) | ({"ratio"} if "kd" in unsaid else set())
    for quantity, unit in RATE_UNITS.items():
        column, name, value = Column(f"{rows.table}.{quantity}"), quantity, by_mass[quantity]
        if value is None:
            name, value = usual_rate(firm)
        draft.constant(column, rows, value)
        if quantity in needed:
            draft.parameter(f"contact.{name}", column, rows, value, unit=unit, bounds=(0.0, None),
                            uniform=True, about="of contacts of bodies that have no numbers of their own")  # fmt: skip
