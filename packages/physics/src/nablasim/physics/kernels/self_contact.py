"""Kernels of cloth against cloth: a vertex that is closer to a triangle than the thickness is pushed away from it.

A thread is a vertex; which triangles it touches was found by `touching.py`. Numbers of a contact are the mean of what
the two cloths have.
"""

import kernelc as kc
from nablasim.physics.kernels.contact import contact_force, hinge_integral


@kc.func
def touch_forces(
    p: kc.float3,
    a: kc.float3,
    b: kc.float3,
    c: kc.float3,
    vp: kc.float3,
    va: kc.float3,
    vb: kc.float3,
    vc: kc.float3,
    thickness: float,
    four: kc.float4,
    law: int,
    touch: float,
    smoothing: float,
):
    """The forces on a vertex and on the three corners of a triangle: no net force and no net torque.

    The vertex rubs against what it would touch if the triangle were thicker: the point q of the triangle nearest to it,
    carried on by the turning of the triangle to where the vertex is. So a fold that spins as a whole is not braked, and
    friction, which acts at a distance from q, is balanced by a couple on the triangle.
    """
    w = kc.closest_point_triangle(p, a, b, c)
    r = p - (a * w.x + b * w.y + c * w.z)
    twice = kc.cross(b - a, c - a)
    size = kc.length(twice)
    N = kc.normalize(twice)
    scale = 1.0 / size if size > 0.0 else 0.0
    # Gradients of the shape functions; with them the turning of the triangle from the velocities of its corners.
    ga, gb, gc = kc.cross(N, c - b) * scale, kc.cross(N, a - c) * scale, kc.cross(N, b - a) * scale
    curl = kc.cross(ga, va) + kc.cross(gb, vb) + kc.cross(gc, vc)
    spin = curl - N * (0.5 * kc.dot(N, curl))
    u = vp - (va * w.x + vb * w.y + vc * w.z) - kc.cross(spin, r)
    gap, normal = kc.length(r) - thickness, kc.normalize(r)
    force = contact_force(gap, u, normal, four.x, four.y, four.z, four.w, law, touch, smoothing, 0.0)
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
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    particle: kc.Array[int],
    thickness: kc.Array[float],
    four: kc.Array[kc.float4],
    law: kc.Array[int],
    touch: kc.Array[float],
    smoothing: kc.Array[float],
    corners: kc.Array[int, 2],
    start: kc.Array[int],
    triangle: kc.Array[int],
    f: kc.Array[kc.float3],
):
    """Add the forces of all contacts of a vertex to it and to the corners of the triangles."""
    r = kc.tid()
    for n in range(start[r], start[r + 1]):
        t = triangle[n]
        first = corners[t, 0]
        i, a, b, c = particle[r], particle[first], particle[corners[t, 1]], particle[corners[t, 2]]
        thick, numbers = 0.5 * (thickness[r] + thickness[first]), (four[r] + four[first]) * 0.5
        fi, fa, fb, fc = touch_forces(
            x[i], x[a], x[b], x[c], v[i], v[a], v[b], v[c], thick, numbers, law[r], touch[r], smoothing[r]
        )
        kc.atomic_add(f, i, fi)
        kc.atomic_add(f, a, fa)
        kc.atomic_add(f, b, fb)
        kc.atomic_add(f, c, fc)


@kc.kernel
def self_contact_energies(
    x: kc.Array[kc.float3],
    particle: kc.Array[int],
    thickness: kc.Array[float],
    four: kc.Array[kc.float4],
    smoothing: kc.Array[float],
    corners: kc.Array[int, 2],
    start: kc.Array[int],
    triangle: kc.Array[int],
    e: kc.Array[float],
):
    """The energy stored by the springs of the contacts of each vertex."""
    r = kc.tid()
    p, total = x[particle[r]], 0.0
    for n in range(start[r], start[r + 1]):
        t = triangle[n]
        first = corners[t, 0]
        a, b, c = x[particle[first]], x[particle[corners[t, 1]]], x[particle[corners[t, 2]]]
        w = kc.closest_point_triangle(p, a, b, c)
        depth = 0.5 * (thickness[r] + thickness[first]) - kc.length(p - (a * w.x + b * w.y + c * w.z))
        total += 0.5 * (four[r].x + four[first].x) * hinge_integral(depth, smoothing[r])
    e[r] = total


@kc.kernel
def self_contact_stiffness(
    particle: kc.Array[int],
    around: kc.Array[int],
    four: kc.Array[kc.float4],
    k: kc.Array[float],
    c: kc.Array[float],
):
    """A vertex upon a vertex of another layer: each touches all triangles around the other one.

    No edge crosses there. Elsewhere a vertex touches one triangle, and its edges cross about two others each, half-way:
    about two thirds of this.
    """
    r = kc.tid()
    i, many = particle[r], 4.0 * float(around[r])
    kc.atomic_max(k, i, many * four[r].x)
    kc.atomic_max(c, i, many * max(four[r].y, four[r].z))
