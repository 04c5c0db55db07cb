"""Edges of bodies that cross the surface of another one between their points.

What touches is the middle of each part of an edge that is inside of the other: how far that is from the surface is the
gap. Where it moves along the edge as the ends of that part move, its gap changes: its slope by the motion of the bodies
has a share of the normals at both ends, so that the spring of the contact has an energy. On a flat side the ends count
for nothing; where two edges cross, all three together push across both of them.

`edges(surface, spans, end)` makes the functions for one family of surfaces. Edges feel nothing before they are inside:
a `smoothing` begins there.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.geometry import EDGE
from nablasim.physics.laws.contact.compliant_kernels import Contact, begun_force, hinge_integral, shared_force
from nablasim.physics.laws.rigid.bodies_kernels import (
    Bodies,
    against,
    gives_way,
    lightness,
    lightness_across,
    velocity_at,
)
from nablasim.physics.laws.rigid.spans_kernels import (
    grid_end,
    grid_spans,
    mesh_end,
    mesh_spans,
    shape_end,
    shape_spans,
)
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces, grid_surface, mesh_surface, shape_surface

GRAZING = 1e-6
"""Sine of the angle below which an edge does not pierce a surface, but runs along it."""
HAIR = 1e-6
"""How far inside normals are taken, as a part of the radius of the ball that holds the body."""
MOST = 0.75
"""The most that an end may count for: in convex bodies it is never above a half, because they are steepest there."""


@kc.func
def paces(bodies: Bodies, b: int, q: kc.quat, lever: kc.float3, n: kc.float3, dt: float, along: float, across: float):
    """How unit forces at all points that share a body change the velocity of one in a step, along n and across it.

    That is added to what the other side of the contact gives way.
    """
    if gives_way(bodies.motion[b]):
        along += bodies.crowd[b].y * lightness(bodies, b, q, lever, n) * dt
        across += bodies.crowd[b].z * lightness_across(bodies, b, q, lever, n) * dt
    return along, across


@kc.func
def relative(bodies: Bodies, a: int, b: int, at: kc.float3) -> kc.float3:
    """The velocity of body a against that of body b at a place in the world."""
    return against(bodies, b, at - bodies.x[b], velocity_at(bodies, a, at - bodies.x[a]))


@kc.func
def is_near(ball: kc.float4, p: kc.float3, d: kc.float3, radius: float) -> bool:
    """Whether the edge p ... p + d comes close to a ball."""
    s = kc.clamp(kc.dot(ball[0:3] - p, d) / max(kc.length_sq(d), 1e-30), 0.0, 1.0)
    return kc.length_sq(p + d * s - ball[0:3]) < (ball.w + radius) * (ball.w + radius)


def edges(surface, spans, end):
    """How the edges of a body meet the surface of another one, of this family."""

    @kc.func
    def pierced(surfaces: Surfaces, b: int, p: kc.float3, d: kc.float3, s: float, f: int, reach: float):
        """An end of a part that is inside, the normal there, and the slope of the distance along the edge; no slope
        where the edge itself ends, or runs along the surface."""
        slope, n = 0.0, kc.float3()
        if f >= 0:
            away, m = end(surfaces, b, p + d * s, f)
            steep = kc.dot(m, d)
            if kc.abs(steep) > GRAZING * kc.length(d):
                s = s - (away - reach) / steep
                # Where surfaces are round, the normal turns as s moves. A hair inside: on the other side of the
                # surface it would be the quotient of two rounding errors.
                _away, n = end(surfaces, b, p + d * s - kc.stop_grad(m * (HAIR * surfaces.bound[b].w)), f)
                slope = kc.dot(n, d)
        return s, n, slope

    @kc.func
    def middle(surfaces: Surfaces, b: int, p: kc.float3, d: kc.float3, radius: float, span: kc.float2, f: kc.int2):
        """The gap in the middle of a part that is inside; and the three places whose normals, of these lengths, are
        its slope: the middle and the ends of the part."""
        s0, n0, slope0 = pierced(surfaces, b, p, d, span.x, f.x, radius)
        s1, n1, slope1 = pierced(surfaces, b, p, d, span.y, f.y, radius)
        s = 0.5 * (s0 + s1)
        away, m = surface(surfaces, b, p + d * s, radius + surfaces.bound[b].w)
        along = 0.5 * kc.dot(m, d)
        if slope0 != 0.0:
            n0 = n0 * kc.clamp(-along / slope0, -MOST, MOST)
        if slope1 != 0.0:
            n1 = n1 * kc.clamp(-along / slope1, -MOST, MOST)
        return away - radius, p + d * s, m, p + d * s0, n0, p + d * s1, n1

    @kc.func
    def push_edge(
        bodies: Bodies, surfaces: Surfaces, c: Contact, r: int, i: int, a: int, b: int, qa: kc.quat, qb: kc.quat,
        dt: float,
    ):  # fmt: skip
        """What edge i of body a touches of body b: the force on a, and the torques of it about the two centres of mass,
        that on a and the opposite of that on b; and the deepest place with its gap. Row r has the numbers."""
        e, points, x = surfaces.edges, surfaces.points, bodies.x
        mass_a, mass_b = x[a] + kc.quat_rotate(qa, bodies.com[a]), x[b] + kc.quat_rotate(qb, bodies.com[b])
        total, turn_a, turn_b, place, deepest = kc.float3(), kc.float3(), kc.float3(), kc.float3(), 0.0
        radius = points.ball[e.ends[i, 0]]
        p = kc.quat_rotate_inv(qb, x[a] + kc.quat_rotate(qa, points.local[e.ends[i, 0]]) - x[b])
        d = kc.quat_rotate_inv(qb, x[a] + kc.quat_rotate(qa, points.local[e.ends[i, 1]]) - x[b]) - p
        P, D, reach = kc.stop_grad(p), kc.stop_grad(d), kc.stop_grad(radius)
        if is_near(surfaces.bound[b], P, D, reach):
            for s0, s1, f0, f1 in spans(surfaces, b, P, D, reach):
                gap, y, m, y0, m0, y1, m1 = middle(surfaces, b, p, d, radius, kc.float2(s0, s1), kc.int2(f0, f1))
                slope = kc.quat_rotate(qb, m + m0 + m1)
                size = kc.length(slope)
                if gap < 0.0 and size > GRAZING:
                    n, n0, n1 = kc.quat_rotate(qb, m), kc.quat_rotate(qb, m0), kc.quat_rotate(qb, m1)
                    at, at0 = x[b] + kc.quat_rotate(qb, y), x[b] + kc.quat_rotate(qb, y0)
                    at1 = x[b] + kc.quat_rotate(qb, y1)
                    touch = at - n * (radius + 0.5 * gap)
                    rate = kc.dot(n, relative(bodies, a, b, at)) + kc.dot(n0, relative(bodies, a, b, at0))
                    rate += kc.dot(n1, relative(bodies, a, b, at1))
                    up = slope / size
                    u = relative(bodies, a, b, touch)
                    velocity = u + up * (rate - kc.dot(u, up))
                    pace, rub = paces(bodies, a, qa, touch - mass_a, up, dt, 0.0, 0.0)
                    pace, rub = paces(bodies, b, qb, touch - mass_b, up, dt, pace, rub)
                    force = kc.float3()
                    if dt > 0.0:  # As of points: friction follows, see rubbing.py.
                        force = begun_force(c, r, EDGE, gap + c.smoothing[r], velocity, up, pace)
                    else:
                        force = shared_force(c, r, EDGE, gap + c.smoothing[r], velocity, up, pace, rub)
                    fn = kc.dot(force, up)
                    across = (force - up * fn) * size
                    total += slope * fn + across
                    turn_a += kc.cross(at - mass_a, n * fn) + kc.cross(at0 - mass_a, n0 * fn)
                    turn_a += kc.cross(at1 - mass_a, n1 * fn) + kc.cross(touch - mass_a, across)
                    turn_b += kc.cross(at - mass_b, n * fn) + kc.cross(at0 - mass_b, n0 * fn)
                    turn_b += kc.cross(at1 - mass_b, n1 * fn) + kc.cross(touch - mass_b, across)
                    if gap < deepest:
                        place, deepest = touch, gap
        return total, turn_a, turn_b, place, deepest

    @kc.func
    def touching(bodies: Bodies, surfaces: Surfaces, a: int, b: int):
        """Where edges of body a are pressed in body b: how far, by a unit of what presses there; the place, the way
        out, and the square of how much the gap changes along it."""
        e, points, x = surfaces.edges, surfaces.points, bodies.x
        qa, qb = kc.normalize(bodies.rot[a]), kc.normalize(bodies.rot[b])
        for i in range(e.start[a], e.start[a] + e.count[a]):
            radius = points.ball[e.ends[i, 0]]
            p = kc.quat_rotate_inv(qb, x[a] + kc.quat_rotate(qa, points.local[e.ends[i, 0]]) - x[b])
            d = kc.quat_rotate_inv(qb, x[a] + kc.quat_rotate(qa, points.local[e.ends[i, 1]]) - x[b]) - p
            P, D, reach = kc.stop_grad(p), kc.stop_grad(d), kc.stop_grad(radius)
            if is_near(surfaces.bound[b], P, D, reach):
                for s0, s1, f0, f1 in spans(surfaces, b, P, D, reach):
                    gap, y, m, _y0, m0, _y1, m1 = middle(
                        surfaces, b, p, d, radius, kc.float2(s0, s1), kc.int2(f0, f1)
                    )
                    slope = kc.quat_rotate(qb, m + m0 + m1)
                    size = kc.length(slope)
                    if gap < 0.0 and size > GRAZING:
                        touch = x[b] + kc.quat_rotate(qb, y) - kc.quat_rotate(qb, m) * (radius + 0.5 * gap)
                        yield gap / size, touch, slope / size, size * size

    @kc.func
    def push(
        bodies: Bodies, surfaces: Surfaces, c: Contact, r: int, a: int, b: int, qa: kc.quat, qb: kc.quat, dt: float
    ):
        """The same of all edges of body a: the force and the two torques."""
        total, turn_a, turn_b = kc.float3(), kc.float3(), kc.float3()
        for i in range(surfaces.edges.start[a], surfaces.edges.start[a] + surfaces.edges.count[a]):
            f, t_a, t_b, _at, _gap = push_edge(bodies, surfaces, c, r, i, a, b, qa, qb, dt)
            total += f
            turn_a += t_a
            turn_b += t_b
        return total, turn_a, turn_b

    @kc.func
    def energy(
        bodies: Bodies, surfaces: Surfaces, c: Contact, r: int, a: int, b: int, qa: kc.quat, qb: kc.quat
    ) -> float:
        """The energy of the springs of all edges of body a in body b."""
        e, points, x, total = surfaces.edges, surfaces.points, bodies.x, 0.0
        for i in range(e.start[a], e.start[a] + e.count[a]):
            radius = points.ball[e.ends[i, 0]]
            p = kc.quat_rotate_inv(qb, x[a] + kc.quat_rotate(qa, points.local[e.ends[i, 0]]) - x[b])
            d = kc.quat_rotate_inv(qb, x[a] + kc.quat_rotate(qa, points.local[e.ends[i, 1]]) - x[b]) - p
            if is_near(surfaces.bound[b], p, d, radius):
                for s0, s1, f0, f1 in spans(surfaces, b, kc.stop_grad(p), kc.stop_grad(d), kc.stop_grad(radius)):
                    gap, _y, _m, _y0, _m0, _y1, _m1 = middle(
                        surfaces, b, p, d, radius, kc.float2(s0, s1), kc.int2(f0, f1)
                    )
                    if gap < 0.0:
                        total += EDGE * c.four[r].x * hinge_integral(-gap - c.smoothing[r], c.smoothing[r])
        return total

    return SimpleNamespace(push=push, push_edge=push_edge, energy=energy, touching=touching)


EDGES = {
    "shape": edges(shape_surface, shape_spans, shape_end),
    "mesh": edges(mesh_surface, mesh_spans, mesh_end),
    "grid": edges(grid_surface, grid_spans, grid_end),
}
