"""Singular points, as the table says, and what is declared not to be a slope. `slope` is d out[i] / d x[i]."""

import numpy as np
from laws.bench import Argument, N, case, leaf, zeros

import kernelc as kc


@kc.kernel
def scalars(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    a = x[i] - 1.0
    k = i % 8
    b = 0.0
    if k == 0:
        b = kc.sqrt(a)
    elif k == 1:
        b = kc.cbrt(a)
    elif k == 2:
        b = kc.abs(a)
    elif k == 3:
        b = kc.acos(x[i]) + kc.asin(x[i])
    elif k == 4:
        b = kc.atan2(a, a)
    elif k == 5:
        b = kc.hypot(a, a)
    elif k == 6:
        b = kc.acosh(x[i])
    else:
        b = kc.pow(a, 0.5) + kc.pow(a, 1.0)
    out[i] = b


case("scalars at singular points", scalars, 8, x=leaf([1.0] * 8), out=zeros(8), differences=False,
     slope=lambda x: np.array([0, 0, 0, 0, 0, 0, 0, 1.0]))  # fmt: skip


@kc.kernel
def vectors(x: kc.Array[kc.float3], out: kc.Array[float]):
    i = kc.tid()
    v = x[i] - kc.float3(1.0, 1.0, 1.0)
    out[i] = kc.length(v) + kc.dot(kc.normalize(v), kc.float3(1.0, 2.0, 3.0)) + kc.angle_between(x[i], 2.0 * x[i])


case("vectors of no length", vectors, N, x=leaf([[1.0, 1.0, 1.0]] * 3, kc.float3), out=zeros(N), differences=False,
     slope=lambda x: np.zeros((3, 3)), sizes=False)  # fmt: skip


@kc.kernel
def ties(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    a = kc.min(x[i], 1.0)
    b = kc.max(x[i], 2.0 - x[i])
    c = kc.clamp(x[i], 1.0, 2.0) + kc.clamp(x[i], 0.0, 1.0)
    d = kc.max(kc.min(x[i], x[i] * x[i]), 0.5)
    out[i] = a + 10.0 * b + 100.0 * c + 1000.0 * d


# 1, half of 1 and half of -1, 1 and 1, half of 1 and half of 2.
case("ties and bounds", ties, N, x=leaf([1.0] * 3), out=zeros(N), differences=False, sizes=False,
     slope=lambda x: np.full(3, 1 + 10 * 0 + 100 * 2 + 1000 * 1.5))  # fmt: skip


@kc.kernel
def ties_of_arrays(x: kc.Array[float], c: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kept = kc.max(x[i], c[i])
    again = kc.min(kept + c[i], 2.0 * x[i])
    out[i] = kept + 10.0 * again + 100.0 * kc.min(c[i] * x[i], c[i])


# All to x where c has no gradient: 1, half of 1 and half of 2 (both depend on x), 1.
case("ties with constants", ties_of_arrays, N, x=leaf([1.0] * 3), c=Argument(N, data=1.0), out=zeros(N),
     differences=False, sizes=False, slope=lambda x: np.full(3, 1 + 10 * 1.5 + 100))  # fmt: skip
case("ties of leaves", ties_of_arrays, N, x=leaf([1.0] * 3), c=leaf([1.0] * 3), out=zeros(N), differences=False,
     sizes=False, slope=lambda x: np.full(3, 0.5 + 10 * (0.25 + 1) + 50))  # fmt: skip


@kc.kernel
def cut(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = x[i] * kc.stop_grad(x[i] * x[i]) + kc.stop_grad(kc.sin(x[i]))


case("stop_grad", cut, N, x=leaf(N), out=zeros(N), differences=False, slope=lambda x: x * x)


@kc.func
def through(a: float) -> float:
    return kc.floor(a)


@through.adjoint
def _(a, adj_out):
    return adj_out * 0.5


@kc.kernel
def straight_through(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = through(3.0 * x[i]) * x[i]


case("a rule that is not the slope", straight_through, N, x=leaf(N), out=zeros(N), differences=False,
     slope=lambda x: 1.5 * x + np.floor(3 * x))  # fmt: skip


@kc.kernel
def three_halves(x: kc.Array[float], out: kc.Array[float]):
    """x √x has a slope everywhere, also where √x has none."""
    i = kc.tid()
    a = x[i]
    root = kc.sqrt(a)
    b = a * root if i % 2 == 0 else root * a
    out[i] = b + a * kc.sqrt(a) + root * a * a + 3.0 * a


case("x times its root", three_halves, 6, x=leaf([0.0, 0.0, 1.0, 1.0, 4.0, 0.25]), out=zeros(6), differences=False,
     slope=lambda x: 3.0 * np.sqrt(x) + 2.5 * x * np.sqrt(x) + 3.0)  # fmt: skip
