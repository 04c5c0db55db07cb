"""Kernels of rigid bodies in implicit steps: where velocities at the end of a step lead, and what the momenta lack.

A thread is a body. What is solved for is the velocity of the centre of mass and the angular velocity at the end.
"""

import kernelc as kc
from nablasim.physics.kernels.bodies import DRIVEN, FREE


@kc.func
def spin_momentum(q: kc.quat, inertia: kc.mat33, omega: kc.float3) -> kc.float3:
    """The angular momentum about the centre of mass, in world axes."""
    return kc.quat_rotate(q, inertia * kc.quat_rotate_inv(q, omega))


@kc.kernel
def place_bodies(
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    com: kc.Array[kc.float3],
    motion: kc.Array[int],
    speed: kc.Array[kc.float3],
    spin: kc.Array[kc.float3],
    dt: float,
    x_next: kc.Array[kc.float3],
    rot_next: kc.Array[kc.quat],
    v_next: kc.Array[kc.float3],
    omega_next: kc.Array[kc.float3],
):
    """Backward Euler: the body moves with the velocities of the end of the step, `speed` and `spin`, all the time."""
    b = kc.tid()
    q = kc.normalize(rot[b])
    to_x, to_q = x[b], q
    to_v, to_w = kc.float3(), kc.float3()
    if motion[b] == FREE:
        to_q = kc.quat_integrate(q, spin[b], dt)
        to_arm = kc.quat_rotate(to_q, com[b])
        to_x = x[b] + kc.quat_rotate(q, com[b]) + speed[b] * dt - to_arm
        to_v, to_w = speed[b] - kc.cross(spin[b], to_arm), spin[b]
    elif motion[b] == DRIVEN:
        to_x = x[b] + v[b] * dt
        to_q = kc.quat_integrate(q, omega[b], dt)
        to_v, to_w = v[b], omega[b]
    x_next[b] = to_x
    rot_next[b] = to_q
    v_next[b] = to_v
    omega_next[b] = to_w


@kc.kernel
def lacking_momenta(
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    gravity: kc.Array[kc.float3],
    mass: kc.Array[float],
    com: kc.Array[kc.float3],
    inertia: kc.Array[kc.mat33],
    motion: kc.Array[int],
    rot_next: kc.Array[kc.quat],
    speed: kc.Array[kc.float3],
    spin: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    torque: kc.Array[kc.float3],
    f_contact: kc.Array[kc.float3],
    torque_contact: kc.Array[kc.float3],
    dt: float,
    of_speed: kc.Array[kc.float3],
    of_spin: kc.Array[kc.float3],
):
    """The momentum and the angular momentum at the end less those that the forces there make of those at the start.

    The gyroscopic term is in that: the inertia turns with the body. Nothing, for a body that forces do not move.
    """
    b = kc.tid()
    by_speed, by_spin = kc.float3(), kc.float3()
    if motion[b] == FREE:
        q = kc.normalize(rot[b])
        v_c = v[b] + kc.cross(omega[b], kc.quat_rotate(q, com[b]))
        by_speed = (speed[b] - v_c - gravity[b] * dt) * mass[b] - (f[b] + f_contact[b]) * dt
        L = spin_momentum(q, inertia[b], omega[b])
        by_spin = spin_momentum(rot_next[b], inertia[b], spin[b]) - L - (torque[b] + torque_contact[b]) * dt
    of_speed[b] = by_speed
    of_spin[b] = by_spin
