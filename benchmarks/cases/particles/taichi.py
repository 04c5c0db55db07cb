"""Taichi: the same kernel over fields, differentiated by its `.grad()`."""

import numpy as np

from ...harness import Entrant
from ...taichi_once import THREADS, ti
from . import DT, GRAVITY, Work


def entrants(work: Work) -> dict[str, Entrant]:
    n = len(work.x)
    x, v, f, x1, v1 = (ti.Vector.field(3, ti.f32, n, needs_grad=True) for _ in range(5))
    seed_x, seed_v = (ti.Vector.field(3, ti.f32, n) for _ in range(2))
    weight = ti.field(ti.f32, n, needs_grad=True)
    for field, data in zip((x, v, f, weight, seed_x, seed_v), vars(work).values()):
        field.from_numpy(data)

    @ti.kernel
    def step():
        ti.loop_config(parallelize=THREADS)
        for p in range(n):
            v_new = v[p] + (f[p] * weight[p] + ti.Vector([0.0, GRAVITY, 0.0])) * DT
            v1[p] = v_new
            x1[p] = x[p] + v_new * DT

    @ti.kernel
    def prepare():  # the way back adds to the leaves, and clears what it has read
        for p in range(n):
            for leaf in ti.static((x, v, f, weight)):
                leaf.grad[p] = 0.0
            x1.grad[p] = seed_x[p]
            v1.grad[p] = seed_v[p]

    def both() -> None:
        step()
        prepare()
        step.grad()

    def results() -> dict[str, np.ndarray]:
        grads = {"x": x, "v": v, "f": f, "weight": weight}
        return {"x": x1.to_numpy(), "v": v1.to_numpy()} | {f"grad {k}": a.grad.to_numpy() for k, a in grads.items()}

    return {"Taichi": Entrant({"forward": step, "forward + backward": both}, results)}
