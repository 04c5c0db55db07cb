"""The points of a hull that stand out the most: meshes have thousands, and few of them say what it touches."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

Floats = NDArray[np.float64]
WAYS = np.array([way for way in product((-1.0, 0.0, 1.0), repeat=3) if any(way)])
"""The first corners are the outermost these ways: those of what is nearly a box."""
CLOSE = 0.002
"""How far, of a mesh's size, what is left out may stand out of a hull."""


def outermost(points: Floats, most: int) -> Floats:
    """At most so many of the corners of a hull, chosen one by one: always the one farthest outside of the others."""
    if len(points) <= most:
        return points
    middle, size = points.mean(axis=0), float(np.linalg.norm(np.ptp(points, axis=0)))
    own = np.linalg.svd(points - middle, full_matrices=False)[2]
    chosen = list(dict.fromkeys(np.argmax(points @ np.concatenate([own, -own, WAYS]).T, axis=0).tolist()))[:most]
    while len(chosen) < most:
        try:
            sides = ConvexHull(points[chosen]).equations
        except QhullError:  # They lie in one plane: with the one farthest from it they do not.
            normal = np.linalg.svd(points[chosen] - points[chosen].mean(axis=0), full_matrices=False)[2][2]
            sides = np.array([[*s * normal, -s * normal @ points[chosen[0]]] for s in (1.0, -1.0)])
        out = (points @ sides[:, :3].T + sides[:, 3]).max(axis=1)
        if out.max() <= CLOSE * size:
            break
        chosen.append(int(np.argmax(out)))
    return points[chosen]
