"""Friction of bodies on half-spaces, at the end of the step. A thread is a body with all of its points.

The end of the step is where the force of friction and the velocity that it leaves agree:

    M v = M v_ahead - dt Σ Jᵀ F(|u|) u / |u|,   u = J v,   F(|u|) = min(kf |u|, mu f_n)

with v_ahead what the step would end with without friction, J the slip of a point by the six velocities of the body.
That is the minimum of a convex function. Sweeps begin where all points stick, and are in turn of Newton's method, which
is fast near the end, and with F / |u| of each point for a damper, which always comes closer. The last one is of these:
whatever was found before, it makes the body slower and never drives it.
"""

import kernelc as kc
from nablasim.physics.kernels.contact import bounded, friction_slopes, rounding
from nablasim.physics.kernels.hard import HARD

SWEEPS = 16
"""At most, and an even number; two or three are usual."""

SETTLED = 1e-10
"""Square of the part by which a sweep of Newton's method changes what is found; the error is then about its square."""
FINE = 1e-4
"""What a step does not resolve: dampers are bounded by 1 / FINE of what would take all of the momentum. Where points
stick that firmly, they would pull against each other for the rounding of where they are."""


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


@kc.kernel(lanes=0)
def body_friction(
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    torque: kc.Array[kc.float3],
    gravity: kc.Array[kc.float3],
    mass: kc.Array[float],
    com: kc.Array[kc.float3],
    inertia: kc.Array[kc.mat33],
    inverse: kc.Array[kc.mat33],
    dt: float,
    body: kc.Array[int],
    first: kc.Array[int],
    points: kc.Array[int],
    planes: kc.Array[int],
    stride: kc.Array[int],
    normal: kc.Array[kc.float3],
    offset: kc.Array[float],
    four: kc.Array[kc.float4],
    law: kc.Array[int],
    smoothing: kc.Array[float],
    press: kc.Array[kc.float4],
    f_contact: kc.Array[kc.float3],
    torque_contact: kc.Array[kc.float3],
):
    """Hold and brake a body at all points that are pressed: `press` is where they are from the centre of mass, and f_n.

    Point i of plane k is in row first + k · stride + i. Lengths are in units of the radius of gyration, and all is
    divided by the mass.
    """
    t = kc.tid()
    b = body[t]
    touching = 0
    for k in range(planes[t]):
        for r in range(first[t] + k * stride[t], first[t] + k * stride[t] + points[t]):
            if press[r].w > 0.0:
                touching += 1
    if touching > 0 and dt > 0.0:
        m, R = mass[b], kc.quat_to_matrix(kc.normalize(rot[b]))
        unit = kc.diag(kc.float3(1.0, 1.0, 1.0))
        radius = kc.sqrt(kc.stop_grad(kc.trace(inertia[b]) / m))
        centre = x[b] + R * com[b]
        ahead = v[b] + kc.cross(omega[b], R * com[b]) + (gravity[b] + f[b] / m) * dt
        turning = (omega[b] + R * (inverse[b] * (kc.transpose(R) * torque[b])) * dt) * radius
        turn_mass = R * inertia[b] * kc.transpose(R) / (m * radius * radius)
        pace = dt / m
        push, twist, settled = kc.float3(), kc.float3(), False
        for sweep in range(SWEEPS + 1):
            if sweep == SWEEPS or not settled:
                A, B, C = unit, kc.mat33(), turn_mass
                along, about = kc.float3(), kc.float3()
                for k in range(planes[t]):
                    for r in range(first[t] + k * stride[t], first[t] + k * stride[t] + points[t]):
                        p = press[r]
                        if p.w > 0.0:
                            n, l = normal[r], kc.float3(p.x, p.y, p.z) / radius
                            free = ahead + kc.cross(turning, l)
                            free = free - n * kc.dot(n, free)
                            change = push + kc.cross(twist, l)
                            u = free + change - n * kc.dot(n, change)
                            kf = bounded(four[r].z, pace * FINE) if law[r] != HARD else 1.0 / (pace * FINE)
                            across, slope, slip = kf, kf, kc.length(u)
                            if sweep > 0:
                                width = rounding(kc.dot(n, centre + l * radius) - offset[r], smoothing[r])
                                across, slope = friction_slopes(slip, four[r].w * p.w, kf, width)
                            if sweep % 2 == 0:
                                slope = across
                            H, drive = (unit - kc.outer(n, n)) * across, kc.float3()
                            if slope < across:
                                way = u / slip
                                H += kc.outer(way, way) * (slope - across)
                                drive = u * (slope - across)
                            H = H * pace
                            L = kc.skew(l)
                            A += H
                            B -= H * L
                            C -= L * H * L
                            rest = drive * pace - H * free
                            along += rest
                            about += kc.cross(l, rest)
                found = kc.solve(joined(A, B, C), kc.spatial_join(along, about))
                to_push, to_twist = kc.spatial_top(found), kc.spatial_bottom(found)
                moved = kc.length_sq(kc.stop_grad(to_push - push)) + kc.length_sq(kc.stop_grad(to_twist - twist))
                size = kc.length_sq(kc.stop_grad(to_push)) + kc.length_sq(kc.stop_grad(to_twist))
                settled = sweep % 2 == 1 and moved <= SETTLED * size
                push, twist = to_push, to_twist
        kc.atomic_add(f_contact, b, push * (m / dt))
        kc.atomic_add(torque_contact, b, turn_mass * twist * (m * radius / dt))
    elif touching > 0:  # The law itself, in a state that is looked at.
        arm, total, turn = kc.quat_rotate(kc.normalize(rot[b]), com[b]), kc.float3(), kc.float3()
        for k in range(planes[t]):
            for r in range(first[t] + k * stride[t], first[t] + k * stride[t] + points[t]):
                p, n = press[r], normal[r]
                if p.w > 0.0 and law[r] != HARD:
                    lever = kc.float3(p.x, p.y, p.z)
                    u = v[b] + kc.cross(omega[b], arm + lever)
                    u = u - n * kc.dot(n, u)
                    width = rounding(kc.dot(n, x[b] + arm + lever) - offset[r], smoothing[r])
                    across, _ = friction_slopes(kc.length(u), four[r].w * p.w, four[r].z, width)
                    total -= u * across
                    turn -= kc.cross(lever, u * across)
        kc.atomic_add(f_contact, b, total)
        kc.atomic_add(torque_contact, b, turn)
