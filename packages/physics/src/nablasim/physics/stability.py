"""Which step is stable, and what to say when a rollout blew up.

For explicit steps a mass m on a spring k with damper c needs k dt² + 2 c dt < 4 m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.layout import Layout

if TYPE_CHECKING:
    from nablasim.physics.program import Program, Segment

Floats = NDArray[np.floating[Any]]


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


class Bounds:
    """Collects what limits an explicit step. Systems add to it in `System.stiffness`."""

    def __init__(self, layout: Layout, real: str):
        count = layout.rows("particles")
        self.mass: Any = np.ones(count)
        self.held = np.zeros(count, bool)
        kind = kc.float64 if real == "float64" else kc.float32
        self.k, self.c, self.contact_k, self.contact_c = (kc.zeros(count, real=kind) for _ in range(4))
        """Of each particle. Elements add to the first two, for each end the sum of the norms of its row's blocks
        (Gershgorin). Contacts, which are not there all the time, take the maximum of the last two."""
        self.others: list[Limit] = []

    def masses(self, mass: Floats, held: NDArray[np.bool_]) -> None:
        """The masses of the particles, and which of them do not move."""
        self.mass, self.held = mass, held

    def claim(self, limit: Limit) -> None:
        """A limit that is not about particles."""
        self.others.append(limit)

    def limits(self) -> list[Limit]:
        elastic, contact = (
            np.where(self.held, np.inf, longest_step(k.numpy(), c.numpy(), self.mass))
            for k, c in ((self.k, self.c), (self.contact_k, self.contact_c))
        )
        return [
            Limit("particles", elastic, "the stiffness of its elements", "soften or coarsen the object"),
            Limit("particles", contact, "its contact (ke, kd, kf)", "soften the contact"),
            *self.others,
        ]


def longest_step(k: Floats, c: Floats, m: Floats) -> Floats:
    """The positive root of k dt² + 2 c dt - 4 m = 0, in the form that is also right for k = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((k > 0) | (c > 0), 4 * m / (c + np.sqrt(c * c + 4 * k * m)), np.inf)


def check_step(program: Program, dt: float) -> None:
    """Refuse a step beyond an estimated limit."""
    for limit in program.limits():
        least = float(limit.dt.min(initial=np.inf))
        if dt > least:
            thing, row = owner(program.layout, limit.table, int(limit.dt.argmin()))
            raise StepTooLarge(
                f"dt = {dt:g} s is too large for {thing!r}: at row {row} of its {limit.table}, {limit.cause} and its "
                f"mass allow about {least:.3g} s (k dt² + 2 c dt < 4 m). Use dt <= {0.9 * least:.2g}, or substeps="
                f"{int(np.ceil(dt / (0.9 * least)))}, or {limit.advice}",
                least,
            )


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
