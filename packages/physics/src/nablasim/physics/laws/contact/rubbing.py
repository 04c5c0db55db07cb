"""Friction of all bodies of a scene together, where bodies touch bodies. A row is a scene that has such pairs.

It comes after all other forces: they say with which velocity the step would end, and friction is taken there. The step
has two operations of its own on the tape, which `rubbing_kernels.py` explains: one that solves, without a gradient, and
one that lets the gradient of the residual through the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.errors import NotConverged
from nablasim.physics.laws.contact import rubbing_kernels as kernels
from nablasim.physics.laws.contact import rubbing_pairs_kernels as of_pairs
from nablasim.physics.laws.contact import settling_kernels as settling
from nablasim.physics.laws.contact.body_contacts import GridPairs, MeshPairs, Pairs, ShapePairs
from nablasim.physics.laws.contact.body_friction import PRESS, SCENE, together
from nablasim.physics.laws.contact.body_planes import planes
from nablasim.physics.laws.contact.hard_kernels import HARD
from nablasim.physics.laws.rigid import bodies as b
from nablasim.physics.laws.rigid.bodies_kernels import FREE, LINK, Forces
from nablasim.physics.laws.rigid.surfaces import surfaces
from nablasim.physics.laws.system import System
from nablasim.physics.model import Index, owner, world_of

if TYPE_CHECKING:
    from nablasim.physics.model import Array, Arrays, Layout, Step

ENOUGH = 1e-5
"""The largest residual of a solution, compared with that of points that all stick. What is usual is 1e-12."""
FINE = {"float64": 1e-30, "float32": 1e-17}
"""Squares of residuals at which solutions are good enough, by the precision of what is solved."""
Floats = NDArray[np.float64]
FAMILIES: tuple[type[Pairs], ...] = (ShapePairs, MeshPairs, GridPairs)
ROOM = 8
"""How many points are listed for each body of a scene at first: about as many as balls in a heap have. More are listed
anew in every step, and in longer lists by what is recorded then."""


class Rubbing(System):
    """The relaxed cone min(mu f_n, kf |u|) at the end of the step, at all points of all bodies together."""

    name = "rubbing"
    indices = (SCENE,)

    def forces(self, s: Step) -> None:
        if not together(s):
            return
        assert s.tape is not None
        n = s.rows("bodies")

        def memory(kind: Any, name: str, element: Any = kc.float3) -> Any:
            return kind(*(s.scratch(f"rubbing.{name}_{k}", n, element) for k in range(2)))

        bodies, forces = b.moving(s), b.forces(s)
        ahead = memory(kernels.Motion, "ahead")
        turn = s.scratch("rubbing.turn", n, kc.mat33)
        kc.launch(kernels.motion_ahead, n, [bodies, forces, s.dt], [ahead, turn])
        before, touched = memory(kernels.Motion, "begin"), Touched(s, ahead)
        for begins in (1, 0, 0) if self.finds_pressure(s) else (1,):
            y, z, lack = memory(kernels.Motion, "y"), memory(kernels.Motion, "z"), memory(Forces, "lack")
            for a in (lack.f, lack.torque):
                a.zero_()
            solve = Solve(s, touched, turn, y, begins)
            solve.find()
            s.tape.record(solve.nothing, writes=[y.v, y.omega], forward=solve.forward)
            kc.launch(kernels.resist, n, [bodies, turn, y], [lack])
            for family in FAMILIES:
                if s.rows(f"{family.family}_pairs"):
                    given = [bodies, surfaces(s), family().pairs(s), ahead, s.dt, before, begins, y]
                    rub = of_pairs.FAMILIES[family.family].rub_pairs
                    kc.launch(rub, s.rows(f"{family.family}_pairs"), given, [lack], parts=s.parts)
            if s.rows("body_plane_contacts"):
                given = [bodies, planes(s), s[PRESS], ahead, s.dt, before, begins, y]
                kc.launch(kernels.rub_planes, s.rows("body_plane_contacts"), given, [lack], parts=s.parts)
            solve.record([lack.f, lack.torque], [z.v, z.omega])
            before = z
        kc.launch(kernels.force_of, n, [bodies, turn, z, lack, s.dt], [b.rub(s)])

    def finds_pressure(self, s: Step) -> bool:
        """Whether pressure is found together with friction: then both follow each other a few times."""
        tables = ("body_plane_contacts", *(f"{family.family}_pairs" for family in FAMILIES))
        return any((s.numpy(Index(f"{table}.law")) >= HARD).any() for table in tables if s.rows(table))


class Memory:
    """What the steps of a program solve with, in double precision."""

    def __init__(self, layout: Layout, arrays: Arrays, room: int):
        self.room, n = room, layout.rows("bodies")
        self.worlds = worlds = 1 + int(world_of(layout, "bodies").max(initial=0))
        real, size = kc.float64, room * worlds

        def zeros(count: int, element: Any = float) -> Array:
            return kc.zeros(count, dtype=element, **({} if element is int else {"real": real}))

        def rows(table: str) -> Array:
            starts = np.searchsorted(world_of(layout, table), np.arange(worlds + 1))
            return kc.array(starts.astype(np.int32))

        tables = ("body_plane_contacts", *(f"{f.family}_pairs" for f in FAMILIES))
        self.rows = {table: kernels.Scenes(rows(table)) for table in tables if layout.rows(table)}
        touches: Any = kernels.Touches
        vectors: Any = settling.Vectors
        numbers = (*[kc.float3] * 4, kc.float4, kc.float2, float)
        self.exact = touches(zeros(size, int), zeros(size, int), *(zeros(size, e) for e in numbers),
                             zeros(worlds, int))  # fmt: skip
        own = [arrays.scratch(f"rubbing.touch_{k}", size, kind) for k, kind in enumerate(numbers)]
        self.listed = touches(self.exact.one, self.exact.other, *own, self.exact.count)
        """As they are found, in the precision of the model."""
        self.weights = settling.Weights(zeros(n), zeros(n, kc.mat33), rows("bodies"))
        self.blocks = settling.Blocks(zeros(n, kc.spatial_matrix), zeros(n, kc.spatial_matrix), zeros(size, int),
                                     zeros(size, int), zeros(size, kc.spatial_matrix), zeros(worlds, int))  # fmt: skip
        self.vectors = vectors(*(zeros(n, kc.spatial_vector) for _ in range(6)), zeros(worlds), zeros(worlds))
        self.dt, self.fine = zeros(1), FINE[arrays.real]
        self.free = np.isin(arrays.numpy(b.MOTION), (FREE, LINK))
        self.tapes: dict[str, kc.Tape] = {}

    def take(self) -> None:
        """Take over what was listed, in double precision."""
        most = int(self.exact.count.numpy().max())
        for name in ("arm", "brace", "normal", "free", "law", "give"):
            to, of = (getattr(t, name).numpy() for t in (self.exact, self.listed))
            shape = (self.worlds, self.room, *to.shape[1:])
            to.reshape(shape)[:, :most] = of.reshape(shape)[:, :most]
        n = self.exact.normal.numpy().reshape(self.worlds, self.room, 3)[:, :most]
        n /= np.maximum(np.linalg.norm(n, axis=-1, keepdims=True), 1e-30)

    def settle(self, begins: int) -> None:
        given, made = [self.exact, self.weights, self.dt, begins, self.fine], [self.blocks, self.vectors]
        self.run(f"settle {begins}", lambda: kc.launch(settling.settle, self.worlds, given, made))

    def solve(self) -> None:
        made = [self.blocks, self.vectors]
        self.run("solve", lambda: kc.launch(settling.solve_linear, self.worlds, [self.weights], made))

    def run(self, what: str, launch: Callable[[], None]) -> None:
        """The same launch again and again: a tape does so in no time."""
        if what in self.tapes:
            self.tapes[what].replay()
            return
        with kc.Tape() as tape:
            launch()
        self.tapes[what] = tape

    def used(self) -> NDArray[np.intp]:
        """Where the blocks of bodies that touch each other are."""
        return np.concatenate([w * self.room + np.arange(k) for w, k in enumerate(self.blocks.edges.numpy())])


_MEMORY: WeakKeyDictionary[Arrays, Memory] = WeakKeyDictionary()
"""Of each program: its steps take turns."""


class Touched:
    """The points of a step that are pressed: the tape lists them, and they are listed anew where they outgrow it."""

    def __init__(self, s: Step, ahead: Any):
        self.s, self.ahead = s, ahead
        self.now = self.recorded = memory_of(s, 0)
        self.list_points(self.recorded)

    def list_points(self, m: Memory) -> None:
        s, bodies = self.s, b.moving(self.s)
        m.exact.count.zero_()
        for f in FAMILIES:
            if s.rows(f"{f.family}_pairs"):
                given = [bodies, surfaces(s), f().pairs(s), self.ahead, s.dt, m.rows[f"{f.family}_pairs"]]
                kc.launch(of_pairs.FAMILIES[f.family].list_pairs, m.worlds, given, [m.listed])
        if s.rows("body_plane_contacts"):
            given = [bodies, planes(s), s[PRESS], self.ahead, s.dt, m.rows["body_plane_contacts"]]
            kc.launch(kernels.list_planes, m.worlds, given, [m.listed])

    def memory(self) -> Memory:
        """Where they are listed."""
        m = self.recorded
        most = int(m.exact.count.numpy().max())
        if most > m.room:
            m = memory_of(self.s, 2 * most)
            self.list_points(m)
        self.now = m
        return m


def memory_of(s: Step, room: int) -> Memory:
    known = _MEMORY.get(s.base)
    if known is None or known.room < room:
        most = int(np.bincount(world_of(s.layout, "bodies")).max(initial=0))
        room = max(room, ROOM * (8 + most))
        known = _MEMORY[s.base] = Memory(s.layout, s, room)
    return known


class Solve:
    """One solution of a step: y, from what is ahead."""

    def __init__(self, s: Step, touched: Touched, turn: Array, y: Any, begins: int):
        self.s, self.touched, self.turn, self.y, self.begins = s, touched, turn, y, begins
        self.matrix: Any = None
        """The blocks of the matrix at the solution."""
        self.keeps = False
        """Whether the gradient will ask for it."""

    def record(self, lack: list[Array], z: list[Array]) -> None:
        """Put on the tape that y, which goes to z, moves where the residual does."""
        assert self.s.tape is not None
        self.passed(z)
        self.s.tape.record(lambda: self.backward(lack, z), reads=lack, writes=z, forward=lambda: self.passed(z),
                           tangent=self.tangent)  # fmt: skip
        self.keeps = lack[0].grad is not None

    def nothing(self) -> None:
        """No gradient goes through the way to the solution."""

    def begin(self) -> Memory:
        """Take over what touches, in double precision: for all solutions of a step."""
        m, s = self.touched.memory(), self.s
        m.take()
        # In single precision it is so to seven digits only, and what is solved for is a minimum only if it is.
        turn = self.turn.numpy().astype(np.float64)
        m.weights.mass.numpy()[...] = np.where(m.free, s.numpy(b.MASS), 1.0)
        m.weights.turn.numpy()[...] = np.where(m.free[:, None, None], 0.5 * (turn + turn.swapaxes(-1, -2)), np.eye(3))
        m.dt.numpy()[0] = s.dt.numpy()[0]
        return m

    def find(self) -> Memory:
        """y at the solution."""
        m = self.begin() if self.begins else self.touched.now
        m.settle(self.begins)
        found = m.vectors.y.numpy()
        self.y.v.numpy()[...], self.y.omega.numpy()[...] = found[:, :3], found[:, 3:]
        return m

    def forward(self) -> None:
        m = self.find()
        self.check(m)
        if self.keeps:
            edges, used = m.blocks.edges.numpy().copy(), m.used()
            kept = (m.blocks.one, m.blocks.other, m.blocks.block)
            self.matrix = m.blocks.own.numpy().copy(), edges, [a.numpy()[used] for a in kept]

    def check(self, m: Memory) -> None:
        """The gradient is that of a solution: what is none must not pass for one."""
        left, scale = m.vectors.residual.numpy(), m.vectors.scale.numpy()
        bad = np.flatnonzero(left > ENOUGH**2 * scale)
        if len(bad):
            start = m.weights.start.numpy()
            thing, _ = owner(self.s.layout, "bodies", int(start[bad[0]]))
            residual = float(np.sqrt(left[bad[0]] / scale[bad[0]])) if scale[bad[0]] > 0 else np.inf
            step = int(self.s.first.numpy()[0]) + self.s.k + 1
            raise NotConverged(
                f"the contact of the bodies of the scene of {thing!r} was not solved in step {step}: the residual is "
                f"{residual:.2g} of the momenta in play, and {ENOUGH:g} is asked for. Use a shorter dt or substeps, or "
                f"contact that is less stiff (a smaller ke, kf, or rate of scene.set_contact)",
                thing, step, residual,
            )  # fmt: skip

    def passed(self, writes: list[Array]) -> None:
        for a, at in zip((self.y.v, self.y.omega), writes):
            at.numpy()[...] = a.numpy()

    def linear(self, v: Floats, omega: Floats) -> tuple[Floats, Floats]:
        """A⁻¹ applied to a vector of this step."""
        own, edges, kept = self.matrix
        m = self.touched.now
        m.blocks.own.numpy()[...], m.blocks.edges.numpy()[...] = own, edges
        for a, values in zip((m.blocks.one, m.blocks.other, m.blocks.block), kept):
            a.numpy()[m.used()] = values
        m.vectors.rhs.numpy()[...] = np.concatenate([v, omega], axis=1)
        m.solve()
        found = m.vectors.to.numpy()
        return found[:, :3].copy(), found[:, 3:].copy()

    def backward(self, reads: list[Array], writes: list[Array]) -> None:
        sent = [a.grad.numpy().astype(np.float64) for a in writes]
        for a, values in zip(reads, self.linear(*sent)):
            if a.grad is not None:
                a.grad.numpy()[...] -= values

    def tangent(self, f: Any, torque: Any) -> list[Floats]:
        given = f if f is not None else torque
        none = np.zeros(given.shape)
        each = [self.linear(*both) for both in zip(none if f is None else f, none if torque is None else torque)]
        return [-np.stack(part) for part in zip(*each)]
