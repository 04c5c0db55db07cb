"""Kernels of contact with half-spaces. A thread is a pair of a particle and a plane."""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.compliant_kernels import HalfSpaces, contact_force, hinge_integral


@kc.struct
class Particles:
    """Particles as contacts see them, with the other forces on them; `weight` is the inverse mass."""

    x: kc.Array[kc.float3]
    v: kc.Array[kc.float3]
    f: kc.Array[kc.float3]
    weight: kc.Array[float]
    gravity: kc.Array[kc.float3]


@kc.struct
class Planes(HalfSpaces):
    """Pairs of a particle and a half-space."""

    particle: kc.Array[int]


@kc.func
def velocity_ahead(particles: Particles, i: int, weight: float, dt: float) -> kc.float3:
    """The velocity with which the step would end, by all forces but those of contact."""
    return particles.v[i] + (particles.gravity[i] + particles.f[i] * weight) * dt


@kc.kernel
def unit_normals(given: kc.Array[kc.float3], normal: kc.Array[kc.float3]):
    i = kc.tid()
    normal[i] = kc.normalize(given[i])


@kc.kernel
def plane_forces(particles: Particles, p: Planes, dt: float, f_contact: kc.Array[kc.float3]):
    """Push the particle out of the half-space; dampers and friction are taken at the end of the step."""
    r = kc.tid()
    i, n = p.particle[r], p.normal[r]
    gap = kc.dot(n, particles.x[i]) - p.offset[r]
    if gap < p.smoothing[r]:
        w = particles.weight[i]
        ahead = velocity_ahead(particles, i, w, dt)
        force = contact_force(
            gap, ahead, n, p.ke[r], p.kd[r], p.kf[r], p.mu[r], p.law[r], p.touch[r], p.smoothing[r], w * dt
        )
        kc.atomic_add(f_contact, i, force)


@kc.kernel
def plane_stiffness(particle: kc.Array[int], ke: kc.Array[float], k: kc.Array[float]):
    """The hardest contact that each particle can have. Dampers limit no step."""
    r = kc.tid()
    kc.atomic_max(k, particle[r], ke[r])


@kc.kernel
def plane_energies(particles: Particles, p: Planes, e: kc.Array[float]):
    """The energy stored by the spring of the contact."""
    r = kc.tid()
    gap = kc.dot(p.normal[r], particles.x[p.particle[r]]) - p.offset[r]
    e[r] = p.ke[r] * hinge_integral(-gap, p.smoothing[r])
