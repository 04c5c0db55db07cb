"""Warp: the same kernel."""

import numpy as np
import warp as wp

from ...harness import Entrant
from . import A, Work

wp.config.quiet = True


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = a * x[i] + y[i]


def entrants(work: Work) -> dict[str, Entrant]:
    x, y = (wp.array(a, device="cpu", requires_grad=True) for a in (work.x, work.y))
    out, seed = wp.zeros_like(x), wp.array(work.seed, device="cpu")

    def forward() -> None:
        wp.launch(saxpy, len(work.x), [A, x, y], [out], device="cpu")

    def both() -> None:
        tape = wp.Tape()
        with tape:
            forward()
        x.grad.zero_()
        y.grad.zero_()
        tape.backward(grads={out: seed})

    def results() -> dict[str, np.ndarray]:
        return {"out": out.numpy(), "grad x": x.grad.numpy(), "grad y": y.grad.numpy()}

    return {"Warp": Entrant({"forward": forward, "forward + backward": both}, results)}
