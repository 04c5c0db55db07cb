"""Kernels of cloth against cloth: a vertex that is closer to a triangle than the thickness is pushed away from it.

A thread is a vertex; which triangles it touches was found by `touching_kernels.py`. Numbers of a contact are the mean
of what the two cloths have.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.compliant_kernels import contact_force, hinge_integral
from nablasim.physics.laws.contact.touching_kernels import Contacts, Vertices, distance
from nablasim.physics.laws.deformable.particles_kernels import Bounds, Particles, push_four


@kc.func
def numbers_of(vertices: Vertices, one: int, other: int):
    """The thickness (m) and [ke, kd, kf, mu] of a contact."""
    thickness = 0.5 * (vertices.thickness[one] + vertices.thickness[other])
    return thickness, (vertices.four[one] + vertices.four[other]) * 0.5


@kc.func
def force_of(vertices: Vertices, one: int, gap: float, velocity: kc.float3, normal: kc.float3, four: kc.float4):
    """The force on vertex `one`, by its law: see `contact_force`."""
    law, touch, smoothing = vertices.law[one], vertices.touch[one], vertices.smoothing[one]
    return contact_force(gap, velocity, normal, four.x, four.y, four.z, four.w, law, touch, smoothing, 0.0)


@kc.func
def corners_of(vertices: Vertices, corners: kc.Array[int, 2], r: int, t: int) -> kc.int4:
    """The particles of a vertex and of the corners of a triangle."""
    p = vertices.particle
    return kc.int4(p[r], p[corners[t, 0]], p[corners[t, 1]], p[corners[t, 2]])


@kc.func
def touch_forces(p: Particles, who: kc.int4, vertices: Vertices, one: int, other: int):
    """The forces on a vertex and on the three corners of a triangle: no net force and no net torque.

    The vertex rubs against what it would touch if the triangle were thicker: the point q of the triangle nearest to it,
    carried on by the turning of the triangle to where the vertex is. So a fold that spins as a whole is not braked, and
    friction, which acts at a distance from q, is balanced by a couple on the triangle.
    """
    x, a, b, c = p.x[who.x], p.x[who.y], p.x[who.z], p.x[who.w]
    v, va, vb, vc = p.v[who.x], p.v[who.y], p.v[who.z], p.v[who.w]
    thickness, four = numbers_of(vertices, one, other)
    w = kc.closest_point_triangle(x, a, b, c)
    r = x - (a * w.x + b * w.y + c * w.z)
    twice = kc.cross(b - a, c - a)
    size = kc.length(twice)
    N = kc.normalize(twice)
    scale = 1.0 / size if size > 0.0 else 0.0
    # Gradients of the shape functions; with them the turning of the triangle from the velocities of its corners.
    ga, gb, gc = kc.cross(N, c - b) * scale, kc.cross(N, a - c) * scale, kc.cross(N, b - a) * scale
    curl = kc.cross(ga, va) + kc.cross(gb, vb) + kc.cross(gc, vc)
    spin = curl - N * (0.5 * kc.dot(N, curl))
    u = v - (va * w.x + vb * w.y + vc * w.z) - kc.cross(spin, r)
    gap, normal = kc.length(r) - thickness, kc.normalize(r)
    force = force_of(vertices, one, gap, u, normal, four)
    torque = kc.cross(force, r)
    couple = torque - N * (0.5 * kc.dot(N, torque))
    return (
        force,
        kc.cross(couple, ga) - force * w.x,
        kc.cross(couple, gb) - force * w.y,
        kc.cross(couple, gc) - force * w.z,
    )


@kc.kernel
def self_contact_forces(
    p: Particles, vertices: Vertices, corners: kc.Array[int, 2], contacts: Contacts, f: kc.Array[kc.float3]
):
    """Add the forces of all contacts of a vertex to it and to the corners of the triangles."""
    r = kc.tid()
    for n in range(contacts.start[r], contacts.start[r + 1]):
        t = contacts.other[n]
        who = corners_of(vertices, corners, r, t)
        fi, fa, fb, fc = touch_forces(p, who, vertices, r, corners[t, 0])
        push_four(f, who, fi, fa, fb, fc)


@kc.kernel
def self_contact_energies(
    x: kc.Array[kc.float3], vertices: Vertices, corners: kc.Array[int, 2], contacts: Contacts, e: kc.Array[float]
):
    """The energy stored by the springs of the contacts of each vertex."""
    r, total = kc.tid(), 0.0
    for n in range(contacts.start[r], contacts.start[r + 1]):
        t = contacts.other[n]
        who = corners_of(vertices, corners, r, t)
        thickness, four = numbers_of(vertices, r, corners[t, 0])
        depth = thickness - distance(x[who.x], x[who.y], x[who.z], x[who.w])
        total += four.x * hinge_integral(depth, vertices.smoothing[r])
    e[r] = total


@kc.kernel
def self_contact_stiffness(vertices: Vertices, around: kc.Array[int], bounds: Bounds):
    """A vertex upon a vertex of another layer: each touches all triangles around the other one.

    No edge crosses there. Elsewhere a vertex touches one triangle, and its edges cross about two others each, half-way:
    about two thirds of this.
    """
    r = kc.tid()
    i, many, four = vertices.particle[r], 4.0 * float(around[r]), vertices.four[r]
    kc.atomic_max(bounds.k, i, many * four.x)
    kc.atomic_max(bounds.c, i, many * max(four.y, four.z))
