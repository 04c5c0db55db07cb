"""Kernels of point masses: mass, one step of semi-implicit Euler, energy. A thread is a particle.

And what kernels of elements share: where particles are, forces on the corners of an element, bounds of its stiffness.
"""
# mypy: ignore-errors

import kernelc as kc


@kc.struct
class Particles:
    """Positions (m) and velocities (m/s)."""

    x: kc.Array[kc.float3]
    v: kc.Array[kc.float3]


@kc.struct
class Bounds:
    """Upper bounds of stiffness (N/m) and damping (N s/m) that each particle sees."""

    k: kc.Array[float]
    c: kc.Array[float]


@kc.func
def three_of(corners: kc.Array[int, 2], t: int) -> kc.int3:
    """The corners of a triangle."""
    return kc.int3(corners[t, 0], corners[t, 1], corners[t, 2])


@kc.func
def four_of(corners: kc.Array[int, 2], t: int) -> kc.int4:
    """The corners of a tetrahedron, the points of a hinge."""
    return kc.int4(corners[t, 0], corners[t, 1], corners[t, 2], corners[t, 3])


@kc.func
def push_three(f: kc.Array[kc.float3], who: kc.int3, fa: kc.float3, fb: kc.float3, fc: kc.float3):
    """Add a force to each of three particles."""
    kc.atomic_add(f, who.x, fa)
    kc.atomic_add(f, who.y, fb)
    kc.atomic_add(f, who.z, fc)


@kc.func
def push_four(f: kc.Array[kc.float3], who: kc.int4, fa: kc.float3, fb: kc.float3, fc: kc.float3, fd: kc.float3):
    """Add a force to each of four particles."""
    kc.atomic_add(f, who.x, fa)
    kc.atomic_add(f, who.y, fb)
    kc.atomic_add(f, who.z, fc)
    kc.atomic_add(f, who.w, fd)


@kc.func
def push_apart(f: kc.Array[kc.float3], i: int, j: int, force: kc.float3):
    """Add a force to a particle, and the opposite to another: momentum is kept."""
    kc.atomic_add(f, i, force)
    kc.atomic_sub(f, j, force)


@kc.func
def bound(bounds: Bounds, corners, slopes, size: float, stiffness: float, damping: float):
    """Add the norms of the blocks in the row of each corner, size |g_i| |g_j| times stiffness and damping (Gershgorin).

    slopes: the lengths of g, the gradients of what the element resists, by its corners.
    """
    around = slopes[0] + slopes[1] + slopes[2]
    if len(slopes) == 4:
        around += slopes[3]
    around *= size
    for i in range(len(slopes)):
        kc.atomic_add(bounds.k, corners[i], around * slopes[i] * stiffness)
        kc.atomic_add(bounds.c, corners[i], around * slopes[i] * damping)


@kc.kernel
def copy_masses(given: kc.Array[float], mass: kc.Array[float]):
    """The masses that were given; systems with a density add theirs."""
    i = kc.tid()
    mass[i] = given[i]


@kc.kernel
def invert_masses(mass: kc.Array[float], free: kc.Array[int], weight: kc.Array[float]):
    """1 / mass, and 0 for a particle that is held: nothing accelerates it."""
    i = kc.tid()
    w = 0.0
    if free[i] != 0:
        w = 1.0 / mass[i]
    weight[i] = w


@kc.kernel
def integrate_particles(
    now: Particles,
    f: kc.Array[kc.float3],
    contact_f: kc.Array[kc.float3] | None,
    weight: kc.Array[float],
    gravity: kc.Array[kc.float3],
    dt: float,
    after: Particles,
):
    """v' = v + dt (g + f / m), x' = x + dt v'. A particle without weight stays where it is.

    Gravity is an acceleration, not a force per particle: what falls does not depend on its mass. contact_f are forces
    that are added after all others.
    """
    i = kc.tid()
    v = kc.float3()
    if weight[i] > 0.0:
        force = f[i] + contact_f[i] if contact_f is not None else f[i]
        v = now.v[i] + (gravity[i] + force * weight[i]) * dt
    after.v[i] = v
    after.x[i] = now.x[i] + v * dt


@kc.kernel
def step_rates(bounds: Bounds, weight: kc.Array[float], rate: kc.Array[float]):
    """One over the longest stable step of a mass on a spring k with a damper c: k dt² + 2 c dt < 4 m."""
    i = kc.tid()
    w = weight[i]
    damper = bounds.c[i] * w
    rate[i] = 0.25 * (damper + kc.sqrt(damper * damper + 4.0 * bounds.k[i] * w))


@kc.kernel
def kinetic_energies(now: Particles, mass: kc.Array[float], gravity: kc.Array[kc.float3], e: kc.Array[float]):
    """m v² / 2 - m g·x."""
    i = kc.tid()
    e[i] = mass[i] * (0.5 * kc.length_sq(now.v[i]) - kc.dot(gravity[i], now.x[i]))
