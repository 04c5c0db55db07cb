"""The forces on the particles at the end of a step, in double precision: what an implicit step evaluates many times.

Residuals of stiff equations are small differences of large numbers. They are computed in double precision whatever the
precision of the model, on a tape of their own that all steps of a program share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.layout import Column
from nablasim.physics.program import Array, Arrays, Step
from nablasim.physics.systems import System
from nablasim.physics.systems.particles import V, X

Floats = NDArray[np.float64]


class Endpoint:
    """f(x, v) with all parameters as a step has them, and the products of a vector with its Jacobian."""

    def __init__(self, systems: Sequence[System], step: Step):
        layout = self.layout = step.layout
        self.present = step.present
        columns = [c for c in layout.columns.values() if layout.rows(c.table)]
        self.given = {c.name: _twin(step[c], c) for c in layout.columns.values() if c.role in ("given", "derived")}
        self.state = {c.name: _twin(step[c], c) for c in columns if c.role == "state" and c.table != "particles"}
        self.x, self.v = (_twin(step[c], c, requires_grad=True) for c in (X, V))
        self.sums = {c.name: _zeros(layout.rows(c.table), c) for c in columns if c.role == "sum" and step.has(c)}
        self.pushes = [a for name, a in self.sums.items() if name.startswith("particles.")]
        self.indices = {name: step.index(name) for name in layout.kinds}
        self.dt, self.first = kc.array(step.dt.numpy().astype(np.float64)), kc.zeros(1, dtype=int)
        arrays = Arrays(layout, "float64", {**self.given, **self.indices}, step.present)
        with kc.Tape() as self.tape:
            for total in self.sums.values():
                total.zero_()
            here = arrays.end({**self.state, X.name: self.x, V.name: self.v}, self.sums, self.dt, self.first, self.tape)
            for system in systems:
                system.forces(here)

    def take(self, step: Step, moved: dict[str, Array]) -> None:
        """Take over the parameters of a step, its number, and the state of what moves by itself."""
        for name, a in self.given.items():
            a.numpy()[...] = step[self.layout.columns[name]].numpy()
        for name, a in self.state.items():
            a.numpy()[...] = moved[name].numpy()
        self.dt.numpy()[0] = step.dt.numpy()[0]
        self.first.numpy()[0] = step.first.numpy()[0] + step.k

    def forces(self, x: Floats, v: Floats) -> Floats:
        """f(x, v), (particles, 3), without gravity."""
        self.x.numpy()[...], self.v.numpy()[...] = x, v
        self.tape.replay()
        return sum((a.numpy() for a in self.pushes), np.zeros(x.shape))

    def pulled(self, way: Floats) -> tuple[Floats, Floats]:
        """(∂f/∂x)ᵀ way and (∂f/∂v)ᵀ way where the forces were evaluated last.

        Those by parameters are then in the gradients of `given` and `state`.
        """
        self.tape.backward(grads=dict.fromkeys(self.pushes, way), add=False)
        return self.x.grad.numpy().copy(), self.v.grad.numpy().copy()


def _zeros(rows: int, column: Column, requires_grad: bool = False) -> Array:
    return kc.zeros(rows, dtype=column.element, real=kc.float64, requires_grad=requires_grad)


def _twin(a: Array, column: Column, requires_grad: bool | None = None) -> Any:
    """The same content in double precision."""
    twin = _zeros(len(a.numpy()), column, a.requires_grad if requires_grad is None else requires_grad)
    twin.numpy()[...] = a.numpy()
    return twin
