"""Numba: boxes of faces, as by hand; forward only, it does not differentiate."""

import numba
import numpy as np

from ...harness import Entrant
from . import DISTANCE, HALF_HEIGHT, LIMIT, SIGMA, Work

compiled = numba.njit(fastmath=True, error_model="numpy")
SCALARS = np.array([SIGMA, LIMIT, DISTANCE, HALF_HEIGHT], np.float32)


@compiled
def edge(ax, ay, bx, by, px, py):
    """The squared distance from an edge, and on which side of it the point lies."""
    ex, ey, qx, qy = bx - ax, by - ay, px - ax, py - ay
    along = min(max((qx * ex + qy * ey) / (ex * ex + ey * ey), np.float32(0)), np.float32(1))
    dx, dy = qx - along * ex, qy - along * ey
    return dx * dx + dy * dy, ex * qy - ey * qx


@compiled
def draw(vertices, faces, image, scalars):
    sigma, limit, distance, half_height = scalars
    n, one, reach = len(image), np.float32(1), np.sqrt(limit)
    size = np.float32(n)
    depth = (distance - vertices[:, 2]) * half_height
    x, y = vertices[:, 0] / depth, vertices[:, 1] / depth
    image[:] = 1
    for a, b, c in faces:
        x0, x1 = min(x[a], x[b], x[c]) - reach, max(x[a], x[b], x[c]) + reach
        y0, y1 = min(y[a], y[b], y[c]) - reach, max(y[a], y[b], y[c]) + reach
        j0, j1 = max(0, int(np.ceil((x0 * n + n - 1) / 2))), min(n - 1, int(np.floor((x1 * n + n - 1) / 2)))
        i0, i1 = max(0, int(np.ceil((n - 1 - y1 * n) / 2))), min(n - 1, int(np.floor((n - 1 - y0 * n) / 2)))
        for i in range(i0, i1 + 1):
            for j in range(j0, j1 + 1):
                px, py = np.float32(2 * j + 1 - n) / size, np.float32(n - 1 - 2 * i) / size
                d0, s0 = edge(x[a], y[a], x[b], y[b], px, py)
                d1, s1 = edge(x[b], y[b], x[c], y[c], px, py)
                d2, s2 = edge(x[c], y[c], x[a], y[a], px, py)
                d = min(d0, d1, d2)
                inside = (s0 > 0 and s1 > 0 and s2 > 0) or (s0 < 0 and s1 < 0 and s2 < 0)
                if inside or d < limit:
                    image[i, j] *= one / (one + np.exp((d if inside else -d) / sigma))
    image[:] = one - image


def entrants(work: Work) -> dict[str, Entrant]:
    image = np.empty((work.size, work.size), np.float32)
    return {"Numba boxes": Entrant({"forward": lambda: draw(work.vertices, work.faces, image, SCALARS)},
                                   lambda: {"image": image})}  # fmt: skip
