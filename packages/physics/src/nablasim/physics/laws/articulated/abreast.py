"""Steps of robots that touch nothing fixed: one launch for all copies side by side, and one for the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_back_kernels as back
from nablasim.physics.laws.articulated import abreast_kernels as kernels
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.link_planes import KD as KD_OF_PLANE
from nablasim.physics.laws.articulated.link_planes import KE, MU, NORMAL, touching
from nablasim.physics.laws.articulated.link_planes import OFFSET as OFFSET_OF_PLANE
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


def filled(worlds: int) -> int:
    """How many copies have memory: the last group is full."""
    return -(-worlds // am.LANES) * am.LANES


def groups(a: Arrays) -> int:
    """How many groups the copies are."""
    return filled(a.parts) // am.LANES


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
        touch=s.kept("abreast.touch", (count, max(1, s.rows("link_planes") // s.parts), am.TOUCH, am.LANES)),
    )


def advance(s: Step, push: Array | None) -> None:
    """Record a step, and the way back through it."""
    ends, way_back = [s.next(Q), s.next(QD)], WayBack(s, push)
    # What a step finds is kept for each step only if somebody goes back there.
    given, found = look_ahead(s, push, ends, s.scratch if way_back.is_asked else s.kept)
    if way_back.is_asked and s.tape is not None:
        way_back.record(s.tape, given, found, ends)


def look_ahead(s: Step, push: Array | None, ends: list[Array], new: Callable[..., Array]) -> tuple[list[Any], Any]:
    """Launch a step without gradients; what kernels take, and what was found, in `new` memory."""
    count, b, robots = groups(s), s.base, s.rows("robots") // s.parts
    kind: Any = am.Found
    bundle: Any = am.Ends
    left = s.scratch("abreast.left", s.rows("robots"))
    found = kind(*(new(f"abreast.{name}", (count, s.rows(table) // s.parts, 2, am.LANES))
                   for name, table in (("a", "dofs"), ("L", "couplings"))), left)  # fmt: skip
    given = [tree(b), rig(b), masses(b), drives(s), now(s[Q], s[QD], push), sizes(s)]
    kc.launch(kernels.step_abreast, (count, robots, am.LANES),
              [*given, memory(s), found, touching(b), s[TOL], s.dt], [bundle(*ends)], parts=count)  # fmt: skip
    kc.launch(unsolved, s.rows("robots"), [left, UNSOLVED[s.real], s.first, s.k], [s.alarm("robots", 2)], parts=s.parts)
    return given, found


FRAMES = (BASE_X, BASE_ROT, POS, ROT, AXIS, ANCHOR, REF)
WEIGHTS = (GRAVITY, MASS, COM, INERTIA, ARMATURE)
PLANES = (NORMAL, OFFSET_OF_PLANE, KE, KD_OF_PLANE, MU)
LAWS = (DAMPING, STIFFNESS, REST, FRICTION, KP, KD, LIMIT, TARGET, TORQUE, MORE_TORQUE, LIMITS)
TIES = (RATIO, OFFSET)


class WayBack:
    """The adjoint of a step, as an operation on the tape."""

    def __init__(self, s: Step, push: Array | None):
        self.s, self.push = s, push
        self.leaves = {c: s[c] for c in (Q, QD, *FRAMES, *WEIGHTS, *LAWS, *TIES)}
        self.planes = {} if touching(s.base) is None else {c: s.base[c] for c in PLANES}
        self.sent: Any = None
        self.reads = [*self.leaves.values(), *self.planes.values(), *([] if push is None else [push])]

    @property
    def is_asked(self) -> bool:
        """Whether anybody asks for a gradient."""
        return any(a.grad is not None for a in self.reads)

    def record(self, tape: kc.Tape, given: list[Any], found: Any, ends: list[Array]) -> None:
        self.given, self.found, self.ends = given, found, ends
        tape.record(self.backward, reads=self.reads, writes=self.ends, forward=nothing)
        s, asked = self.s, {c for c, a in self.leaves.items() if a.grad is not None}
        kind: Any = am.Wanted
        wanted = kind(*(int(not asked.isdisjoint(some)) for some in (FRAMES, WEIGHTS, LAWS, TIES)))
        planes = None
        if self.planes:
            kind = am.PlaneSlopes
            some = any(a.grad is not None for a in self.planes.values())
            planes = kind(int(some), *(self._slope(c, a) for c, a in self.planes.items()))
        kind, push = am.Slopes, None if self.push is None else self.push.grad
        slopes = {c.name.partition(".")[2]: self._slope(c, a) for c, a in self.leaves.items()}
        self.slopes = kind(**slopes, push=push, wanted=wanted, planes=planes)
        self.memory = memory(s, back=True)

    def _slope(self, column: Column, a: Array) -> Array:
        """Where the gradient by a column goes; memory that nobody reads, where nobody asks for it."""
        if a.grad is not None:
            return a.grad
        return self.s.kept(f"abreast.unread_{column.name}", self.s.rows(column.table), column.element)

    def backward(self) -> None:
        s = self.s
        count = groups(s)
        q, qd = (a.grad for a in self.ends)
        # A bundle costs more to make than to pass: it is made anew only where gradients lie elsewhere.
        if self.sent is None or self.sent.q is not q or self.sent.qd is not qd:
            kind: Any = am.Ends
            self.sent = kind(q, qd)
        given = [*self.given, self.memory, self.found, touching(s.base), s.dt, self.sent]
        dim = count, s.rows("robots") // s.parts, am.LANES
        kc.launch(back.back_abreast, dim, given, [self.slopes], parts=count)


def nothing() -> None:
    """The step has run already."""
