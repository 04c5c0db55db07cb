"""Kernels of cloth against cloth where edges cross: two edges that are closer than the thickness are pushed apart.

The spring of a crossing stores w ke p² / 2, with the depth p below the thickness and a weight w between 0 and 1. It is
1 where the four ends of the edges are to the side of the other edge by more than half of the thickness, and falls to 0
as one of them comes to lie on it: there its vertex meets triangles. Parallel edges are met by their ends alone. So
nothing jumps where a crossing comes or goes, and what vertices see is not counted a second time.

A thread is an edge; which others it crosses was found by `crossing_kernels.py`. Numbers of a contact are the mean of
what the two surfaces have.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.compliant_kernels import hinge_integral
from nablasim.physics.laws.contact.crossing_kernels import crossing
from nablasim.physics.laws.contact.self_contact_kernels import force_of, numbers_of
from nablasim.physics.laws.contact.touching_kernels import Contacts, Vertices
from nablasim.physics.laws.deformable.particles_kernels import Particles, push_four


@kc.func
def fade(x: float) -> float:
    """From 0 to 1 for x from 0 to 1, twice continuously differentiable."""
    y = kc.clamp(x, 0.0, 1.0)
    return y * y * y * (10.0 + y * (6.0 * y - 15.0))


@kc.func
def fade_slope(x: float) -> float:
    y = kc.clamp(x, 0.0, 1.0)
    return 30.0 * y * y * (1.0 - y) * (1.0 - y)


@kc.func
def weight(s: float, width: float):
    """What of a crossing at the part s of an edge the ends leave, its slopes by s and by log(width).

    `width` is how far the edge reaches across the other one, over the length of the fading.
    """
    one, other = s * width, (1.0 - s) * width
    by_one, by_other = fade_slope(one) * fade(other), fade(one) * fade_slope(other)
    return fade(one) * fade(other), (by_one - by_other) * width, by_one * one + by_other * other


@kc.func
def ends_of(vertices: Vertices, ends: kc.Array[int, 2], i: int, j: int) -> kc.int4:
    """The particles of two edges."""
    p = vertices.particle
    return kc.int4(p[ends[i, 0]], p[ends[i, 1]], p[ends[j, 0]], p[ends[j, 1]])


@kc.func
def crossing_forces(p: Particles, who: kc.int4, vertices: Vertices, one: int, other: int):
    """The forces on the ends of two edges that cross: no net force and no net torque.

    The edges rub as fast as the crossing runs along them. That is the velocity of one against the other without the
    turning of their common normal, so that a fold that spins as a whole is not braked. In turn, what turns the normal
    takes up the torque of friction, which acts at a distance.
    """
    p1, q1, p2, q2 = p.x[who.x], p.x[who.y], p.x[who.z], p.x[who.w]
    vp1, vq1, vp2, vq2 = p.v[who.x], p.v[who.y], p.v[who.z], p.v[who.w]
    thickness, four = numbers_of(vertices, one, other)
    N, D1, D2, s, t, width1, width2 = crossing(p1, q1, p2, q2)
    d1, d2 = q1 - p1, q2 - p2
    signed = kc.dot(p1 - p2, N)
    side = 1.0 if signed >= 0.0 else -1.0
    gap = kc.abs(signed) - thickness
    w1, by_s, by_width1 = weight(s, 2.0 * width1 / thickness)
    w2, by_t, by_width2 = weight(t, 2.0 * width2 / thickness)
    w = w1 * w2
    turning = -D1 * kc.dot(N, vq1 - vp1) - D2 * kc.dot(N, vq2 - vp2)
    u = vp1 + (vq1 - vp1) * s - vp2 - (vq2 - vp2) * t - turning * signed
    weighted = kc.float4(four.x * w, four.y * w, four.z * w, four.w)
    force = force_of(vertices, one, gap, u, N * side, weighted)
    # The spring gives way to the sides, too, where its weight falls: a change of the weight is work.
    stored = four.x * hinge_integral(-gap, vertices.smoothing[one])
    slide1, slide2 = stored * by_s * w2, stored * w1 * by_t
    spread1, spread2 = stored * by_width1 * w2, stored * w1 * by_width2
    force += D1 * slide1 - D2 * slide2
    turn1 = N * (signed * kc.dot(force, D1)) - D1 * (spread1 + spread2) + d1 * (spread2 / kc.length_sq(d1))
    turn2 = N * (signed * kc.dot(force, D2)) - D2 * (spread1 + spread2) + d2 * (spread1 / kc.length_sq(d2))
    return (
        force * (1.0 - s) - turn1,
        force * s + turn1,
        force * (t - 1.0) - turn2,
        -force * t + turn2,
    )


@kc.kernel
def edge_contact_forces(
    p: Particles, vertices: Vertices, ends: kc.Array[int, 2], contacts: Contacts, f: kc.Array[kc.float3]
):
    """Add the forces of all crossings of an edge to its ends and to those of the others."""
    r = kc.tid()
    for n in range(contacts.start[r], contacts.start[r + 1]):
        crossed = contacts.other[n]
        who = ends_of(vertices, ends, r, crossed)
        fa, fb, fc, fd = crossing_forces(p, who, vertices, ends[r, 0], ends[crossed, 0])
        push_four(f, who, fa, fb, fc, fd)


@kc.kernel
def edge_contact_energies(
    x: kc.Array[kc.float3], vertices: Vertices, ends: kc.Array[int, 2], contacts: Contacts, e: kc.Array[float]
):
    """The energy stored by the springs of the crossings of each edge."""
    r, total = kc.tid(), 0.0
    for n in range(contacts.start[r], contacts.start[r + 1]):
        crossed = contacts.other[n]
        who = ends_of(vertices, ends, r, crossed)
        thick, four = numbers_of(vertices, ends[r, 0], ends[crossed, 0])
        N, _D1, _D2, s, t, width1, width2 = crossing(x[who.x], x[who.y], x[who.z], x[who.w])
        w1, _by_s, _by_width1 = weight(s, 2.0 * width1 / thick)
        w2, _by_t, _by_width2 = weight(t, 2.0 * width2 / thick)
        depth = thick - kc.abs(kc.dot(x[who.x] - x[who.z], N))
        total += four.x * w1 * w2 * hinge_integral(depth, vertices.smoothing[ends[r, 0]])
    e[r] = total
