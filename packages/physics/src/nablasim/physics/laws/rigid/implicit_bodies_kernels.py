"""Kernels of rigid bodies in implicit steps: where velocities at the end of a step lead, and what the momenta lack.

A thread is a body. What is solved for is the velocity of the centre of mass and the angular velocity at the end.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.rigid.bodies_kernels import FREE, Bodies, Forces, State, coast, put, total, velocity_at


@kc.func
def spin_momentum(q: kc.quat, inertia: kc.mat33, omega: kc.float3) -> kc.float3:
    """The angular momentum about the centre of mass, in world axes."""
    return kc.quat_rotate(q, inertia * kc.quat_rotate_inv(q, omega))


@kc.kernel
def place_bodies(bodies: Bodies, speed: kc.Array[kc.float3], spin: kc.Array[kc.float3], dt: float, after: State):
    """Backward Euler: the body moves with the velocities of the end of the step, `speed` and `spin`, all the time."""
    b = kc.tid()
    q = kc.normalize(bodies.rot[b])
    to_x, to_q, to_v, to_w = coast(bodies, b, q, dt)
    if bodies.motion[b] == FREE:
        to_q = kc.quat_integrate(q, spin[b], dt)
        to_arm = kc.quat_rotate(to_q, bodies.com[b])
        to_x = bodies.x[b] + kc.quat_rotate(q, bodies.com[b]) + speed[b] * dt - to_arm
        to_v, to_w = speed[b] - kc.cross(spin[b], to_arm), spin[b]
    put(after, b, to_x, to_q, to_v, to_w)


@kc.kernel
def lacking_momenta(
    bodies: Bodies,
    rot_next: kc.Array[kc.quat],
    speed: kc.Array[kc.float3],
    spin: kc.Array[kc.float3],
    forces: Forces,
    rub: Forces | None,
    dt: float,
    of_speed: kc.Array[kc.float3],
    of_spin: kc.Array[kc.float3],
):
    """The momentum and the angular momentum at the end less those that the forces there make of those at the start.

    The gyroscopic term is in that: the inertia turns with the body. Nothing, for a body that forces do not move.
    """
    b = kc.tid()
    by_speed, by_spin = kc.float3(), kc.float3()
    if bodies.motion[b] == FREE:
        q = kc.normalize(bodies.rot[b])
        v_c = velocity_at(bodies, b, kc.quat_rotate(q, bodies.com[b]))
        f, torque = total(forces, rub, b)
        by_speed = (speed[b] - v_c - bodies.gravity[b] * dt) * bodies.mass[b] - f * dt
        L = spin_momentum(q, bodies.inertia[b], bodies.omega[b])
        by_spin = spin_momentum(rot_next[b], bodies.inertia[b], spin[b]) - L - torque * dt
    of_speed[b] = by_speed
    of_spin[b] = by_spin
