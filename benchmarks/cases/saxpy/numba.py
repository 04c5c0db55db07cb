"""Numba: forward only, it does not differentiate."""

import numba
import numpy as np

from ...harness import Entrant
from . import A, Work


@numba.njit
def saxpy(a, x, y, out):
    for i in range(len(x)):
        out[i] = a * x[i] + y[i]


def entrants(work: Work) -> dict[str, Entrant]:
    a, out = np.float32(A), np.empty_like(work.x)
    return {"Numba": Entrant({"forward": lambda: saxpy(a, work.x, work.y, out)}, lambda: {"out": out})}
