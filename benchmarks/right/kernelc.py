"""The programs in kernelc: one thread for what is a loop, one for each number for what is done to arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

import kernelc as kc


@kc.kernel
def product(x: kc.Array[float], n: int, out: kc.Array[float]):
    p = 1.0
    for i in range(n):
        p *= x[i]
    out[0] = p


@kc.kernel
def carried(x: kc.Array[float], n: int, out: kc.Array[float]):
    v = x[0]
    for k in range(25 * n):
        v = kc.sin(v) * x[k % 4] + 0.5
    out[0] = v


@kc.kernel
def halved(x: kc.Array[float], n: int, out: kc.Array[float]):
    v = 10.0 * x[0]
    while v > 0.5:
        v = v * x[2]
    out[0] = v


@kc.kernel
def broken(x: kc.Array[float], n: int, out: kc.Array[float]):
    s = 0.0
    for i in range(n):
        s += x[i] * x[i]
        if s > 2.0:
            break
    out[0] = s * s


@kc.kernel
def continued(x: kc.Array[float], n: int, out: kc.Array[float]):
    p = 1.0
    for i in range(n):
        if x[i] < 0.8:
            continue
        p *= x[i]
    out[0] = p


@kc.func
def grown(x: kc.Array[float], n: int) -> float:
    p = 1.0
    for i in range(n):
        p = p * (1.0 + x[i])
        if p > 6.0:
            return p * p
    return p


@kc.kernel
def returned(x: kc.Array[float], n: int, out: kc.Array[float]):
    out[0] = grown(x, n)


@kc.kernel
def largest(x: kc.Array[float], n: int, out: kc.Array[float]):
    m = -1.0
    for i in range(n):
        m = kc.max(m, x[i] * x[i])
    out[0] = m


@kc.kernel
def component(x: kc.Array[float], n: int, out: kc.Array[float]):
    v = kc.float3(x[0], x[1], 0.0)
    v[1] = v[1] * v[0]
    v[1] = v[1] * v[1]
    out[0] = v[0] + v[1]


@kc.kernel
def copy(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i]


@kc.kernel
def square(y: kc.Array[float]):
    i = kc.tid()
    y[i] = y[i] ** 2


@kc.kernel
def sine(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.sin(x[i])


@kc.kernel
def scale(y: kc.Array[float], x: kc.Array[float]):
    i = kc.tid()
    y[i] *= x[i]


@kc.kernel
def step(y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.sin(y[i]) * 1.1


@kc.kernel
def squares(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def add_up(y: kc.Array[float], out: kc.Array[float]):
    kc.atomic_add(out, 0, y[kc.tid()])


def alone(kernel: Any) -> Callable[[np.ndarray], np.ndarray]:
    def gradient(values: np.ndarray) -> np.ndarray:
        x, out = kc.array(values, requires_grad=True), kc.zeros(1, real=kc.float64)
        with kc.Tape() as tape:
            kc.launch(kernel, 1, [x, len(values)], [out])
        tape.backward(out)
        return x.grad.numpy()

    return gradient


def over(*launches: Callable[[kc.Array, kc.Array], None], then: Callable[[kc.Array], None] = lambda x: None):
    """The gradient of the sum of y after the launches on (x, y)."""

    def gradient(values: np.ndarray) -> np.ndarray:
        x, y = kc.array(values, requires_grad=True), kc.zeros(len(values), real=kc.float64)
        out = kc.zeros(1, real=kc.float64)
        with kc.Tape() as tape:
            for launch in launches:
                launch(x, y)
            kc.launch(add_up, len(values), [y], [out])
        then(x)
        tape.backward(out)
        return x.grad.numpy()

    return gradient


def of(kernel: Any, names: str) -> Callable[[kc.Array, kc.Array], None]:
    return lambda x, y: kc.launch(kernel, 4, [{"x": x, "y": y}[name] for name in names])


LOOPS = (product, carried, halved, broken, continued, returned, largest, component)
GRADIENTS = {kernel.__name__: alone(kernel) for kernel in LOOPS} | {
    "in_place": over(of(copy, "xy"), of(square, "y"), of(square, "y")),
    "scaled": over(of(sine, "xy"), of(scale, "yx")),
    "stepped": over(of(copy, "xy"), *[of(step, "y")] * 10),
    "overwritten": over(of(squares, "xy"), then=lambda x: x.assign(np.full(4, 10.0))),
}
