"""kernelc: one kernel on a tape."""

import numpy as np

import kernelc as kc

from ...harness import Entrant
from . import DT, GRAVITY, Work


@kc.kernel
def step(x: kc.Array[kc.float3], v: kc.Array[kc.float3], f: kc.Array[kc.float3], weight: kc.Array[float], g: float,
         dt: float, x_next: kc.Array[kc.float3], v_next: kc.Array[kc.float3]):  # fmt: skip
    p = kc.tid()
    v_new = v[p] + (f[p] * weight[p] + kc.float3(0.0, g, 0.0)) * dt
    v_next[p] = v_new
    x_next[p] = x[p] + v_new * dt


def entrants(work: Work) -> dict[str, Entrant]:
    x, v, f = (kc.array(a, dtype=kc.float3, requires_grad=True) for a in (work.x, work.v, work.f))
    weight = kc.array(work.weight, requires_grad=True)
    x1, v1 = kc.zeros_like(x), kc.zeros_like(v)
    seeds = {x1: kc.array(work.seed_x, dtype=kc.float3), v1: kc.array(work.seed_v, dtype=kc.float3)}
    with kc.Tape() as tape:
        kc.launch(step, len(x), [x, v, f, weight, GRAVITY, DT], [x1, v1])

    def both() -> None:
        tape.replay()
        tape.backward(grads=seeds, add=False)

    def results() -> dict[str, np.ndarray]:
        grads = {"x": x, "v": v, "f": f, "weight": weight}
        return {"x": x1.numpy(), "v": v1.numpy()} | {f"grad {k}": a.grad.numpy() for k, a in grads.items()}

    return {"kernelc": Entrant({"forward": tape.replay, "forward + backward": both}, results)}
