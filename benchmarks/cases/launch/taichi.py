"""Taichi: a kernel that takes arrays."""

from ...harness import Entrant
from ...taichi_once import ti
from . import Work

F = ti.types.ndarray(dtype=ti.f32, ndim=1)


@ti.kernel
def add(a: F, b: F, c: F, d: F, e: F, f: F, g: F, out: F):
    for i in range(out.shape[0]):
        out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i]


def entrants(work: Work) -> dict[str, Entrant]:
    n = work.arrays.shape[1]
    inputs, out = [ti.ndarray(ti.f32, n) for _ in work.arrays], ti.ndarray(ti.f32, n)
    for array, data in zip(inputs, work.arrays):
        array.from_numpy(data)
    return {"Taichi": Entrant({"launch": lambda: add(*inputs, out)}, lambda: {"sum": out.to_numpy()})}
