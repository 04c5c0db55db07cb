"""Numba: forward only, it does not differentiate."""

import numba
import numpy as np

from ...harness import Entrant
from . import DT, GRAVITY, Work


@numba.njit(fastmath=True)
def step(x, v, f, weight, g, dt, x_next, v_next):
    for p in range(len(x)):
        for k in range(3):
            v_new = v[p, k] + (f[p, k] * weight[p] + (g if k == 1 else np.float32(0.0))) * dt
            v_next[p, k] = v_new
            x_next[p, k] = x[p, k] + v_new * dt


def entrants(work: Work) -> dict[str, Entrant]:
    x1, v1 = np.empty_like(work.x), np.empty_like(work.v)
    numbers = np.float32(GRAVITY), np.float32(DT)
    return {"Numba": Entrant({"forward": lambda: step(work.x, work.v, work.f, work.weight, *numbers, x1, v1)},
                             lambda: {"x": x1, "v": v1})}  # fmt: skip
