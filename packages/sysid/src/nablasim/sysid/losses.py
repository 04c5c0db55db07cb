"""Losses on the tape: how far a simulation is from what was seen."""

from __future__ import annotations

from typing import Any

import kernelc as kc
from nablasim.sysid.kernels import squared_distance


def add_squared_distance(loss: Any, x: Any, *, marks: Any, seen: Any, weight: float) -> None:
    """Add the squared distance of the tracked particles `marks` to where they were `seen`, times weight, to loss[0]."""
    kc.launch(squared_distance, dim=marks.shape[0], inputs=[x, marks, seen, weight], outputs=[loss])
