"""Solves the equations of a backward Euler step for the velocities at its end, and the linear ones of its adjoint.

    R(v) = m (v - v0 - h g) - h f(x0 + h v, v) = 0

by Newton's method with a line search. J = dR/dv = m - h (h ∂f/∂x + ∂f/∂v) is the true Jacobian, not a positive
definite stand-in: assembled and factorised where each row names its particles, and completed by Krylov's method where
not. Rows of bodies, two each, follow those of the particles (`moving_bodies.py`).

Different scenes of a batch are factorised together, but each is solved to its own tolerance and looks for its own way:
next to a house, all that a leaf does is rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, gmres, splu

import kernelc as kc
from nablasim.physics.laws import Hits, System, bodies, particles
from nablasim.physics.model import Array, Step, different, scene_of
from nablasim.physics.time.solvers.assembly import Assembly, Coupling
from nablasim.physics.time.solvers.endpoint import Endpoint, Floats

EPS = float(np.finfo(np.float64).eps)
HALVINGS = 4
"""Where Newton's method does not find its way, it is led there by up to 2^4 shorter steps from the same start."""


@dataclass(frozen=True)
class Solution:
    """What was found, how large the residual is compared with the momenta in play, and how many iterations it took."""

    value: Floats
    residual: float
    worst: int
    """The row with the largest residual."""
    iterations: int
    done: bool


class Newton:
    """The equations of the steps of one program. `take` says which step."""

    def __init__(self, systems: Sequence[System], step: Step):
        self.end = Endpoint(systems, step)
        self._assembly = Assembly(systems, self.end) if self.end.particles else None
        self._coupled = None if self.end.bodies is None else Coupling(self.end, self.end.bodies)
        self._hits = self._coupled is not None and any(step.rows(s.name) for s in systems if isinstance(s, Hits))
        self.whole = self._assembly is None or self._assembly.whole
        """Whether `jacobian` is complete: contacts of layers of cloth come in by Krylov's method."""
        bodies = [] if self.end.bodies is None else [scene_of(step.layout, "bodies")] * 2
        self.scene = np.concatenate([scene_of(step.layout, "particles"), *bodies])
        """Which scene each row belongs to; copies of a scene count as one."""
        self.scenes = different(step.layout)

    def largest(self, values: Floats) -> Floats:
        """The largest size of values by row, of each scene."""
        if self.scenes == 1:
            return np.array([np.abs(values).max(initial=0.0)])
        found = np.zeros(self.scenes)
        np.maximum.at(found, self.scene, np.abs(values).max(axis=1))
        return found

    def total(self, values: Floats) -> Floats:
        """The sum of values by row, of each scene."""
        if self.scenes == 1:
            return np.array([values.sum()])
        found = np.zeros(self.scenes)
        np.add.at(found, self.scene, values.sum(axis=1))
        return found

    def take(self, step: Step, moved: dict[str, Array]) -> None:
        end = self.end
        end.take(step, moved)
        self.h = float(end.dt.numpy()[0])
        columns = (particles.MASS, particles.GRAVITY, particles.WEIGHT)
        known = end.given if end.particles else {c.name: kc.zeros(0, dtype=c.element) for c in columns}
        self.mass, self.gravity = (known[c.name].numpy() for c in (particles.MASS, particles.GRAVITY))
        self.free: NDArray[np.bool_] = known[particles.WEIGHT.name].numpy() > 0
        if end.bodies is not None:
            fall = end.given[bodies.GRAVITY.name].numpy()
            self.mass = np.concatenate([self.mass, end.bodies.mass, end.bodies.mass])
            self.gravity = np.concatenate([self.gravity, fall, np.zeros_like(fall)])
            self.free = np.concatenate([self.free, end.bodies.free, end.bodies.free])

    def jacobian(self, h: float, x: Floats, v: Floats) -> tuple[Any, Floats]:
        """J where the forces were evaluated last, with particles at x, and how well residuals are known there.

        Forces are known no better than the places of things: to rounding. Less cannot be asked for.
        """
        n, rounding, J = self.end.particles, np.zeros(3 * len(v)), sparse.csc_matrix((0, 0))
        if self._assembly is not None:
            J, stiffness = self._assembly.matrix(h, self.mass[:n], self.free[:n])
            rounding[: 3 * n] = stiffness @ np.abs(x).ravel()
        if self._coupled is None:
            return J, 8 * EPS * self.largest(rounding.reshape(v.shape))
        beside = sparse.csc_matrix((3 * n, 3 * len(v) - 3 * n))
        if self._hits:
            beside = self._coupled.columns(h, x, v, self.free)
        below, rounding[3 * n :] = self._coupled.rows(h, self.mass, self.free)
        whole = sparse.vstack([sparse.hstack([J, beside]), below], "csc")
        return whole, 8 * EPS * self.largest(rounding.reshape(v.shape))

    # -- the way forward
    def solve(self, x0: Floats, v0: Floats, tol: float, iterations: int) -> Solution:
        """The velocities at the end of the step."""
        start = v0 * self.free[:, None]
        found = _Search(self, x0, v0, self.h).run(start, tol, iterations)
        for parts in (2**k for k in range(1, HALVINGS + 1)):
            if found.done:
                break
            near = start
            for part in range(1, parts):
                near = _Search(self, x0, v0, self.h * part / parts).run(near, 1e-3, iterations).value
            found = _Search(self, x0, v0, self.h).run(near, tol, iterations)
        return found

    # -- the way back
    def adjoint(self, x: Floats, v: Floats, b: Floats, tol: float) -> Solution:
        """λ with Jᵀ λ = b at the end of the step; `end.given` then has the gradients of h λ·f by the parameters."""
        self.end.forces(x, v, self.h)
        J, _ = self.jacobian(self.h, x, v)
        factors = factorised(J)
        b = b * self.free[:, None]
        weights, limit = np.abs(J).T, tol * self.largest(b)
        solution = np.zeros_like(b)
        residual = b
        for k in range(1, 6):
            solution = solution + self._transposed(factors, residual, self.whole and k < 3)
            residual = b - self._pulled(solution)
            size = self.largest(residual)
            rounding = 64 * EPS * self.largest((weights @ np.abs(solution).ravel()).reshape(b.shape))
            if (size <= limit + rounding).all():
                break
        done = k < 5 or bool((size <= limit).all())
        return Solution(solution, *self.judged(residual, limit / tol), k, done)

    # -- tangents
    def tangent(self, x: Floats, v: Floats, b: Floats, tol: float) -> Solution:
        """p with J p = b at the end of the step, for k right-hand sides (k, rows, 3); forces were evaluated there."""
        J, _ = self.jacobian(self.h, x, v)
        factors = factorised(J)
        b = np.where(self.free[:, None], b, 0.0)
        weights, limit = np.abs(J), tol * np.array([self.largest(one) for one in b])
        solution, residual, done = np.zeros_like(b), b, False
        for k in range(1, 6):
            solution = solution + self._solved(factors, residual, self.whole and k < 3)
            residual = b - self._pushed(solution)
            size = np.array([self.largest(one) for one in residual])
            terms = [(weights @ np.abs(one).ravel()).reshape(v.shape) for one in solution]
            rounding = 64 * EPS * np.array([self.largest(one) for one in terms])
            done = bool((size <= limit + rounding).all())
            if done:
                break
        worst = max((self.judged(r, s / tol) for r, s in zip(residual, limit)), default=(0.0, 0))
        return Solution(solution, *worst, k, done)

    def _solved(self, factors: Any, b: Floats, direct: bool) -> Floats:
        if direct:
            return factors.solve(b.reshape(len(b), -1).T).T.reshape(b.shape)
        n = b[0].size
        op = LinearOperator((n, n), lambda p: self._pushed(p.reshape(1, *b.shape[1:])).ravel(), dtype=np.float64)
        near = LinearOperator((n, n), factors.solve, dtype=np.float64)
        each = (gmres(op, one.ravel(), rtol=1e-10, restart=60, maxiter=20, M=near)[0] for one in b)
        return np.stack(list(each)).reshape(b.shape)

    def _pushed(self, way: Floats) -> Floats:
        """J way for k directions, by tangents of the forces; what is held moves by itself."""
        n = self.end.particles
        moved, _ = self.end.pushed(self.end.unknowns(way))
        moved[:, :n] = self.mass[:n, None] * way[:, :n] - moved[:, :n]
        return np.where(self.free[:, None], moved, self.mass[:, None] * way)

    def judged(self, residual: Floats, scale: Floats) -> tuple[float, int]:
        """How large a residual is, compared with the scale of each scene, and the row where it is largest."""
        scale = np.maximum(scale, 1e-300)
        rows = np.abs(residual).sum(axis=1) / scale[self.scene]
        return float((self.largest(residual) / scale).max()), int(rows.argmax()) if len(rows) else 0

    def _transposed(self, factors: Any, b: Floats, direct: bool) -> Floats:
        if direct:
            return factors.solve(b.ravel(), trans="T").reshape(b.shape)
        n = b.size
        op = LinearOperator((n, n), lambda p: self._pulled(p.reshape(b.shape)).ravel(), dtype=np.float64)
        near = LinearOperator((n, n), lambda p: factors.solve(p, trans="T"), dtype=np.float64)
        return gmres(op, b.ravel(), rtol=1e-10, restart=60, maxiter=20, M=near)[0].reshape(b.shape)

    def _pulled(self, way: Floats) -> Floats:
        """Jᵀ way, by a reverse sweep through the forces; zero in what is held."""
        n = self.end.particles
        by_x, pulled = self.end.pulled(self.h, way)
        pulled[:n] += self.h * by_x - self.mass[:n, None] * way[:n]
        return np.where(self.free[:, None], -pulled, 0.0)


class _Search:
    """One run of Newton's method, for a step of h seconds from x0, v0."""

    def __init__(self, equations: Newton, x0: Floats, v0: Floats, h: float):
        self._of, self.x0, self.v0, self.h = equations, x0, v0, h
        self.m = equations.mass[:, None]
        self.held = ~equations.free[:, None]
        self.falling = self.m * h * equations.gravity

    def residual(self, v: Floats) -> tuple[Floats, Floats]:
        """R(v), and the largest momentum that takes part in it, of each scene."""
        end, n = self._of.end, len(self.x0)
        push = self.h * end.forces(self.x0 + self.h * v[:n], v, self.h)
        r = np.where(self.held, 0.0, self.m * (v - self.v0) - self.falling - push)
        if end.bodies is not None:
            r[n:] = end.bodies.residual()
        parts = (push, self.falling, self.m * v, self.m * self.v0)
        return r, np.max([self._of.largest(np.where(self.held, 0.0, part)) for part in parts], axis=0)

    def run(self, v: Floats, tol: float, iterations: int) -> Solution:
        r, scale = self.residual(v)
        size, none = self._of.largest(r), np.zeros(self._of.scenes)
        before, rounding = none + np.inf, none
        for k in range(iterations + 1):
            done = (size <= tol * scale) | ((size >= 0.25 * before) & (size <= tol * scale + rounding))
            if done.all():
                return self._solution(v, r, scale, k, True)
            if k == iterations or not np.isfinite(size).all():
                break
            J, rounding = self._of.jacobian(self.h, self.x0 + self.h * v[: len(self.x0)], v)
            moved = self._along(v, r, self._downhill(J, v, self._still(r, done), done), done)
            if moved is None:
                return self._solution(v, r, scale, k, bool((size <= tol * scale + rounding).all()))
            v, r, scale = moved
            size, before = self._of.largest(r), size
        return self._solution(v, r, scale, k, False)

    def _still(self, r: Floats, done: NDArray[np.bool_]) -> Floats:
        """Residuals that leave alone the scenes that are done."""
        return np.where(done[self._of.scene][:, None], 0.0, r) if done.any() else r

    def _solution(self, v: Floats, r: Floats, scale: Floats, k: int, done: bool) -> Solution:
        return Solution(v, *self._of.judged(r, scale), k, done)

    def _downhill(self, J: Any, v: Floats, r: Floats, done: NDArray[np.bool_]) -> Floats:
        """Newton's direction. Where that leads uphill, as from a beam that is about to buckle, masses are made larger:
        the further this goes, the more it is the direction of the forces.
        """
        heavier, uphill = np.zeros(len(done)), ~done
        for more in (0.0, 1.0, 1e2, 1e4, 1e6, 1e8):
            heavier[uphill] = more
            added = heavier[self._of.scene] * self.m[:, 0]
            way = self._direction(J + sparse.diags(np.repeat(added, 3), format="csc"), v, r)
            uphill = ~(done | (self._of.total(r * way) < 0.0))
            if not uphill.any():
                break
        return way

    def _direction(self, J: Any, v: Floats, r: Floats) -> Floats:
        factors = factorised(J)
        p = factors.solve(-r.ravel())
        if not self._of.whole:
            n = r.size
            op = LinearOperator((n, n), lambda way: self._slope(v, way.reshape(r.shape)).ravel(), dtype=np.float64)
            near = LinearOperator((n, n), factors.solve, dtype=np.float64)
            p = gmres(op, -r.ravel(), x0=p, rtol=1e-4, restart=40, maxiter=3, M=near)[0]
        return p.reshape(r.shape)

    def _slope(self, v: Floats, way: Floats) -> Floats:
        """J way, by differences: good enough to search by."""
        longest = float(np.abs(way).max(initial=0.0))
        if longest == 0.0:
            return way
        size = float(np.ptp(self.x0, axis=0).max()) / max(1.0, len(v) ** (1 / 3)) or 1.0
        e = 1e-6 * size / (self.h * longest)
        return (self.residual(v + e * way)[0] - self.residual(v - e * way)[0]) / (2 * e) + way * self.m * self.held

    def _along(
        self, v: Floats, r: Floats, way: Floats, done: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats] | None:
        """A point on the way, beginning with its end: where the residual is smaller, or the way is not uphill yet.

        R·way is the slope of the energy along the way, as far as forces have one: its sign says where the minimum is.
        """
        if not np.isfinite(way).all():
            return None
        before, slope, length = self._merit(r), self._of.total(r * way), np.ones(len(done))
        for _ in range(20):
            there = v + length[self._of.scene][:, None] * way
            r, scale = self.residual(there)
            smaller = self._merit(r) <= (1 - 1e-4 * length) * before
            good = done | smaller | (self._of.total(r * way) <= 0.5 * np.abs(slope))
            if good.all():
                return there, r, scale
            length[~good] *= 0.5
        return None

    def _merit(self, r: Floats) -> Floats:
        return np.sqrt(self._of.total(r * r / self.m))


def factorised(J: Any) -> Any:
    """LU factors. The pattern is symmetric, though damping and friction make the numbers not."""
    try:
        return splu(J, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.1, options={"SymmetricMode": True})
    except RuntimeError:  # exactly singular: a little more mass leads on, and the residual decides
        shift = 1e-8 * np.abs(J.diagonal()).max()
        J = J.copy()
        J.setdiag(J.diagonal() + shift)
        return splu(J.tocsc())
