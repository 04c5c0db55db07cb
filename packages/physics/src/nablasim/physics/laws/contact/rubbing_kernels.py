"""Friction of all bodies of a scene together, at the end of the step: the equations, their solution, and its adjoint.

With v_ahead what the step would end with by all other forces, and y what contact changes of the velocities,

    R(y) = M y + dt Σ Jᵀ (F(|u|) u / |u| - n f_n) = 0,   u + n w = J (v_ahead + y),   F(|u|) = min(kf |u|, mu f_n')

which is where a convex function has its minimum, as long as the pressure f_n' under which things rub is known: it is
that of the solution before, of a few that follow each other. Pressure that is not a force of the step's begin is found
here as well,

    f_n = max(0, ke (p - dt (w - w0) / 2) - kd w)        without a damper,
    f_n = max(0, ke (p - dt w) - kd w)                   with one,

and what is between where that is very weak. p is how far things are in each other when the step begins, w0 how fast
they go apart then, and w at its end. No step is too long for it. However stiff it is, a spring without a damper returns
what it took; one with a damper, which a step does not resolve, does not ring.
 Newton's method finds it, by sweeps as in `body_friction_kernels.py`;
its linear equations have a block for every two bodies that touch, and are solved by conjugate gradients. A thread is a
scene of a batch: scenes share nothing, so each has the bits that it has alone.

What is solved for stands in arrays of its own, in double precision. The residual is computed once more by kernels with
adjoints, at the solution: y moves by -A⁻¹ dR, with A the matrix there.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.contact.body_friction_kernels import FINE, joined
from nablasim.physics.laws.contact.body_planes_kernels import Planes, reach
from nablasim.physics.laws.contact.compliant_kernels import (
    FIRM,
    Contact,
    bounded,
    friction_energy,
    friction_slopes,
    hinge,
    rounding,
)
from nablasim.physics.laws.contact.hard_kernels import HARD, SHARE
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces, Points, gives_way, velocity_at

SWEEPS = 100
"""At most; three to six are usual."""
CUTS = 8
"""How often a step that leads uphill is halved."""
SETTLED, CLOSE = 1e-24, 1e-13
"""Squares of residuals, compared with that of points that all stick: at which sweeps end; and below which their steps
are taken whole, because the function is then flat to rounding."""
ELASTIC = 0.05
"""Which part of dt ke a damper has to exceed, for the spring to be taken at the end of the step as well."""
SLOWLY = 2.0
"""How many steps more it takes for a body to come out of what it is in: all at once would throw it up."""
WITHIN = 1e-9
"""The same, by which each sweep solves its linear equations better than what it begins with."""


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
    the pressure that the step begins with. give: the pressure is give.x - give.y w at its end, where give.y is not zero.
    cap: the most that friction can hold.
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


@kc.struct
class Weights:
    """What resists: mass, and inertia about the centre of mass in world axes. start: the bodies of each scene."""

    mass: kc.Array[float]
    turn: kc.Array[kc.mat33]
    start: kc.Array[int]


@kc.struct
class Blocks:
    """The matrix A: a block for each body, and one for every two that touch, edges[w] of them in scene w."""

    own: kc.Array[kc.spatial_matrix]
    inverse: kc.Array[kc.spatial_matrix]
    one: kc.Array[int]
    other: kc.Array[int]
    block: kc.Array[kc.spatial_matrix]
    edges: kc.Array[int]


@kc.struct
class Vectors:
    """Numbers of all bodies: what is found, where a sweep leads, its right-hand side, and memory of the solver."""

    y: kc.Array[kc.spatial_vector]
    to: kc.Array[kc.spatial_vector]
    rhs: kc.Array[kc.spatial_vector]
    left: kc.Array[kc.spatial_vector]
    way: kc.Array[kc.spatial_vector]
    image: kc.Array[kc.spatial_vector]
    residual: kc.Array[float]
    scale: kc.Array[float]


# ------------------------------------------------------------------------------------------------------- the equations
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
    """Put a point into the list of its scene; where there is no room left, it is only counted."""
    k = t.count[w]
    t.count[w] = k + 1
    room = t.one.shape[0] // t.count.shape[0]
    if k < room:
        c = w * room + k
        t.one[c] = a
        t.other[c] = b
        t.arm[c] = arm
        t.brace[c] = brace
        t.normal[c] = n
        t.free[c] = free
        t.law[c] = law
        t.give[c] = give


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
def force_of(bodies: Bodies, turn: kc.Array[kc.mat33], y: Motion, dt: float, rub: Forces):
    """The force and the torque of friction that change the velocities by y."""
    b = kc.tid()
    if gives_way(bodies.motion[b]) and dt > 0.0:
        kc.atomic_add(rub.f, b, y.v[b] * (bodies.mass[b] / dt))
        kc.atomic_add(rub.torque, b, turn[b] * y.omega[b] / dt)


# -------------------------------------------------------------------------------------------------------- the solution
@kc.func
def velocity_of(t: Touches, c: int, y: kc.Array[kc.spatial_vector]) -> kc.float3:
    """The velocity of one side against the other with the changes y."""
    a, b = t.one[c], t.other[c]
    u = t.free[c]
    if a >= 0:
        u += kc.spatial_top(y[a]) + kc.cross(kc.spatial_bottom(y[a]), t.arm[c])
    if b >= 0:
        u -= kc.spatial_top(y[b]) + kc.cross(kc.spatial_bottom(y[b]), t.brace[c])
    return u


@kc.func
def coupling(H: kc.mat33, L: kc.mat33, K: kc.mat33) -> kc.spatial_matrix:
    """-[I, -L]ᵀ H [I, -K]."""
    m = kc.spatial_matrix()
    right, lower = H * K, L * H
    both = lower * K
    for i in range(3):
        for j in range(3):
            m[i, j] = -H[i, j]
            m[i, j + 3] = right[i, j]
            m[i + 3, j] = -lower[i, j]
            m[i + 3, j + 3] = both[i, j]
    return m


@kc.func
def add_own(blocks: Blocks, b: int, H: kc.mat33, arm: kc.float3):
    L = kc.skew(arm)
    HL = H * L
    blocks.own[b] = blocks.own[b] + joined(H, -HL, -(L * HL))


@kc.func
def assemble(t: Touches, m: Weights, blocks: Blocks, s: Vectors, w: int, dt: float, begun: bool, damped: bool):
    """The matrix A and the right-hand side of a sweep from y; `damped`: with F / |u| of each point for a damper, and
    springs that pull as well as they push from where they are."""
    one, none = kc.diag(kc.float3(1.0, 1.0, 1.0)), kc.mat33()
    for b in range(m.start[w], m.start[w + 1]):
        blocks.own[b] = joined(one * m.mass[b], none, m.turn[b])
        s.rhs[b] = kc.spatial_vector()
    first, edges, last_a, last_b = w * (t.one.shape[0] // t.count.shape[0]), 0, -2, -2
    for c in range(first, first + t.count[w]):
        a, b, n, k, give = t.one[c], t.other[c], t.normal[c], t.law[c], t.give[c]
        v, free = velocity_of(t, c, s.y), t.free[c]
        w_end, w_free = kc.dot(n, v), kc.dot(n, free)
        u, free = v - n * w_end, free - n * w_free
        slip = kc.length(u)
        across, slope = k.y, k.y
        if begun:
            across, slope = friction_slopes(slip, t.cap[c], k.y, k.z)
        if damped:
            slope = across
        H, drive = (one - kc.outer(n, n)) * across, kc.float3()
        if slope < across:
            way = u / slip
            H += kc.outer(way, way) * (slope - across)
            drive = u * (slope - across)
        H = H * dt
        rest = drive * dt - H * free
        if give.x > give.y * w_end or damped:
            # What is not pressed now could be: a spring for all of them never leads too far.
            H += kc.outer(n, n) * (dt * give.y)
            rest += n * (dt * (max(give.x, give.y * w_end) - give.y * w_free))
        if a >= 0:
            add_own(blocks, a, H, t.arm[c])
            s.rhs[a] = s.rhs[a] + kc.spatial_join(rest, kc.cross(t.arm[c], rest))
        if b >= 0:
            add_own(blocks, b, H, t.brace[c])
            s.rhs[b] = s.rhs[b] - kc.spatial_join(rest, kc.cross(t.brace[c], rest))
        if a >= 0 and b >= 0:
            if a != last_a or b != last_b:
                blocks.one[first + edges] = a
                blocks.other[first + edges] = b
                blocks.block[first + edges] = kc.spatial_matrix()
                edges += 1
                last_a, last_b = a, b
            e = first + edges - 1
            blocks.block[e] = blocks.block[e] + coupling(H, kc.skew(t.arm[c]), kc.skew(t.brace[c]))
    blocks.edges[w] = edges
    for b in range(m.start[w], m.start[w + 1]):
        blocks.inverse[b] = kc.inverse(blocks.own[b])


@kc.func
def spread(m: Weights, blocks: Blocks, w: int, x: kc.Array[kc.spatial_vector], out: kc.Array[kc.spatial_vector]):
    """A x."""
    for b in range(m.start[w], m.start[w + 1]):
        out[b] = blocks.own[b] * x[b]
    first = w * (blocks.one.shape[0] // blocks.edges.shape[0])
    for e in range(first, first + blocks.edges[w]):
        a, b, K = blocks.one[e], blocks.other[e], blocks.block[e]
        out[a] = out[a] + K * x[b]
        out[b] = out[b] + kc.transpose(K) * x[a]


@kc.func
def solve_blocks(m: Weights, blocks: Blocks, s: Vectors, w: int, within: float, least: float) -> float:
    """A to = rhs by conjugate gradients from what is in `to`; the square of the residual that it began with."""
    low, high = m.start[w], m.start[w + 1]
    spread(m, blocks, w, s.to, s.image)
    size = 0.0
    for b in range(low, high):
        left = s.rhs[b] - s.image[b]
        s.left[b] = left
        s.way[b] = blocks.inverse[b] * left
        size += kc.dot(left, s.way[b])
    begun, k = size, 0
    while size > within * begun and size > least and k < 50 + 12 * (high - low):
        k += 1
        spread(m, blocks, w, s.way, s.image)
        curve = 0.0
        for b in range(low, high):
            curve += kc.dot(s.way[b], s.image[b])
        step, after = size / curve, 0.0
        for b in range(low, high):
            s.to[b] = s.to[b] + s.way[b] * step
            left = s.left[b] - s.image[b] * step
            s.left[b] = left
            s.image[b] = blocks.inverse[b] * left
            after += kc.dot(left, s.image[b])
        for b in range(low, high):
            s.way[b] = s.image[b] + s.way[b] * (after / size)
        size = after
    return begun


@kc.func
def height(t: Touches, m: Weights, w: int, dt: float, y: kc.Array[kc.spatial_vector]) -> float:
    """The function whose minimum is sought."""
    total = 0.0
    for b in range(m.start[w], m.start[w + 1]):
        v, omega = kc.spatial_top(y[b]), kc.spatial_bottom(y[b])
        total += 0.5 * (m.mass[b] * kc.length_sq(v) + kc.dot(omega, m.turn[b] * omega))
    first = w * (t.one.shape[0] // t.count.shape[0])
    for c in range(first, first + t.count[w]):
        k, give, n, v = t.law[c], t.give[c], t.normal[c], velocity_of(t, c, y)
        w_end = kc.dot(n, v)
        total += dt * friction_energy(kc.length(v - n * w_end), t.cap[c], k.y, k.z)
        if give.x > give.y * w_end:
            fn = pressing(k, give, w_end)
            total += 0.5 * dt * fn * fn / give.y
    return total


@kc.kernel(lanes=0)
def settle(t: Touches, m: Weights, dt: float, begins: int, blocks: Blocks, s: Vectors):
    """Find y, and leave the matrix there. A thread is a scene.

    begins: friction is held by the pressure that the step begins with; else by that of the y that was found before.
    """
    w = kc.tid()
    low, high, first = m.start[w], m.start[w + 1], w * (t.one.shape[0] // t.count.shape[0])
    for c in range(first, first + t.count[w]):
        t.cap[c] = t.law[c].x * t.law[c].w
        if begins == 0:
            t.cap[c] = t.law[c].x * pressing(t.law[c], t.give[c], kc.dot(t.normal[c], velocity_of(t, c, s.y)))
    for b in range(low, high):
        if begins == 1:
            s.y[b] = kc.spatial_vector()
        s.to[b] = s.y[b]
    s.residual[w] = 0.0
    if t.count[w] > 0:
        assemble(t, m, blocks, s, w, dt, begins == 0, False)
        begun = solve_blocks(m, blocks, s, w, WITHIN, 0.0)
        if begins == 1:
            s.scale[w] = begun
            for b in range(low, high):
                s.y[b] = s.to[b]
        else:
            for b in range(low, high):
                s.to[b] = s.y[b]
        least = SETTLED * s.scale[w]
        lowest, damped, sweep, done, last = height(t, m, w, dt, s.y), False, 0, False, 1e300
        while sweep < SWEEPS and not done:
            sweep += 1
            assemble(t, m, blocks, s, w, dt, True, damped)
            size = solve_blocks(m, blocks, s, w, WITHIN, 0.01 * least)
            s.residual[w] = size
            done = size <= least
            if not done:
                found, cuts = height(t, m, w, dt, s.to), 0
                close = size <= CLOSE * s.scale[w]
                while found > lowest and cuts < CUTS and not damped and not close:
                    cuts += 1
                    for b in range(low, high):
                        s.to[b] = (s.to[b] + s.y[b]) * 0.5
                    found = height(t, m, w, dt, s.to)
                # Dampers that are as strong as friction is now always lead downhill, but for rounding.
                done = (damped and found >= lowest) or (close and size >= 0.01 * last)
                damped = cuts > 1
                last = size
                for b in range(low, high):
                    if found < lowest or (close and not done):
                        s.y[b] = s.to[b]
                    else:
                        s.to[b] = s.y[b]
                lowest = min(lowest, found)
    assemble(t, m, blocks, s, w, dt, True, False)


@kc.kernel(lanes=0)
def solve_linear(m: Weights, blocks: Blocks, s: Vectors):
    """A to = rhs for the adjoint and the tangents. A thread is a scene."""
    w = kc.tid()
    for b in range(m.start[w], m.start[w + 1]):
        s.to[b] = kc.spatial_vector()
        blocks.inverse[b] = kc.inverse(blocks.own[b])
    solve_blocks(m, blocks, s, w, 1e-26, 0.0)
