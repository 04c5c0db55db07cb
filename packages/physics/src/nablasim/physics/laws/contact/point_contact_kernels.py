"""Kernels of points against points: two that are closer than the thickness are pushed apart, and damped.

They do not rub: points have no spin, and a force across the line between them would turn both.

A thread is a point; which others it touches was found by `near_points_kernels.py`. Numbers of a contact are the mean of
what the two have.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.compliant_kernels import hinge_integral, normal_force
from nablasim.physics.laws.contact.self_contact_kernels import numbers_of
from nablasim.physics.laws.contact.touching_kernels import Contacts, Vertices
from nablasim.physics.laws.deformable.particles_kernels import Particles


@kc.kernel
def point_contact_forces(
    p: Particles, vertices: Vertices, vertex: kc.Array[int], contacts: Contacts, f: kc.Array[kc.float3]
):
    """Add the forces of all contacts of a point to it and to the others."""
    r = kc.tid()
    a = vertex[r]
    i, law, touch, smoothing = vertices.particle[a], vertices.law[a], vertices.touch[a], vertices.smoothing[a]
    total = kc.float3()
    for n in range(contacts.start[r], contacts.start[r + 1]):
        b = vertex[contacts.other[n]]
        j = vertices.particle[b]
        thickness, four = numbers_of(vertices, a, b)
        d = p.x[i] - p.x[j]
        normal, gap = kc.normalize(d), kc.length(d) - thickness
        rate = kc.dot(p.v[i] - p.v[j], normal)
        force = normal * normal_force(gap, rate, four.x, four.y, law, touch, smoothing, 0.0)
        total += force
        kc.atomic_sub(f, j, force)
    kc.atomic_add(f, i, total)


@kc.kernel
def point_contact_energies(
    x: kc.Array[kc.float3], vertices: Vertices, vertex: kc.Array[int], contacts: Contacts, e: kc.Array[float]
):
    """The energy stored by the springs of the contacts of each point."""
    r, total = kc.tid(), 0.0
    a = vertex[r]
    for n in range(contacts.start[r], contacts.start[r + 1]):
        b = vertex[contacts.other[n]]
        thickness, four = numbers_of(vertices, a, b)
        depth = thickness - kc.length(x[vertices.particle[a]] - x[vertices.particle[b]])
        total += four.x * hinge_integral(depth, vertices.smoothing[a])
    e[r] = total
