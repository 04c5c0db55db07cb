"""Kernels of damped springs between particles. A thread is a spring."""

import kernelc as kc


@kc.func
def spring_force(
    xi: kc.float3, xj: kc.float3, vi: kc.float3, vj: kc.float3, rest: float, ke: float, kd: float
) -> kc.float3:
    """The force on i of the spring i-j: ke (|d| - rest) + kd d|d|/dt, along d = xj - xi.

    Damping acts on the rate of the length only, so that a spring that moves or turns as a whole is not braked.
    """
    d = xj - xi
    along = kc.normalize(d)
    stretch = kc.length(d) - rest
    rate = kc.dot(vj - vi, along)
    return along * (ke * stretch + kd * rate)


@kc.kernel
def spring_forces(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    pairs: kc.Array[int, 2],
    rest: kc.Array[float],
    ke: kc.Array[float],
    kd: kc.Array[float],
    f: kc.Array[kc.float3],
):
    """Add the force of spring s to both of its ends, opposite and equal: momentum is kept."""
    s = kc.tid()
    i, j = pairs[s, 0], pairs[s, 1]
    force = spring_force(x[i], x[j], v[i], v[j], rest[s], ke[s], kd[s])
    kc.atomic_add(f, i, force)
    kc.atomic_sub(f, j, force)


@kc.kernel
def actuated_spring_forces(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    pairs: kc.Array[int, 2],
    rest: kc.Array[float],
    ke: kc.Array[float],
    kd: kc.Array[float],
    actuation: kc.Array[float],
    f: kc.Array[kc.float3],
):
    """The same with rest lengths shortened by the actuation."""
    s = kc.tid()
    i, j = pairs[s, 0], pairs[s, 1]
    force = spring_force(x[i], x[j], v[i], v[j], rest[s] * (1.0 - actuation[s]), ke[s], kd[s])
    kc.atomic_add(f, i, force)
    kc.atomic_sub(f, j, force)


@kc.kernel
def spring_stiffness(
    pairs: kc.Array[int, 2], ke: kc.Array[float], kd: kc.Array[float], k: kc.Array[float], c: kc.Array[float]
):
    """Gershgorin: the row of a particle has each spring once on the diagonal and once beside it."""
    s = kc.tid()
    for end in range(2):
        kc.atomic_add(k, pairs[s, end], 2.0 * ke[s])
        kc.atomic_add(c, pairs[s, end], 2.0 * kd[s])


@kc.kernel
def spring_energies(
    x: kc.Array[kc.float3],
    pairs: kc.Array[int, 2],
    rest: kc.Array[float],
    ke: kc.Array[float],
    actuation: kc.Array[float],
    e: kc.Array[float],
):
    """ke (|d| - rest)² / 2."""
    s = kc.tid()
    stretch = kc.length(x[pairs[s, 1]] - x[pairs[s, 0]]) - rest[s] * (1.0 - actuation[s])
    e[s] = 0.5 * ke[s] * stretch * stretch
