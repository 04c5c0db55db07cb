"""How one step is made of the systems' launches. An integrator records it on the tape of a segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nablasim.physics.program import Step
from nablasim.physics.systems import System


class Integrator(Protocol):
    """What `rollout(integrator=...)` takes. Equal integrators share compiled programs: they are compared and hashed."""

    explicit: bool
    """Whether the step has a stability limit, which is checked before a rollout."""

    def record(self, systems: Sequence[System], step: Step) -> None:
        """Launch, or put on the current tape, all that leads from the state of a step to the next."""


class SemiImplicit:
    """Semi-implicit Euler: v' = v + dt a(x, v), x' = x + dt v'."""

    explicit = True

    def record(self, systems: Sequence[System], step: Step) -> None:
        for system in systems:
            system.forces(step)
        for system in systems:
            system.advance(step)

    def __eq__(self, other: object) -> bool:
        return type(other) is SemiImplicit

    def __hash__(self) -> int:
        return hash(SemiImplicit)


def named(integrator: str | Integrator) -> Integrator:
    """The integrator of a name."""
    if isinstance(integrator, str):
        if integrator != "semi_implicit":
            raise ValueError(f'the integrators by name are "semi_implicit", not {integrator!r}')
        return SemiImplicit()
    if not hasattr(integrator, "record"):
        raise TypeError(f"integrator is a name or an integrator, not {type(integrator).__name__}")
    return integrator
