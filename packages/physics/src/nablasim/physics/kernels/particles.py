"""Kernels of point masses: mass, one step of semi-implicit Euler, energy. A thread is a particle."""

import kernelc as kc


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


@kc.func
def moved(x: kc.float3, v: kc.float3, f: kc.float3, weight: float, gravity: kc.float3, dt: float):
    """v' = v + dt (g + f / m), x' = x + dt v'. A particle without weight stays where it is.

    Gravity is an acceleration, not a force per particle: what falls does not depend on its mass.
    """
    v_new = kc.float3()
    if weight > 0.0:
        v_new = v + (gravity + f * weight) * dt
    return x + v_new * dt, v_new


@kc.kernel
def integrate_particles(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    weight: kc.Array[float],
    gravity: kc.Array[kc.float3],
    dt: float,
    x_next: kc.Array[kc.float3],
    v_next: kc.Array[kc.float3],
):
    """One step of semi-implicit Euler."""
    i = kc.tid()
    x_new, v_new = moved(x[i], v[i], f[i], weight[i], gravity[i], dt)
    v_next[i] = v_new
    x_next[i] = x_new


@kc.kernel
def integrate_touching_particles(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    f_contact: kc.Array[kc.float3],
    weight: kc.Array[float],
    gravity: kc.Array[kc.float3],
    dt: float,
    x_next: kc.Array[kc.float3],
    v_next: kc.Array[kc.float3],
):
    """The same where contact adds its forces after all others."""
    i = kc.tid()
    x_new, v_new = moved(x[i], v[i], f[i] + f_contact[i], weight[i], gravity[i], dt)
    v_next[i] = v_new
    x_next[i] = x_new


@kc.kernel
def step_rates(k: kc.Array[float], c: kc.Array[float], weight: kc.Array[float], rate: kc.Array[float]):
    """One over the longest stable step of a mass on a spring k with a damper c: k dt² + 2 c dt < 4 m."""
    i = kc.tid()
    w = weight[i]
    damper = c[i] * w
    rate[i] = 0.25 * (damper + kc.sqrt(damper * damper + 4.0 * k[i] * w))


@kc.kernel
def kinetic_energies(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    mass: kc.Array[float],
    gravity: kc.Array[kc.float3],
    e: kc.Array[float],
):
    """m v² / 2 - m g·x."""
    i = kc.tid()
    e[i] = mass[i] * (0.5 * kc.length_sq(v[i]) - kc.dot(gravity[i], x[i]))
