"""Friction between the surfaces of bodies, as part of that of a whole scene (`rubbing_kernels.py`).

`kernels(surface)` makes them for one family of surfaces. They find the same points as `body_contacts_kernels.py`, in
the same places and with the same pressure.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.geometry import CAPSULE, EDGE
from nablasim.physics.laws.contact.body_contacts_kernels import Pairs, near
from nablasim.physics.laws.contact.body_edges_kernels import EDGES, paces
from nablasim.physics.laws.contact.compliant_kernels import Contact, bounded, normal_force
from nablasim.physics.laws.contact.hard_kernels import HARD
from nablasim.physics.laws.contact.rubbing_kernels import Motion, Scenes, Touches, answer, laws, note
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, against, gives_way, velocity_at
from nablasim.physics.laws.rigid.surfaces_kernels import FAR, Surfaces, grid_surface, mesh_surface, shape_surface


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
def pressure(bodies: Bodies, c: Contact, r: int, two: kc.int2, share: float, gap: float, at: kc.float3, n: kc.float3,
             dt: float):  # fmt: skip
    """`law` and `give` at a point of two bodies in row r; where it is from both centres of mass."""
    a, b = two.x, two.y
    qa, qb = kc.normalize(bodies.rot[a]), kc.normalize(bodies.rot[b])
    arm = at - bodies.x[a] - kc.quat_rotate(qa, bodies.com[a])
    brace = at - bodies.x[b] - kc.quat_rotate(qb, bodies.com[b])
    pace, _ = paces(bodies, a, qa, arm, n, dt, 0.0, 0.0)
    pace, _ = paces(bodies, b, qb, brace, n, dt, pace, 0.0)
    velocity = against(bodies, b, at - bodies.x[b], velocity_at(bodies, a, at - bodies.x[a]))
    k, rate, light = c.four[r], kc.dot(velocity, n), 0.0
    kd = bounded(k.y * share, pace)
    fn = normal_force(gap, rate, k.x * share, kd, c.law[r], c.touch[r], c.smoothing[r], 0.0)
    if gives_way(bodies.motion[a]):
        light += 1.0 / bodies.mass[a]
    if gives_way(bodies.motion[b]):
        light += 1.0 / bodies.mass[b]
    law, give = laws(c, r, share, gap, rate, fn, light, dt)
    return law, give, arm, brace


@kc.func
def sliding(m: Motion, a: int, b: int, arm: kc.float3, brace: kc.float3) -> kc.float3:
    """The velocity of a against b."""
    return m.v[a] + kc.cross(m.omega[a], arm) - m.v[b] - kc.cross(m.omega[b], brace)


@kc.func
def two_speeds(ahead: Motion, before: Motion, y: Motion, two: kc.int2, arm: kc.float3, brace: kc.float3):
    """The velocity with the solution before, and with y."""
    v = sliding(ahead, two.x, two.y, arm, brace)
    return v + sliding(before, two.x, two.y, arm, brace), v + sliding(y, two.x, two.y, arm, brace)


@kc.func
def add(bodies: Bodies, lack: Forces, two: kc.int2, arm: kc.float3, brace: kc.float3, push: kc.float3):
    """Take a push on the first of two bodies, and its opposite on the other, out of what they lack. What does not give
    way lacks nothing: or its y, which is zero, would seem to move with all that pushes it."""
    a, b = two.x, two.y
    if gives_way(bodies.motion[a]):
        kc.atomic_sub(lack.f, a, push)
        kc.atomic_sub(lack.torque, a, kc.cross(arm, push))
    if gives_way(bodies.motion[b]):
        kc.atomic_add(lack.f, b, push)
        kc.atomic_add(lack.torque, b, kc.cross(brace, push))


def kernels(surface, edges, turned):
    """Lists and residuals of the points and edges of bodies on surfaces of this family, as of `body_contacts_kernels`.
    """

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

    @kc.func
    def pressed(bodies: Bodies, surfaces: Surfaces, pairs: Pairs, ahead: Motion, r: int, dt: float):
        """The points and edges of row r that may be pressed: the two bodies, where it is from both centres of mass, the
        normal, `law` and `give`."""
        a, b, c = pairs.one[r], pairs.other[r], pairs.contact
        margin = margin_of(surfaces, pairs, ahead, r, dt)
        if near(bodies, surfaces, a, b, margin):
            two, first = kc.int2(a, b), surfaces.points.start[a]
            for i in range(first, first + surfaces.points.count[a]):
                gap, at, n = touch(bodies, surfaces, a, b, i, margin)
                if gap < margin:
                    law, give, arm, brace = pressure(bodies, c, r, two, surfaces.points.share[i], gap, at, n, dt)
                    if law.w > 0.0 or give.y > 0.0:
                        yield two, arm, brace, n, law, give
            soft = c.smoothing[r] if c.law[r] != HARD else 0.0  # Edges feel nothing before they are inside.
            for gap, at, n, part in edges.touching(bodies, surfaces, a, b):
                law, give, arm, brace = pressure(bodies, c, r, two, EDGE * part, gap + soft, at, n, dt)
                if law.w > 0.0 or give.y > 0.0:
                    yield two, arm, brace, n, law, give
            if kc.static(turned is not None):
                if surfaces.kind[a] == CAPSULE:
                    for gap, at, n, part in turned.touching(bodies, surfaces, b, a):
                        back = kc.int2(b, a)
                        law, give, arm, brace = pressure(bodies, c, r, back, EDGE * part, gap + soft, at, n, dt)
                        if law.w > 0.0 or give.y > 0.0:
                            yield back, arm, brace, n, law, give

    @kc.kernel(lanes=0)
    def list_pairs(bodies: Bodies, surfaces: Surfaces, pairs: Pairs, ahead: Motion, dt: float, rows: Scenes,
                   t: Touches):  # fmt: skip
        """List the points that are pressed. A thread is a scene."""
        w = kc.tid()
        for r in range(rows.start[w], rows.start[w + 1]):
            for two, arm, brace, n, law, give in pressed(bodies, surfaces, pairs, ahead, r, dt):
                a = two.x if gives_way(bodies.motion[two.x]) else -1
                b = two.y if gives_way(bodies.motion[two.y]) else -1
                note(t, w, a, b, arm, brace, n, sliding(ahead, two.x, two.y, arm, brace), law, give)

    @kc.kernel(lanes=0)
    def rub_pairs(bodies: Bodies, surfaces: Surfaces, pairs: Pairs, ahead: Motion, dt: float, before: Motion,
                  begins: int, y: Motion, lack: Forces):  # fmt: skip
        """What contact between two bodies adds to R."""
        for two, arm, brace, n, law, give in pressed(bodies, surfaces, pairs, ahead, kc.tid(), dt):
            last, end = two_speeds(ahead, before, y, two, arm, brace)
            add(bodies, lack, two, arm, brace, answer(law, give, n, end, last, begins) * dt)

    return SimpleNamespace(list_pairs=list_pairs, rub_pairs=rub_pairs)


FAMILIES = {
    "shape": kernels(shape_surface, EDGES["shape"], None),
    "mesh": kernels(mesh_surface, EDGES["mesh"], EDGES["shape"]),
    "grid": kernels(grid_surface, EDGES["grid"], None),
}
