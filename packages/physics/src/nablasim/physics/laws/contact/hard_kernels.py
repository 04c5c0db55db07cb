"""Kernels of hard contact with half-spaces: nothing is inside at the end of a step, and friction holds up to its cap.

There is no spring: the force is the one that the step needs. A point with the inverse mass w that would end the step at
the gap C and the velocity v is pushed by -C / (dt² w), and held by at most mu times that against |v_t| / (dt w).
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact import planes_kernels as of_particles
from nablasim.physics.laws.contact.body_planes_kernels import Planes, push, reach
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, Points, lightness, velocity_at

HARD = 2
"""The number of this law, behind those of compliant_kernels.py."""
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
    particles: of_particles.Particles, p: of_particles.Planes, dt: float, f_contact: kc.Array[kc.float3]
):
    """Keep a particle out of the half-space n·x < offset. A thread is a pair of a particle and a plane."""
    r = kc.tid()
    i, n = p.particle[r], p.normal[r]
    w = particles.weight[i]
    ahead = of_particles.velocity_ahead(particles, i, w, dt)
    lack = p.offset[r] - kc.dot(n, particles.x[i] + ahead * dt)
    if p.law[r] == HARD and lack > 0.0 and w * dt > 0.0:
        kc.atomic_add(f_contact, i, hard_force(lack, ahead, n, p.mu[r], dt, w))


@kc.func
def body_lack(bodies: Bodies, points: Points, p: Planes, r: int, dt: float):
    """The body and the normal of a row, how the body is turned, where its point is from the centre of mass, and how
    far it would be inside at the end of the step, of which bodies make good a part; nothing if the contact is not hard.
    """
    b, n, q, arm, gap = reach(bodies, points, p, r)
    ahead = velocity_at(bodies, b, arm) + bodies.gravity[b] * dt
    if gap < 0.0:
        gap = SHARE * gap
    lack = -(gap + kc.dot(n, ahead) * dt) if p.contact.law[r] == HARD else 0.0
    return b, n, q, arm - kc.quat_rotate(q, bodies.com[b]), lack


@kc.kernel
def hard_body_weights(bodies: Bodies, points: Points, p: Planes, dt: float, weights: kc.Array[float]):
    """Add up the inverse masses along the normal of all points of a body that touch in this step.

    Each of them pushes as if it had to move all of that: together they never push too far. A thread is a pair of a
    point of a body and a plane.
    """
    r = kc.tid()
    b, n, q, lever, lack = body_lack(bodies, points, p, r, dt)
    if lack > 0.0:
        kc.atomic_add(weights, b, lightness(bodies, b, q, lever, n))


@kc.kernel
def hard_body_forces(
    bodies: Bodies,
    points: Points,
    p: Planes,
    dt: float,
    weights: kc.Array[float],
    forces: Forces,
    press: kc.Array[kc.float4],
):
    """Keep the points of a body out of the half-space; torque is about the centre of mass, `press` as of springs."""
    r = kc.tid()
    b, n, _q, lever, lack = body_lack(bodies, points, p, r, dt)
    if lack > 0.0 and dt > 0.0:
        push(forces, press, r, b, lever, n, lack / (dt * dt * weights[b]))
