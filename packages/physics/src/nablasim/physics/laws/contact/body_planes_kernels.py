"""Kernels of the contact of bodies with half-spaces. A thread is a pair of a point of a body and a plane."""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.compliant_kernels import FIRM, Contact, bounded, hinge_integral, normal_force
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, Points, lightness, velocity_at

LEVEL = 1e-4
"""Square of the sine of the tilt up to which a rim counts as level; there its lowest point moves in from the edge."""


@kc.struct
class Planes:
    """Pairs of a point of a body and a half-space n·x < offset."""

    body: kc.Array[int]
    point: kc.Array[int]
    normal: kc.Array[kc.float3]
    offset: kc.Array[float]
    contact: Contact


@kc.func
def support(points: Points, i: int, q: kc.quat, n: kc.float3) -> kc.float3:
    """From the body's origin to the point of a feature that reaches furthest against n, in world axes.

    A feature is a point, a ball about it, or a circle about the body's y axis. The lowest point of a level circle is
    not defined: near that it is drawn to the centre, so that it moves smoothly.
    """
    arm = kc.quat_rotate(q, points.local[i]) - n * points.ball[i]
    rim = points.rim[i]
    if rim > 0.0:
        axis = kc.quat_rotate(q, kc.float3(0.0, 1.0, 0.0))
        d = axis * kc.dot(n, axis) - n
        arm += d * (rim * kc.sqrt((1.0 + LEVEL) / (kc.length_sq(d) + LEVEL)))
    return arm


@kc.func
def reach(bodies: Bodies, points: Points, p: Planes, r: int):
    """The body and the normal of a row, how the body is turned, and from its origin to where it may touch; the gap."""
    b, n = p.body[r], p.normal[r]
    q = kc.normalize(bodies.rot[b])
    arm = support(points, p.point[r], q, n)
    return b, n, q, arm, kc.dot(n, bodies.x[b] + arm) - p.offset[r]


@kc.func
def push(forces: Forces, press: kc.Array[kc.float4], r: int, b: int, lever: kc.float3, n: kc.float3, fn: float):
    """Push a body along the normal n, at `lever` from its centre of mass, and remember where and how hard."""
    kc.atomic_add(forces.f, b, n * fn)
    kc.atomic_add(forces.torque, b, kc.cross(lever, n * fn))
    press[r] = kc.float4(lever, fn)


@kc.kernel
def body_plane_forces(bodies: Bodies, points: Points, p: Planes, dt: float, forces: Forces, press: kc.Array[kc.float4]):
    """Push the point out of the half-space; the torque is about the centre of mass.

    The damper is bounded, by the inverse mass of the point times how many points share the body. `press` is where the
    point is from the centre of mass, and how hard it is pushed: friction follows when all other forces are known.
    """
    r = kc.tid()
    b, n, q, arm, gap = reach(bodies, points, p, r)
    c, smoothing = p.contact, p.contact.smoothing[r]
    if dt > 0.0 and c.law[r] == FIRM:
        # How hard it is pushed is found for all bodies together; what a step brings closer is met before it is in.
        fall = kc.length(bodies.gravity[b]) * 2.0 * dt
        if gap < max(smoothing, dt * (fall + kc.abs(kc.dot(velocity_at(bodies, b, arm), n)))):
            press[r] = kc.float4(arm - kc.quat_rotate(q, bodies.com[b]), 1.0)
    elif gap < smoothing:
        k = c.four[r]
        lever = arm - kc.quat_rotate(q, bodies.com[b])
        kd = bounded(k.y, bodies.crowd[b].x * lightness(bodies, b, q, lever, n) * dt)
        rate = kc.dot(velocity_at(bodies, b, arm), n)
        fn = normal_force(gap, rate, k.x, kd, c.law[r], c.touch[r], smoothing, 0.0)
        push(forces, press, r, b, lever, n, fn)


@kc.kernel
def body_plane_energies(bodies: Bodies, points: Points, p: Planes, e: kc.Array[float]):
    """The energy stored by the spring of the contact."""
    r = kc.tid()
    _b, _n, _q, _arm, gap = reach(bodies, points, p, r)
    e[r] = p.contact.four[r].x * hinge_integral(-gap, p.contact.smoothing[r])
