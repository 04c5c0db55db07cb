"""Taichi: two kernels a step over fields of all steps, and their `.grad()` in reverse."""

from types import SimpleNamespace

import numpy as np

from ...harness import Entrant
from ...taichi_once import THREADS, ti
from . import DT, GRAVITY, STEPS, Work


def entrants(work: Work) -> dict[str, Entrant]:
    fields = place(work)
    forces, integrate, prepare = kernels(fields, len(work.x), len(work.tets))

    def forward() -> None:
        fields.f.fill(0)
        for s in range(STEPS):
            forces(s)
            integrate(s)

    def both() -> None:
        forward()
        prepare()
        for s in reversed(range(STEPS)):
            integrate.grad(s)
            forces.grad(s)

    def results() -> dict[str, np.ndarray]:
        grads = {f"grad {k}": getattr(fields, k).grad.to_numpy() for k in ("x", "v", "mu", "lam")}
        grads |= {k: grads[k][0] for k in ("grad x", "grad v")}
        return {"x": fields.x.to_numpy()[-1]} | grads

    return {"Taichi": Entrant({"forward": forward, "forward + backward": both}, results)}


def place(work: Work) -> SimpleNamespace:
    """Positions, velocities and forces have a row for each step: what a kernel read must stay for its adjoint."""
    n, count = len(work.x), len(work.tets)
    x, v = (ti.Vector.field(3, ti.f32, (STEPS + 1, n), needs_grad=True) for _ in range(2))
    for field, first in ((x, work.x), (v, work.v)):
        field.from_numpy(np.repeat(first[None], STEPS + 1, 0))
    f = ti.Vector.field(3, ti.f32, (STEPS, n), needs_grad=True)
    given = {
        "mu": ti.field(ti.f32, count, needs_grad=True), "lam": ti.field(ti.f32, count, needs_grad=True),
        "tets": ti.Vector.field(4, ti.i32, count), "inverse": ti.Matrix.field(3, 3, ti.f32, count),
        "volume": ti.field(ti.f32, count), "weight": ti.field(ti.f32, n), "seed": ti.Vector.field(3, ti.f32, n),
    }  # fmt: skip
    for name, field in given.items():
        field.from_numpy(getattr(work, name))
    return SimpleNamespace(x=x, v=v, f=f, **given)


def kernels(w: SimpleNamespace, n: int, count: int) -> tuple:
    """Forces and integration of step s, and what the way back starts with."""
    x, v, f, mu, lam, tets, inverse, volume = w.x, w.v, w.f, w.mu, w.lam, w.tets, w.inverse, w.volume
    weight, seed = w.weight, w.seed

    @ti.kernel
    def forces(s: ti.i32):
        ti.loop_config(parallelize=THREADS)
        for t in range(count):
            a, b, c, d = tets[t][0], tets[t][1], tets[t][2], tets[t][3]
            x0, B, m, l = x[s, a], inverse[t], mu[t], lam[t]
            e1, e2, e3 = x[s, b] - x0, x[s, c] - x0, x[s, d] - x0
            # F by columns: Taichi needs forty seconds for the adjoint of the same kernel written with 3 x 3 matrices.
            F0 = e1 * B[0, 0] + e2 * B[1, 0] + e3 * B[2, 0]
            F1 = e1 * B[0, 1] + e2 * B[1, 1] + e3 * B[2, 1]
            F2 = e1 * B[0, 2] + e2 * B[1, 2] + e3 * B[2, 2]
            C0, C1, C2 = F1.cross(F2), F2.cross(F0), F0.cross(F1)
            shear = m * (1.0 - 1.0 / (F0.dot(F0) + F1.dot(F1) + F2.dot(F2) + 1.0))
            bulk = l * (F0.dot(C0) - 1.0 - 0.75 * m / l)
            P0, P1, P2 = F0 * shear + C0 * bulk, F1 * shear + C1 * bulk, F2 * shear + C2 * bulk
            f1 = (P0 * B[0, 0] + P1 * B[0, 1] + P2 * B[0, 2]) * -volume[t]
            f2 = (P0 * B[1, 0] + P1 * B[1, 1] + P2 * B[1, 2]) * -volume[t]
            f3 = (P0 * B[2, 0] + P1 * B[2, 1] + P2 * B[2, 2]) * -volume[t]
            f[s, b] += f1
            f[s, c] += f2
            f[s, d] += f3
            f[s, a] -= f1 + f2 + f3

    @ti.kernel
    def integrate(s: ti.i32):
        ti.loop_config(parallelize=THREADS)
        for p in range(n):
            v_new = v[s, p] + (f[s, p] * weight[p] + ti.Vector([0.0, GRAVITY, 0.0])) * DT
            v[s + 1, p] = v_new
            x[s + 1, p] = x[s, p] + v_new * DT

    @ti.kernel
    def prepare():
        for s, p in f:
            f.grad[s, p] = 0.0
        for s, p in x:
            x.grad[s, p] = seed[p] * (s == STEPS)
            v.grad[s, p] = 0.0
        for t in mu:
            mu.grad[t] = 0.0
            lam.grad[t] = 0.0

    return forces, integrate, prepare
