"""Kernels of the points of bodies against triangles of cloth and of the surfaces of solids.

A thread is a pair of a triangle and a body. A point of the body, which may be the centre of a ball, touches the point
of the triangle that is nearest to it, where that is closer than the ball and half of the thickness of the surface. The
force on the body is the opposite of that on the triangle, and acts at the same point: momentum and angular momentum
are kept.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.compliant_kernels import Contact, hinge_integral, shared_force
from nablasim.physics.laws.contact.planes_kernels import Particles
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, against, gives_way, lightness
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces


@kc.struct
class FaceHits:
    """Triangles of particles against the points of bodies."""

    corners: kc.Array[int, 2]
    body: kc.Array[int]
    thickness: kc.Array[float]
    contact: Contact


@kc.func
def sharing(w: kc.float3) -> float:
    """How many triangles touch a point that this one touches at w: 1 in its middle, 2 on an edge, 6 on a vertex."""
    return 7.5 * kc.length_sq(w) - 1.5


@kc.kernel(lanes=0)
def face_hit_forces(
    particles: Particles, bodies: Bodies, surfaces: Surfaces, hits: FaceHits, dt: float, forces: Forces
):
    """Push a triangle and the points of a body apart; the former by adding to `particles.f`."""
    r = kc.tid()
    i, j, k, b = hits.corners[r, 0], hits.corners[r, 1], hits.corners[r, 2], hits.body[r]
    A, B, C, q = particles.x[i], particles.x[j], particles.x[k], kc.normalize(bodies.rot[b])
    middle = kc.stop_grad((A + B + C) / 3.0)
    radius = kc.sqrt(max(kc.length_sq(A - middle), kc.length_sq(B - middle), kc.length_sq(C - middle)))
    skin, smoothing, whole = 0.5 * hits.thickness[r], hits.contact.smoothing[r], surfaces.bound[b]
    centre = bodies.x[b] + kc.quat_rotate(q, whole[0:3])
    if kc.length(kc.stop_grad(middle - centre)) < kc.stop_grad(radius + whole.w + skin) + smoothing:
        heavy, points = bodies.x[b] + kc.quat_rotate(q, bodies.com[b]), surfaces.points
        v, weight = particles.v, particles.weight
        fA, fB, fC, total, turn = kc.float3(), kc.float3(), kc.float3(), kc.float3(), kc.float3()
        for n in range(points.start[b], points.start[b] + points.count[b]):
            p = bodies.x[b] + kc.quat_rotate(q, points.local[n])
            w = kc.closest_point_triangle(p, A, B, C)
            at = A * w.x + B * w.y + C * w.z
            away = kc.length(at - p)
            gap = away - points.ball[n] - skin
            if gap < smoothing and away > 0.0:
                normal = (at - p) / away
                velocity = against(bodies, b, at - bodies.x[b], v[i] * w.x + v[j] * w.y + v[k] * w.z)
                light = w.x * w.x * weight[i] + w.y * w.y * weight[j] + w.z * w.z * weight[k]
                if gives_way(bodies.motion[b]):
                    light += bodies.crowd[b].y * lightness(bodies, b, q, at - heavy, normal)
                pace = sharing(w) * light * dt
                force = shared_force(hits.contact, r, points.share[n], gap, velocity, normal, pace, pace)
                fA += force * w.x
                fB += force * w.y
                fC += force * w.z
                total += force
                turn += kc.cross(at - heavy, force)
        kc.atomic_add(particles.f, i, fA)
        kc.atomic_add(particles.f, j, fB)
        kc.atomic_add(particles.f, k, fC)
        kc.atomic_sub(forces.f, b, total)
        kc.atomic_sub(forces.torque, b, turn)


@kc.kernel(lanes=0)
def face_hit_energies(particles: Particles, bodies: Bodies, surfaces: Surfaces, hits: FaceHits, e: kc.Array[float]):
    """The energy stored by the springs of the contacts."""
    r = kc.tid()
    x, b, points = particles.x, hits.body[r], surfaces.points
    A, B, C = x[hits.corners[r, 0]], x[hits.corners[r, 1]], x[hits.corners[r, 2]]
    q, total = kc.normalize(bodies.rot[b]), 0.0
    for n in range(points.start[b], points.start[b] + points.count[b]):
        p = bodies.x[b] + kc.quat_rotate(q, points.local[n])
        w = kc.closest_point_triangle(p, A, B, C)
        depth = points.ball[n] + 0.5 * hits.thickness[r] - kc.length(A * w.x + B * w.y + C * w.z - p)
        total += points.share[n] * hits.contact.four[r].x * hinge_integral(depth, hits.contact.smoothing[r])
    e[r] = total
