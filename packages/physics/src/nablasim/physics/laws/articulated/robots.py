"""Robots: articulated bodies in reduced coordinates. Owns the coordinates and rates of their joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import kernelc as kc
from nablasim.physics.errors import NotConverged
from nablasim.physics.laws.articulated import abreast
from nablasim.physics.laws.articulated import robots_kernels as kernels
from nablasim.physics.laws.articulated.bundles import Composite, Motion, Poses, Touch
from nablasim.physics.laws.articulated.link_bodies import pushes
from nablasim.physics.laws.articulated.link_planes import STICK, touching
from nablasim.physics.laws.articulated.newton_kernels import Solve
from nablasim.physics.laws.articulated.tables import (
    ANCHOR,
    APPARENT,
    ARMATURE,
    AXIS,
    BASE_ROT,
    BASE_X,
    COM,
    DAMPING,
    DRIVES,
    FRICTION,
    GIVEN_INERTIA,
    GRAVITY,
    INERTIA,
    KD,
    KP,
    LEADS,
    LIMIT,
    MASS,
    POS,
    QD,
    REF,
    ROT,
    STIFFNESS,
    TIE,
    TOL,
    TREE,
    UNIT,
    Q,
    drives,
    masses,
    memory,
    now,
    rig,
    tree,
)  # fmt: skip
from nablasim.physics.laws.articulated.ties_kernels import tie_strengths
from nablasim.physics.laws.system import System
from nablasim.physics.model import owner

if TYPE_CHECKING:
    from nablasim.physics.model import Array, Arrays, Step


TOLERANCE = {"float64": 1e-22, "float32": 1e-10}
"""The square of how well the equations of a step are solved, before they are corrected once more."""
UNSOLVED = {"float64": 1e-6, "float32": 1e-4}
"""Which part of the energy in play may be left over then; more is an error."""


def solved(s: Arrays) -> Any:
    """Memory of the equations of a step."""
    n, entries = s.rows("dofs"), s.rows("couplings")
    made = {name: s.scratch(f"robots.{name}", n) for name in ("none", "mid", "bias", "rest", "way", "stiff", "start")}
    made |= {name: s.scratch(f"robots.{name}", entries) for name in ("M", "start_L", "L")}
    made["left"] = s.scratch("robots.left", s.rows("robots"))
    made["hold"] = s.scratch("robots.hold", n, int)
    kind: Any = Solve
    return kind(tol=s[TOL], **made)


def touch_memory(s: Arrays, touched: Any) -> Any:
    """Memory of contact, if there is any."""
    return None if touched is None else memory(s, Touch)


class Robots(System):
    """Joints, and what acts in them."""

    name = "robots"
    columns = (BASE_X, BASE_ROT, GRAVITY, POS, AXIS, ANCHOR, ROT, MASS, COM, UNIT, GIVEN_INERTIA, INERTIA, Q, QD, REF,
               ARMATURE, TOL, *DRIVES)  # fmt: skip
    indices = TREE

    def setup(self, a: Arrays) -> None:
        kc.launch(kernels.link_inertias, a.rows("nodes"), [a[MASS], a[UNIT], a[GIVEN_INERTIA]], [a[INERTIA]])
        given = [a[LEADS], a[APPARENT], STICK[a.real]]
        kc.launch(tie_strengths, a.rows("dofs"), given, [a[TIE]], parts=a.parts)
        kc.launch(kernels.tolerances, a.rows("robots"), [TOLERANCE[a.real]], [a[TOL]])

    def advance(self, s: Step) -> None:
        import os
        push = pushes(s)
        if touching(s.base) is None and os.environ.get("ABREAST", "1") == "1":
            abreast.advance(s, push, lambda q, qd: self._advance(s, push, q, qd))
        else:
            self._advance(s, push, s.next(Q), s.next(QD))

    def _advance(self, s: Step, push: Array | None, q_next: Array, qd_next: Array) -> None:
        """A step by kernels whose gradients are those that kernelc makes."""
        n, dofs = s.rows("robots"), s.rows("dofs")
        t, g, b, d = tree(s.base), rig(s.base), masses(s.base), drives(s)
        p, q_mid = memory(s, Poses), s.scratch("robots.q_mid", s.rows("coords"))
        kc.launch(kernels.middle, n, [t, g, s[Q], s[QD], s.dt], [q_mid, p], parts=s.parts)
        start, x, guess = now(s[Q], s[QD], push), solved(s), s.scratch("robots.guess", dofs)
        c = touching(s.base)
        still = [t, b, d, p, memory(s, Motion), memory(s, Composite), c, touch_memory(s, c), x, start, s.dt]
        kc.launch(kernels.predict, n, still, [guess], parts=s.parts)
        kc.launch(kernels.unsolved, n, [x.left, UNSOLVED[s.real], s.first, s.k], [s.alarm(self.name, 2)], parts=s.parts)
        kind: Any = kernels.Guess
        first = kind(v=s[QD], a=x.start, L=x.start_L, hold=x.hold)
        a, mid = self._corrected(s, p, c, start, first), s.scratch("robots.v_mid", dofs)
        kc.launch(kernels.half_way, dofs, [s[QD], a, s.dt], [mid])
        a = self._corrected(s, p, c, start, kind(v=mid, a=guess, L=x.L, hold=x.hold))
        rate = s.scratch("robots.rate", dofs)
        kc.launch(kernels.finish, n, [t, g, d, now(s[Q], s[QD]), a, s.dt], [rate, q_next, qd_next], parts=s.parts)

    def _corrected(self, s: Step, p: Any, c: Any, start: Any, guess: Any) -> Array:
        a = s.scratch("robots.a", s.rows("dofs"))
        given = [tree(s.base), masses(s.base), drives(s), p, memory(s, Motion), c, touch_memory(s, c), start, guess,
                 s.dt]  # fmt: skip
        kc.launch(kernels.correct, s.rows("robots"), given, [a], parts=s.parts)
        return a

    def alarmed(self, a: Arrays, row: int, said: list[int], dt: float) -> Exception:
        name, _ = owner(a.layout, "robots", row)
        _, step, left = said
        return NotConverged(
            f"{name}: the equations of contact, friction and motors in step {step} of {dt:g} s were not solved: "
            f"{1e-9 * left:.2g} of the energy in play is left over. Use a shorter dt, or real='float64'",
            name, step, 1e-9 * left,
        )  # fmt: skip

    def energy(self, s: Step) -> Any:
        p, e = memory(s, Poses), s.scratch("robots.energy", s.rows("robots"))
        kc.launch(kernels.poses, s.rows("robots"), [tree(s), rig(s), s[Q]], [p])
        given = [tree(s), masses(s), drives(s), p, now(s[Q], s[QD]), memory(s, Motion)]
        kc.launch(kernels.energies, s.rows("robots"), given, [e])
        return e

    def check(self, a: Arrays) -> None:
        moments = np.linalg.eigvalsh(np.where(np.isfinite(a.numpy(INERTIA)), a.numpy(INERTIA), -1.0))
        wrong = (a.numpy(MASS) < 0) | (moments[:, 0] < -1e-6 * np.abs(moments[:, 2]))
        for i in np.flatnonzero(wrong)[:1]:
            name, k = owner(a.layout, "nodes", int(i))
            raise ValueError(
                f"{name}: node {k} has the mass {a.numpy(MASS)[i]:g} kg and principal moments of inertia "
                f"{moments[i].tolist()} kg m²; none may be negative"
            )
        for column in (DAMPING, STIFFNESS, FRICTION, ARMATURE, KP, KD, LIMIT):
            for k in np.flatnonzero(a.numpy(column) < 0)[:1]:
                name, row = owner(a.layout, "dofs", int(k))
                quantity = column.name.partition(".")[2]
                raise ValueError(f"{name}: {quantity} of degree of freedom {row} is {a.numpy(column)[k]:g}; it must "
                                 f"not be negative")  # fmt: skip

    def step_bytes(self, layout: Any) -> int:
        return 8 * (30 * layout.rows("nodes") + 20 * layout.rows("dofs") + 2 * layout.rows("couplings"))
