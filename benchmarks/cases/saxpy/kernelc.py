"""kernelc: one kernel on a tape."""

import numpy as np

import kernelc as kc

from ...harness import Entrant
from . import A, Work


@kc.kernel
def saxpy(a: float, x: kc.Array[float], y: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = a * x[i] + y[i]


def entrants(work: Work) -> dict[str, Entrant]:
    x, y = kc.array(work.x, requires_grad=True), kc.array(work.y, requires_grad=True)
    out, seed = kc.zeros_like(x), kc.array(work.seed)
    with kc.Tape() as tape:
        kc.launch(saxpy, len(x), [A, x, y], [out])

    def both() -> None:
        tape.replay()
        tape.backward(grads={out: seed}, add=False)

    def results() -> dict[str, np.ndarray]:
        return {"out": out.numpy(), "grad x": x.grad.numpy(), "grad y": y.grad.numpy()}

    return {"kernelc": Entrant({"forward": tape.replay, "forward + backward": both}, results)}
