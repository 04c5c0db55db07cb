"""The kernels of system identification: how a thing is thrown, a loss on tracked points, and the doctor's probe."""

import kernelc as kc


@kc.kernel
def thrown(
    x: kc.Array[kc.float3],
    centre: kc.Array[kc.float3],
    vel: kc.Array[kc.float3],
    spin: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
):
    """v = vel + spin × (x - centre): every particle moves as a part of one rigid body."""
    i = kc.tid()
    v[i] = vel[0] + kc.cross(spin[0], x[i] - centre[0])


@kc.kernel
def squared_distance(
    x: kc.Array[kc.float3],
    marks: kc.Array[int],
    seen: kc.Array[kc.float3],
    weight: float,
    loss: kc.Array[float],
):
    """Add weight |x[marks[i]] - seen[i]|² to loss[0]."""
    i = kc.tid()
    d = x[marks[i]] - seen[i]
    kc.atomic_add(loss, 0, weight * kc.dot(d, d))


@kc.kernel
def double(x: kc.Array[float], y: kc.Array[float]):
    """y = 2 x: the kernel that the doctor compiles and runs."""
    i = kc.tid()
    y[i] = 2.0 * x[i]
