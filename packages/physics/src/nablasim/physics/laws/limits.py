"""How long an explicit step may be: what each law says of its rows, and sums over the elements of each particle.

A mass m on a spring k with damper c needs k dt² + 2 c dt < 4 m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.laws.deformable import particles_kernels as kernels
from nablasim.physics.model import Arrays

if TYPE_CHECKING:
    from nablasim.physics.laws.system import System

Floats = NDArray[np.floating[Any]]


CONTACT_SAFETY = 0.5
"""Up to here, ω dt < 1, a particle leaves a contact about as fast as it came; at the limit, ω dt = 2, much faster."""


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
        self.elastic = kernels.Bounds(k=self.k, c=self.c)
        self.contact = kernels.Bounds(k=self.contact_k, c=self.contact_c)
        """The same as kernels take them."""
        self._elastic, self._contact = kc.zeros(count, real=real), kc.zeros(count, real=real)
        with kc.Tape() as self._tape:
            for a in (self.k, self.c, self.contact_k, self.contact_c):
                a.zero_()
            for system in systems:
                system.stiffness(arrays, self)
            if count:
                weight = arrays[arrays.layout.columns["particles.weight"]]
                kc.launch(kernels.step_rates, count, [self.elastic, weight], [self._elastic])
                kc.launch(kernels.step_rates, count, [self.contact, weight], [self._contact])

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
