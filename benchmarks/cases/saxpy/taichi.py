"""Taichi: a kernel over fields, differentiated by its `.grad()`."""

import numpy as np

from ...harness import Entrant
from ...taichi_once import THREADS, ti
from . import A, Work


def entrants(work: Work) -> dict[str, Entrant]:
    n = len(work.x)
    x, y, out = (ti.field(ti.f32, n, needs_grad=True) for _ in range(3))
    seed = ti.field(ti.f32, n)
    for field, data in ((x, work.x), (y, work.y), (seed, work.seed)):
        field.from_numpy(data)

    @ti.kernel
    def saxpy():
        ti.loop_config(parallelize=THREADS)
        for i in range(n):
            out[i] = A * x[i] + y[i]

    @ti.kernel
    def prepare():  # the way back adds to the leaves, and clears what it has read
        for i in range(n):
            x.grad[i] = 0.0
            y.grad[i] = 0.0
            out.grad[i] = seed[i]

    def both() -> None:
        saxpy()
        prepare()
        saxpy.grad()

    def results() -> dict[str, np.ndarray]:
        return {"out": out.to_numpy(), "grad x": x.grad.to_numpy(), "grad y": y.grad.to_numpy()}

    return {"Taichi": Entrant({"forward": saxpy, "forward + backward": both}, results)}
