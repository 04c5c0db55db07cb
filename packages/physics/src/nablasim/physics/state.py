"""What changes during a rollout."""

from __future__ import annotations

from dataclasses import dataclass

import kernelc as kc


@dataclass(frozen=True, eq=False)
class State:
    """Positions (m) and velocities (m/s) of the particles at one time: two arrays of n float3."""

    x: kc.Array
    v: kc.Array
