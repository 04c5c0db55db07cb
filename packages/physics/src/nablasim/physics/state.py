"""What changes during a rollout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Array = Any
"""An array of kernelc, as `kc.array` and `kc.zeros` make it."""


@dataclass(frozen=True, eq=False)
class State:
    """Positions (m) and velocities (m/s) of the particles at one time: two arrays of n float3."""

    x: Array
    v: Array
