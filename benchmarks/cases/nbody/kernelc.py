"""kernelc: one kernel, its loop differentiated in reverse."""

import numpy as np

import kernelc as kc

from ...harness import Entrant
from . import SOFTENING, Work


@kc.kernel
def attract(x: kc.Array[kc.float3], mass: kc.Array[float], softening: float, a: kc.Array[kc.float3]):
    i = kc.tid()
    here = x[i]
    pull = kc.float3(0.0, 0.0, 0.0)
    for j in range(x.shape[0]):
        d = x[j] - here
        r2 = kc.dot(d, d) + softening
        pull += d * (mass[j] / (r2 * kc.sqrt(r2)))
    a[i] = pull


def entrants(work: Work, real: type = np.float32) -> dict[str, Entrant]:
    x = kc.array(work.x.astype(real), dtype=kc.float3, requires_grad=True)
    mass = kc.array(work.mass.astype(real), requires_grad=True)
    a, seed = kc.zeros_like(x), kc.array(work.seed.astype(real), dtype=kc.float3)
    with kc.Tape() as tape:
        kc.launch(attract, len(x), [x, mass, SOFTENING], [a])

    def both() -> None:
        tape.replay()
        tape.backward(grads={a: seed}, add=False)

    def results() -> dict[str, np.ndarray]:
        return {"a": a.numpy(), "grad x": x.grad.numpy(), "grad mass": mass.grad.numpy()}

    return {"kernelc": Entrant({"forward": tape.replay, "forward + backward": both}, results)}
