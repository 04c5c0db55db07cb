"""Friction between the surfaces of bodies, as part of that of a whole scene (`rubbing_kernels.py`).

`kernels(surface)` makes them for one family of surfaces. They find the same points as `body_contacts_kernels.py`, in
the same places and with the same pressure.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.laws.contact.body_contacts_kernels import Pairs, paces
from nablasim.physics.laws.contact.compliant_kernels import bounded, normal_force
from nablasim.physics.laws.contact.hard_kernels import HARD
from nablasim.physics.laws.contact.rubbing_kernels import Motion, Scenes, Touches, answer, laws, note
from nablasim.physics.laws.rigid.bodies_kernels import FREE, Bodies, Forces, against, velocity_at
from nablasim.physics.laws.rigid.surfaces_kernels import FAR, Surfaces, grid_surface, mesh_surface, shape_surface


@kc.func
def near(bodies: Bodies, surfaces: Surfaces, a: int, b: int, reach: float) -> bool:
    """Whether two bodies may touch, by the balls around them."""
    ball_a, ball_b = surfaces.bound[a], surfaces.bound[b]
    apart = kc.stop_grad(bodies.x[a] - bodies.x[b])
    apart += kc.quat_rotate(kc.normalize(kc.stop_grad(bodies.rot[a])), ball_a[0:3])
    apart -= kc.quat_rotate(kc.normalize(kc.stop_grad(bodies.rot[b])), ball_b[0:3])
    return kc.length(apart) < ball_a.w + ball_b.w + reach


@kc.func
def margin_of(surfaces: Surfaces, pairs: Pairs, ahead: Motion, r: int, dt: float) -> float:
    """How close points of the two bodies of a row have to be: what a step brings closer is met before it is in."""
    a, b, c = pairs.one[r], pairs.other[r], pairs.contact
    margin = c.smoothing[r]
    if c.law[r] >= HARD:
        turn = kc.length(ahead.omega[a]) * surfaces.bound[a].w + kc.length(ahead.omega[b]) * surfaces.bound[b].w
        margin = max(margin, kc.stop_grad(dt * (kc.length(ahead.v[a] - ahead.v[b]) + 2.0 * turn)))
    return margin


@kc.func
def pressure(bodies: Bodies, pairs: Pairs, r: int, share: float, gap: float, at: kc.float3, n: kc.float3, dt: float):
    """`law` and `give` at a point of row r; where it is from both centres of mass."""
    a, b, c = pairs.one[r], pairs.other[r], pairs.contact
    qa, qb = kc.normalize(bodies.rot[a]), kc.normalize(bodies.rot[b])
    arm = at - bodies.x[a] - kc.quat_rotate(qa, bodies.com[a])
    brace = at - bodies.x[b] - kc.quat_rotate(qb, bodies.com[b])
    pace, _ = paces(bodies, a, qa, arm, n, dt, 0.0, 0.0)
    pace, _ = paces(bodies, b, qb, brace, n, dt, pace, 0.0)
    velocity = against(bodies, b, at - bodies.x[b], velocity_at(bodies, a, at - bodies.x[a]))
    k, rate, light = c.four[r], kc.dot(velocity, n), 0.0
    kd = bounded(k.y * share, pace)
    fn = normal_force(gap, rate, k.x * share, kd, c.law[r], c.touch[r], c.smoothing[r], 0.0)
    if bodies.motion[a] == FREE:
        light += 1.0 / bodies.mass[a]
    if bodies.motion[b] == FREE:
        light += 1.0 / bodies.mass[b]
    law, give = laws(c, r, share, gap, rate, fn, light, dt)
    return law, give, arm, brace


@kc.func
def sliding(m: Motion, a: int, b: int, arm: kc.float3, brace: kc.float3) -> kc.float3:
    """The velocity of a against b."""
    return m.v[a] + kc.cross(m.omega[a], arm) - m.v[b] - kc.cross(m.omega[b], brace)


def kernels(surface):
    """Lists and residuals of the points of bodies on surfaces of this family."""

    @kc.func
    def touch(bodies: Bodies, surfaces: Surfaces, a: int, b: int, i: int, margin: float):
        """The gap of point i of a on the surface of b, where it touches, and the normal; FAR beyond the margin."""
        points, ball, bound = surfaces.points, surfaces.points.ball[i], surfaces.bound[b]
        qa, qb = kc.normalize(bodies.rot[a]), kc.normalize(bodies.rot[b])
        centre = bodies.x[a] + kc.quat_rotate(qa, points.local[i])
        p, reach = kc.quat_rotate_inv(qb, centre - bodies.x[b]), ball + margin
        gap, at, n = FAR + 0.0 * p.x, centre, kc.float3()
        if kc.length(kc.stop_grad(p) - bound[0:3]) < bound.w + kc.stop_grad(reach):
            away, m = surface(surfaces, b, p, reach)
            gap = away - ball
            n = kc.quat_rotate(qb, m)
            at = centre - n * (ball + 0.5 * gap)
        return gap, at, n

    @kc.kernel(lanes=0)
    def list_pairs(bodies: Bodies, surfaces: Surfaces, pairs: Pairs, ahead: Motion, dt: float, rows: Scenes,
                   t: Touches):  # fmt: skip
        """List the points that are pressed. A thread is a scene."""
        w = kc.tid()
        for r in range(rows.start[w], rows.start[w + 1]):
            a, b = pairs.one[r], pairs.other[r]
            margin = margin_of(surfaces, pairs, ahead, r, dt)
            if near(bodies, surfaces, a, b, margin):
                first = surfaces.points.start[a]
                for i in range(first, first + surfaces.points.count[a]):
                    gap, at, n = touch(bodies, surfaces, a, b, i, margin)
                    if gap < margin:
                        law, give, arm, brace = pressure(bodies, pairs, r, surfaces.points.share[i], gap, at, n, dt)
                        if law.w > 0.0 or give.y > 0.0:
                            free = sliding(ahead, a, b, arm, brace)
                            to_a = a if bodies.motion[a] == FREE else -1
                            to_b = b if bodies.motion[b] == FREE else -1
                            note(t, w, to_a, to_b, arm, brace, n, free, law, give)

    @kc.kernel(lanes=0)
    def rub_pairs(bodies: Bodies, surfaces: Surfaces, pairs: Pairs, ahead: Motion, dt: float, before: Motion,
                  begins: int, y: Motion, lack: Forces):  # fmt: skip
        """What contact between two bodies adds to R."""
        r = kc.tid()
        a, b = pairs.one[r], pairs.other[r]
        margin = margin_of(surfaces, pairs, ahead, r, dt)
        if near(bodies, surfaces, a, b, margin):
            total, turn_a, turn_b = kc.float3(), kc.float3(), kc.float3()
            first = surfaces.points.start[a]
            for i in range(first, first + surfaces.points.count[a]):
                gap, at, n = touch(bodies, surfaces, a, b, i, margin)
                if gap < margin:
                    law, give, arm, brace = pressure(bodies, pairs, r, surfaces.points.share[i], gap, at, n, dt)
                    if law.w > 0.0 or give.y > 0.0:
                        v = sliding(ahead, a, b, arm, brace)
                        last, end = v + sliding(before, a, b, arm, brace), v + sliding(y, a, b, arm, brace)
                        push = answer(law, give, n, end, last, begins) * -dt
                        total += push
                        turn_a += kc.cross(arm, push)
                        turn_b += kc.cross(brace, push)
            kc.atomic_add(lack.f, a, total)
            kc.atomic_sub(lack.f, b, total)
            kc.atomic_add(lack.torque, a, turn_a)
            kc.atomic_sub(lack.torque, b, turn_b)

    return SimpleNamespace(list_pairs=list_pairs, rub_pairs=rub_pairs)


FAMILIES = {"shape": kernels(shape_surface), "mesh": kernels(mesh_surface), "grid": kernels(grid_surface)}
