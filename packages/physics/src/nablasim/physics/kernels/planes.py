"""Kernels of contact with half-spaces. A thread is a pair of a particle and a plane."""

import kernelc as kc
from nablasim.physics.kernels.contact import contact_force, hinge_integral


@kc.kernel
def unit_normals(given: kc.Array[kc.float3], normal: kc.Array[kc.float3]):
    i = kc.tid()
    normal[i] = kc.normalize(given[i])


@kc.kernel
def plane_forces(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    weight: kc.Array[float],
    gravity: kc.Array[kc.float3],
    dt: float,
    particle: kc.Array[int],
    normal: kc.Array[kc.float3],
    offset: kc.Array[float],
    ke: kc.Array[float],
    kd: kc.Array[float],
    kf: kc.Array[float],
    mu: kc.Array[float],
    law: kc.Array[int],
    touch: kc.Array[float],
    smoothing: kc.Array[float],
    f_contact: kc.Array[kc.float3],
):
    """Push the particle out of the half-space n·x < offset.

    The other forces `f` say with which velocity the step would end: dampers and friction are taken there.
    """
    r = kc.tid()
    i = particle[r]
    n = normal[r]
    gap = kc.dot(n, x[i]) - offset[r]
    if gap < smoothing[r]:
        w = weight[i]
        ahead = v[i] + (gravity[i] + f[i] * w) * dt
        force = contact_force(gap, ahead, n, ke[r], kd[r], kf[r], mu[r], law[r], touch[r], smoothing[r], w * dt)
        kc.atomic_add(f_contact, i, force)


@kc.kernel
def plane_stiffness(particle: kc.Array[int], ke: kc.Array[float], k: kc.Array[float]):
    """The hardest contact that each particle can have. Dampers limit no step."""
    r = kc.tid()
    kc.atomic_max(k, particle[r], ke[r])


@kc.kernel
def plane_energies(
    x: kc.Array[kc.float3],
    particle: kc.Array[int],
    normal: kc.Array[kc.float3],
    offset: kc.Array[float],
    ke: kc.Array[float],
    smoothing: kc.Array[float],
    e: kc.Array[float],
):
    """The energy stored by the spring of the contact."""
    r = kc.tid()
    gap = kc.dot(normal[r], x[particle[r]]) - offset[r]
    e[r] = ke[r] * hinge_integral(-gap, smoothing[r])
