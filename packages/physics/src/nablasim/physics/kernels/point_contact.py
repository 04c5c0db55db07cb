"""Kernels of points against points: two that are closer than the thickness are pushed apart, and damped.

They do not rub: points have no spin, and a force across the line between them would turn both.

A thread is a point; which others it touches was found by `near_points.py`. Numbers of a contact are the mean of what
the two have.
"""

import kernelc as kc
from nablasim.physics.kernels.contact import hinge_integral, normal_force


@kc.kernel
def point_contact_forces(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    particle: kc.Array[int],
    thickness: kc.Array[float],
    four: kc.Array[kc.float4],
    law: kc.Array[int],
    touch: kc.Array[float],
    smoothing: kc.Array[float],
    vertex: kc.Array[int],
    start: kc.Array[int],
    other: kc.Array[int],
    f: kc.Array[kc.float3],
):
    """Add the forces of all contacts of a point to it and to the others."""
    i = kc.tid()
    a = vertex[i]
    p, q, total = x[particle[a]], v[particle[a]], kc.float3()
    for n in range(start[i], start[i + 1]):
        b = vertex[other[n]]
        r, numbers = p - x[particle[b]], (four[a] + four[b]) * 0.5
        normal, gap = kc.normalize(r), kc.length(r) - 0.5 * (thickness[a] + thickness[b])
        rate = kc.dot(q - v[particle[b]], normal)
        force = normal * normal_force(gap, rate, numbers.x, numbers.y, law[a], touch[a], smoothing[a], 0.0)
        total += force
        kc.atomic_sub(f, particle[b], force)
    kc.atomic_add(f, particle[a], total)


@kc.kernel
def point_contact_energies(
    x: kc.Array[kc.float3],
    particle: kc.Array[int],
    thickness: kc.Array[float],
    four: kc.Array[kc.float4],
    smoothing: kc.Array[float],
    vertex: kc.Array[int],
    start: kc.Array[int],
    other: kc.Array[int],
    e: kc.Array[float],
):
    """The energy stored by the springs of the contacts of each point."""
    i = kc.tid()
    a, total = vertex[i], 0.0
    for n in range(start[i], start[i + 1]):
        b = vertex[other[n]]
        depth = 0.5 * (thickness[a] + thickness[b]) - kc.length(x[particle[a]] - x[particle[b]])
        total += 0.5 * (four[a].x + four[b].x) * hinge_integral(depth, smoothing[a])
    e[i] = total
