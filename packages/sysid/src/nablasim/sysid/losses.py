"""Losses on the tape: how far a simulation is from what was seen."""

from __future__ import annotations

import kernelc as kc
from nablasim.sysid.kernels import squared_distance


def add_squared_distance(loss: kc.Array, x: kc.Array, *, marks: kc.Array, seen: kc.Array, weight: float) -> None:
    """Add the squared distance of the tracked particles `marks` to where they were `seen`, times weight, to loss[0]."""
    kc.launch(squared_distance, dim=marks.shape[0], inputs=[x, marks, seen, weight], outputs=[loss])
