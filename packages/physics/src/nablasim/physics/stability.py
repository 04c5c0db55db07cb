"""Which step is stable, and what to say when a rollout blew up.

For explicit steps a mass m on a spring k with damper c needs k dt² + 2 c dt < 4 m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.checks import is_finite
from nablasim.physics.kernels.particles import step_rates
from nablasim.physics.layout import Layout
from nablasim.physics.scenes import different, scene_of

if TYPE_CHECKING:
    from nablasim.physics.program import Arrays, Program, Segment, Step
    from nablasim.physics.systems import System

Floats = NDArray[np.floating[Any]]


CONTACT_SAFETY = 0.5
"""Up to here, ω dt < 1, a particle leaves a contact about as fast as it came; at the limit, ω dt = 2, much faster."""


class StepTooLarge(ValueError):
    """A step of this length makes the explicit integration grow without bound.

    `limit` is the estimated limit (s), `thing` the object that it comes from.
    """

    def __init__(self, message: str, limit: float, thing: str):
        self.limit, self.thing = limit, thing
        super().__init__(message)


class StepShortened(UserWarning):
    """A rollout took substeps that nobody asked for, because the step was a little too large for cloth."""


class Diverged(ArithmeticError):
    """A state of the rollout is not finite. `thing` is the object, `step` the first step after which it is so."""

    def __init__(self, message: str, thing: str, step: int):
        self.thing, self.step = thing, step
        super().__init__(message)


class PassedThrough(ArithmeticError):
    """A body went through another. `things` are both, `dt` is a step (s) that is short enough to see them touch."""

    def __init__(self, one: str, other: str, speed: float, dt: float, thin: float):
        self.things, self.dt = (one, other), min(dt, 0.25 * thin / speed)
        what = f"{one!r} went through {other!r} at {speed:.4g} m/s"
        if self.dt < dt:
            super().__init__(
                f"{what}: it moves by {speed * dt:.3g} m in a step of {dt:g} s, and that is about {thin:.3g} m thick. "
                f"Use dt <= {self.dt:.2g}, or substeps={int(np.ceil(dt / self.dt))}, or make it thicker"
            )
        else:
            super().__init__(
                f"{what}: the contact is too soft to stop it within about {thin:.3g} m. Use a larger ke of the two, or "
                f"a larger rate (scene.set_contact), or make it thicker"
            )


class NotConverged(ArithmeticError):
    """The equations of an implicit step were not solved to the tolerance that was asked for.

    `thing` is the object with the largest residual, `step` the number of the step, from 1.
    """

    def __init__(self, message: str, thing: str, step: int, residual: float):
        self.thing, self.step, self.residual = thing, step, residual
        super().__init__(message)


@dataclass(frozen=True)
class Limit:
    """The longest stable steps of all rows of a table, what they come from, and what to do about it."""

    table: str
    rate: Floats
    """One over the longest step of each row (1/s); 0 where nothing limits it. See `step_rate`."""
    cause: str
    advice: str
    rough: bool = False
    """A bound that may be far below the true limit, which is then computed."""
    safety: float = 1.0
    """Which part of the limit is safe: contact comes and goes, and what enters it in a long step may gain energy."""

    @property
    def dt(self) -> float:
        """The longest step (s) that is stable in all rows."""
        most = float(self.rate.max(initial=0.0))
        return 1 / most if most > 0 else np.inf


class Bounds:
    """What limits an explicit step of each particle. Systems add to it in `System.stiffness`, on a tape."""

    def __init__(self, systems: Sequence[System], arrays: Arrays):
        count, real = arrays.rows("particles"), kc.float64 if arrays.real == "float64" else kc.float32
        self.k, self.c, self.contact_k, self.contact_c = (kc.zeros(count, real=real) for _ in range(4))
        """Elements add to the first two, for each end the sum of the norms of its row's blocks (Gershgorin). Contacts,
        which are not there all the time, take the maximum of the last two; dampers that are taken at the end of the
        step do not count."""
        self._elastic, self._contact = kc.zeros(count, real=real), kc.zeros(count, real=real)
        with kc.Tape() as self._tape:
            for a in (self.k, self.c, self.contact_k, self.contact_c):
                a.zero_()
            for system in systems:
                system.stiffness(arrays, self)
            if count:
                weight = arrays[arrays.layout.columns["particles.weight"]]
                kc.launch(step_rates, count, [self.k, self.c, weight], [self._elastic])
                kc.launch(step_rates, count, [self.contact_k, self.contact_c, weight], [self._contact])

    def limits(self) -> list[Limit]:
        """The limits with what the arrays hold now."""
        self._tape.replay()
        return [
            Limit("particles", self._elastic.numpy(), "the stiffness of its elements", "soften or coarsen the object",
                  rough=True),
            Limit("particles", self._contact.numpy(), "its contact (ke)", "soften the contact", safety=CONTACT_SAFETY),
        ]  # fmt: skip


def step_rate(k: Floats, c: Floats, weight: Floats) -> Floats:
    """One over the positive root of k dt² + 2 c dt - 4 m = 0, from 1 / m."""
    return (c * weight + np.sqrt(c * c * weight * weight + 4 * k * weight)) / 4


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


def owner(layout: Layout, table: str, row: int) -> tuple[str, int]:
    """The object that a row of a table belongs to, and the row's number in it; in a batch the copy, too."""
    copy, row = divmod(row, layout.count[table])
    for thing in layout.things.values():
        rows = thing.rows.get(table)
        if rows is not None and rows.start <= row < rows.start + rows.count:
            return thing.name + (f" (copy {copy})" if layout.copies else ""), row - rows.start
    raise KeyError((table, row))
