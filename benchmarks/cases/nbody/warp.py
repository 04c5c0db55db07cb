"""Warp: the same kernel, launched and captured."""

import numpy as np
import warp as wp

from ...harness import Entrant
from . import SOFTENING, Work

wp.config.quiet = True


@wp.kernel
def attract(x: wp.array(dtype=wp.vec3), mass: wp.array(dtype=float), softening: float, a: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    here = x[i]
    pull = wp.vec3(0.0, 0.0, 0.0)
    for j in range(x.shape[0]):
        d = x[j] - here
        r2 = wp.dot(d, d) + softening
        pull += d * (mass[j] / (r2 * wp.sqrt(r2)))
    a[i] = pull


def entrants(work: Work) -> dict[str, Entrant]:
    x = wp.array(work.x, dtype=wp.vec3, device="cpu", requires_grad=True)
    mass = wp.array(work.mass, dtype=float, device="cpu", requires_grad=True)
    a, seed = wp.zeros_like(x), wp.array(work.seed, dtype=wp.vec3, device="cpu")

    def forward() -> None:
        wp.launch(attract, len(work.x), [x, mass, SOFTENING], [a], device="cpu")

    def both() -> None:
        tape = wp.Tape()
        with tape:
            forward()
        for array in (x, mass, a):
            array.grad.zero_()
        tape.backward(grads={a: seed})

    def results() -> dict[str, np.ndarray]:
        return {"a": a.numpy(), "grad x": x.grad.numpy(), "grad mass": mass.grad.numpy()}

    return {"Warp": Entrant({"forward": forward, "forward + backward": both}, results)}
