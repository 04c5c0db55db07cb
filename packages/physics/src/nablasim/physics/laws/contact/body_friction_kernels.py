"""Friction of bodies on half-spaces, at the end of the step. A thread is a body with all of its points.

The end of the step is where the force of friction and the velocity that it leaves agree:

    M v = M v_ahead - dt Σ Jᵀ F(|u|) u / |u|,   u = J v,   F(|u|) = min(kf |u|, mu f_n)

with v_ahead what the step would end with without friction, J the slip of a point by the six velocities of the body.
That is the minimum of a convex function. Sweeps begin where all points stick, and are in turn of Newton's method, which
is fast near the end, and with F / |u| of each point for a damper, which always comes closer. A step that ends higher
went too far, and is halved: points that stick to a body which leans a little pull against each other, and Newton's
method would go to and fro between them for ever. The last one is of dampers: whatever was found before, it makes the
body slower and never drives it.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.body_planes_kernels import Planes
from nablasim.physics.laws.contact.compliant_kernels import bounded, friction_energy, friction_slopes, rounding
from nablasim.physics.laws.contact.hard_kernels import HARD
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, velocity_at

SWEEPS = 64
"""At most; three to six are usual."""
HIGHER = 1.0 + 1e-6
"""Times which a value is no rounding of it in single precision."""

SETTLED = 1e-10
"""Square of the part by which a sweep of Newton's method changes what is found; the error is then about its square."""
FINE = 1e-4
"""What a step does not resolve: dampers are bounded by 1 / FINE of what would take all of the momentum. Where points
stick that firmly, they would pull against each other for the rounding of where they are."""


@kc.struct
class Rubbing:
    """Bodies with points on planes: point i of plane k is in row first + k · stride + i of the pairs.

    `press` is where the point of a pair is from the centre of mass, and f_n.
    """

    body: kc.Array[int]
    first: kc.Array[int]
    points: kc.Array[int]
    planes: kc.Array[int]
    stride: kc.Array[int]
    press: kc.Array[kc.float4]


@kc.func
def joined(a: kc.mat33, b: kc.mat33, d: kc.mat33) -> kc.spatial_matrix:
    """The symmetric matrix [[a, b], [bᵀ, d]]."""
    m = kc.spatial_matrix()
    for i in range(3):
        for j in range(3):
            m[i, j] = a[i, j]
            m[i, j + 3] = b[i, j]
            m[j + 3, i] = b[i, j]
            m[i + 3, j + 3] = d[i, j]
    return m


@kc.func
def answer(
    p: Planes, r: int, fn: float, l: kc.float3, free: kc.float3, change: kc.float3, centre: kc.float3, radius: float,
    pace: float, begun: bool, damped: bool,
):  # fmt: skip
    """How friction at one point answers to velocities there, `free` without any friction and `change` by all of it.

    H is its damper, `rest` what it does to a body that nothing else slows, both times dt / m, and `value` what it adds
    to the function that is lowest at the end. Points stick until a first answer has `begun` the search.
    """
    n, k, c = p.normal[r], p.contact.four[r], p.contact
    free = free - n * kc.dot(n, free)
    u = free + change - n * kc.dot(n, change)
    kf = bounded(k.z, pace * FINE) if c.law[r] != HARD else 1.0 / (pace * FINE)
    across, slope, slip = kf, kf, kc.length(u)
    value = 0.0
    if begun:
        width = rounding(kc.dot(n, centre + l * radius) - p.offset[r], c.smoothing[r])
        across, slope = friction_slopes(slip, k.w * fn, kf, width)
        value = pace * kc.stop_grad(friction_energy(slip, k.w * fn, kf, width))
    if damped:
        slope = across
    H, drive = (kc.diag(kc.float3(1.0, 1.0, 1.0)) - kc.outer(n, n)) * across, kc.float3()
    if slope < across:
        way = u / slip
        H += kc.outer(way, way) * (slope - across)
        drive = u * (slope - across)
    H = H * pace
    return H, drive * pace - H * free, value


@kc.func
def held(bodies: Bodies, forces: Forces, rubbing: Rubbing, t: int, p: Planes, dt: float):
    """The force and the torque of friction at the end of the step.

    Lengths are in units of the radius of gyration, and all is divided by the mass.
    """
    b = rubbing.body[t]
    m, com, R = bodies.mass[b], bodies.com[b], kc.quat_to_matrix(kc.normalize(bodies.rot[b]))
    radius = kc.sqrt(kc.stop_grad(kc.trace(bodies.inertia[b]) / m))
    centre = bodies.x[b] + R * com
    ahead = velocity_at(bodies, b, R * com) + (bodies.gravity[b] + forces.f[b] / m) * dt
    spun = R * (bodies.inverse[b] * (kc.transpose(R) * forces.torque[b]))
    turning = (bodies.omega[b] + spun * dt) * radius
    turn_mass = R * bodies.inertia[b] * kc.transpose(R) / (m * radius * radius)
    pace = dt / m
    push, twist, base_push, base_twist = kc.float3(), kc.float3(), kc.float3(), kc.float3()
    lowest, solves, near, settled = 0.0, 0, False, False
    for sweep in range(SWEEPS + 1):
        if sweep == SWEEPS and not settled:
            push, twist, near = base_push, base_twist, True
        if not settled:
            A, B, C = kc.diag(kc.float3(1.0, 1.0, 1.0)), kc.mat33(), turn_mass
            along, about = kc.float3(), kc.float3()
            value = 0.5 * kc.stop_grad(kc.length_sq(push) + kc.dot(twist, turn_mass * twist))
            begun, damped = solves > 0, near or solves % 2 == 0
            for k in range(rubbing.planes[t]):
                first = rubbing.first[t] + k * rubbing.stride[t]
                for r in range(first, first + rubbing.points[t]):
                    at = rubbing.press[r]
                    if at.w > 0.0:
                        l = at[0:3] / radius
                        free, change = ahead + kc.cross(turning, l), push + kc.cross(twist, l)
                        H, rest, more = answer(p, r, at.w, l, free, change, centre, radius, pace, begun, damped)
                        L = kc.skew(l)
                        A += H
                        B -= H * L
                        C -= L * H * L
                        along += rest
                        about += kc.cross(l, rest)
                        value += more
            if solves > 1 and sweep < SWEEPS and value > HIGHER * lowest:
                push, twist, near = 0.5 * (push + base_push), 0.5 * (twist + base_twist), False
            else:
                found = kc.solve(joined(A, B, C), kc.spatial_join(along, about))
                to_push, to_twist = kc.spatial_top(found), kc.spatial_bottom(found)
                moved = kc.length_sq(kc.stop_grad(to_push - push)) + kc.length_sq(kc.stop_grad(to_twist - twist))
                size = kc.length_sq(kc.stop_grad(to_push)) + kc.length_sq(kc.stop_grad(to_twist))
                settled = near
                near = solves % 2 == 1 and moved <= SETTLED * size
                base_push, base_twist, lowest = push, twist, value
                push, twist = to_push, to_twist
                solves += 1
    return push * (m / dt), turn_mass * twist * (m * radius / dt)


@kc.func
def slowed(bodies: Bodies, rubbing: Rubbing, t: int, p: Planes):
    """The force and the torque by the law itself, in a state that is looked at."""
    b = rubbing.body[t]
    arm, f, torque = kc.quat_rotate(kc.normalize(bodies.rot[b]), bodies.com[b]), kc.float3(), kc.float3()
    for k in range(rubbing.planes[t]):
        first = rubbing.first[t] + k * rubbing.stride[t]
        for r in range(first, first + rubbing.points[t]):
            at, n, c = rubbing.press[r], p.normal[r], p.contact
            if at.w > 0.0 and c.law[r] != HARD:
                lever = at[0:3]
                u = velocity_at(bodies, b, arm + lever)
                u = u - n * kc.dot(n, u)
                width = rounding(kc.dot(n, bodies.x[b] + arm + lever) - p.offset[r], c.smoothing[r])
                across, _ = friction_slopes(kc.length(u), c.four[r].w * at.w, c.four[r].z, width)
                f -= u * across
                torque -= kc.cross(lever, u * across)
    return f, torque


@kc.kernel(lanes=0)
def body_friction(bodies: Bodies, forces: Forces, rubbing: Rubbing, p: Planes, dt: float, rub: Forces):
    """Hold and brake a body at all points that are pressed."""
    t = kc.tid()
    touching = 0
    for k in range(rubbing.planes[t]):
        first = rubbing.first[t] + k * rubbing.stride[t]
        for r in range(first, first + rubbing.points[t]):
            if rubbing.press[r].w > 0.0:
                touching += 1
    if touching > 0:
        f, torque = kc.float3(), kc.float3()
        if dt > 0.0:
            f, torque = held(bodies, forces, rubbing, t, p, dt)
        else:
            f, torque = slowed(bodies, rubbing, t, p)
        kc.atomic_add(rub.f, rubbing.body[t], f)
        kc.atomic_add(rub.torque, rubbing.body[t], torque)
