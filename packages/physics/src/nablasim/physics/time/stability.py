"""Which step is stable, and what to say when a rollout blew up.

For explicit steps a mass m on a spring k with damper c needs k dt² + 2 c dt < 4 m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.checks import is_finite
from nablasim.physics.errors import Diverged, StepTooLarge
from nablasim.physics.laws import step_rate
from nablasim.physics.model import Layout, different, owner, scene_of

if TYPE_CHECKING:
    from nablasim.physics.model import Step
    from nablasim.physics.time.program import Program, Segment

Floats = NDArray[np.floating[Any]]


def check_step(program: Program, dt: float, substeps: int, state: Mapping[str, Floats]) -> None:
    """Refuse a step beyond the limit of stability.

    The bounds of elements are rough: where they are exceeded, the fastest vibration at the start decides.
    """
    for limit in program.limits():
        least = limit.dt
        if dt <= least:
            continue
        row, cause, advice = int(limit.rate.argmax()), limit.cause, limit.advice
        if limit.rough:
            least, row = _sharpened(program, least, dt, state)
        if dt > least:
            if limit.rough and least < 0.95 * fastest_vibration(program, state, contacts=False)[0]:
                cause = "the stiffness of the contacts that it begins in"
                advice = "begin outside of what it touches, or soften the contact"
            thing, at = owner(program.layout, limit.table, row)
            step = f"dt = {dt:g} s" if substeps == 1 else f"dt / substeps = {dt:g} s"
            raise StepTooLarge(
                f"{step} is too large for {thing!r}: at row {at} of its {limit.table}, {cause} and its "
                f"mass allow about {least:.3g} s (k dt² + 2 c dt < 4 m). Use dt <= {0.9 * substeps * least:.2g}, or "
                f"substeps={int(np.ceil(dt * substeps / (0.9 * least)))}, or {advice}",
                least,
                thing.partition(" (copy")[0],
            )


def _sharpened(program: Program, rough: float, dt: float, state: Mapping[str, Floats]) -> tuple[float, int]:
    """The limit of the fastest vibration, and the particle that moves most in it.

    How far the rough limit is below it hardly changes from rollout to rollout, so that it is not computed each time.
    """
    if dt > 0.8 * rough * program.slack:
        limit, row = fastest_vibration(program, state)
        program.slack = limit / rough
        return limit, row
    return rough * program.slack, 0


def fastest_vibration(program: Program, state: Mapping[str, Floats], contacts: bool = True) -> tuple[float, int]:
    """The longest stable step of all particles together in a state, by Lanczos' method on differences of forces."""

    systems = [system for system in program.systems if contacts or not system.touches]
    names = ["x", "v", *(c.name.partition(".")[2] for c in program.sum_columns if c.table == "particles")]

    def look(step: Step) -> tuple[float, int]:
        x, v, *sums = (step.numpy(program.layout.columns[f"particles.{name}"]) for name in names)
        at, moving = x.copy(), v.copy()
        root = np.sqrt(step.numpy(program.layout.columns["particles.weight"]).astype(np.float64))[:, None]
        scene = scene_of(program.layout, "particles")
        sizes = np.array([_spacing(x[scene == s]) for s in range(different(program.layout))])

        for system in systems:
            system.place(step)

        def force(dx: Floats, dv: Floats) -> Floats:
            x[...], v[...] = at + dx, moving + dv
            for f in sums:
                f[...] = 0
            for system in systems:
                system.forces(step)
            return sum(sums, np.zeros(x.shape))

        def slope(way: Floats, moves: bool) -> Floats:
            p = root * way
            most = np.full(len(sizes), 1e-300)
            np.maximum.at(most, scene, np.abs(p).max(axis=1))
            h = (1e-3 * sizes / most)[scene, None]
            there, back = (force(s * h * p * moves, s * h * p * (not moves)) for s in (1, -1))
            return root * (back - there) / (2 * h)

        start = np.random.default_rng(0).normal(size=x.shape) * (root > 0)
        k, mode = _largest(lambda way: slope(way, True), start)
        c, _ = _largest(lambda way: slope(way, False), start)
        rate = float(step_rate(np.array(max(k, 0.0)), np.array(max(c, 0.0)), np.ones(())))
        return 1 / rate if rate else np.inf, int(np.abs(mode).sum(axis=1).argmax())

    return program.look(state, look)


def _spacing(x: Floats) -> float:
    """About how far particles are from each other."""
    return float(np.ptp(x, axis=0).max()) / max(1.0, len(x) ** (1 / 3)) or 1.0 if len(x) else 1.0


def _largest(apply: Callable[[Floats], Floats], start: Floats, steps: int = 16) -> tuple[float, Floats]:
    """The largest eigenvalue of a symmetric operator and its vector, nearly, and never too large (Lanczos)."""
    basis, diagonal, beside = [start / np.linalg.norm(start)], [], []
    for _ in range(steps):
        u = apply(basis[-1])
        diagonal.append(float((basis[-1] * u).sum()))
        for q in basis:
            u = u - q * (q * u).sum()
        length = float(np.linalg.norm(u))
        if length <= 1e-9 * max(map(abs, diagonal)) or len(diagonal) == steps:
            break
        beside.append(length)
        basis.append(u / length)
    n = len(diagonal)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[: n - 1], 1) + np.diag(beside[: n - 1], -1))
    return float(values[-1]), sum((q * w for q, w in zip(basis, vectors[:, -1])), np.zeros_like(start))


def can_go_on(state: Mapping[str, Floats]) -> bool:
    """Whether one can go on from a state."""
    return all(map(is_finite, state.values()))


def diverged(layout: Layout, segment: Segment, first: int, dt: float) -> Diverged:
    """What to say of a segment that ends in a state that is not finite: where that began."""
    k = next(k for k in range(1, segment.length + 1) if not can_go_on(segment.state(k)))
    name, values = next((n, values) for n, values in segment.state(k).items() if not is_finite(values))
    column = layout.columns[name]
    thing, row = owner(layout, column.table, int(np.argwhere(~np.isfinite(values))[0, 0]))
    return Diverged(
        f"{thing!r} blew up: its {column.name.partition('.')[2]} (row {row}) is not finite after step "
        f"{first + k} (t = {(first + k) * dt:.4g} s). Use a smaller dt or more substeps, more damping, or "
        f"softer elements; ph.stable_dt(model) estimates the limit",
        thing,
        first + k,
    )
