"""Kernels of contact with the surfaces of bodies. A thread is a pair of two bodies, or of a particle and a body.

`kernels(surface)` makes them for one family of surfaces. The force on one side is the opposite of that on the other,
at the same point, half-way between two bodies or at the particle: momentum and angular momentum are kept.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.geometry import CAPSULE
from nablasim.physics.laws.contact.body_edges_kernels import EDGES, paces
from nablasim.physics.laws.contact.compliant_kernels import (
    Contact,
    begun_force,
    bounded,
    contact_force,
    hinge_integral,
    shared_force,
)
from nablasim.physics.laws.contact.planes_kernels import Particles
from nablasim.physics.laws.rigid.bodies_kernels import (
    Bodies,
    Forces,
    against,
    gives_way,
    lightness_across,
    velocity_at,
)
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces, grid_surface, mesh_surface, shape_surface


@kc.struct
class Pairs:
    """The points of one body against the surface of the other."""

    one: kc.Array[int]
    other: kc.Array[int]
    contact: Contact


@kc.struct
class Hits:
    """A particle against the surface of a body."""

    particle: kc.Array[int]
    body: kc.Array[int]
    contact: Contact


@kc.func
def near(bodies: Bodies, surfaces: Surfaces, a: int, b: int, smoothing: float) -> bool:
    """Whether two bodies may touch, by the balls around them; a row that is not handed out has the same one twice."""
    close = False
    if a != b:
        ball_a, ball_b = kc.stop_grad(surfaces.bound[a]), kc.stop_grad(surfaces.bound[b])
        apart = kc.stop_grad(bodies.x[a]) - kc.stop_grad(bodies.x[b])
        apart += kc.quat_rotate(kc.normalize(kc.stop_grad(bodies.rot[a])), ball_a[0:3])
        apart -= kc.quat_rotate(kc.normalize(kc.stop_grad(bodies.rot[b])), ball_b[0:3])
        close = kc.length(apart) < ball_a.w + ball_b.w + smoothing
    return close


def kernels(surface, edges, turned):
    """Forces and energies of pairs of bodies, and of particles and bodies, for surfaces of this family.

    `edges` are the functions for edges of the one body on the other; `turned` those for edges of the other on the one,
    where that is a capsule, whose own axis does not see this family.
    """

    @kc.kernel(lanes=0)
    def pair_forces(bodies: Bodies, surfaces: Surfaces, pairs: Pairs, dt: float, forces: Forces):
        """Push the points of one body out of the surface of the other; torques are about the centres of mass."""
        r = kc.tid()
        a, b, smoothing = pairs.one[r], pairs.other[r], pairs.contact.smoothing[r]
        x, com, ball_b, points = bodies.x, bodies.com, surfaces.bound[b], surfaces.points
        if near(bodies, surfaces, a, b, smoothing):
            qa, qb = kc.normalize(bodies.rot[a]), kc.normalize(bodies.rot[b])
            mass_a, mass_b = x[a] + kc.quat_rotate(qa, com[a]), x[b] + kc.quat_rotate(qb, com[b])
            total, turn_a, turn_b = kc.float3(), kc.float3(), kc.float3()
            for i in range(points.start[a], points.start[a] + points.count[a]):
                centre, ball = x[a] + kc.quat_rotate(qa, points.local[i]), points.ball[i]
                p = kc.quat_rotate_inv(qb, centre - x[b])
                reach = ball + smoothing
                if kc.length(kc.stop_grad(p) - ball_b[0:3]) < ball_b.w + kc.stop_grad(reach):
                    away, m = surface(surfaces, b, p, reach)
                    gap = away - ball
                    if gap < smoothing:
                        n = kc.quat_rotate(qb, m)
                        at = centre - n * (ball + 0.5 * gap)
                        velocity = against(bodies, b, at - x[b], velocity_at(bodies, a, at - x[a]))
                        pace, rub = paces(bodies, a, qa, at - mass_a, n, dt, 0.0, 0.0)
                        pace, rub = paces(bodies, b, qb, at - mass_b, n, dt, pace, rub)
                        force = kc.float3()
                        if dt > 0.0:  # Friction follows when all other forces are known: see rubbing.py.
                            force = begun_force(pairs.contact, r, points.share[i], gap, velocity, n, pace)
                        else:
                            force = shared_force(pairs.contact, r, points.share[i], gap, velocity, n, pace, rub)
                        total += force
                        turn_a += kc.cross(at - mass_a, force)
                        turn_b += kc.cross(at - mass_b, force)
            f, t_a, t_b = edges.push(bodies, surfaces, pairs.contact, r, a, b, qa, qb, dt)
            total, turn_a, turn_b = total + f, turn_a + t_a, turn_b + t_b
            if kc.static(turned is not None):
                if surfaces.kind[a] == CAPSULE:
                    f, t_b, t_a = turned.push(bodies, surfaces, pairs.contact, r, b, a, qb, qa, dt)
                    total, turn_a, turn_b = total - f, turn_a - t_a, turn_b - t_b
            kc.atomic_add(forces.f, a, total)
            kc.atomic_sub(forces.f, b, total)
            kc.atomic_add(forces.torque, a, turn_a)
            kc.atomic_sub(forces.torque, b, turn_b)

    @kc.kernel(lanes=0)
    def pair_energies(bodies: Bodies, surfaces: Surfaces, pairs: Pairs, e: kc.Array[float]):
        """The energy stored by the springs of the contacts."""
        r = kc.tid()
        a, b, smoothing = pairs.one[r], pairs.other[r], pairs.contact.smoothing[r]
        points, total = surfaces.points, 0.0
        if near(bodies, surfaces, a, b, smoothing):
            qa, qb = kc.normalize(bodies.rot[a]), kc.normalize(bodies.rot[b])
            for i in range(points.start[a], points.start[a] + points.count[a]):
                p = kc.quat_rotate_inv(qb, bodies.x[a] + kc.quat_rotate(qa, points.local[i]) - bodies.x[b])
                away, _m = surface(surfaces, b, p, points.ball[i] + smoothing)
                if away < points.ball[i] + smoothing:
                    depth = hinge_integral(points.ball[i] - away, smoothing)
                    total += points.share[i] * pairs.contact.four[r].x * depth
            total += edges.energy(bodies, surfaces, pairs.contact, r, a, b, qa, qb)
            if kc.static(turned is not None):
                if surfaces.kind[a] == CAPSULE:
                    total += turned.energy(bodies, surfaces, pairs.contact, r, b, a, qb, qa)
        e[r] = total

    @kc.kernel(lanes=0)
    def hit_forces(
        particles: Particles,
        bodies: Bodies,
        surfaces: Surfaces,
        hits: Hits,
        dt: float,
        f_contact: kc.Array[kc.float3],
        forces: Forces,
    ):
        """Push a particle out of the surface of a body, and the body away from it.

        Where nothing moves the body, dampers and friction are taken at the end of the step, as with planes: the other
        forces on the particle say with which velocity it would end. A free body would have to know of all that touches
        it: there friction is bounded by the momentum that a step may take.
        """
        r = kc.tid()
        i, b, c = hits.particle[r], hits.body[r], hits.contact
        q, arm = kc.normalize(bodies.rot[b]), particles.x[i] - bodies.x[b]
        p, ball = kc.quat_rotate_inv(q, arm), surfaces.bound[b]
        if kc.length(kc.stop_grad(p) - ball[0:3]) < ball.w + c.smoothing[r]:
            gap, m = surface(surfaces, b, p, c.smoothing[r])
            if gap < c.smoothing[r]:
                n, k, weight = kc.quat_rotate(q, m), c.four[r], particles.weight[i]
                lever = arm - kc.quat_rotate(q, bodies.com[b])
                velocity = against(bodies, b, arm, particles.v[i])
                pace, kf = 0.0, k.z
                if not gives_way(bodies.motion[b]):
                    pace = weight * dt
                    velocity += (particles.gravity[i] + particles.f[i] * weight) * dt
                else:
                    light = weight + bodies.crowd[b].z * lightness_across(bodies, b, q, lever, n)
                    kf = bounded(k.z, light * dt)
                force = contact_force(gap, velocity, n, k.x, k.y, kf, k.w, c.law[r], c.touch[r], c.smoothing[r], pace)
                kc.atomic_add(f_contact, i, force)
                kc.atomic_sub(forces.f, b, force)
                kc.atomic_sub(forces.torque, b, kc.cross(lever, force))

    @kc.kernel(lanes=0)
    def hit_energies(particles: Particles, bodies: Bodies, surfaces: Surfaces, hits: Hits, e: kc.Array[float]):
        """The energy stored by the spring of the contact."""
        r = kc.tid()
        b, smoothing = hits.body[r], hits.contact.smoothing[r]
        p = kc.quat_rotate_inv(kc.normalize(bodies.rot[b]), particles.x[hits.particle[r]] - bodies.x[b])
        gap, _m = surface(surfaces, b, p, smoothing)
        energy = 0.0
        if gap < smoothing:
            energy = hits.contact.four[r].x * hinge_integral(-gap, smoothing)
        e[r] = energy

    return SimpleNamespace(
        pair_forces=pair_forces, pair_energies=pair_energies, hit_forces=hit_forces, hit_energies=hit_energies
    )


FAMILIES = {
    "shape": kernels(shape_surface, EDGES["shape"], None),
    "mesh": kernels(mesh_surface, EDGES["mesh"], EDGES["shape"]),
    "grid": kernels(grid_surface, EDGES["grid"], None),
}
