"""Numba: the double loop, forward only, it does not differentiate.

It is written so that LLVM finds lanes: columns that lie together, and division that does not check for zero.
"""

import numba
import numpy as np

from ...harness import Entrant
from . import SOFTENING, Work


@numba.njit(fastmath=True, error_model="numpy")
def attract(x, mass, softening, a):
    x0, x1, x2 = x[:, 0].copy(), x[:, 1].copy(), x[:, 2].copy()
    for i in range(len(x)):
        a0 = a1 = a2 = np.float32(0.0)
        for j in range(len(x)):
            d0, d1, d2 = x0[j] - x0[i], x1[j] - x1[i], x2[j] - x2[i]
            r2 = d0 * d0 + d1 * d1 + d2 * d2 + softening
            w = mass[j] / (r2 * np.sqrt(r2))
            a0 += d0 * w
            a1 += d1 * w
            a2 += d2 * w
        a[i, 0], a[i, 1], a[i, 2] = a0, a1, a2


def entrants(work: Work) -> dict[str, Entrant]:
    a, softening = np.empty_like(work.x), np.float32(SOFTENING)
    return {"Numba": Entrant({"forward": lambda: attract(work.x, work.mass, softening, a)}, lambda: {"a": a})}
