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
from nablasim.physics.layout import Column
from nablasim.physics.program import Array, Arrays, Step
from nablasim.physics.solvers.moving_bodies import MovingBodies, any_free
from nablasim.physics.systems import System
from nablasim.physics.systems.particles import V, X

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
        places = (_twin(step[c], c, requires_grad=True) if self.particles else _zeros(0, c, True) for c in (X, V))
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
            here = arrays.end({**self.state, X.name: self.x, V.name: self.v}, self.sums, self.dt, self.first, self.tape)
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


def _zeros(rows: int, column: Column, requires_grad: bool = False) -> Array:
    return kc.zeros(rows, dtype=column.element, real=kc.float64, requires_grad=requires_grad)


def _twin(a: Array, column: Column, requires_grad: bool | None = None) -> Any:
    """The same content in double precision."""
    twin = _zeros(len(a.numpy()), column, a.requires_grad if requires_grad is None else requires_grad)
    twin.numpy()[...] = a.numpy()
    return twin
