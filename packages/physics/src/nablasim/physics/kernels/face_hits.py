"""Kernels of the points of bodies against triangles of cloth and of the surfaces of solids.

A thread is a pair of a triangle and a body. A point of the body, which may be the centre of a ball, touches the point
of the triangle that is nearest to it, where that is closer than the ball and half of the thickness of the surface. The
force on the body is the opposite of that on the triangle, and acts at the same point: momentum and angular momentum
are kept.
"""

import kernelc as kc
from nablasim.physics.kernels.bodies import FREE, lightness
from nablasim.physics.kernels.contact import bounded, contact_force, hinge_integral


@kc.func
def sharing(w: kc.float3) -> float:
    """How many triangles touch a point that this one touches at w: 1 in its middle, 2 on an edge, 6 on a vertex."""
    return 7.5 * kc.length_sq(w) - 1.5


@kc.kernel(lanes=0)
def face_hit_forces(
    px: kc.Array[kc.float3],
    pv: kc.Array[kc.float3],
    weight: kc.Array[float],
    dt: float,
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    v: kc.Array[kc.float3],
    omega: kc.Array[kc.float3],
    com: kc.Array[kc.float3],
    mass: kc.Array[float],
    inverse: kc.Array[kc.mat33],
    motion: kc.Array[int],
    crowd: kc.Array[kc.float3],
    bound: kc.Array[kc.float4],
    point_start: kc.Array[int],
    point_count: kc.Array[int],
    local: kc.Array[kc.float3],
    ball: kc.Array[float],
    share: kc.Array[float],
    corners: kc.Array[int, 2],
    body: kc.Array[int],
    thickness: kc.Array[float],
    four: kc.Array[kc.float4],
    law: kc.Array[int],
    touch: kc.Array[float],
    smoothing: kc.Array[float],
    pf: kc.Array[kc.float3],
    f: kc.Array[kc.float3],
    torque: kc.Array[kc.float3],
):
    """Push a triangle and the points of a body apart."""
    r = kc.tid()
    i, j, k, b = corners[r, 0], corners[r, 1], corners[r, 2], body[r]
    A, B, C, q = px[i], px[j], px[k], kc.normalize(rot[b])
    middle = kc.stop_grad((A + B + C) / 3.0)
    radius = kc.sqrt(max(kc.length_sq(A - middle), kc.length_sq(B - middle), kc.length_sq(C - middle)))
    skin, whole = 0.5 * thickness[r], bound[b]
    centre = x[b] + kc.quat_rotate(q, kc.float3(whole.x, whole.y, whole.z))
    if kc.length(kc.stop_grad(middle - centre)) < kc.stop_grad(radius + whole.w + skin) + smoothing[r]:
        heavy, numbers = x[b] + kc.quat_rotate(q, com[b]), four[r]
        fA, fB, fC, total, turn = kc.float3(), kc.float3(), kc.float3(), kc.float3(), kc.float3()
        for n in range(point_start[b], point_start[b] + point_count[b]):
            p = x[b] + kc.quat_rotate(q, local[n])
            w = kc.closest_point_triangle(p, A, B, C)
            at = A * w.x + B * w.y + C * w.z
            away = kc.length(at - p)
            gap = away - ball[n] - skin
            if gap < smoothing[r] and away > 0.0:
                normal = (at - p) / away
                velocity = pv[i] * w.x + pv[j] * w.y + pv[k] * w.z - v[b] - kc.cross(omega[b], at - x[b])
                light = w.x * w.x * weight[i] + w.y * w.y * weight[j] + w.z * w.z * weight[k]
                if motion[b] == FREE:
                    light += crowd[b].y * lightness(q, at - heavy, normal, mass[b], inverse[b])
                pace, part = sharing(w) * light * dt, share[n]
                kd, kf = bounded(numbers.y * part, pace), bounded(numbers.z * part, pace)
                force = contact_force(gap, velocity, normal, numbers.x * part, kd, kf, numbers.w, law[r], touch[r],
                                      smoothing[r], 0.0)  # fmt: skip
                fA += force * w.x
                fB += force * w.y
                fC += force * w.z
                total += force
                turn += kc.cross(at - heavy, force)
        kc.atomic_add(pf, i, fA)
        kc.atomic_add(pf, j, fB)
        kc.atomic_add(pf, k, fC)
        kc.atomic_sub(f, b, total)
        kc.atomic_sub(torque, b, turn)


@kc.kernel(lanes=0)
def face_hit_energies(
    px: kc.Array[kc.float3],
    x: kc.Array[kc.float3],
    rot: kc.Array[kc.quat],
    point_start: kc.Array[int],
    point_count: kc.Array[int],
    local: kc.Array[kc.float3],
    ball: kc.Array[float],
    share: kc.Array[float],
    corners: kc.Array[int, 2],
    body: kc.Array[int],
    thickness: kc.Array[float],
    four: kc.Array[kc.float4],
    smoothing: kc.Array[float],
    e: kc.Array[float],
):
    """The energy stored by the springs of the contacts."""
    r = kc.tid()
    A, B, C, b = px[corners[r, 0]], px[corners[r, 1]], px[corners[r, 2]], body[r]
    q, total = kc.normalize(rot[b]), 0.0
    for n in range(point_start[b], point_start[b] + point_count[b]):
        p = x[b] + kc.quat_rotate(q, local[n])
        w = kc.closest_point_triangle(p, A, B, C)
        depth = ball[n] + 0.5 * thickness[r] - kc.length(A * w.x + B * w.y + C * w.z - p)
        total += share[n] * four[r].x * hinge_integral(depth, smoothing[r])
    e[r] = total
