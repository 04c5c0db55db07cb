"""Ten kernels, one after the other on a tape, and the way back."""

import sys

import numpy as np
import warp as wp

wp.config.quiet = True

F = wp.array(dtype=float)
F3 = wp.array(dtype=wp.vec3)


@wp.func
def spring(a: wp.vec3, b: wp.vec3, rest: float) -> wp.vec3:
    d = b - a
    return wp.normalize(d) * (wp.length(d) - rest)


@wp.kernel
def scale(x: F3, k: float, y: F3):
    i = wp.tid()
    y[i] = x[i] * k


@wp.kernel
def wave(x: F3, y: F3):
    i = wp.tid()
    y[i] = wp.vec3(wp.sin(x[i][0]), wp.cos(x[i][1]), wp.exp(-x[i][2] * x[i][2]))


@wp.kernel
def pull(x: F3, y: F3):
    i = wp.tid()
    y[i] = spring(x[i], x[(i + 1) % x.shape[0]], 0.5)


@wp.kernel
def smooth(x: F3, y: F3):
    i = wp.tid()
    total = wp.vec3()
    for j in range(x.shape[0]):
        d = x[j] - x[i]
        total += x[j] * wp.exp(-wp.dot(d, d))
    y[i] = total


@wp.kernel
def power(x: F3, steps: int, y: F3):
    i = wp.tid()
    p = x[i]
    for _ in range(steps):
        p = wp.cw_mul(p, x[i]) + x[i] * 0.5
    y[i] = p


@wp.kernel
def clip(x: F3, y: F3):
    i = wp.tid()
    v = x[i]
    if wp.length(v) > 1.0:
        v = wp.normalize(v)
    y[i] = v


@wp.kernel
def turn(x: F3, y: F3):
    i = wp.tid()
    q = wp.quat_from_axis_angle(wp.vec3(0.0, 1.0, 0.0), x[i][0])
    y[i] = wp.quat_rotate(q, x[i])


@wp.kernel
def stretch(x: F3, y: F3):
    i = wp.tid()
    A = wp.outer(x[i], x[i]) + wp.identity(n=3, dtype=float)
    y[i] = wp.inverse(A) * x[i]


@wp.kernel
def spread(x: F3, y: F3):
    i = wp.tid()
    wp.atomic_add(y, (i + 3) % y.shape[0], x[i] * 0.5)
    wp.atomic_add(y, i, x[i])


@wp.kernel
def energy(x: F3, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.dot(x[i], x[i]))


def main() -> None:
    points = np.sin(np.arange(48, dtype=np.float32)).reshape(16, 3)
    x = wp.array(points, dtype=wp.vec3, device="cpu", requires_grad=True)
    a = [wp.zeros_like(x) for _ in range(9)]
    loss, n = wp.zeros(1, dtype=float, device="cpu", requires_grad=True), len(points)
    launches = [(scale, [x, 0.3], a[0]), (wave, [a[0]], a[1]), (pull, [a[1]], a[2]), (smooth, [a[2]], a[3]),
                (power, [a[3], 3], a[4]), (clip, [a[4]], a[5]), (turn, [a[5]], a[6]), (stretch, [a[6]], a[7]),
                (spread, [a[7]], a[8]), (energy, [a[8]], loss)]  # fmt: skip
    tape = wp.Tape()
    with tape:
        for kernel, inputs, output in launches:
            wp.launch(kernel, n, inputs, [output], device="cpu")
    tape.backward(loss)
    np.savetxt(sys.stdout, x.grad.numpy().reshape(-1, 3))


main()
