"""Taichi: the same kernel over fields, differentiated by its `.grad()`."""

import numpy as np
import taichi as ti

from ...harness import Entrant
from . import SOFTENING, Work

ti.init(arch=ti.cpu, cpu_max_num_threads=1, log_level=ti.ERROR, offline_cache=True)


def entrants(work: Work) -> dict[str, Entrant]:
    n = len(work.x)
    x, a = (ti.Vector.field(3, ti.f32, n, needs_grad=True) for _ in range(2))
    mass = ti.field(ti.f32, n, needs_grad=True)
    x.from_numpy(work.x)
    mass.from_numpy(work.mass)

    @ti.kernel
    def attract():
        for i in range(n):
            for j in range(n):
                d = x[j] - x[i]
                r2 = d.dot(d) + SOFTENING
                a[i] += d * (mass[j] / (r2 * ti.sqrt(r2)))

    def forward() -> None:
        a.fill(0)
        attract()

    def both() -> None:
        forward()
        x.grad.fill(0)
        mass.grad.fill(0)
        a.grad.from_numpy(work.seed)
        attract.grad()

    def results() -> dict[str, np.ndarray]:
        return {"a": a.to_numpy(), "grad x": x.grad.to_numpy(), "grad mass": mass.grad.to_numpy()}

    return {"Taichi": Entrant({"forward": forward, "forward + backward": both}, results)}
