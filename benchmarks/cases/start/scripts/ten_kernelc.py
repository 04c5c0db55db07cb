"""Ten kernels, one after the other on a tape, and the way back."""

import sys

import numpy as np

import kernelc as kc

F = kc.Array[float]
F3 = kc.Array[kc.float3]


@kc.func
def spring(a: kc.float3, b: kc.float3, rest: float) -> kc.float3:
    d = b - a
    return kc.normalize(d) * (kc.length(d) - rest)


@kc.kernel
def scale(x: F3, k: float, y: F3):
    i = kc.tid()
    y[i] = x[i] * k


@kc.kernel
def wave(x: F3, y: F3):
    i = kc.tid()
    y[i] = kc.float3(kc.sin(x[i].x), kc.cos(x[i].y), kc.exp(-x[i].z * x[i].z))


@kc.kernel
def pull(x: F3, y: F3):
    i = kc.tid()
    y[i] = spring(x[i], x[(i + 1) % x.shape[0]], 0.5)


@kc.kernel
def smooth(x: F3, y: F3):
    i = kc.tid()
    total = kc.float3()
    for j in range(x.shape[0]):
        d = x[j] - x[i]
        total += x[j] * kc.exp(-kc.dot(d, d))
    y[i] = total


@kc.kernel
def power(x: F3, steps: int, y: F3):
    i = kc.tid()
    p = x[i]
    for _ in range(steps):
        p = kc.cw_mul(p, x[i]) + x[i] * 0.5
    y[i] = p


@kc.kernel
def clip(x: F3, y: F3):
    i = kc.tid()
    v = x[i]
    if kc.length(v) > 1.0:
        v = kc.normalize(v)
    y[i] = v


@kc.kernel
def turn(x: F3, y: F3):
    i = kc.tid()
    q = kc.quat_from_axis_angle(kc.float3(0.0, 1.0, 0.0), x[i].x)
    y[i] = kc.quat_rotate(q, x[i])


@kc.kernel
def stretch(x: F3, y: F3):
    i = kc.tid()
    A = kc.outer(x[i], x[i]) + kc.mat33(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    y[i] = kc.inverse(A) * x[i]


@kc.kernel
def spread(x: F3, y: F3):
    i = kc.tid()
    kc.atomic_add(y, (i + 3) % y.shape[0], x[i] * 0.5)
    kc.atomic_add(y, i, x[i])


@kc.kernel
def energy(x: F3, loss: F):
    i = kc.tid()
    kc.atomic_add(loss, 0, kc.dot(x[i], x[i]))


def main() -> None:
    points = np.sin(np.arange(48, dtype=np.float32)).reshape(16, 3)
    x = kc.array(points, dtype=kc.float3, requires_grad=True)
    a = [kc.zeros_like(x) for _ in range(9)]
    loss, n = kc.zeros(1), len(points)
    with kc.Tape() as tape:
        kc.launch(scale, n, [x, 0.3], [a[0]])
        kc.launch(wave, n, [a[0]], [a[1]])
        kc.launch(pull, n, [a[1]], [a[2]])
        kc.launch(smooth, n, [a[2]], [a[3]])
        kc.launch(power, n, [a[3], 3], [a[4]])
        kc.launch(clip, n, [a[4]], [a[5]])
        kc.launch(turn, n, [a[5]], [a[6]])
        kc.launch(stretch, n, [a[6]], [a[7]])
        kc.launch(spread, n, [a[7]], [a[8]])
        kc.launch(energy, n, [a[8]], [loss])
    tape.backward(loss)
    np.savetxt(sys.stdout, x.grad.numpy().reshape(-1, 3))


if __name__ == "__main__":
    main()
