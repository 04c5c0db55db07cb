"""Warp: the same two kernels, launch by launch on a tape, and captured as a graph."""

import numpy as np
import warp as wp

from ...harness import Entrant
from . import DT, GRAVITY, STEPS, Work

wp.config.quiet = True


@wp.kernel
def forces(x: wp.array(dtype=wp.vec3), tets: wp.array2d(dtype=int), inverse: wp.array(dtype=wp.mat33),
           volume: wp.array(dtype=float), mu: wp.array(dtype=float), lam: wp.array(dtype=float),
           f: wp.array(dtype=wp.vec3)):  # fmt: skip
    t = wp.tid()
    a = tets[t, 0]
    b = tets[t, 1]
    c = tets[t, 2]
    d = tets[t, 3]
    x0 = x[a]
    B = inverse[t]
    m = mu[t]
    l = lam[t]
    F = wp.matrix_from_cols(x[b] - x0, x[c] - x0, x[d] - x0) * B
    C = wp.matrix_from_cols(
        wp.cross(F * wp.vec3(0.0, 1.0, 0.0), F * wp.vec3(0.0, 0.0, 1.0)),
        wp.cross(F * wp.vec3(0.0, 0.0, 1.0), F * wp.vec3(1.0, 0.0, 0.0)),
        wp.cross(F * wp.vec3(1.0, 0.0, 0.0), F * wp.vec3(0.0, 1.0, 0.0)),
    )
    alpha = 1.0 + 0.75 * m / l
    P = F * (m * (1.0 - 1.0 / (wp.ddot(F, F) + 1.0))) + C * (l * (wp.determinant(F) - alpha))
    H = P * wp.transpose(B) * (-volume[t])
    f1 = wp.vec3(H[0, 0], H[1, 0], H[2, 0])
    f2 = wp.vec3(H[0, 1], H[1, 1], H[2, 1])
    f3 = wp.vec3(H[0, 2], H[1, 2], H[2, 2])
    wp.atomic_add(f, b, f1)
    wp.atomic_add(f, c, f2)
    wp.atomic_add(f, d, f3)
    wp.atomic_sub(f, a, f1 + f2 + f3)


@wp.kernel
def integrate(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3),
              weight: wp.array(dtype=float), g: float, dt: float, x_next: wp.array(dtype=wp.vec3),
              v_next: wp.array(dtype=wp.vec3)):  # fmt: skip
    p = wp.tid()
    v_new = v[p] + (f[p] * weight[p] + wp.vec3(0.0, g, 0.0)) * dt
    v_next[p] = v_new
    x_next[p] = x[p] + v_new * dt


class Rollout:
    def __init__(self, work: Work):
        def array(data: np.ndarray, dtype: type, grad: bool = False) -> wp.array:
            return wp.array(data, dtype=dtype, device="cpu", requires_grad=grad)

        self.n, self.count = len(work.x), len(work.tets)
        self.leaf = {"x": array(work.x, wp.vec3, True), "v": array(work.v, wp.vec3, True),
                     "mu": array(work.mu, float, True), "lam": array(work.lam, float, True)}  # fmt: skip
        self.tets, self.inverse = array(work.tets, int), array(work.inverse, wp.mat33)
        self.volume, self.weight = array(work.volume, float), array(work.weight, float)
        self.seed = array(work.seed, wp.vec3)
        self.x = [self.leaf["x"], *[wp.zeros_like(self.leaf["x"]) for _ in range(STEPS)]]
        self.v = [self.leaf["v"], *[wp.zeros_like(self.leaf["v"]) for _ in range(STEPS)]]
        self.f = [wp.zeros_like(self.leaf["x"]) for _ in range(STEPS)]

    def forward(self) -> None:
        for s in range(STEPS):
            self.f[s].zero_()
            wp.launch(forces, self.count, [self.x[s], self.tets, self.inverse, self.volume, self.leaf["mu"],
                      self.leaf["lam"]], [self.f[s]], device="cpu")  # fmt: skip
            wp.launch(integrate, self.n, [self.x[s], self.v[s], self.f[s], self.weight, GRAVITY, DT],
                      [self.x[s + 1], self.v[s + 1]], device="cpu")  # fmt: skip

    def both(self) -> None:
        tape = wp.Tape()
        with tape:
            self.forward()
        for a in (*self.x, *self.v, *self.f, self.leaf["mu"], self.leaf["lam"]):
            a.grad.zero_()  # tape.zero() knows the arrays only after backward()
        tape.backward(grads={self.x[-1]: self.seed})

    def results(self) -> dict[str, np.ndarray]:
        return {"x": self.x[-1].numpy()} | {f"grad {k}": a.grad.numpy() for k, a in self.leaf.items()}


def entrants(work: Work) -> dict[str, Entrant]:
    plain, graph = Rollout(work), Rollout(work)
    graph.both()
    captured = {}
    for name, run in (("forward", graph.forward), ("forward + backward", graph.both)):
        with wp.ScopedCapture(device="cpu") as capture:
            run()
        captured[name] = lambda graph=capture.graph: wp.capture_launch(graph)
    return {
        "Warp": Entrant({"forward": plain.forward, "forward + backward": plain.both}, plain.results),
        "Warp graph": Entrant(captured, graph.results),
    }
