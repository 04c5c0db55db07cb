"""Numba: two loops a step, forward only, it does not differentiate."""

import numba
import numpy as np

from ...harness import Entrant
from . import DT, GRAVITY, STEPS, Work

inline = numba.njit(fastmath=True, inline="always")


@inline
def edge(x, a, b):
    return x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]


@inline
def combine(a, b, c, r, s, t):
    return a[0] * r + b[0] * s + c[0] * t, a[1] * r + b[1] * s + c[1] * t, a[2] * r + b[2] * s + c[2] * t


@inline
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inline
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def stress(F, C, shear, bulk):
    return F[0] * shear + C[0] * bulk, F[1] * shear + C[1] * bulk, F[2] * shear + C[2] * bulk


@numba.njit(fastmath=True, error_model="numpy")
def forces(x, tets, inverse, volume, mu, lam, f):
    one = np.float32(1.0)
    f[:] = 0
    for t in range(len(tets)):
        a, B = tets[t, 0], inverse[t]
        e1, e2, e3 = edge(x, a, tets[t, 1]), edge(x, a, tets[t, 2]), edge(x, a, tets[t, 3])
        F0 = combine(e1, e2, e3, B[0, 0], B[1, 0], B[2, 0])
        F1 = combine(e1, e2, e3, B[0, 1], B[1, 1], B[2, 1])
        F2 = combine(e1, e2, e3, B[0, 2], B[1, 2], B[2, 2])
        C0, C1, C2 = cross(F1, F2), cross(F2, F0), cross(F0, F1)
        shear = -volume[t] * mu[t] * (one - one / (dot(F0, F0) + dot(F1, F1) + dot(F2, F2) + one))
        bulk = -volume[t] * (lam[t] * (dot(F0, C0) - one) - np.float32(0.75) * mu[t])
        P0, P1, P2 = stress(F0, C0, shear, bulk), stress(F1, C1, shear, bulk), stress(F2, C2, shear, bulk)
        for k in range(3):
            b, h = tets[t, k + 1], combine(P0, P1, P2, B[k, 0], B[k, 1], B[k, 2])
            for i in range(3):
                f[b, i] += h[i]
                f[a, i] -= h[i]


@numba.njit(fastmath=True, error_model="numpy")
def rollout(x, v, tets, inverse, volume, mu, lam, weight, gravity, dt, steps):
    x, v, f = x.copy(), v.copy(), np.empty_like(x)
    for _ in range(steps):
        forces(x, tets, inverse, volume, mu, lam, f)
        for p in range(len(x)):
            for k in range(3):
                v[p, k] += (f[p, k] * weight[p] + (gravity if k == 1 else np.float32(0.0))) * dt
                x[p, k] += v[p, k] * dt
    return x


def entrants(work: Work) -> dict[str, Entrant]:
    given, found = [a for k, a in vars(work).items() if k != "seed"], {}

    def forward() -> None:
        found["x"] = rollout(*given, np.float32(GRAVITY), np.float32(DT), STEPS)

    return {"Numba": Entrant({"forward": forward}, lambda: found)}
