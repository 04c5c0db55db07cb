"""Numba: a compiled function called with NumPy arrays."""

import numba
import numpy as np

from ...harness import Entrant
from . import Work


@numba.njit
def add(a, b, c, d, e, f, g, out):
    for i in range(len(out)):
        out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i]


def entrants(work: Work) -> dict[str, Entrant]:
    inputs, out = [a.copy() for a in work.arrays], np.zeros_like(work.arrays[0])
    return {"Numba": Entrant({"launch": lambda: add(*inputs, out)}, lambda: {"sum": out})}
