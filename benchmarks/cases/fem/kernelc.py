"""kernelc: two kernels a step on a tape, which then only runs again."""

import numpy as np

import kernelc as kc

from ...harness import Entrant
from . import DT, GRAVITY, STEPS, Work


@kc.kernel
def forces(x: kc.Array[kc.float3], tets: kc.Array[int, 2], inverse: kc.Array[kc.mat33], volume: kc.Array[float],
           mu: kc.Array[float], lam: kc.Array[float], f: kc.Array[kc.float3]):  # fmt: skip
    t = kc.tid()
    a, b, c, d = tets[t, 0], tets[t, 1], tets[t, 2], tets[t, 3]
    x0, B, m, l = x[a], inverse[t], mu[t], lam[t]
    e1, e2, e3 = x[b] - x0, x[c] - x0, x[d] - x0
    F = kc.mat33(e1, e2, e3) * B
    C = kc.cofactor(F)
    alpha = 1.0 + 0.75 * m / l
    P = F * (m * (1.0 - 1.0 / (kc.ddot(F, F) + 1.0))) + C * (l * (kc.determinant(F) - alpha))
    H = P * kc.transpose(B) * (-volume[t])
    f1, f2, f3 = (kc.float3(H[0, 0], H[1, 0], H[2, 0]), kc.float3(H[0, 1], H[1, 1], H[2, 1]),
                  kc.float3(H[0, 2], H[1, 2], H[2, 2]))  # fmt: skip
    kc.atomic_add(f, b, f1)
    kc.atomic_add(f, c, f2)
    kc.atomic_add(f, d, f3)
    kc.atomic_sub(f, a, f1 + f2 + f3)


@kc.kernel
def integrate(x: kc.Array[kc.float3], v: kc.Array[kc.float3], f: kc.Array[kc.float3], weight: kc.Array[float], g: float,
              dt: float, x_next: kc.Array[kc.float3], v_next: kc.Array[kc.float3]):  # fmt: skip
    p = kc.tid()
    v_new = v[p] + (f[p] * weight[p] + kc.float3(0.0, g, 0.0)) * dt
    v_next[p] = v_new
    x_next[p] = x[p] + v_new * dt


def entrants(work: Work, real: type = np.float32) -> dict[str, Entrant]:
    n, given = len(work.x), {k: a.astype(a.dtype if k == "tets" else real) for k, a in vars(work).items()}
    leaf = {k: kc.array(given[k], dtype=kind, requires_grad=True)
            for k, kind in (("x", kc.float3), ("v", kc.float3), ("mu", float), ("lam", float))}  # fmt: skip
    tets, inverse = kc.array(given["tets"]), kc.array(given["inverse"], dtype=kc.mat33)
    volume, weight = kc.array(given["volume"]), kc.array(given["weight"])
    f, seed = kc.zeros_like(leaf["x"]), kc.array(given["seed"], dtype=kc.float3)
    x = [leaf["x"], *[kc.zeros_like(leaf["x"]) for _ in range(STEPS)]]
    v = [leaf["v"], *[kc.zeros_like(leaf["v"]) for _ in range(STEPS)]]
    with kc.Tape() as tape:
        for s in range(STEPS):
            f.zero_()
            kc.launch(forces, len(tets), [x[s], tets, inverse, volume, leaf["mu"], leaf["lam"]], [f])
            kc.launch(integrate, n, [x[s], v[s], f, weight, GRAVITY, DT], [x[s + 1], v[s + 1]])

    def both() -> None:
        tape.replay()
        tape.backward(grads={x[-1]: seed}, add=False)

    def results() -> dict[str, np.ndarray]:
        return {"x": x[-1].numpy()} | {f"grad {k}": a.grad.numpy() for k, a in leaf.items()}

    return {"kernelc": Entrant({"forward": tape.replay, "forward + backward": both}, results)}
