"""Kernels of particles joined by damped springs: the forces, and one step of semi-implicit Euler.

Precision is that of the arrays passed. A particle index is a thread of `integrate_particles`, a spring index one of
`spring_forces`.
"""

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
def integrate_particles(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    mass: kc.Array[float],
    free: kc.Array[int],
    gravity: kc.Array[kc.float3],
    dt: float,
    x_next: kc.Array[kc.float3],
    v_next: kc.Array[kc.float3],
):
    """v' = v + dt (g + f / m), x' = x + dt v'. A particle that is not free stays where it is.

    Gravity is an acceleration, not a force per particle: what falls does not depend on its mass.
    """
    i = kc.tid()
    v_new = kc.float3()
    if free[i] != 0:
        v_new = v[i] + (gravity[0] + f[i] / mass[i]) * dt
    v_next[i] = v_new
    x_next[i] = x[i] + v_new * dt


@kc.kernel
def rigid_velocities(
    x: kc.Array[kc.float3],
    centre: kc.Array[kc.float3],
    vel: kc.Array[kc.float3],
    spin: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
):
    """v = vel + spin × (x - centre): every particle moves as a part of one rigid body."""
    i = kc.tid()
    v[i] = vel[0] + kc.cross(spin[0], x[i] - centre[0])
