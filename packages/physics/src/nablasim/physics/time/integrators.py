"""How one step is made of the systems' launches. An integrator records it on the tape of a segment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from nablasim.physics.laws import Bodies, Particles, System
from nablasim.physics.model import Step
from nablasim.physics.time.solvers.backward_euler import ImplicitStep, refuse_hard
from nablasim.physics.time.solvers.moving_bodies import any_free


class Integrator(Protocol):
    """What `rollout(integrator=...)` takes. Equal integrators share compiled programs: they are compared and hashed."""

    @property
    def explicit(self) -> bool:
        """Whether the step has a stability limit, which is checked before a rollout."""

    def record(self, systems: Sequence[System], step: Step) -> None:
        """Launch, or put on the current tape, all that leads from the state of a step to the next."""


class SemiImplicit:
    """Semi-implicit Euler: v' = v + dt a(x, v), x' = x + dt v'."""

    explicit = True

    def record(self, systems: Sequence[System], step: Step) -> None:
        for system in systems:
            system.place(step)
        for system in systems:
            system.forces(step)
        for system in systems:
            system.advance(step)
        for system in systems:
            system.watch(step)

    def __eq__(self, other: object) -> bool:
        return type(other) is SemiImplicit

    def __hash__(self) -> int:
        return hash(SemiImplicit)


@dataclass(frozen=True)
class BackwardEuler:
    """Backward Euler: x' = x + dt v', v' = v + dt a(x', v'), solved by Newton's method. No step is too large for it.

    It takes energy out of fast motion, the more the longer the step, and never adds any. The gradient is that of the
    solution, by the implicit function theorem, whatever the way to it.

    tol: residual at which a solution is accepted, compared with the largest momentum in play (or rounding, if that is
        larger). The linear equations of the gradient are held to it as well; `trajectory.solves` reports both.
    iterations: of Newton's method, at most; a step that needs more raises `NotConverged`.

    For particles (springs, soft solids, cloth), rigid bodies, and what acts on them. Bodies turn with the angular
    velocity of the end of the step; their angular momentum is kept, the gyroscopic term included.
    """

    tol: float = 1e-9
    iterations: int = 50
    explicit: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.tol < 1:
            raise ValueError(f"BackwardEuler: tol must lie between 0 and 1, and is {self.tol}")
        if not isinstance(self.iterations, int) or self.iterations < 1:
            raise ValueError(f"BackwardEuler: iterations is a whole number from 1 on, not {self.iterations!r}")

    def record(self, systems: Sequence[System], step: Step) -> None:
        refuse_hard(step)
        if step.rows("link_bodies"):
            raise ValueError('robots touch bodies, particles, each other and themselves with '
                             'integrator="semi_implicit" only: add_robot(..., self_contact=False) leaves out the last')
        free = any_free(step)
        for system in systems:
            if not isinstance(system, (Particles, Bodies) if free else Particles):
                system.advance(step)  # What no force moves: driven bodies.
        if step.rows("particles") or free:
            ImplicitStep(systems, step, self.tol, self.iterations).record()
        for system in systems:
            system.watch(step)


NAMES: dict[str, Callable[[], Integrator]] = {"semi_implicit": SemiImplicit, "backward_euler": BackwardEuler}


def named(integrator: str | Integrator) -> Integrator:
    """The integrator of a name."""
    if isinstance(integrator, str):
        if integrator not in NAMES:
            raise ValueError(f'the integrators by name are "semi_implicit" and "backward_euler", not {integrator!r}')
        return NAMES[integrator]()
    if not hasattr(integrator, "record"):
        raise TypeError(f"integrator is a name or an integrator, not {type(integrator).__name__}")
    return integrator
