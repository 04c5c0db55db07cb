"""Kernels of rigid bodies: mass from shape and density, one step of the motion, energy. A thread is a body.

A body's frame is that of its shape: x is where the frame's origin is, rot (x, y, z, w) how it is turned, v the velocity
of the origin, omega the angular velocity, both in world axes. Forces act on the centre of mass, which lies at `com` in
the body's frame: v_c = v + omega × (R com).
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.geometry import FIELD, GRID, MESH, shape_moments

NONE = -1e30
"""Stands for a number that was not given, where zero could be meant."""

FREE = 0
HELD = 1
DRIVEN = 2
LINK = 3
"""How a body moves: by the forces on it; not at all; with the velocities that it has, whatever pushes it; as the link
of a robot does that carries it."""


@kc.func
def gives_way(motion: int) -> bool:
    """Whether what pushes a body moves it."""
    return motion == FREE or motion == LINK


@kc.struct
class State:
    """Where bodies are, and how they move."""

    x: kc.Array[kc.float3]
    rot: kc.Array[kc.quat]
    v: kc.Array[kc.float3]
    omega: kc.Array[kc.float3]


@kc.struct
class Bodies:
    """Bodies that move: their state, and what resists forces."""

    x: kc.Array[kc.float3]
    rot: kc.Array[kc.quat]
    v: kc.Array[kc.float3]
    omega: kc.Array[kc.float3]
    gravity: kc.Array[kc.float3]
    mass: kc.Array[float]
    com: kc.Array[kc.float3]
    inertia: kc.Array[kc.mat33]
    inverse: kc.Array[kc.mat33]
    motion: kc.Array[int]
    crowd: kc.Array[kc.float3]


@kc.struct
class Forces:
    """Forces on bodies, and torques about their centres of mass."""

    f: kc.Array[kc.float3]
    torque: kc.Array[kc.float3]


@kc.struct
class Points:
    """Points in the frames of bodies. Each may be the centre of a ball, or of a circle about the body's y axis (`rim`).

    start, count: those of a body that meet the surfaces of others, each for its share of what touches there.
    """

    local: kc.Array[kc.float3]
    ball: kc.Array[float]
    rim: kc.Array[float]
    share: kc.Array[float]
    start: kc.Array[int]
    count: kc.Array[int]


@kc.struct
class Matter:
    """What bodies are made of. `volume`, `first` and `second` are the integrals of 1, r, r rᵀ over a mesh, with r from
    its reference point (`mass.face_moments`)."""

    kind: kc.Array[int]
    size: kc.Array[kc.float3]
    reference: kc.Array[int]
    volume: kc.Array[float]
    first: kc.Array[kc.float3]
    second: kc.Array[kc.mat33]
    density: kc.Array[float]
    given_mass: kc.Array[float]
    given_inertia: kc.Array[kc.mat33]


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
    points: Points,
):
    """Where the points of a body are in its frame: vertices of a mesh, or a linear map of the sizes of its shape."""
    i = kc.tid()
    s = size[body[i]]
    points.local[i] = vertex[i] + spread[i] * s
    points.ball[i] = round[i].x * s.x
    points.rim[i] = round[i].y * s.x


@kc.kernel
def body_masses(
    matter: Matter,
    points: kc.Array[kc.float3],
    mass: kc.Array[float],
    com: kc.Array[kc.float3],
    inertia: kc.Array[kc.mat33],
    inverse: kc.Array[kc.mat33],
):
    """Mass, centre of mass, inertia about it and its inverse, of a body of uniform density.

    The density is that given, or the one that makes the given mass; an inertia that is given stands for the computed
    one.
    """
    b = kc.tid()
    kind = matter.kind[b]
    if kind == MESH:
        V = matter.volume[b]
        r = matter.first[b] / V
        C = matter.second[b] - kc.outer(r, r) * V
        trace = kc.trace(C)
        centre = kc.stop_grad(points[matter.reference[b]]) + r
        per_density = kc.diag(kc.float3(trace, trace, trace)) - C
    elif kind == GRID or kind == FIELD:  # It never moves by forces.
        V = 1.0
        centre = kc.float3()
        per_density = kc.diag(kc.float3(1.0, 1.0, 1.0))
    else:
        V, height, across, along, deep = shape_moments(kind, matter.size[b])
        centre = kc.float3(0.0, height, 0.0)
        per_density = kc.diag(kc.float3(across, along, deep)) * V
    rho = matter.density[b]
    if matter.given_mass[b] > NONE:
        rho = matter.given_mass[b] / V
    I, given = per_density * rho, matter.given_inertia[b]
    if given[0, 0] > NONE:
        I = (given + kc.transpose(given)) * 0.5
    mass[b] = rho * V
    com[b] = centre
    inertia[b] = I
    inverse[b] = kc.inverse(I)


@kc.func
def velocity_at(bodies: Bodies, b: int, arm: kc.float3) -> kc.float3:
    """The velocity of a point of a body, at `arm` from its origin."""
    return bodies.v[b] + kc.cross(bodies.omega[b], arm)


@kc.func
def against(bodies: Bodies, b: int, arm: kc.float3, velocity: kc.float3) -> kc.float3:
    """A velocity relative to that of a point of a body."""
    return velocity - bodies.v[b] - kc.cross(bodies.omega[b], arm)


@kc.func
def lightness(bodies: Bodies, b: int, q: kc.quat, lever: kc.float3, n: kc.float3) -> float:
    """The inverse mass of a point of a body along n; it is at `lever` from the centre of mass."""
    t = kc.quat_rotate_inv(q, kc.cross(lever, n))
    return 1.0 / bodies.mass[b] + kc.dot(t, bodies.inverse[b] * t)


@kc.func
def lightness_across(bodies: Bodies, b: int, q: kc.quat, lever: kc.float3, n: kc.float3) -> float:
    """At least the inverse mass of a point of a body in any direction across n: what turns is that of two of them."""
    r, t, inverse = kc.quat_rotate_inv(q, lever), kc.quat_rotate_inv(q, kc.cross(lever, n)), bodies.inverse[b]
    # The trace of (r ×)ᵀ I⁻¹ (r ×) is that in all three directions together.
    whole = kc.length_sq(r) * kc.trace(inverse) - kc.dot(r, inverse * r)
    return 1.0 / bodies.mass[b] + whole - kc.dot(t, inverse * t)


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


@kc.func
def total(forces: Forces, rub: Forces | None, b: int):
    """The force and the torque on a body, with those of friction."""
    f, torque = forces.f[b], forces.torque[b]
    if rub is not None:
        f += rub.f[b]
        torque += rub.torque[b]
    return f, torque


@kc.func
def coast(bodies: Bodies, b: int, q: kc.quat, dt: float):
    """The state at the end of a step of a body that forces do not move: held, or driven by its velocities."""
    x, turned, v, omega = bodies.x[b], q, kc.float3(), kc.float3()
    if bodies.motion[b] == DRIVEN or bodies.motion[b] == LINK:
        v, omega = bodies.v[b], bodies.omega[b]
        x = x + v * dt
        turned = kc.quat_integrate(q, omega, dt)
    return x, turned, v, omega


@kc.func
def put(state: State, b: int, x: kc.float3, q: kc.quat, v: kc.float3, omega: kc.float3):
    state.x[b] = x
    state.rot[b] = q
    state.v[b] = v
    state.omega[b] = omega


@kc.kernel
def advance_bodies(bodies: Bodies, forces: Forces, rub: Forces | None, dt: float, after: State):
    """Semi-implicit Euler: forces change the momenta, then the body flies freely with the new ones.

    The angular momentum goes through the step unchanged but for the torque, whatever the inertia: the gyroscopic term
    is in that, since the angular velocity is what the momentum gives in the new orientation.
    """
    b = kc.tid()
    q = kc.normalize(bodies.rot[b])
    to_x, to_q, to_v, to_w = coast(bodies, b, q, dt)
    if bodies.motion[b] == FREE:
        I, inverse, com = bodies.inertia[b], bodies.inverse[b], bodies.com[b]
        arm = kc.quat_rotate(q, com)
        f, torque = total(forces, rub, b)
        v_c = velocity_at(bodies, b, arm) + (bodies.gravity[b] + f / bodies.mass[b]) * dt
        w = kc.quat_rotate_inv(q, bodies.omega[b]) + inverse * kc.quat_rotate_inv(q, torque) * dt
        turn = kc.quat_from_rotvec(free_turn(w, I, inverse, dt))
        to_q = kc.normalize(q * turn)
        to_w = kc.quat_rotate(to_q, inverse * kc.quat_rotate_inv(turn, I * w))
        to_arm = kc.quat_rotate(to_q, com)
        to_x = bodies.x[b] + arm + v_c * dt - to_arm
        to_v = v_c - kc.cross(to_w, to_arm)
    put(after, b, to_x, to_q, to_v, to_w)


@kc.kernel
def body_energies(bodies: Bodies, e: kc.Array[float]):
    """m v_c² / 2 + omega·I omega / 2 - m g·x_c; nothing for a body that forces do not move."""
    b = kc.tid()
    energy = 0.0
    if bodies.motion[b] == FREE:
        q = kc.normalize(bodies.rot[b])
        arm = kc.quat_rotate(q, bodies.com[b])
        lifted = kc.dot(bodies.gravity[b], bodies.x[b] + arm)
        w = kc.quat_rotate_inv(q, bodies.omega[b])
        energy = bodies.mass[b] * (0.5 * kc.length_sq(velocity_at(bodies, b, arm)) - lifted)
        energy += 0.5 * kc.dot(w, bodies.inertia[b] * w)
    e[b] = energy
