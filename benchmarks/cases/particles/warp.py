"""Warp: the same kernel."""

import numpy as np
import warp as wp

from ...harness import Entrant
from . import DT, GRAVITY, Work

wp.config.quiet = True


@wp.kernel
def step(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3),
         weight: wp.array(dtype=float), g: float, dt: float, x_next: wp.array(dtype=wp.vec3),
         v_next: wp.array(dtype=wp.vec3)):  # fmt: skip
    p = wp.tid()
    v_new = v[p] + (f[p] * weight[p] + wp.vec3(0.0, g, 0.0)) * dt
    v_next[p] = v_new
    x_next[p] = x[p] + v_new * dt


def entrants(work: Work) -> dict[str, Entrant]:
    x, v, f = (wp.array(a, dtype=wp.vec3, device="cpu", requires_grad=True) for a in (work.x, work.v, work.f))
    weight = wp.array(work.weight, dtype=float, device="cpu", requires_grad=True)
    x1, v1 = wp.zeros_like(x), wp.zeros_like(v)
    seeds = {a: wp.array(g, dtype=wp.vec3, device="cpu") for a, g in ((x1, work.seed_x), (v1, work.seed_v))}

    def forward() -> None:
        wp.launch(step, len(work.x), [x, v, f, weight, GRAVITY, DT], [x1, v1], device="cpu")

    def both() -> None:
        tape = wp.Tape()
        with tape:
            forward()
        for array in (x, v, f, weight):
            array.grad.zero_()
        tape.backward(grads=seeds)

    def results() -> dict[str, np.ndarray]:
        grads = {"x": x, "v": v, "f": f, "weight": weight}
        return {"x": x1.numpy(), "v": v1.numpy()} | {f"grad {k}": a.grad.numpy() for k, a in grads.items()}

    return {"Warp": Entrant({"forward": forward, "forward + backward": both}, results)}
