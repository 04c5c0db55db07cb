"""Taichi: the same kernel over fields, differentiated by its `.grad()`.

Each body's own position is read from a copy: on a single thread, the adjoint takes x[i] and x[j] for different places.
"""

import numpy as np

from ...harness import Entrant
from ...taichi_once import THREADS, ti
from . import SOFTENING, Work


def entrants(work: Work) -> dict[str, Entrant]:
    n = len(work.x)
    x, here, a = (ti.Vector.field(3, ti.f32, n, needs_grad=True) for _ in range(3))
    mass, seed = ti.field(ti.f32, n, needs_grad=True), ti.Vector.field(3, ti.f32, n)
    for field, data in ((x, work.x), (mass, work.mass), (seed, work.seed)):
        field.from_numpy(data)

    @ti.kernel
    def begin():
        for i in range(n):
            here[i] = x[i]
            a[i] = 0.0

    @ti.kernel
    def attract():
        ti.loop_config(parallelize=THREADS)
        for i in range(n):
            for j in range(n):
                d = x[j] - here[i]
                r2 = d.dot(d) + SOFTENING
                a[i] += d * (mass[j] / (r2 * ti.sqrt(r2)))

    @ti.kernel
    def prepare():
        for i in range(n):
            x.grad[i] = 0.0
            mass.grad[i] = 0.0
            a.grad[i] = seed[i]

    def forward() -> None:
        begin()
        attract()

    def both() -> None:
        forward()
        prepare()
        attract.grad()
        begin.grad()  # adds what came to `here`, and clears it

    def results() -> dict[str, np.ndarray]:
        return {"a": a.to_numpy(), "grad x": x.grad.to_numpy(), "grad mass": mass.grad.to_numpy()}

    return {"Taichi": Entrant({"forward": forward, "forward + backward": both}, results)}
