"""Losses along a line: how many minima there are, and from how far one comes down to the right one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Line = NDArray[np.float64]
SMALL = 1e-3
"""Of the largest loss of a line: what rises or falls by less is not a hill."""


@dataclass(frozen=True)
class Valleys:
    """`minima` inside the line, and the stretch (low, high) from which every step down leads to the truth."""

    minima: int
    low: float
    high: float


def valleys(values: Line, losses: Line, truth: float) -> Valleys:
    """Of a line of losses at growing values; what failed (not finite) is a wall."""
    wall = float(np.nanmax(np.where(np.isfinite(losses), losses, np.nan)))
    y = np.where(np.isfinite(losses), losses, wall)
    small = SMALL * wall
    bottom = _bottom(y, int(np.argmin(np.abs(values - truth))))
    left, right = _reach(y[: bottom + 1][::-1], small), _reach(y[bottom:], small)
    return Valleys(count_minima(y, small), float(values[bottom - left]), float(values[bottom + right]))


def count_minima(y: Line, small: float) -> int:
    """Minima that a rise of more than `small` parts from each other. One at an end counts, too: a search ends there."""
    count, falling, extreme = 0, True, y[0]
    for value in y[1:]:
        if falling:
            extreme = min(extreme, value)
            if value > extreme + small:
                count, falling, extreme = count + 1, False, value
        else:
            extreme = max(extreme, value)
            if value < extreme - small:
                falling, extreme = True, value
    return count + int(falling)


def _bottom(y: Line, k: int) -> int:
    """Down from a point to the nearest minimum."""
    while True:
        near = [j for j in (k - 1, k + 1) if 0 <= j < len(y) and y[j] < y[k]]
        if not near:
            return k
        k = min(near, key=lambda j: y[j])


def _reach(y: Line, small: float) -> int:
    """How far the loss rises from the first point on: to its top, not onto a plateau or down behind it."""
    top = np.maximum.accumulate(y)
    fallen = np.flatnonzero(y < top - small)
    end = int(fallen[0]) if len(fallen) else len(y)
    return int(np.flatnonzero(y[:end] >= top[end - 1] - small)[0])
