"""Which step is stable, and what to say when a rollout blew up.

For explicit steps a mass m on a spring k with damper c needs k dt² + 2 c dt < 4 m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.layout import Layout

if TYPE_CHECKING:
    from nablasim.physics.program import Program, Segment, Step

Floats = NDArray[np.floating[Any]]


CONTACT_SAFETY = 0.5
"""Up to here, ω dt < 1, a particle leaves a contact about as fast as it came; at the limit, ω dt = 2, much faster."""


class StepTooLarge(ValueError):
    """A step of this length makes the explicit integration grow without bound. `limit` is the estimated limit (s)."""

    def __init__(self, message: str, limit: float):
        self.limit = limit
        super().__init__(message)


class Diverged(ArithmeticError):
    """A state of the rollout is not finite. `thing` is the object, `step` the first step after which it is so."""

    def __init__(self, message: str, thing: str, step: int):
        self.thing, self.step = thing, step
        super().__init__(message)


@dataclass(frozen=True)
class Limit:
    """The longest stable step (s) of some rows of a table, what it comes from, and what to do about it."""

    table: str
    dt: Floats
    cause: str
    advice: str
    rough: bool = False
    """A bound that may be far below the true limit, which is then computed."""
    safety: float = 1.0
    """Which part of the limit is safe: contact comes and goes, and what enters it in a long step may gain energy."""


class Bounds:
    """Collects what limits an explicit step. Systems add to it in `System.stiffness`."""

    def __init__(self, layout: Layout, real: str):
        count = layout.rows("particles")
        self.mass: Any = np.ones(count)
        self.held = np.zeros(count, bool)
        kind = kc.float64 if real == "float64" else kc.float32
        self.k, self.c, self.contact_k, self.contact_c = (kc.zeros(count, real=kind) for _ in range(4))
        """Of each particle. Elements add to the first two, for each end the sum of the norms of its row's blocks
        (Gershgorin). Contacts, which are not there all the time, take the maximum of the last
        two; dampers that are taken at the end of the step do not count."""
        self.others: list[Limit] = []

    def clear(self) -> None:
        """Begin again."""
        for a in (self.k, self.c, self.contact_k, self.contact_c):
            a.numpy()[...] = 0
        self.others.clear()

    def masses(self, mass: Floats, held: NDArray[np.bool_]) -> None:
        """The masses of the particles, and which of them do not move."""
        self.mass, self.held = mass, held

    def claim(self, limit: Limit) -> None:
        """A limit that is not about particles."""
        self.others.append(limit)

    def limits(self) -> list[Limit]:
        elastic = longest_step(self.k.numpy(), self.c.numpy(), self.mass)
        contact = longest_step(self.contact_k.numpy(), self.contact_c.numpy(), self.mass)
        elastic, contact = (np.where(self.held, np.inf, limit) for limit in (elastic, contact))
        return [
            Limit("particles", elastic, "the stiffness of its elements", "soften or coarsen the object", rough=True),
            Limit("particles", contact, "its contact (ke)", "soften the contact", safety=CONTACT_SAFETY),
            *self.others,
        ]


def longest_step(k: Floats, c: Floats, m: Floats) -> Floats:
    """The positive root of k dt² + 2 c dt - 4 m = 0, in the form that is also right for k = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((k > 0) | (c > 0), 4 * m / (c + np.sqrt(c * c + 4 * k * m)), np.inf)


def check_step(program: Program, dt: float, substeps: int, state: Mapping[str, Floats]) -> None:
    """Refuse a step beyond the limit of stability.

    The bounds of elements are rough: where they are exceeded, the fastest vibration at the start decides.
    """
    for limit in program.limits():
        least, row = float(limit.dt.min(initial=np.inf)), int(limit.dt.argmin()) if limit.dt.size else 0
        if dt > least and limit.rough:
            least, row = _sharpened(program, least, dt, state)
        if dt > least:
            thing, at = owner(program.layout, limit.table, row)
            step = f"dt = {dt:g} s" if substeps == 1 else f"dt / substeps = {dt:g} s"
            raise StepTooLarge(
                f"{step} is too large for {thing!r}: at row {at} of its {limit.table}, {limit.cause} and its "
                f"mass allow about {least:.3g} s (k dt² + 2 c dt < 4 m). Use dt <= {0.9 * substeps * least:.2g}, or "
                f"substeps={int(np.ceil(dt * substeps / (0.9 * least)))}, or {limit.advice}",
                least,
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


def fastest_vibration(program: Program, state: Mapping[str, Floats]) -> tuple[float, int]:
    """The longest stable step of all particles together in a state, by Lanczos' method on differences of forces."""

    names = ["x", "v", *(c.name.partition(".")[2] for c in program.sum_columns if c.table == "particles")]

    def look(step: Step) -> tuple[float, int]:
        x, v, *sums = (step.numpy(program.layout.columns[f"particles.{name}"]) for name in names)
        at, moving = x.copy(), v.copy()
        root = np.sqrt(step.numpy(program.layout.columns["particles.weight"]).astype(np.float64))[:, None]
        size = np.ptp(x, axis=0).max() / max(1.0, len(x) ** (1 / 3)) or 1.0

        def force(dx: Floats, dv: Floats) -> Floats:
            x[...], v[...] = at + dx, moving + dv
            for f in sums:
                f[...] = 0
            for system in program.systems:
                system.forces(step)
            return sum(sums, np.zeros(x.shape))

        def slope(way: Floats, moves: bool) -> Floats:
            p = root * way
            h = 1e-3 * size / max(float(np.abs(p).max()), 1e-300)
            there, back = (force(s * h * p * moves, s * h * p * (not moves)) for s in (1, -1))
            return root * (back - there) / (2 * h)

        start = np.random.default_rng(0).normal(size=x.shape) * (root > 0)
        k, mode = _largest(lambda way: slope(way, True), start)
        c, _ = _largest(lambda way: slope(way, False), start)
        limit = longest_step(np.array(max(k, 0.0)), np.array(max(c, 0.0)), np.ones(()))
        return float(limit), int(np.abs(mode).sum(axis=1).argmax())

    return program.look(state, look)


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


def check_masses(program: Program) -> None:
    """Refuse masses that are not positive, whatever they were computed from."""
    mass = program.derived["particles.mass"].numpy()
    if not (mass > 0).all():
        row = int(np.argmin(np.where(np.isnan(mass), -np.inf, mass)))
        thing, at = owner(program.layout, "particles", row)
        raise ValueError(
            f"{thing}: particle {at} has the mass {mass[row]:g} kg; masses must be positive. Check its mass or "
            f"density; to hold a particle, use scene.fix"
        )


def check_finite(layout: Layout, segment: Segment, first: int, dt: float) -> None:
    """Refuse to go on from a state that is not finite, and say where that began."""
    last = segment.state(segment.length)
    if all(np.isfinite(values).all() for values in last.values()):
        return
    for k in range(1, segment.length + 1):
        for name, values in segment.state(k).items():
            if not np.isfinite(values).all():
                column = layout.columns[name]
                thing, row = owner(layout, column.table, int(np.argwhere(~np.isfinite(values))[0, 0]))
                raise Diverged(
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
