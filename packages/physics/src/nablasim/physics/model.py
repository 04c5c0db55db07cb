"""The description of a mass-spring system: constant during a rollout, every quantity an array.

To optimise a quantity, replace its array by one that requires a gradient:
`model.replace(ke=kc.array(ke, requires_grad=True))`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from nablasim.physics.state import Array


@dataclass(frozen=True, eq=False)
class SpringModel:
    """n particles and m damped springs, in SI units."""

    mass: Array
    """(n) kg."""
    free: Array
    """(n) 1 where the particle moves, 0 where it is held in place."""
    pairs: Array
    """(m, 2) the two particles of each spring."""
    rest: Array
    """(m) m."""
    ke: Array
    """(m) stiffness, N/m."""
    kd: Array
    """(m) damping, N s/m."""
    gravity: Array
    """(1) of float3, m/s²."""

    def replace(self, **arrays: Any) -> SpringModel:
        """The same model with some arrays exchanged."""
        return dataclasses.replace(self, **arrays)
