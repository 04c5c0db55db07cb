"""Kernels of contact with the surfaces of bodies. A thread is a pair of two bodies, or of a particle and a body.

`kernels(surface)` makes them for one family of surfaces. The force on one side is the opposite of that on the other,
at the same point, half-way between two bodies or at the particle: momentum and angular momentum are kept.
"""

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.kernels.bodies import FREE, lightness, lightness_across
from nablasim.physics.kernels.contact import bounded, contact_force, hinge_integral
from nablasim.physics.kernels.surfaces import grid_surface, mesh_surface, shape_surface


def kernels(surface):
    """Forces and energies of pairs of bodies, and of particles and bodies, for surfaces of this family."""

    @kc.kernel(lanes=0)
    def pair_forces(
        x: kc.Array[kc.float3],
        rot: kc.Array[kc.quat],
        v: kc.Array[kc.float3],
        omega: kc.Array[kc.float3],
        com: kc.Array[kc.float3],
        mass: kc.Array[float],
        inverse: kc.Array[kc.mat33],
        motion: kc.Array[int],
        crowd: kc.Array[kc.float3],
        dt: float,
        bound: kc.Array[kc.float4],
        point_start: kc.Array[int],
        point_count: kc.Array[int],
        ball: kc.Array[float],
        share: kc.Array[float],
        kind: kc.Array[int],
        size: kc.Array[kc.float3],
        local: kc.Array[kc.float3],
        corners: kc.Array[int, 2],
        box_start: kc.Array[int],
        box_count: kc.Array[int],
        face_start: kc.Array[int],
        face_count: kc.Array[int],
        low: kc.Array[kc.float3],
        high: kc.Array[kc.float3],
        node: kc.Array[int],
        cells: kc.Array[int, 2],
        origin: kc.Array[kc.float3],
        spacing: kc.Array[kc.float3],
        distance: kc.Array[float],
        one: kc.Array[int],
        other: kc.Array[int],
        four: kc.Array[kc.float4],
        law: kc.Array[int],
        touch: kc.Array[float],
        smoothing: kc.Array[float],
        f: kc.Array[kc.float3],
        torque: kc.Array[kc.float3],
    ):
        """Push the points of one body out of the surface of the other; torques are about the centres of mass."""
        r = kc.tid()
        a, b = one[r], other[r]
        qa, qb = kc.normalize(rot[a]), kc.normalize(rot[b])
        ball_a, ball_b = bound[a], bound[b]
        centre_a, centre_b = kc.float3(ball_a.x, ball_a.y, ball_a.z), kc.float3(ball_b.x, ball_b.y, ball_b.z)
        apart = x[a] + kc.quat_rotate(qa, centre_a) - x[b] - kc.quat_rotate(qb, centre_b)
        if kc.length(kc.stop_grad(apart)) < ball_a.w + ball_b.w + smoothing[r]:
            k = four[r]
            mass_a, mass_b = x[a] + kc.quat_rotate(qa, com[a]), x[b] + kc.quat_rotate(qb, com[b])
            total, turn_a, turn_b = kc.float3(), kc.float3(), kc.float3()
            for i in range(point_start[a], point_start[a] + point_count[a]):
                centre = x[a] + kc.quat_rotate(qa, local[i])
                p = kc.quat_rotate_inv(qb, centre - x[b])
                reach = ball[i] + smoothing[r]
                if kc.length(kc.stop_grad(p) - centre_b) < ball_b.w + kc.stop_grad(reach):
                    away, m = surface(
                        b, p, reach, kind, size, local, corners, box_start, box_count, face_start, face_count, low,
                        high, node, cells, origin, spacing, distance,
                    )  # fmt: skip
                    gap = away - ball[i]
                    if gap < smoothing[r]:
                        n = kc.quat_rotate(qb, m)
                        at = centre - n * (ball[i] + 0.5 * gap)
                        velocity = v[a] + kc.cross(omega[a], at - x[a]) - v[b] - kc.cross(omega[b], at - x[b])
                        pace, rub = 0.0, 0.0
                        if motion[a] == FREE:
                            pace += crowd[a].y * lightness(qa, at - mass_a, n, mass[a], inverse[a]) * dt
                            rub += crowd[a].z * lightness_across(qa, at - mass_a, n, mass[a], inverse[a]) * dt
                        if motion[b] == FREE:
                            pace += crowd[b].y * lightness(qb, at - mass_b, n, mass[b], inverse[b]) * dt
                            rub += crowd[b].z * lightness_across(qb, at - mass_b, n, mass[b], inverse[b]) * dt
                        part = share[i]
                        kd, kf = bounded(k.y * part, pace), bounded(k.z * part, rub)
                        force = contact_force(gap, velocity, n, k.x * part, kd, kf, k.w, law[r], touch[r],
                                              smoothing[r], 0.0)  # fmt: skip
                        total += force
                        turn_a += kc.cross(at - mass_a, force)
                        turn_b += kc.cross(at - mass_b, force)
            kc.atomic_add(f, a, total)
            kc.atomic_sub(f, b, total)
            kc.atomic_add(torque, a, turn_a)
            kc.atomic_sub(torque, b, turn_b)

    @kc.kernel(lanes=0)
    def pair_energies(
        x: kc.Array[kc.float3],
        rot: kc.Array[kc.quat],
        point_start: kc.Array[int],
        point_count: kc.Array[int],
        ball: kc.Array[float],
        share: kc.Array[float],
        kind: kc.Array[int],
        size: kc.Array[kc.float3],
        local: kc.Array[kc.float3],
        corners: kc.Array[int, 2],
        box_start: kc.Array[int],
        box_count: kc.Array[int],
        face_start: kc.Array[int],
        face_count: kc.Array[int],
        low: kc.Array[kc.float3],
        high: kc.Array[kc.float3],
        node: kc.Array[int],
        cells: kc.Array[int, 2],
        origin: kc.Array[kc.float3],
        spacing: kc.Array[kc.float3],
        distance: kc.Array[float],
        one: kc.Array[int],
        other: kc.Array[int],
        four: kc.Array[kc.float4],
        smoothing: kc.Array[float],
        e: kc.Array[float],
    ):
        """The energy stored by the springs of the contacts."""
        r = kc.tid()
        a, b = one[r], other[r]
        qa, qb = kc.normalize(rot[a]), kc.normalize(rot[b])
        total = 0.0
        for i in range(point_start[a], point_start[a] + point_count[a]):
            p = kc.quat_rotate_inv(qb, x[a] + kc.quat_rotate(qa, local[i]) - x[b])
            away, _m = surface(
                b, p, ball[i] + smoothing[r], kind, size, local, corners, box_start, box_count, face_start, face_count,
                low, high, node, cells, origin, spacing, distance,
            )  # fmt: skip
            if away < ball[i] + smoothing[r]:
                total += share[i] * four[r].x * hinge_integral(ball[i] - away, smoothing[r])
        e[r] = total

    @kc.kernel(lanes=0)
    def hit_forces(
        px: kc.Array[kc.float3],
        pv: kc.Array[kc.float3],
        pf: kc.Array[kc.float3],
        weight: kc.Array[float],
        gravity: kc.Array[kc.float3],
        dt: float,
        motion: kc.Array[int],
        x: kc.Array[kc.float3],
        rot: kc.Array[kc.quat],
        v: kc.Array[kc.float3],
        omega: kc.Array[kc.float3],
        com: kc.Array[kc.float3],
        mass: kc.Array[float],
        inverse: kc.Array[kc.mat33],
        crowd: kc.Array[kc.float3],
        bound: kc.Array[kc.float4],
        kind: kc.Array[int],
        size: kc.Array[kc.float3],
        local: kc.Array[kc.float3],
        corners: kc.Array[int, 2],
        box_start: kc.Array[int],
        box_count: kc.Array[int],
        face_start: kc.Array[int],
        face_count: kc.Array[int],
        low: kc.Array[kc.float3],
        high: kc.Array[kc.float3],
        node: kc.Array[int],
        cells: kc.Array[int, 2],
        origin: kc.Array[kc.float3],
        spacing: kc.Array[kc.float3],
        distance: kc.Array[float],
        particle: kc.Array[int],
        body: kc.Array[int],
        four: kc.Array[kc.float4],
        law: kc.Array[int],
        touch: kc.Array[float],
        smoothing: kc.Array[float],
        f_contact: kc.Array[kc.float3],
        f: kc.Array[kc.float3],
        torque: kc.Array[kc.float3],
    ):
        """Push a particle out of the surface of a body, and the body away from it.

        Where nothing moves the body, dampers and friction are taken at the end of the step, as with planes: the other
        forces `pf` say with which velocity it would end. A free body would have to know of all that touches it: there
        friction is bounded by the momentum that a step may take.
        """
        r = kc.tid()
        i, b = particle[r], body[r]
        q = kc.normalize(rot[b])
        p = kc.quat_rotate_inv(q, px[i] - x[b])
        ball = bound[b]
        if kc.length(kc.stop_grad(p) - kc.float3(ball.x, ball.y, ball.z)) < ball.w + smoothing[r]:
            gap, m = surface(
                b, p, smoothing[r], kind, size, local, corners, box_start, box_count, face_start, face_count, low, high,
                node, cells, origin, spacing, distance,
            )  # fmt: skip
            if gap < smoothing[r]:
                k = four[r]
                n = kc.quat_rotate(q, m)
                velocity = pv[i] - v[b] - kc.cross(omega[b], px[i] - x[b])
                pace, kf = 0.0, k.z
                if motion[b] != FREE:
                    pace = weight[i] * dt
                    velocity += (gravity[i] + pf[i] * weight[i]) * dt
                else:
                    lever = px[i] - x[b] - kc.quat_rotate(q, com[b])
                    light = weight[i] + crowd[b].z * lightness_across(q, lever, n, mass[b], inverse[b])
                    kf = bounded(k.z, light * dt)
                force = contact_force(gap, velocity, n, k.x, k.y, kf, k.w, law[r], touch[r], smoothing[r], pace)
                kc.atomic_add(f_contact, i, force)
                kc.atomic_sub(f, b, force)
                kc.atomic_sub(torque, b, kc.cross(px[i] - x[b] - kc.quat_rotate(q, com[b]), force))

    @kc.kernel(lanes=0)
    def hit_energies(
        px: kc.Array[kc.float3],
        x: kc.Array[kc.float3],
        rot: kc.Array[kc.quat],
        kind: kc.Array[int],
        size: kc.Array[kc.float3],
        local: kc.Array[kc.float3],
        corners: kc.Array[int, 2],
        box_start: kc.Array[int],
        box_count: kc.Array[int],
        face_start: kc.Array[int],
        face_count: kc.Array[int],
        low: kc.Array[kc.float3],
        high: kc.Array[kc.float3],
        node: kc.Array[int],
        cells: kc.Array[int, 2],
        origin: kc.Array[kc.float3],
        spacing: kc.Array[kc.float3],
        distance: kc.Array[float],
        particle: kc.Array[int],
        body: kc.Array[int],
        four: kc.Array[kc.float4],
        smoothing: kc.Array[float],
        e: kc.Array[float],
    ):
        """The energy stored by the spring of the contact."""
        r = kc.tid()
        b = body[r]
        p = kc.quat_rotate_inv(kc.normalize(rot[b]), px[particle[r]] - x[b])
        gap, _m = surface(
            b, p, smoothing[r], kind, size, local, corners, box_start, box_count, face_start, face_count, low, high,
            node, cells, origin, spacing, distance,
        )  # fmt: skip
        energy = 0.0
        if gap < smoothing[r]:
            energy = four[r].x * hinge_integral(-gap, smoothing[r])
        e[r] = energy

    return SimpleNamespace(
        pair_forces=pair_forces, pair_energies=pair_energies, hit_forces=hit_forces, hit_energies=hit_energies
    )


FAMILIES = {"shape": kernels(shape_surface), "mesh": kernels(mesh_surface), "grid": kernels(grid_surface)}
