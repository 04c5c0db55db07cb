"""Friction of all bodies of a scene together, at the end of the step: the equations, their solution, and its adjoint.

With v_ahead what the step would end with by all other forces, and y what contact changes of the velocities,

    R(y) = M y + dt Σ Jᵀ (F(|u|) u / |u| - n f_n) = 0,   u + n w = J (v_ahead + y),   F(|u|) = min(kf |u|, mu f_n')

which is where a convex function has its minimum, as long as the pressure f_n' under which things rub is known: it is
that of the solution before, of a few that follow each other. Pressure that is not a force of the step's begin is found
here as well,

    f_n = max(0, ke (p - dt (w - w0) / 2) - kd w)        without a damper,
    f_n = max(0, ke (p - dt w) - kd w)                   with one,

and what is between where that is very weak. p is how far things are in each other when the step begins, w0 how fast
they go apart then, and w at its end. No step is too long for it. A spring without a damper that a step resolves
returns what it took; what no step resolves loses energy, and does not ring.
 Newton's method finds it, by sweeps as in `body_friction_kernels.py`;
its linear equations have a block for every two bodies that touch, and are solved by conjugate gradients. A thread is a
scene of a batch: scenes share nothing, so each has the bits that it has alone.

What is solved for stands in arrays of its own, in double precision. The residual is computed once more by kernels with
adjoints, at the solution: y moves by -A⁻¹ dR, with A the matrix there.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.body_friction_kernels import FINE
from nablasim.physics.laws.contact.body_planes_kernels import Planes, reach
from nablasim.physics.laws.contact.compliant_kernels import (
    FIRM,
    Contact,
    bounded,
    friction_slopes,
    hinge,
    rounding,
)
from nablasim.physics.laws.contact.hard_kernels import HARD, SHARE
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, Points, gives_way, velocity_at

ELASTIC = 0.05
"""Which part of dt ke a damper has to exceed, for the spring to be taken at the end of the step as well."""
SLOWLY = 2.0
"""How many steps more it takes for a body to come out of what it is in: all at once would throw it up."""


@kc.struct
class Motion:
    """The velocities of centres of mass, and angular velocities, with which a step would end without friction."""

    v: kc.Array[kc.float3]
    omega: kc.Array[kc.float3]


@kc.struct
class Touches:
    """Points where bodies are pressed: those of scene w are from w · room on, count[w] of them.

    arm, brace: from the centre of mass of one and of the other (-1: what friction does not move) to the point.
    free: the velocity there, of one against the other, without friction. law: mu, kf, how far friction is rounded, and
    the pressure that the step begins with. give: where give.y is not zero, the pressure is give.x - give.y w at its
    end. cap: the most that friction can hold.
    """

    one: kc.Array[int]
    other: kc.Array[int]
    arm: kc.Array[kc.float3]
    brace: kc.Array[kc.float3]
    normal: kc.Array[kc.float3]
    free: kc.Array[kc.float3]
    law: kc.Array[kc.float4]
    give: kc.Array[kc.float2]
    cap: kc.Array[float]
    count: kc.Array[int]


@kc.struct
class Scenes:
    """The rows of each scene of a batch in some table: from start[w] to start[w + 1] - 1."""

    start: kc.Array[int]


@kc.kernel
def motion_ahead(bodies: Bodies, forces: Forces, dt: float, ahead: Motion, turn: kc.Array[kc.mat33]):
    """What a step would end with without friction, and the inertia of a body in world axes."""
    b = kc.tid()
    R = kc.quat_to_matrix(kc.normalize(bodies.rot[b]))
    v, omega = velocity_at(bodies, b, R * bodies.com[b]), bodies.omega[b]
    if gives_way(bodies.motion[b]):
        v += (bodies.gravity[b] + forces.f[b] / bodies.mass[b]) * dt
        omega += R * (bodies.inverse[b] * (kc.transpose(R) * forces.torque[b])) * dt
    ahead.v[b] = v
    ahead.omega[b] = omega
    turn[b] = R * bodies.inertia[b] * kc.transpose(R)


@kc.func
def plane_law(bodies: Bodies, p: Planes, press: kc.Array[kc.float4], r: int, dt: float):
    """`law` and `give` of the point of a pair that is pressed."""
    b, c, at = p.body[r], p.contact, press[r]
    arm = kc.quat_rotate(kc.normalize(bodies.rot[b]), bodies.com[b]) + at[0:3]
    gap = kc.dot(p.normal[r], bodies.x[b] + arm) - p.offset[r]
    rate = kc.dot(velocity_at(bodies, b, arm), p.normal[r])
    return laws(c, r, 1.0, gap, rate, at.w, 1.0 / bodies.mass[b], dt)


@kc.func
def laws(c: Contact, r: int, share: float, gap: float, rate: float, fn: float, light: float, dt: float):
    """`law` and `give` of a part of contact r, that presses with fn and whose two sides have this inverse mass."""
    k, pace = c.four[r], light * dt * FINE
    kf, give, start = bounded(k.z * share, pace), kc.float2(), fn
    if c.law[r] == FIRM:
        ke, kd, p = k.x * share, k.y * share, -gap
        late = kd / (kd + ELASTIC * dt * ke) if kd > 0.0 else 0.0
        slope = 0.5 * dt * (1.0 + late) * ke
        if c.smoothing[r] > 0.0:
            p = hinge(p, c.smoothing[r])
        if p > 0.0:
            slope += kd + SLOWLY * late * dt * ke
        start = ke * max(p, 0.0)
        give = kc.float2(ke * (p + 0.5 * dt * (1.0 - late) * rate), slope)
    elif c.law[r] == HARD:
        kf = 1.0 / pace
        give = kc.float2((-gap if gap > 0.0 else -gap * SHARE) / (dt * pace), 1.0 / pace)
        start = max(give.x, 0.0)
    return kc.float4(k.w, kf, rounding(gap, c.smoothing[r]), start), give


@kc.func
def pressing(law: kc.float4, give: kc.float2, w: float) -> float:
    """How hard a point is pressed at the end of the step, where it moves with w along the normal."""
    fn = law.w
    if give.y > 0.0:
        fn = max(give.x - give.y * w, 0.0)
    return fn


@kc.func
def answer(law: kc.float4, give: kc.float2, n: kc.float3, v: kc.float3, before: kc.float3, begins: int) -> kc.float3:
    """The force on one side at the velocity v, where friction is held by the pressure at the velocity `before`.

    begins: by the one that the step begins with.
    """
    w = kc.dot(n, v)
    u = v - n * w
    cap = law.x * law.w
    if begins == 0:
        cap = law.x * pressing(law, give, kc.dot(n, before))
    across, _ = friction_slopes(kc.length(u), cap, law.y, law.z)
    force = -u * across
    if give.y > 0.0:
        force += n * pressing(law, give, w)
    return force


@kc.func
def note(t: Touches, w: int, a: int, b: int, arm: kc.float3, brace: kc.float3, n: kc.float3, free: kc.float3,
         law: kc.float4, give: kc.float2):  # fmt: skip
    """Put a point into the list of its scene; where there is no room left, it is only counted.

    The gradient goes through the residual, not through what is solved for.
    """
    k = t.count[w]
    t.count[w] = k + 1
    room = t.one.shape[0] // t.count.shape[0]
    if k < room:
        c = w * room + k
        t.one[c] = a
        t.other[c] = b
        t.arm[c] = kc.stop_grad(arm)
        t.brace[c] = kc.stop_grad(brace)
        t.normal[c] = kc.stop_grad(n)
        t.free[c] = kc.stop_grad(free)
        t.law[c] = kc.stop_grad(law)
        t.give[c] = kc.stop_grad(give)


@kc.kernel(lanes=0)
def list_planes(bodies: Bodies, p: Planes, press: kc.Array[kc.float4], ahead: Motion, dt: float, rows: Scenes,
                t: Touches):  # fmt: skip
    """List the points that planes press. A thread is a scene."""
    w = kc.tid()
    for r in range(rows.start[w], rows.start[w + 1]):
        at = press[r]
        if at.w > 0.0:
            b, lever = p.body[r], at[0:3]
            free = ahead.v[b] + kc.cross(ahead.omega[b], lever)
            law, give = plane_law(bodies, p, press, r, dt)
            note(t, w, b, -1, lever, kc.float3(), p.normal[r], free, law, give)


@kc.kernel
def hard_presses(bodies: Bodies, points: Points, p: Planes, dt: float, press: kc.Array[kc.float4]):
    """Points that may meet a hard plane in this step."""
    r = kc.tid()
    b, n, q, arm, gap = reach(bodies, points, p, r)
    fall = kc.length(bodies.gravity[b]) * 2.0 * dt
    if p.contact.law[r] == HARD and gap < dt * (fall + kc.abs(kc.dot(velocity_at(bodies, b, arm), n))):
        press[r] = kc.float4(arm - kc.quat_rotate(q, bodies.com[b]), 1.0)


@kc.kernel
def rub_planes(bodies: Bodies, p: Planes, press: kc.Array[kc.float4], ahead: Motion, dt: float,
               before: Motion, begins: int, y: Motion, lack: Forces):  # fmt: skip
    """What contact with planes adds to R."""
    r = kc.tid()
    at = press[r]
    if at.w > 0.0:
        b, n, lever = p.body[r], p.normal[r], at[0:3]
        v = ahead.v[b] + kc.cross(ahead.omega[b], lever)
        law, give = plane_law(bodies, p, press, r, dt)
        last = v + before.v[b] + kc.cross(before.omega[b], lever)
        push = answer(law, give, n, v + y.v[b] + kc.cross(y.omega[b], lever), last, begins) * dt
        kc.atomic_sub(lack.f, b, push)
        kc.atomic_sub(lack.torque, b, kc.cross(lever, push))


@kc.kernel
def resist(bodies: Bodies, turn: kc.Array[kc.mat33], y: Motion, lack: Forces):
    """M y, which R begins with."""
    b = kc.tid()
    kc.atomic_add(lack.f, b, y.v[b] * bodies.mass[b])
    kc.atomic_add(lack.torque, b, turn[b] * y.omega[b])


@kc.kernel
def force_of(bodies: Bodies, turn: kc.Array[kc.mat33], y: Motion, lack: Forces, dt: float, rub: Forces):
    """The force and the torque that change the velocities by y: those of the points, which add up to nothing, and not
    what they would have to be for what the solution still lacks. That does not depend on anything to first order."""
    b = kc.tid()
    if gives_way(bodies.motion[b]) and dt > 0.0:
        kc.atomic_add(rub.f, b, (y.v[b] * bodies.mass[b] - kc.stop_grad(lack.f[b])) / dt)
        kc.atomic_add(rub.torque, b, (turn[b] * y.omega[b] - kc.stop_grad(lack.torque[b])) / dt)
