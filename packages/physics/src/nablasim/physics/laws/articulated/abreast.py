"""Steps of robots that touch nothing fixed: one launch for all copies side by side, and one for the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_back_kernels as back
from nablasim.physics.laws.articulated import abreast_kernels as kernels
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.robots_kernels import unsolved
from nablasim.physics.laws.articulated.tables import (
    ANCHOR,
    ARMATURE,
    AXIS,
    BASE_ROT,
    BASE_X,
    COM,
    DAMPING,
    FRICTION,
    GRAVITY,
    INERTIA,
    KD,
    KP,
    LIMIT,
    LIMITS,
    MASS,
    MORE_TORQUE,
    OFFSET,
    POS,
    QD,
    RATIO,
    REF,
    REST,
    ROT,
    STIFFNESS,
    TARGET,
    TOL,
    TORQUE,
    Q,
    drives,
    masses,
    now,
    rig,
    tree,
)  # fmt: skip

if TYPE_CHECKING:
    from nablasim.physics.model import Array, Arrays, Column, Step

UNSOLVED = {"float64": 1e-6, "float32": 1e-4}
"""Which part of the energy in play may be left over of the equations; more is an error."""


def groups(a: Arrays) -> int:
    """How many groups the copies are."""
    return -(-a.parts // am.LANES)


def sizes(a: Arrays) -> Any:
    """How many copies there are, and what one of them has."""
    kind: Any = am.Sizes
    return kind(a.parts, a.rows("robots") // a.parts, a.rows("coords") // a.parts)


def memory(s: Step, *, back: bool = False) -> Any:
    """Memory that the steps of a tape share."""
    count, kind = groups(s), am.Abreast
    made: Any = kind

    def shared(name: str, table: str, *fields: int) -> Array:
        return s.kept(f"abreast.{name}_{back}", (count, s.rows(table) // s.parts, *fields, am.LANES))

    return made(
        node=shared("node", "nodes", am.NODE_BACK if back else am.NODE),
        dof=shared("dof", "dofs", am.DOF_BACK if back else am.DOF),
        coord=shared("coord", "coords", am.COORD),
        M=shared("M", "couplings"),
    )


def advance(s: Step, push: Array | None, again: Callable[[Array, Array], None]) -> None:
    """Record a step; `again` launches what gives the same in kernels that have tangents, into two
    arrays."""
    count, b, robots = groups(s), s.base, s.rows("robots") // s.parts
    kind: Any = am.Found
    found = kind(*(s.scratch(f"abreast.{name}", (count, s.rows(table) // s.parts, 2, am.LANES))
                   for name, table in (("a", "dofs"), ("L", "couplings"))))  # fmt: skip
    given = [tree(b), rig(b), masses(b), drives(s), now(s[Q], s[QD], push), sizes(s)]
    left = s.scratch("abreast.left", s.rows("robots"))
    dim, ends = (count, robots, am.LANES), [s.next(Q), s.next(QD)]
    kc.launch(kernels.step_abreast, dim, [*given, memory(s), found, s[TOL], s.dt], [left, *ends], parts=count)
    if s.tape is not None:
        WayBack(s, push, given, found, again).record(s.tape)
    kc.launch(unsolved, s.rows("robots"), [left, UNSOLVED[s.real], s.first, s.k], [s.alarm("robots", 2)], parts=s.parts)


FRAMES = (BASE_X, BASE_ROT, POS, ROT, AXIS, ANCHOR, REF)
WEIGHTS = (GRAVITY, MASS, COM, INERTIA, ARMATURE)
LAWS = (DAMPING, STIFFNESS, REST, FRICTION, KP, KD, LIMIT, TARGET, TORQUE, MORE_TORQUE, LIMITS)
TIES = (RATIO, OFFSET)


class WayBack:
    """The adjoint of a step and its tangents, as an operation on the tape."""

    def __init__(self, s: Step, push: Array | None, given: list[Any], found: Any, again: Callable[..., None]):
        self.s, self.push, self.given, self.found, self.again = s, push, given, found, again
        self.ends = [s.next(Q), s.next(QD)]
        self.leaves = {c: s[c] for c in (Q, QD, *FRAMES, *WEIGHTS, *LAWS, *TIES)}
        self.reads = [*self.leaves.values(), *([] if push is None else [push])]

    def record(self, tape: kc.Tape) -> None:
        tape.record(self.backward, reads=self.reads, writes=self.ends, forward=nothing, tangent=self.tangent)
        if all(a.grad is None for a in self.ends):
            return  # Nobody asks for a gradient.
        s, asked = self.s, {c for c, a in self.leaves.items() if a.grad is not None}
        slopes: Any = am.Slopes
        self.slopes = slopes(**{c.name.partition(".")[2]: self._slope(c) for c in self.leaves},
                             push=None if self.push is None else self.push.grad)  # fmt: skip
        wanted: Any = am.Wanted
        self.wanted = wanted(*(int(not asked.isdisjoint(some)) for some in (FRAMES, WEIGHTS, LAWS, TIES)))
        self.memory = memory(s, back=True)

    def _slope(self, column: Column) -> Array:
        """Where the gradient by a column goes; memory that nobody reads, where nobody asks for it."""
        a = self.leaves[column]
        if a.grad is not None:
            return a.grad
        return self.s.kept(f"abreast.unread_{column.name}", self.s.rows(column.table), column.element)

    def backward(self) -> None:
        s = self.s
        count = groups(s)
        kc.launch(back.back_abreast, (count, s.rows("robots") // s.parts, am.LANES),
                  [*self.given, self.memory, self.found, self.wanted, s.dt, *(a.grad for a in self.ends)],
                  [self.slopes], parts=count)  # fmt: skip

    def tangent(self, *dots: Any) -> list[Any]:
        ends = [kc.zeros(a.shape, real=a.real) for a in self.ends]
        with kc.Tape() as tape:
            self.again(*ends)
        moving = {a: dot for a, dot in zip(self.reads, dots) if dot is not None and a in tape}
        made = tape.jvp(moving, outputs=ends)
        return [made[a].numpy() for a in ends]


def nothing() -> None:
    """The step has run already."""
