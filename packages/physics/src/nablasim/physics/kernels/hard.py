"""Kernels of hard contact with half-spaces: nothing is inside at the end of a step, and friction holds up to its cap.

There is no spring: the force is the one that the step needs. A point with the inverse mass w that would end the step at
the gap C and the velocity v is pushed by -C / (dt² w), and held by at most mu times that against |v_t| / (dt w).
"""

import kernelc as kc
from nablasim.physics.kernels.bodies import lightness
from nablasim.physics.kernels.body_planes import support

HARD = 2
"""The number of this law, behind those of kernels/contact.py."""
SHARE = 0.2
"""The part of a penetration that bodies make good in one step: all of it at once would throw them up."""


@kc.func
def hard_force(lack: float, velocity: kc.float3, normal: kc.float3, mu: float, dt: float, weight: float) -> kc.float3:
    """The force on a particle that would lack a length in the normal's direction, with the velocity of the step's end.

    weight: its inverse mass.
    """
    fn = lack / (dt * dt * weight)
    u = velocity - normal * kc.dot(velocity, normal)
    slip, most = kc.length(u), mu * fn
    factor = 1.0 / (dt * weight)
    if factor * slip > most:
        factor = most / slip
    return normal * fn - u * factor


@kc.kernel
def hard_plane_forces(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    weight: kc.Array[float],
    gravity: kc.Array[kc.float3],
    dt: float,
    particle: kc.Array[int],
    normal: kc.Array[kc.float3],
    offset: kc.Array[float],
    mu: kc.Array[float],
    law: kc.Array[int],
    f_contact: kc.Array[kc.float3],
):
    """Keep a particle out of the half-space n·x < offset. A thread is a pair of a particle and a plane."""
    r = kc.tid()
    i, n = particle[r], normal[r]
    w = weight[i]
    ahead = v[i] + (gravity[i] + f[i] * w) * dt
    lack = offset[r] - kc.dot(n, x[i] + ahead * dt)
    if law[r] == HARD and lack > 0.0 and w * dt > 0.0:
        kc.atomic_add(f_contact, i, hard_force(lack, ahead, n, mu[r], dt, w))


@kc.func
def body_lack(
    x: kc.float3,
    arm: kc.float3,
    v: kc.float3,
    omega: kc.float3,
    gravity: kc.float3,
    n: kc.float3,
    offset: float,
    dt: float,
):
    """How far a point of a body would be inside, of which bodies make good a part."""
    ahead = v + kc.cross(omega, arm) + gravity * dt
    gap = kc.dot(n, x + arm) - offset
    if gap < 0.0:
        gap = SHARE * gap
    return -(gap + kc.dot(n, ahead) * dt)


@kc.kernel
def hard_body_weights(
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    gravity: kc.Array[kc.float3],
    com: kc.Array[kc.float3],
    mass: kc.Array[float],
    inverse: kc.Array[kc.mat33],
    local: kc.Array[kc.float3],
    ball: kc.Array[float],
    rim: kc.Array[float],
    dt: float,
    body: kc.Array[int],
    point: kc.Array[int],
    normal: kc.Array[kc.float3],
    offset: kc.Array[float],
    law: kc.Array[int],
    weights: kc.Array[float],
):
    """Add up the inverse masses along the normal of all points of a body that touch in this step.

    Each of them pushes as if it had to move all of that: together they never push too far. A thread is a pair of a
    point of a body and a plane.
    """
    r = kc.tid()
    b, i, n = body[r], point[r], normal[r]
    q = kc.normalize(rot[b])
    arm = support(q, local[i], ball[i], rim[i], n)
    lack = body_lack(x[b], arm, v[b], omega[b], gravity[b], n, offset[r], dt)
    if law[r] == HARD and lack > 0.0:
        lever = arm - kc.quat_rotate(q, com[b])
        kc.atomic_add(weights, b, lightness(q, lever, n, mass[b], inverse[b]))


@kc.kernel
def hard_body_forces(
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    gravity: kc.Array[kc.float3],
    com: kc.Array[kc.float3],
    local: kc.Array[kc.float3],
    ball: kc.Array[float],
    rim: kc.Array[float],
    dt: float,
    body: kc.Array[int],
    point: kc.Array[int],
    normal: kc.Array[kc.float3],
    offset: kc.Array[float],
    law: kc.Array[int],
    weights: kc.Array[float],
    f: kc.Array[kc.float3],
    torque: kc.Array[kc.float3],
    press: kc.Array[kc.float4],
):
    """Keep the points of a body out of the half-space; torque is about the centre of mass, `press` as of springs."""
    r = kc.tid()
    b, i, n = body[r], point[r], normal[r]
    q = kc.normalize(rot[b])
    arm = support(q, local[i], ball[i], rim[i], n)
    lack = body_lack(x[b], arm, v[b], omega[b], gravity[b], n, offset[r], dt)
    if law[r] == HARD and lack > 0.0 and dt > 0.0:
        lever, fn = arm - kc.quat_rotate(q, com[b]), lack / (dt * dt * weights[b])
        kc.atomic_add(f, b, n * fn)
        kc.atomic_add(torque, b, kc.cross(lever, n * fn))
        press[r] = kc.float4(lever.x, lever.y, lever.z, fn)
