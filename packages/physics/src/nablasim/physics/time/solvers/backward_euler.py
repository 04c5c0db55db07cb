"""Backward Euler as an operation on the tape of a rollout: x' = x + h v', v' = v + h (g + f(x', v') / m).

The step is solved, not unrolled: its adjoint is one linear system with the transposed Jacobian at the solution, by the
implicit function theorem, and one reverse sweep through the forces for all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.errors import NotConverged
from nablasim.physics.laws import System, body_planes, hard_kernels, particles, planes
from nablasim.physics.model import Arrays, Column, Step, owner
from nablasim.physics.time.solvers.moving_bodies import STATE
from nablasim.physics.time.solvers.newton import Newton

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
        columns = step.layout.columns
        self.moved = {name: step.next(columns[name]) for name in self.newton.end.moved}
        """What moves by itself, such as bodies that are held or driven: where it is at the end of the step."""
        self.particles = (particles.X, particles.V) if step.rows("particles") else ()
        self.bodies = STATE if self.newton.end.bodies is not None else ()
        self.solved = [*self.particles, *self.bodies]

    def record(self) -> None:
        step = self.step
        for c in self.solved:  # In every replay; there is nothing to solve yet.
            step.next(c).numpy()[...] = step.numpy(c)
        leaves = [step[step.layout.columns[name]] for name in self.newton.end.given]
        reads = [*(step[c] for c in self.solved), *self.moved.values(), *(a for a in leaves if a.requires_grad)]
        assert step.tape is not None
        writes = [step.next(c) for c in self.solved]
        step.tape.record(self.backward, reads=reads, writes=writes, forward=self.forward, tangent=self.tangent)

    def _unknowns(self, arrays: Callable[[Column], Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Places of the particles, and velocities of all that is solved for, of a state."""
        x, v = np.zeros((2, 0, 3))
        if self.particles:
            x, v = (arrays(c).numpy().astype(np.float64) for c in (particles.X, particles.V))
        bodies = self.newton.end.bodies
        if bodies is None:
            return x, v
        return x, np.concatenate([v, bodies.velocities({c.name: arrays(c) for c in STATE})])

    @property
    def number(self) -> int:
        return int(self.step.first.numpy()[0]) + self.step.k

    def forward(self) -> None:
        step, newton = self.step, self.newton
        newton.take(step, self.moved)
        x0, v0 = self._unknowns(step.__getitem__)
        found = newton.solve(x0, v0, self.tol, self.iterations)
        solves = step.base.solves
        solves.newton[self.number], solves.iterations[self.number] = found.residual, found.iterations
        if not found.done:
            raise self._failed("Newton's method did not converge", found.residual, found.worst, (
                "Use a shorter dt or more substeps, or more iterations; contact that jumps (damping=\"linear\") may "
                "have no solution at all: use \"smooth\" damping, and a `smoothing` length"))  # fmt: skip
        v1 = found.value[: len(x0)]
        x1 = x0 + newton.h * v1
        if self.particles:
            step.next(particles.V).numpy()[...], step.next(particles.X).numpy()[...] = v1, x1
        if self.bodies:
            newton.end.forces(x1, found.value, newton.h)
        for c in self.bodies:
            step.next(c).numpy()[...] = newton.end.state[c.name].numpy()

    def backward(self) -> None:
        step, newton = self.step, self.newton
        newton.take(step, self.moved)
        h, end = newton.h, newton.end
        (x0, v0), (_, v1) = self._unknowns(step.__getitem__), self._unknowns(step.next)
        n = len(x0)
        x1 = x0 + h * v1[:n]
        by_x, by_v = self._sent(particles.X), self._sent(particles.V)
        ends = {end.state[c.name]: self._sent(c) for c in self.bodies}
        sent = by_v + h * by_x
        if ends:
            end.forces(x1, v1, h)
            sent = np.concatenate([sent, end.pulled(h, np.zeros_like(v1), ends)[1][n:]])
        found = newton.adjoint(x1, v1, sent, self.tol)
        step.base.solves.adjoint[self.number] = found.residual
        if not found.done:
            raise self._failed("the linear equations of the adjoint were not solved", found.residual, found.worst,
                               "The Jacobian is nearly singular there: use a shorter dt")  # fmt: skip
        by_start, _ = end.pulled(h, found.value, ends)
        for name, a in end.given.items():
            if a.requires_grad:
                self._add(step[step.layout.columns[name]], a.grad.numpy())
        for name, a in end.moved.items():
            self._add(self.moved[name], a.grad.numpy() if a.requires_grad else 0.0)
        for c in self.bodies:
            assert end.bodies is not None
            self._add(step[c], end.bodies.start[c.name].grad.numpy())
        if self.particles:
            way, mass = found.value[:n], newton.mass[:n, None]
            self._add(step[particles.X], by_x + by_start)
            self._add(step[particles.V], mass * way)
            self._add(step[particles.GRAVITY], h * mass * way)
            self._add(step[particles.MASS], -((v1[:n] - v0[:n] - h * newton.gravity[:n]) * way).sum(axis=1))

    def tangent(self, *moved: NDArray[Any] | None) -> list[NDArray[np.float64]]:
        """How the end of the step moves where what it reads does: J dv' = -dR at the solution, k directions at once."""
        step, newton, end = self.step, self.newton, self.newton.end
        newton.take(step, self.moved)
        (x0, v0), (_, v1) = self._unknowns(step.__getitem__), self._unknowns(step.next)
        n, h = len(x0), newton.h
        x1 = x0 + h * v1[:n]
        end.forces(x1, v1, h)
        names = [c.name for c in self.solved]
        given = dict(zip([*names, *self.moved, *(name for name in end.given if self._asks(name))], moved))
        dots = {name: dot.astype(np.float64) for name, dot in given.items() if dot is not None}
        k = len(next(iter(dots.values())))
        ways = {a: dots[name] for name, a in {**end.given, **end.moved}.items() if name in dots}
        if self.particles:
            ways[end.x] = dots[particles.X.name]
        if end.bodies is not None:
            ways |= {end.bodies.start[c.name]: dots[c.name] for c in self.bodies}
        push, _ = end.pushed(ways)
        if self.particles:
            none, mass = np.zeros((k, n)), newton.mass[:n, None]
            fall, heavier = dots.get(particles.GRAVITY.name, 0.0), dots.get(particles.MASS.name, none)
            late = v1[:n] - v0[:n] - h * newton.gravity[:n]
            push[:, :n] += mass * (dots[particles.V.name] + h * fall) - heavier[..., None] * late
        push[:, n:] *= -1.0
        found = newton.tangent(x1, v1, push, self.tol)
        if not found.done:
            raise self._failed("the linear equations of the tangents were not solved", found.residual, found.worst,
                               "The Jacobian is nearly singular there: use a shorter dt")  # fmt: skip
        way = found.value
        both = {a: ways.get(a, 0.0) + dot for a, dot in end.unknowns(way).items()}
        _, ends = end.pushed(ways | both, [end.state[c.name] for c in self.bodies])
        if not self.particles:
            return ends
        return [dots[particles.X.name] + h * way[:, :n], way[:, :n], *ends]

    def _asks(self, name: str) -> bool:
        """Whether a column is among what the step reads with a gradient."""
        return bool(self.step[self.step.layout.columns[name]].requires_grad)

    def _sent(self, column: Column) -> NDArray[np.float64]:
        """What the loss sends back to the state after the step."""
        if column not in self.solved:
            return np.zeros((0, 3))
        return self.step.next(column).grad.numpy().astype(np.float64)

    @staticmethod
    def _add(a: Any, grad: Any) -> None:
        if a.grad is not None:
            a.grad.numpy()[...] += grad

    def _failed(self, what: str, residual: float, worst: int, advice: str) -> NotConverged:
        n, count = self.newton.end.particles, self.step.rows("bodies")
        table, at = ("particles", worst) if worst < n else ("bodies", (worst - n) % count)
        thing, row = owner(self.step.layout, table, at)
        where = f"particle {row} of {thing!r}" if table == "particles" else f"the body {thing!r}"
        step, h = self.number + 1, self.newton.h
        return NotConverged(
            f"{what} in step {step} (t = {step * h:.4g} s): the residual is {residual:.2g} of the momenta in play, and "
            f"{self.tol:g} was asked for, in at most {self.iterations} iterations. It is largest at {where}. "
            f"{advice}",
            thing, step, residual,
        )  # fmt: skip


def refuse_hard(step: Step) -> None:
    """What is solved for depends on forces, which depend on places and velocities."""
    for law in (planes.LAW, body_planes.LAW):
        hard = np.flatnonzero(step.numpy(law) == hard_kernels.HARD) if step.rows(law.table) else np.zeros(0, int)
        if len(hard):
            name, _ = owner(step.layout, law.table, int(hard[0]))
            raise ValueError(
                f"BackwardEuler solves for forces, and hard contact has none before the step is known: {name!r} is "
                f"hard. Give it a large ke instead: no stiffness is too large for implicit steps"
            )
