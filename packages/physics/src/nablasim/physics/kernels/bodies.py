"""Kernels of rigid bodies: mass from shape and density, one step of the motion, energy. A thread is a body.

A body's frame is that of its shape: x is where the frame's origin is, rot (x, y, z, w) how it is turned, v the velocity
of the origin, omega the angular velocity, both in world axes. Forces act on the centre of mass, which lies at `com` in
the body's frame: v_c = v + omega × (R com).
"""

import kernelc as kc
from nablasim.physics.kernels.shapes import shape_moments

MESH = 5
GRID = 6
"""Kinds of shapes go on from kernels/shapes.py: a closed surface of triangles, signed distances on a grid."""

NONE = -1e30
"""Stands for a number that was not given, where zero could be meant."""

FREE = 0
HELD = 1
DRIVEN = 2
"""How a body moves: by the forces on it; not at all; with the velocities that it has, whatever pushes it."""


@kc.kernel
def body_sizes(a: kc.Array[float], b: kc.Array[float], c: kc.Array[float], size: kc.Array[kc.float3]):
    """The sizes of a shape as kernels take them."""
    i = kc.tid()
    size[i] = kc.float3(a[i], b[i], c[i])


@kc.kernel
def body_points(
    vertex: kc.Array[kc.float3],
    spread: kc.Array[kc.mat33],
    round: kc.Array[kc.float2],
    body: kc.Array[int],
    size: kc.Array[kc.float3],
    local: kc.Array[kc.float3],
    ball: kc.Array[float],
    rim: kc.Array[float],
):
    """Where the points of a body are in its frame: vertices of a mesh, or a linear map of the sizes of its shape.

    A point may be the centre of a ball, or of a circle about the body's y axis (`rim`): see `support`.
    """
    i = kc.tid()
    s = size[body[i]]
    local[i] = vertex[i] + spread[i] * s
    ball[i] = round[i].x * s.x
    rim[i] = round[i].y * s.x


@kc.kernel
def body_masses(
    kind: kc.Array[int],
    size: kc.Array[kc.float3],
    points: kc.Array[kc.float3],
    reference: kc.Array[int],
    volume: kc.Array[float],
    first: kc.Array[kc.float3],
    second: kc.Array[kc.mat33],
    density: kc.Array[float],
    given_mass: kc.Array[float],
    given_inertia: kc.Array[kc.mat33],
    mass: kc.Array[float],
    com: kc.Array[kc.float3],
    inertia: kc.Array[kc.mat33],
    inverse: kc.Array[kc.mat33],
):
    """Mass, centre of mass, inertia about it and its inverse, of a body of uniform density.

    `volume`, `first` and `second` are the integrals of 1, r, r rᵀ over a mesh (`mass.face_moments`). The density is
    that given, or the one that makes the given mass; an inertia that is given stands for the computed one.
    """
    b = kc.tid()
    if kind[b] == MESH:
        V = volume[b]
        r = first[b] / V
        C = second[b] - kc.outer(r, r) * V
        trace = kc.trace(C)
        centre = kc.stop_grad(points[reference[b]]) + r
        per_density = kc.diag(kc.float3(trace, trace, trace)) - C
    elif kind[b] == GRID:  # It never moves by forces.
        V = 1.0
        centre = kc.float3()
        per_density = kc.diag(kc.float3(1.0, 1.0, 1.0))
    else:
        V, height, across, along, deep = shape_moments(kind[b], size[b])
        centre = kc.float3(0.0, height, 0.0)
        per_density = kc.diag(kc.float3(across, along, deep)) * V
    rho = density[b]
    if given_mass[b] > NONE:
        rho = given_mass[b] / V
    I = per_density * rho
    if given_inertia[b][0, 0] > NONE:
        I = (given_inertia[b] + kc.transpose(given_inertia[b])) * 0.5
    mass[b] = rho * V
    com[b] = centre
    inertia[b] = I
    inverse[b] = kc.inverse(I)


@kc.func
def lightness(q: kc.quat, arm: kc.float3, n: kc.float3, mass: float, inverse: kc.mat33) -> float:
    """The inverse mass of a point of a body along n; it is at `arm` from the centre of mass."""
    t = kc.quat_rotate_inv(q, kc.cross(arm, n))
    return 1.0 / mass + kc.dot(t, inverse * t)


@kc.func
def lightness_across(q: kc.quat, arm: kc.float3, n: kc.float3, mass: float, inverse: kc.mat33) -> float:
    """At least the inverse mass of a point of a body in any direction across n: what turns is that of two of them."""
    r, t = kc.quat_rotate_inv(q, arm), kc.quat_rotate_inv(q, kc.cross(arm, n))
    # The trace of (r ×)ᵀ I⁻¹ (r ×) is that in all three directions together.
    whole = kc.length_sq(r) * kc.trace(inverse) - kc.dot(r, inverse * r)
    return 1.0 / mass + whole - kc.dot(t, inverse * t)


@kc.func
def free_turn(w: kc.float3, I: kc.mat33, inverse: kc.mat33, dt: float) -> kc.float3:
    """The rotation vector of a body that turns freely for the time dt, in its frame, from its angular velocity there.

    Euler's equations d(I w)/dt = (I w) × w by the fourth-order Runge-Kutta method, and Magnus' series for what the
    rates add up to: both to fourth order. A first-order turn would make a body that spins about its middle axis flip
    far too soon, because the time of a flip depends on the logarithm of a tiny energy.
    """
    L = I * w
    L2 = L + kc.cross(L, w) * (0.5 * dt)
    w2 = inverse * L2
    L3 = L + kc.cross(L2, w2) * (0.5 * dt)
    w3 = inverse * L3
    w4 = inverse * (L + kc.cross(L3, w3) * dt)
    return (w + (w2 + w3) * 2.0 + w4) * (dt / 6.0) + kc.cross(w, w4) * (dt * dt / 12.0)


@kc.kernel
def advance_bodies(
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    torque: kc.Array[kc.float3],
    f_contact: kc.Array[kc.float3],
    torque_contact: kc.Array[kc.float3],
    gravity: kc.Array[kc.float3],
    mass: kc.Array[float],
    com: kc.Array[kc.float3],
    inertia: kc.Array[kc.mat33],
    inverse: kc.Array[kc.mat33],
    motion: kc.Array[int],
    dt: float,
    x_next: kc.Array[kc.float3],
    rot_next: kc.Array[kc.quat],
    v_next: kc.Array[kc.float3],
    omega_next: kc.Array[kc.float3],
):
    """Semi-implicit Euler: forces change the momenta, then the body flies freely with the new ones.

    The angular momentum goes through the step unchanged but for the torque, whatever the inertia: the gyroscopic term
    is in that, since the angular velocity is what the momentum gives in the new orientation.
    """
    b = kc.tid()
    q = kc.normalize(rot[b])
    to_x, to_q = x[b], q
    to_v, to_w = kc.float3(), kc.float3()
    if motion[b] == FREE:
        arm = kc.quat_rotate(q, com[b])
        v_c = v[b] + kc.cross(omega[b], arm) + (gravity[b] + (f[b] + f_contact[b]) / mass[b]) * dt
        spun = kc.quat_rotate_inv(q, torque[b] + torque_contact[b])
        w = kc.quat_rotate_inv(q, omega[b]) + inverse[b] * spun * dt
        turn = kc.quat_from_rotvec(free_turn(w, inertia[b], inverse[b], dt))
        to_q = kc.normalize(q * turn)
        to_w = kc.quat_rotate(to_q, inverse[b] * kc.quat_rotate_inv(turn, inertia[b] * w))
        to_arm = kc.quat_rotate(to_q, com[b])
        to_x = x[b] + arm + v_c * dt - to_arm
        to_v = v_c - kc.cross(to_w, to_arm)
    elif motion[b] == DRIVEN:
        to_x = x[b] + v[b] * dt
        to_q = kc.quat_integrate(q, omega[b], dt)
        to_v, to_w = v[b], omega[b]
    x_next[b] = to_x
    rot_next[b] = to_q
    v_next[b] = to_v
    omega_next[b] = to_w


@kc.kernel
def body_energies(
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    gravity: kc.Array[kc.float3],
    mass: kc.Array[float],
    com: kc.Array[kc.float3],
    inertia: kc.Array[kc.mat33],
    motion: kc.Array[int],
    e: kc.Array[float],
):
    """m v_c² / 2 + omega·I omega / 2 - m g·x_c; nothing for a body that forces do not move."""
    b = kc.tid()
    energy = 0.0
    if motion[b] == FREE:
        q = kc.normalize(rot[b])
        arm = kc.quat_rotate(q, com[b])
        v_c = v[b] + kc.cross(omega[b], arm)
        w = kc.quat_rotate_inv(q, omega[b])
        energy = mass[b] * (0.5 * kc.length_sq(v_c) - kc.dot(gravity[b], x[b] + arm)) + 0.5 * kc.dot(w, inertia[b] * w)
    e[b] = energy
