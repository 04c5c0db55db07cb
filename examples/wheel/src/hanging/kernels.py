"""The kernels of the package. All of them are compiled into its wheel: CMakeLists.txt names this module."""

import kernelc as kc


@kc.kernel
def link_energies(x: kc.Array[kc.float2], rest: kc.Array[float], k: float, e: kc.Array[float]):
    i = kc.tid()
    stretch = kc.length(x[i + 1] - x[i]) - rest[i]
    e[0] += 0.5 * k * stretch * stretch


@kc.kernel
def weights(x: kc.Array[kc.float2], mass: float, e: kc.Array[float]):
    i = kc.tid()
    e[0] += 9.81 * mass * x[i].y
