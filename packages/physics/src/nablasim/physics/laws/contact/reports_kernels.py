"""Kernels that write down contacts one by one, in a state that is looked at: where, across what, how hard.

Forces are those that the same state has in the laws themselves, with all velocities as they are. Nothing is
differentiated. What does not touch keeps the gap `FAR`.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.geometry import CAPSULE
from nablasim.physics.laws.contact.body_contacts_kernels import Hits, Pairs
from nablasim.physics.laws.contact.body_edges_kernels import EDGES, relative
from nablasim.physics.laws.contact.body_planes_kernels import Planes as BodyPlanes
from nablasim.physics.laws.contact.compliant_kernels import contact_force, friction_slopes, rounding, shared_force
from nablasim.physics.laws.contact.face_hits_kernels import FaceHits
from nablasim.physics.laws.contact.hard_kernels import HARD, hard_force
from nablasim.physics.laws.contact.planes_kernels import Particles, Planes, velocity_ahead
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, against, velocity_at
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces, grid_surface, mesh_surface, shape_surface


@kc.struct
class Report:
    """One contact per row: where, the normal to the first of two, the force on it, and the gap."""

    point: kc.Array[kc.float3]
    normal: kc.Array[kc.float3]
    force: kc.Array[kc.float3]
    gap: kc.Array[float]


@kc.func
def note(report: Report, i: int, point: kc.float3, normal: kc.float3, force: kc.float3, gap: float):
    report.point[i] = point
    report.normal[i] = normal
    report.force[i] = force
    report.gap[i] = gap


@kc.kernel
def report_planes(particles: Particles, p: Planes, dt: float, report: Report):
    """Particles on planes; of hard ones the force of a step dt."""
    r = kc.tid()
    i, n = p.particle[r], p.normal[r]
    x, v = particles.x[i], particles.v[i]
    gap = kc.dot(n, x) - p.offset[r]
    force = kc.float3()
    if p.law[r] == HARD:
        w = particles.weight[i]
        ahead = velocity_ahead(particles, i, w, dt)
        lack = p.offset[r] - kc.dot(n, x + ahead * dt)
        if lack > 0.0 and w * dt > 0.0:
            force = hard_force(lack, ahead, n, p.mu[r], dt, w)
            note(report, r, x, n, force, gap)
    elif gap < p.smoothing[r]:
        force = contact_force(gap, v, n, p.ke[r], p.kd[r], p.kf[r], p.mu[r], p.law[r], p.touch[r], p.smoothing[r], 0.0)
        note(report, r, x, n, force, gap)


@kc.kernel
def report_body_planes(bodies: Bodies, p: BodyPlanes, press: kc.Array[kc.float4], report: Report):
    """Points of bodies on planes, which are pressed as `press` says."""
    r = kc.tid()
    b, n, fn = p.body[r], p.normal[r], press[r].w
    if fn > 0.0:
        lever, c = press[r][0:3], p.contact
        centre = bodies.x[b] + kc.quat_rotate(kc.normalize(bodies.rot[b]), bodies.com[b])
        at = centre + lever
        gap, force = kc.dot(n, at) - p.offset[r], n * fn
        if c.law[r] != HARD:
            u = velocity_at(bodies, b, at - bodies.x[b])
            u = u - n * kc.dot(n, u)
            width = rounding(gap, c.smoothing[r])
            across, _ = friction_slopes(kc.length(u), c.four[r].w * fn, c.four[r].z, width)
            force = force - u * across
        note(report, r, at, n, force, gap)


@kc.kernel
def report_face_hits(
    particles: Particles, bodies: Bodies, surfaces: Surfaces, hits: FaceHits, row: kc.Array[int], start: kc.Array[int],
    report: Report,
):  # fmt: skip
    """Triangles of what is deformable on the points of bodies: those of row[k] from start[k] on."""
    t = kc.tid()
    r = row[t]
    i, j, k, b = hits.corners[r, 0], hits.corners[r, 1], hits.corners[r, 2], hits.body[r]
    A, B, C, v = particles.x[i], particles.x[j], particles.x[k], particles.v
    q, skin, points = kc.normalize(bodies.rot[b]), 0.5 * hits.thickness[r], surfaces.points
    for m in range(points.count[b]):
        n = points.start[b] + m
        p = bodies.x[b] + kc.quat_rotate(q, points.local[n])
        w = kc.closest_point_triangle(p, A, B, C)
        at = A * w.x + B * w.y + C * w.z
        away = kc.length(at - p)
        gap = away - points.ball[n] - skin
        if gap < hits.contact.smoothing[r] and away > 0.0:
            normal = (at - p) / away
            velocity = against(bodies, b, at - bodies.x[b], v[i] * w.x + v[j] * w.y + v[k] * w.z)
            force = shared_force(hits.contact, r, points.share[n], gap, velocity, normal, 0.0, 0.0)
            note(report, start[t] + m, at, normal, force, gap)


def kernels(surface, edges, turned):
    """Of pairs of bodies, and of particles and bodies, for surfaces of one family: see `body_contacts_kernels.py`."""

    @kc.kernel
    def pairs(
        bodies: Bodies, surfaces: Surfaces, pairs: Pairs, row: kc.Array[int], start: kc.Array[int], report: Report
    ):
        """Points, then edges of one body on the surface of the other."""
        t = kc.tid()
        r = row[t]
        a, b, smoothing = pairs.one[r], pairs.other[r], pairs.contact.smoothing[r]
        qa, qb, points, x = kc.normalize(bodies.rot[a]), kc.normalize(bodies.rot[b]), surfaces.points, bodies.x
        for m in range(points.count[a]):
            i = points.start[a] + m
            centre, ball = x[a] + kc.quat_rotate(qa, points.local[i]), points.ball[i]
            away, local = surface(surfaces, b, kc.quat_rotate_inv(qb, centre - x[b]), ball + smoothing)
            gap = away - ball
            if gap < smoothing:
                n = kc.quat_rotate(qb, local)
                at = centre - n * (ball + 0.5 * gap)
                force = shared_force(pairs.contact, r, points.share[i], gap, relative(bodies, a, b, at), n, 0.0, 0.0)
                note(report, start[t] + m, at, n, force, gap)
        next = start[t] + points.count[a]
        for m in range(surfaces.edges.count[a]):
            f, _ta, _tb, at, gap = edges.push_edge(
                bodies, surfaces, pairs.contact, r, surfaces.edges.start[a] + m, a, b, qa, qb, 0.0
            )
            if gap < 0.0:
                note(report, next + m, at, kc.normalize(f), f, gap)
        if kc.static(turned is not None):
            if surfaces.kind[a] == CAPSULE:
                next += surfaces.edges.count[a]
                for m in range(surfaces.edges.count[b]):
                    f, _ta, _tb, at, gap = turned.push_edge(
                        bodies, surfaces, pairs.contact, r, surfaces.edges.start[b] + m, b, a, qb, qa, 0.0
                    )
                    if gap < 0.0:
                        note(report, next + m, at, -kc.normalize(f), -f, gap)

    @kc.kernel
    def hits(particles: Particles, bodies: Bodies, surfaces: Surfaces, hits: Hits, report: Report):
        """Particles on the surfaces of bodies."""
        r = kc.tid()
        i, b, c = hits.particle[r], hits.body[r], hits.contact
        q, arm = kc.normalize(bodies.rot[b]), particles.x[i] - bodies.x[b]
        p, ball = kc.quat_rotate_inv(q, arm), surfaces.bound[b]
        if kc.length(p - ball[0:3]) < ball.w + c.smoothing[r]:
            gap, m = surface(surfaces, b, p, c.smoothing[r])
            if gap < c.smoothing[r]:
                n, k = kc.quat_rotate(q, m), c.four[r]
                velocity = against(bodies, b, arm, particles.v[i])
                force = contact_force(gap, velocity, n, k.x, k.y, k.z, k.w, c.law[r], c.touch[r], c.smoothing[r], 0.0)
                note(report, r, particles.x[i], n, force, gap)

    return SimpleNamespace(pairs=pairs, hits=hits)


FAMILIES = {
    "shape": kernels(shape_surface, EDGES["shape"], None),
    "mesh": kernels(mesh_surface, EDGES["mesh"], EDGES["shape"]),
    "grid": kernels(grid_surface, EDGES["grid"], None),
}
