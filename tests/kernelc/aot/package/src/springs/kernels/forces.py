"""Forces of springs, with everything that makes specialisations differ: sums, sines, a factory, two precisions."""

import functools

import kernelc as kc


@kc.func
def pull(a: kc.float3, b: kc.float3, rest: float, k: float) -> kc.float3:
    d = b - a
    return kc.normalize(d) * (kc.sin(k) * (kc.length(d) - rest))


@kc.kernel
def spring_forces(
    x: kc.Array[kc.float3], pairs: kc.Array[int, 2], rest: kc.Array[float], k: kc.Array[float], f: kc.Array[kc.float3]
):
    i = kc.tid()
    a, b = pairs[i, 0], pairs[i, 1]
    force = pull(x[a], x[b], rest[i], k[i])
    kc.atomic_add(f, a, force)
    kc.atomic_sub(f, b, force)


@kc.kernel
def limited(k: kc.Array[float], most: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.min(k[i], most[i]) + k[i] / most[i]


@functools.cache
def powers(n: int):
    @kc.kernel
    def power(x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        p = 1.0
        for _ in range(n):
            p *= x[i]
        y[i] = p

    return power


@kc.kernel
def count(x: kc.Array[float], n: kc.Array[int]):
    i = kc.tid()
    if x[i] > 0.0:
        kc.atomic_add(n, 0, 1)


@kc.kernel
def undeclared(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] + 1.0
