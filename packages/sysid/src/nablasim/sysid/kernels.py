"""The kernel that the doctor compiles and runs."""

import kernelc as kc


@kc.kernel
def double(x: kc.Array[float], y: kc.Array[float]):
    """y = 2 x: the kernel that the doctor compiles and runs."""
    i = kc.tid()
    y[i] = 2.0 * x[i]
