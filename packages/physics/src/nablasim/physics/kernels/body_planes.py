"""Kernels of the contact of bodies with half-spaces. A thread is a pair of a point of a body and a plane."""

import kernelc as kc
from nablasim.physics.kernels.bodies import lightness
from nablasim.physics.kernels.contact import bounded, hinge_integral, normal_force

LEVEL = 1e-4
"""Square of the sine of the tilt up to which a rim counts as level; there its lowest point moves in from the edge."""


@kc.func
def support(q: kc.quat, local: kc.float3, ball: float, rim: float, n: kc.float3) -> kc.float3:
    """From the body's origin to the point of a feature that reaches furthest against n, in world axes.

    A feature is a point, a ball about it, or a circle about the body's y axis. The lowest point of a level circle is
    not defined: near that it is drawn to the centre, so that it moves smoothly.
    """
    arm = kc.quat_rotate(q, local) - n * ball
    if rim > 0.0:
        axis = kc.quat_rotate(q, kc.float3(0.0, 1.0, 0.0))
        d = axis * kc.dot(n, axis) - n
        arm += d * (rim * kc.sqrt((1.0 + LEVEL) / (kc.length_sq(d) + LEVEL)))
    return arm


@kc.kernel
def body_plane_forces(
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    com: kc.Array[kc.float3],
    mass: kc.Array[float],
    inverse: kc.Array[kc.mat33],
    crowd: kc.Array[kc.float3],
    dt: float,
    local: kc.Array[kc.float3],
    ball: kc.Array[float],
    rim: kc.Array[float],
    body: kc.Array[int],
    point: kc.Array[int],
    normal: kc.Array[kc.float3],
    offset: kc.Array[float],
    four: kc.Array[kc.float4],
    law: kc.Array[int],
    touch: kc.Array[float],
    smoothing: kc.Array[float],
    f: kc.Array[kc.float3],
    torque: kc.Array[kc.float3],
    press: kc.Array[kc.float4],
):
    """Push the point out of the half-space n·x < offset; the torque is about the centre of mass.

    The damper is bounded, by the inverse mass of the point times how many points share the body. `press` is where the
    point is from the centre of mass, and how hard it is pushed: friction follows when all other forces are known.
    """
    r = kc.tid()
    b, i, n = body[r], point[r], normal[r]
    q = kc.normalize(rot[b])
    arm = support(q, local[i], ball[i], rim[i], n)
    gap = kc.dot(n, x[b] + arm) - offset[r]
    if gap < smoothing[r]:
        k = four[r]
        velocity = v[b] + kc.cross(omega[b], arm)
        lever = arm - kc.quat_rotate(q, com[b])
        kd = bounded(k.y, crowd[b].x * lightness(q, lever, n, mass[b], inverse[b]) * dt)
        fn = normal_force(gap, kc.dot(velocity, n), k.x, kd, law[r], touch[r], smoothing[r], 0.0)
        kc.atomic_add(f, b, n * fn)
        kc.atomic_add(torque, b, kc.cross(lever, n * fn))
        press[r] = kc.float4(lever.x, lever.y, lever.z, fn)


@kc.kernel
def body_plane_energies(
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    local: kc.Array[kc.float3],
    ball: kc.Array[float],
    rim: kc.Array[float],
    body: kc.Array[int],
    point: kc.Array[int],
    normal: kc.Array[kc.float3],
    offset: kc.Array[float],
    four: kc.Array[kc.float4],
    smoothing: kc.Array[float],
    e: kc.Array[float],
):
    """The energy stored by the spring of the contact."""
    r = kc.tid()
    b, i, n = body[r], point[r], normal[r]
    arm = support(kc.normalize(rot[b]), local[i], ball[i], rim[i], n)
    e[r] = four[r].x * hinge_integral(offset[r] - kc.dot(n, x[b] + arm), smoothing[r])
