"""The forces at the end of a step, in double precision: what an implicit step evaluates many times.

Residuals of stiff equations are small differences of large numbers. They are computed in double precision whatever the
precision of the model, on a tape of their own that all steps of a program share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.laws import System, particles
from nablasim.physics.model import Array, Arrays, Column, Step
from nablasim.physics.time.solvers.moving_bodies import MovingBodies, any_free

Floats = NDArray[np.float64]


class Endpoint:
    """f(x, v) with all parameters as a step has them, and the products of a vector with its Jacobian.

    Rows of the unknowns are the velocities of the particles, then those of the bodies: see `MovingBodies`.
    """

    def __init__(self, systems: Sequence[System], step: Step):
        layout = self.layout = step.layout
        self.present = step.present
        columns = [c for c in layout.columns.values() if layout.rows(c.table)]
        self.given = {c.name: _twin(step[c], c) for c in layout.columns.values() if c.role in ("given", "derived")}
        self.particles = layout.rows("particles")
        moving = (particles.X, particles.V)
        places = (_twin(step[c], c, requires_grad=True) if self.particles else _zeros(0, c, True) for c in moving)
        self.x, self.v = places
        # They require a gradient, because a sweep begins at all of them: also where no system adds anything.
        self.sums = {c.name: _zeros(layout.rows(c.table), c, True) for c in columns if c.role == "sum" and step.has(c)}
        self.pushes = [a for name, a in self.sums.items() if name.startswith("particles.")]
        self.indices = {name: step.index(name) for name in layout.kinds}
        self.dt, self.first = kc.array(step.dt.numpy().astype(np.float64)), kc.zeros(1, dtype=int)
        arrays = Arrays(layout, "float64", {**self.given, **self.indices}, step.present)
        self.bodies = MovingBodies(step, arrays) if any_free(step) else None
        placed = {} if self.bodies is None else self.bodies.state
        others = [c for c in columns if c.role == "state" and c.table != "particles" and c.name not in placed]
        self.moved = {c.name: _twin(step[c], c) for c in others}
        """What moves by itself."""
        self.state = {**self.moved, **placed}
        with kc.Tape() as self.tape:
            for total in self.sums.values():
                total.zero_()
            if self.bodies is not None:
                self.bodies.place()
            state = {**self.state, particles.X.name: self.x, particles.V.name: self.v}
            here = arrays.end(state, self.sums, self.dt, self.first, self.tape)
            for system in systems:
                system.forces(here)
            if self.bodies is not None:
                self.bodies.weigh(self.sums)

    def take(self, step: Step, moved: dict[str, Array]) -> None:
        """Take over the parameters of a step, its number, and the state of what moves by itself."""
        for name, a in self.given.items():
            a.numpy()[...] = step[self.layout.columns[name]].numpy()
        for name, a in self.moved.items():
            a.numpy()[...] = moved[name].numpy()
        self.dt.numpy()[0] = step.dt.numpy()[0]
        self.first.numpy()[0] = step.first.numpy()[0] + step.k
        if self.bodies is not None:
            self.bodies.take(step)

    def forces(self, x: Floats, v: Floats, h: float) -> Floats:
        """f(x, v), one row for each of v, without gravity; `x` are the places of the particles at the end.

        Bodies are at the end of a step of h seconds with their velocities.
        """
        n = self.particles
        self.x.numpy()[...], self.v.numpy()[...] = x, v[:n]
        if self.bodies is None:
            self.tape.replay()
            return sum((a.numpy() for a in self.pushes), np.zeros(x.shape))
        self.bodies.move(v[n:], h)
        self.tape.replay()
        pushes = sum((a.numpy() for a in self.pushes), np.zeros(x.shape))
        return np.concatenate([pushes, self.bodies.pushes(self.sums)])

    def pulled(self, h: float, way: Floats, ends: Mapping[Array, Floats] | None = None) -> tuple[Floats, Floats]:
        """(h ∂f/∂x)ᵀ way, and the same by the unknowns, (h ∂f/∂v)ᵀ way, where the forces were evaluated last.

        For bodies, whose momenta are not linear in their velocities, all of the residual goes into the latter. `ends`
        is what comes back to the state of the bodies at the end. Those by parameters are then in the gradients of
        `given`, `moved` and `bodies.start`.
        """
        n = self.particles
        seeds: dict[Array, Floats] = dict.fromkeys(self.pushes, h * way[:n])
        if self.bodies is None:
            self.tape.backward(grads=seeds, add=False)
            return self.x.grad.numpy().copy(), self.v.grad.numpy().copy()
        seeds |= self.bodies.seeds(way[n:]) | dict(ends or {})
        self.tape.backward(grads=seeds, add=False)
        return self.x.grad.numpy().copy(), np.concatenate([self.v.grad.numpy(), self.bodies.pulled()])

    def unknowns(self, way: Floats) -> dict[Array, Floats]:
        """What k directions of the unknowns, (k, rows, 3), are to the tape of the forces."""
        n = self.particles
        h = float(self.dt.numpy()[0])
        found = {self.x: h * way[:, :n], self.v: way[:, :n]} if n else {}
        return found if self.bodies is None else found | self.bodies.directions(way[:, n:])

    def pushed(self, directions: Mapping[Array, Floats], ends: Sequence[Array] = ()) -> tuple[Floats, list[Floats]]:
        """How h times the forces on particles, and what bodies lack, move where arrays do: (k, rows, 3).

        And how `ends` move, other arrays of the tape. Where the forces were evaluated last.
        """
        h, n = float(self.dt.numpy()[0]), self.particles
        k = len(next(iter(directions.values())))
        lacks = [] if self.bodies is None else self.bodies.lacks
        known = {a: way for a, way in directions.items() if a in self.tape}
        asked = [a for a in (*self.pushes, *lacks, *ends) if a in self.tape]
        found = {a: d.numpy() for a, d in self.tape.jvp(known, outputs=asked).items()} if known else {}
        zero = [np.zeros((k, *a.numpy().shape)) for a in ends]
        push = sum((h * found[a] for a in self.pushes if a in found), np.zeros((k, n, 3)))
        rows = push if self.bodies is None else np.concatenate([push, self.bodies.lacking(found, k)], axis=1)
        return rows, [found.get(a, nothing) for a, nothing in zip(ends, zero)]


def _zeros(rows: int, column: Column, requires_grad: bool = False) -> Array:
    return kc.zeros(rows, dtype=column.element, real=kc.float64, requires_grad=requires_grad)


def _twin(a: Array, column: Column, requires_grad: bool | None = None) -> Any:
    """The same content in double precision."""
    twin = _zeros(len(a.numpy()), column, a.requires_grad if requires_grad is None else requires_grad)
    twin.numpy()[...] = a.numpy()
    return twin
