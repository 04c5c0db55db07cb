"""The programs in Taichi, on fields that need a gradient, recorded by `ti.ad.Tape`.

The loop over the program's single thread is the kernel's outermost one, so that the loop inside is differentiated.
"""

from collections.abc import Callable

import numpy as np

from ..taichi_once import ti

x, y = (ti.field(ti.f32, 4, needs_grad=True) for _ in range(2))
out = ti.field(ti.f32, (), needs_grad=True)
count = ti.field(ti.i32, ())


@ti.kernel
def product():
    for _ in range(1):
        p = 1.0
        for i in range(count[None]):
            p *= x[i]
        out[None] += p


@ti.kernel
def carried():
    for _ in range(1):
        v = x[0]
        for k in range(25 * count[None]):
            v = ti.sin(v) * x[k % 4] + 0.5
        out[None] += v


@ti.kernel
def halved():
    for _ in range(1):
        v = 10.0 * x[0]
        while v > 0.5:
            v = v * x[2]
        out[None] += v


@ti.kernel
def broken():
    for _ in range(1):
        s = 0.0
        for i in range(count[None]):
            s += x[i] * x[i]
            if s > 2.0:
                break
        out[None] += s * s


@ti.kernel
def continued():
    for _ in range(1):
        p = 1.0
        for i in range(count[None]):
            if x[i] < 0.8:
                continue
            p *= x[i]
        out[None] += p


@ti.func
def grown():
    p = 1.0
    for i in range(count[None]):
        p = p * (1.0 + x[i])
        if p > 6.0:
            return p * p
    return p


@ti.kernel
def returned():
    for _ in range(1):
        out[None] += grown()


@ti.kernel
def largest():
    for _ in range(1):
        m = -1.0
        for i in range(count[None]):
            m = ti.max(m, x[i] * x[i])
        out[None] += m


@ti.kernel
def component():
    for _ in range(1):
        v = ti.Vector([x[0], x[1], 0.0])
        v[1] = v[1] * v[0]
        v[1] = v[1] * v[1]
        out[None] += v[0] + v[1]


@ti.kernel
def copy():
    for i in x:
        y[i] = x[i]


@ti.kernel
def square():
    for i in y:
        y[i] = y[i] ** 2


@ti.kernel
def sine():
    for i in x:
        y[i] = ti.sin(x[i])


@ti.kernel
def scale():
    for i in x:
        y[i] *= x[i]


@ti.kernel
def step():
    for i in y:
        y[i] = ti.sin(y[i]) * 1.1


@ti.kernel
def squares():
    for i in x:
        y[i] = x[i] * x[i]


@ti.kernel
def overwrite():
    for i in x:
        x[i] = 10.0


@ti.kernel
def add_up():
    for i in y:
        out[None] += y[i]


def gradient_of(*kernels: Callable[[], None]):
    def gradient(values: np.ndarray) -> np.ndarray:
        x.from_numpy(values.astype(np.float32))
        y.fill(0.0)
        count[None] = len(values)
        with ti.ad.Tape(loss=out):
            for kernel in kernels:
                kernel()
        return x.grad.to_numpy()

    return gradient


GRADIENTS = {
    "product": gradient_of(product),
    "carried": gradient_of(carried),
    "halved": gradient_of(halved),
    "broken": gradient_of(broken),
    "continued": gradient_of(continued),
    "returned": gradient_of(returned),
    "largest": gradient_of(largest),
    "component": gradient_of(component),
    "in_place": gradient_of(copy, square, square, add_up),
    "scaled": gradient_of(sine, scale, add_up),
    "stepped": gradient_of(copy, *[step] * 10, add_up),
    "overwritten": gradient_of(squares, add_up, overwrite),
}
