"""Backward Euler as an operation on the tape of a rollout: x' = x + h v', v' = v + h (g + f(x', v') / m).

The step is solved, not unrolled: its adjoint is one linear system with the transposed Jacobian at the solution, by the
implicit function theorem, and one reverse sweep through the forces for all parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.kernels.hard import HARD
from nablasim.physics.program import Arrays, Step
from nablasim.physics.solvers.newton import Newton
from nablasim.physics.stability import NotConverged, owner
from nablasim.physics.systems import System
from nablasim.physics.systems.bodies import MOTION
from nablasim.physics.systems.particles import GRAVITY, MASS, V, X
from nablasim.physics.systems.planes import LAW

_EQUATIONS: WeakKeyDictionary[Arrays, Newton] = WeakKeyDictionary()
"""Those of a program: its steps share the memory."""


class Solves:
    """How well the equations of each (sub)step of a rollout were solved: residuals, compared with the momenta in play.

    `adjoint` is NaN until gradients were computed; its residuals are compared with what the loss sends back.
    """

    def __init__(self, steps: int):
        self.newton, self.adjoint = np.full(steps, np.nan), np.full(steps, np.nan)
        self.iterations: NDArray[np.int64] = np.zeros(steps, np.int64)

    def __repr__(self) -> str:
        back = "" if np.isnan(self.adjoint).all() else f", of the adjoint {np.nanmax(self.adjoint):.1e}"
        most, n = np.nanmax(self.newton, initial=0.0), self.iterations.max(initial=0)
        return f"<Solves of {len(self.newton)} steps: at most {n} iterations, residual {most:.1e}{back}>"


class ImplicitStep:
    """One step on a tape."""

    def __init__(self, systems: Sequence[System], step: Step, tol: float, iterations: int):
        self.step, self.tol, self.iterations = step, tol, iterations
        if step.base not in _EQUATIONS:
            _EQUATIONS[step.base] = Newton(systems, step)
        self.newton = _EQUATIONS[step.base]
        others = [c for c in step.layout.columns.values() if c.role == "state" and c.table != "particles"]
        self.moved = {c.name: step.next(c) for c in others if step.rows(c.table)}
        """Bodies that are held or driven: where they are at the end of the step."""

    def record(self) -> None:
        step = self.step
        x, v, x1, v1 = step[X], step[V], step.next(X), step.next(V)
        # Solved in every replay; there is nothing to solve yet.
        x1.numpy()[...], v1.numpy()[...] = x.numpy(), v.numpy()
        leaves = [step[step.layout.columns[name]] for name in self.newton.end.given]
        reads = [x, v, *self.moved.values(), *(a for a in leaves if a.requires_grad)]
        assert step.tape is not None
        step.tape.record(self.backward, reads=reads, writes=[x1, v1], forward=self.forward)

    @property
    def number(self) -> int:
        return int(self.step.first.numpy()[0]) + self.step.k

    def forward(self) -> None:
        step, newton = self.step, self.newton
        newton.take(step, self.moved)
        x0, v0 = (step.numpy(c).astype(np.float64) for c in (X, V))
        found = newton.solve(x0, v0, self.tol, self.iterations)
        solves = step.base.solves
        solves.newton[self.number], solves.iterations[self.number] = found.residual, found.iterations
        if not found.done:
            raise self._failed("Newton's method did not converge", found.residual, found.worst, (
                "Use a shorter dt or more substeps, or more iterations; contact that jumps (damping=\"linear\") may "
                "have no solution at all: use \"smooth\" damping, and a `smoothing` length"))  # fmt: skip
        step.next(V).numpy()[...] = found.value
        step.next(X).numpy()[...] = x0 + newton.h * found.value

    def backward(self) -> None:
        step, newton = self.step, self.newton
        newton.take(step, self.moved)
        h, mass = newton.h, newton.mass[:, None]
        x0, v0, v1 = (a.astype(np.float64) for a in (step.numpy(X), step.numpy(V), step.next(V).numpy()))
        by_x, by_v = (step.next(c).grad.numpy().astype(np.float64) for c in (X, V))
        found = newton.adjoint(x0 + h * v1, v1, by_v + h * by_x, self.tol)
        step.base.solves.adjoint[self.number] = found.residual
        if not found.done:
            raise self._failed("the linear equations of the adjoint were not solved", found.residual, found.worst,
                               "The Jacobian is nearly singular there: use a shorter dt")  # fmt: skip
        way, end = found.value, newton.end
        by_start, _ = end.pulled(h * way)
        self._add(step[X], by_x + by_start)
        self._add(step[V], mass * way)
        for name, a in end.given.items():
            if a.requires_grad:
                self._add(step[step.layout.columns[name]], a.grad.numpy())
        for name, a in end.state.items():
            self._add(self.moved[name], a.grad.numpy() if a.requires_grad else 0.0)
        self._add(step[GRAVITY], h * mass * way)
        self._add(step[MASS], -((v1 - v0 - h * newton.gravity) * way).sum(axis=1))

    @staticmethod
    def _add(a: Any, grad: Any) -> None:
        if a.grad is not None:
            a.grad.numpy()[...] += grad

    def _failed(self, what: str, residual: float, worst: int, advice: str) -> NotConverged:
        thing, row = owner(self.step.layout, "particles", worst)
        step, h = self.number + 1, self.newton.h
        return NotConverged(
            f"{what} in step {step} (t = {step * h:.4g} s): the residual is {residual:.2g} of the momenta in play, and "
            f"{self.tol:g} was asked for, in at most {self.iterations} iterations. It is largest at particle {row} of "
            f"{thing!r}. {advice}",
            thing, step, residual,
        )  # fmt: skip


def refuse_others(step: Step) -> None:
    """Only particles are solved for, and forces that depend on places and velocities."""
    hard = np.flatnonzero(step.numpy(LAW) == HARD) if step.rows("plane_contacts") else np.zeros(0, int)
    if len(hard):
        name, _ = owner(step.layout, "plane_contacts", int(hard[0]))
        raise ValueError(
            f"BackwardEuler solves for forces, and hard contact has none before the step is known: {name!r} is hard. "
            f"Give it a large ke instead: no stiffness is too large for implicit steps"
        )
    if not step.rows("bodies"):
        return
    free = np.flatnonzero(step.numpy(MOTION) == 0)
    if len(free):
        name, _ = owner(step.layout, "bodies", int(free[0]))
        raise ValueError(
            f"BackwardEuler solves for particles: of springs, soft solids and cloth; the rigid body {name!r} is free "
            f'to move. Use integrator="semi_implicit" with substeps, or hold or drive the body (add_obstacle)'
        )
