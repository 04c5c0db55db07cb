"""Ten kernels over fields, one after the other, and their `.grad()` in reverse."""

import sys

import numpy as np
import taichi as ti

ti.init(arch=ti.cpu, cpu_max_num_threads=1, log_level=ti.ERROR)

N = 16
a = [ti.Vector.field(3, ti.f32, N, needs_grad=True) for _ in range(10)]
loss = ti.field(ti.f32, (), needs_grad=True)
F3 = ti.template()


@ti.func
def spring(a, b, rest):
    d = b - a
    return d.normalized() * (d.norm() - rest)


@ti.kernel
def scale(x: F3, y: F3, k: ti.f32):
    for i in range(N):
        y[i] = x[i] * k


@ti.kernel
def wave(x: F3, y: F3):
    for i in range(N):
        y[i] = ti.Vector([ti.sin(x[i][0]), ti.cos(x[i][1]), ti.exp(-x[i][2] * x[i][2])])


@ti.kernel
def pull(x: F3, y: F3):
    for i in range(N):
        y[i] = spring(x[i], x[(i + 1) % N], 0.5)


@ti.kernel
def smooth(x: F3, y: F3):
    for i in range(N):
        for j in range(N):
            d = x[j] - x[i]
            y[i] += x[j] * ti.exp(-d.dot(d))


@ti.kernel
def power(x: F3, y: F3, steps: ti.i32):
    for i in range(N):
        p = x[i]
        for _ in range(steps):
            p = p * x[i] + x[i] * 0.5
        y[i] = p


@ti.kernel
def clip(x: F3, y: F3):
    for i in range(N):
        v = x[i]
        if v.norm() > 1.0:
            v = v.normalized()
        y[i] = v


@ti.kernel
def turn(x: F3, y: F3):
    for i in range(N):
        half = 0.5 * x[i][0]
        axis = ti.Vector([0.0, 1.0, 0.0]) * ti.sin(half)
        y[i] = x[i] + 2.0 * axis.cross(axis.cross(x[i]) + ti.cos(half) * x[i])


@ti.kernel
def stretch(x: F3, y: F3):
    for i in range(N):
        A = x[i].outer_product(x[i]) + ti.Matrix.identity(ti.f32, 3)
        y[i] = A.inverse() @ x[i]


@ti.kernel
def spread(x: F3, y: F3):
    for i in range(N):
        y[(i + 3) % N] += x[i] * 0.5
        y[i] += x[i]


@ti.kernel
def energy(x: F3):
    for i in range(N):
        loss[None] += x[i].dot(x[i])


def main() -> None:
    points = np.sin(np.arange(3 * N, dtype=np.float32)).reshape(N, 3)
    a[0].from_numpy(points)
    launches = [
        (scale, a[0], a[1], 0.3), (wave, a[1], a[2]), (pull, a[2], a[3]), (smooth, a[3], a[4]), (power, a[4], a[5], 3),
        (clip, a[5], a[6]), (turn, a[6], a[7]), (stretch, a[7], a[8]), (spread, a[8], a[9]), (energy, a[9]),
    ]  # fmt: skip
    for kernel, *given in launches:
        kernel(*given)
    loss.grad[None] = 1.0
    for kernel, *given in reversed(launches):
        kernel.grad(*given)
    np.savetxt(sys.stdout, a[0].grad.to_numpy())


main()
