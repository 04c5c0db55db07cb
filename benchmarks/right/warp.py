"""The programs in Warp, with `requires_grad=True` on every array, as its manual asks."""

from collections.abc import Callable

import numpy as np
import warp as wp

wp.config.quiet = True


@wp.kernel
def product(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    p = float(1.0)
    for i in range(n):
        p *= x[i]
    out[0] = p


@wp.kernel
def carried(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    v = x[0]
    for k in range(25 * n):
        v = wp.sin(v) * x[k % 4] + 0.5
    out[0] = v


@wp.kernel
def halved(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    v = 10.0 * x[0]
    while v > 0.5:
        v = v * x[2]
    out[0] = v


@wp.kernel
def broken(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    s = float(0.0)
    for i in range(n):
        s += x[i] * x[i]
        if s > 2.0:
            break
    out[0] = s * s


@wp.kernel
def continued(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    p = float(1.0)
    for i in range(n):
        if x[i] < 0.8:
            continue
        p *= x[i]
    out[0] = p


@wp.func
def grown(x: wp.array(dtype=float), n: int):
    p = float(1.0)
    for i in range(n):
        p = p * (1.0 + x[i])
        if p > 6.0:
            return p * p
    return p


@wp.kernel
def returned(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    out[0] = grown(x, n)


@wp.kernel
def largest(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    m = float(-1.0)
    for i in range(n):
        m = wp.max(m, x[i] * x[i])
    out[0] = m


@wp.kernel
def component(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    v = wp.vec3(x[0], x[1], 0.0)
    v[1] = v[1] * v[0]
    v[1] = v[1] * v[1]
    out[0] = v[0] + v[1]


@wp.kernel
def copy(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i]


@wp.kernel
def square(y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = y[i] ** 2.0


@wp.kernel
def sine(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i])


@wp.kernel
def scale(y: wp.array(dtype=float), x: wp.array(dtype=float)):
    i = wp.tid()
    y[i] *= x[i]


@wp.kernel
def step(y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(y[i]) * 1.1


@wp.kernel
def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def add_up(y: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, y[wp.tid()])


def leaf(values: np.ndarray) -> wp.array:
    return wp.array(values.astype(np.float32), dtype=float, device="cpu", requires_grad=True)


def alone(kernel: wp.Kernel) -> Callable[[np.ndarray], np.ndarray]:
    def gradient(values: np.ndarray) -> np.ndarray:
        x, out = leaf(values), leaf(np.zeros(1))
        with wp.Tape() as tape:
            wp.launch(kernel, 1, [x, len(values)], [out], device="cpu")
        tape.backward(out)
        return x.grad.numpy()

    return gradient


def over(*launches: Callable[[wp.array, wp.array], None], then: Callable[[wp.array], None] = lambda x: None):
    """The gradient of the sum of y after the launches on (x, y)."""

    def gradient(values: np.ndarray) -> np.ndarray:
        x, y, out = leaf(values), leaf(np.zeros(len(values))), leaf(np.zeros(1))
        with wp.Tape() as tape:
            for launch in launches:
                launch(x, y)
            wp.launch(add_up, len(values), [y], [out], device="cpu")
        then(x)
        tape.backward(out)
        return x.grad.numpy()

    return gradient


def of(kernel: wp.Kernel, names: str) -> Callable[[wp.array, wp.array], None]:
    return lambda x, y: wp.launch(kernel, 4, [{"x": x, "y": y}[name] for name in names], device="cpu")


LOOPS = (product, carried, halved, broken, continued, returned, largest, component)
GRADIENTS = {kernel.key: alone(kernel) for kernel in LOOPS} | {
    "in_place": over(of(copy, "xy"), of(square, "y"), of(square, "y")),
    "scaled": over(of(sine, "xy"), of(scale, "yx")),
    "stepped": over(of(copy, "xy"), *[of(step, "y")] * 10),
    "overwritten": over(of(squares, "xy"), then=lambda x: x.assign(np.full(4, 10.0, np.float32))),
}
