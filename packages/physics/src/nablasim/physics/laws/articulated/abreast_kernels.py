"""The step of robots that touch nothing fixed, for all copies side by side; see `robots_kernels.py` for its equations.

One launch is a whole step: a thread is a robot in one copy, a SIMD lane. Nothing here is differentiated; the way back is
`abreast_back_kernels.py`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated.abreast_joints_kernels import (
    ball_ahead,
    before_joint,
    behind_joint,
    free_ahead,
    free_side,
    lean_of,
    moments,
    motor_torque,
    pull_of,
    rate_at_end,
    revolve,
    soft_torque,
    stop_torque,
    times,
    wrench,
)
from nablasim.physics.laws.articulated.abreast_memory import (
    ACC,
    APPARENT,
    ARMATURE,
    BIAS,
    DAMPING,
    DIAG,
    DV,
    DW,
    FIRST,
    FRICTION,
    HEAP,
    HIGH,
    HOLD,
    KD,
    KP,
    LANES,
    LEAN,
    LIMIT,
    LOW,
    MASS,
    MID,
    OFF,
    OFFSET,
    ORIGIN,
    PLACE,
    PUSH,
    Q_MID,
    RATE,
    RATIO,
    REST,
    ROT,
    SLIDE,
    SPRING_REST,
    STIFF,
    STIFFNESS,
    STOP_KD,
    STOP_KE,
    TARGET,
    TIE,
    TORQUE,
    TURN,
    WAY,
    Abreast,
    F,
    Found,
    N,
    Q,
    Sizes,
    V,
    W,
    X,
    add3,
    copy_of,
    get3,
    get4,
    put3,
    put4,
)
from nablasim.physics.laws.articulated.bundles import FIXED, FREE, PRISMATIC, REVOLUTE, Drives, Masses, Now, Rig, Tree
from nablasim.physics.laws.articulated.dynamics_kernels import held
from nablasim.physics.laws.articulated.joints_kernels import STICK
from nablasim.physics.laws.articulated.newton_kernels import DESCENTS, NEAR, ROUNDED, ROUNDS, TRIALS
from nablasim.physics.laws.articulated.ties_kernels import BACK
from nablasim.physics.laws.articulated.tree_kernels import dofs_of

HEAP_FIRST, HEAP_DIAG, HEAP_OFF = HEAP + 1, HEAP + 4, HEAP + 7


@kc.func
def quat_at(m, c: int, f: int, l: int) -> kc.quat:
    """A quaternion whose parts are four coordinates."""
    return kc.quat(m[c, f, l], m[c + 1, f, l], m[c + 2, f, l], m[c + 3, f, l])


@kc.func
def rates_at(dof, d: int, f: int, l: int) -> kc.float3:
    """Three numbers of degrees of freedom that follow each other."""
    return kc.float3(dof[d, f, l], dof[d + 1, f, l], dof[d + 2, f, l])


# -- what a step begins with
@kc.func
def take_drives(t: Tree, b: Masses, s: Drives, now: Now, z: Sizes, dof, w: int, dt: float, l: int, r: int):
    """Put side by side what acts in the joints."""
    n = dof.shape[0]
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        at = w * n + k
        damping, kd, stiffness, kp, apparent = held(s.damping[at]), held(s.kd[at]), held(s.stiffness[at]), held(s.kp[at]), held(s.apparent[at])
        dof[k, RATE, l] = held(now.qd[at])
        dof[k, PLACE, l] = held(now.q[w * z.coords + t.dof_coord[k]])
        dof[k, DAMPING, l] = damping
        dof[k, STIFFNESS, l] = stiffness
        dof[k, SPRING_REST, l] = held(s.rest[at])
        dof[k, FRICTION, l] = held(s.friction[at])
        dof[k, KP, l] = kp
        dof[k, KD, l] = kd
        dof[k, LIMIT, l] = held(s.limit[at])
        dof[k, TARGET, l] = held(s.target[at])
        dof[k, TORQUE, l] = held(s.torque[at]) + held(s.more_torque[at])
        ends = held(s.limits[at])
        dof[k, LOW, l] = ends.x
        dof[k, HIGH, l] = ends.y
        dof[k, STOP_KE, l] = held(s.stop_ke[at])
        dof[k, STOP_KD, l] = held(s.stop_kd[at])
        dof[k, APPARENT, l] = apparent
        dof[k, ARMATURE, l] = held(b.armature[at])
        dof[k, LEAN, l] = lean_of(damping, kd, stiffness, kp, apparent, dt)
        push = 0.0
        if now.push is not None:
            push = held(now.push[at])
        dof[k, PUSH, l] = push
        if t.leads[k] != k:
            dof[k, TIE, l] = held(s.tie[at])
            dof[k, RATIO, l] = held(s.ratio[at])
            dof[k, OFFSET, l] = held(s.offset[at])


@kc.func
def go_half_way(t: Tree, g: Rig, now: Now, z: Sizes, coord, dof, w: int, dt: float, l: int, r: int):
    """The coordinates at the start and half a step ahead."""
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, c, d = t.kind[i], t.coord[i], t.dof[i]
        if kind == REVOLUTE or kind == PRISMATIC:
            q = held(now.q[w * z.coords + c])
            coord[c, Q, l] = q
            coord[c, Q_MID, l] = q + 0.5 * dt * dof[d, RATE, l]
        elif kind != FIXED:
            moves = 3 if kind == FREE else 0
            for k in range(4 + moves):
                coord[c + k, Q, l] = held(now.q[w * z.coords + c + k])
            if kind == FREE:
                at = w * (g.pos.shape[0] // z.worlds) + i
                side = free_side(held(g.base_rot[w * z.robots + r]), held(g.rot[at]), 1.0 if t.parent[i] == i else 0.0)
                turn = quat_at(coord, c + 3, Q, l)
                move, end = free_ahead(turn, rates_at(dof, d, RATE, l), rates_at(dof, d + 3, RATE, l), side, 0.5 * dt)
                for k in range(3):
                    coord[c + k, Q_MID, l] = coord[c + k, Q, l] + move[k]
                put_quat(coord, c + 3, Q_MID, l, end)
            else:
                put_quat(coord, c, Q_MID, l, ball_ahead(quat_at(coord, c, Q, l), rates_at(dof, d, RATE, l), 0.5 * dt))


@kc.func
def put_quat(m, c: int, f: int, l: int, q: kc.quat):
    m[c, f, l] = q.x
    m[c + 1, f, l] = q.y
    m[c + 2, f, l] = q.z
    m[c + 3, f, l] = q.w


@kc.func
def place_and_weigh(t: Tree, g: Rig, b: Masses, z: Sizes, node, dof, coord, w: int, l: int, r: int):
    """Where nodes are in the middle of the step, how degrees of freedom move them, and what they weigh there."""
    origin = kc.float3()
    for i in range(t.first[r], t.first[r] + t.count[r]):
        at = w * node.shape[0] + i
        up, kind, c, d = t.parent[i], t.kind[i], t.coord[i], t.dof[i]
        x, rot = kc.float3(), kc.quat_identity()
        if up != i:
            x, rot = get3(node, up, X, l), get4(node, up, ROT, l)
        else:
            x, rot = held(g.base_x[w * z.robots + r]) - origin, kc.normalize(held(g.base_rot[w * z.robots + r]))
        x, rot = before_joint(x, rot, held(g.pos[at]), held(g.rot[at]))
        if kind == FREE:
            x = x + kc.quat_rotate(rot, rates_at(coord, c, Q_MID, l))
        if i == t.first[r]:
            origin = x
            x = kc.float3()
            put3(node, i, ORIGIN, l, origin)
        if kind == REVOLUTE:
            rot, a = revolve(rot, held(g.axis[at]), coord[c, Q_MID, l] - held(g.ref[w * z.coords + c]))
            put3(dof, d, TURN, l, a)
            put3(dof, d, SLIDE, l, kc.cross(x, a))
        elif kind == PRISMATIC:
            a = kc.quat_rotate(rot, kc.normalize(held(g.axis[at])))
            put3(dof, d, TURN, l, kc.float3())
            put3(dof, d, SLIDE, l, a)
            x = x + a * (coord[c, Q_MID, l] - held(g.ref[w * z.coords + c]))
        elif kind != FIXED:
            e, f, side = c, d, rot
            if kind == FREE:
                e, f = c + 3, d + 3
                if up == i:
                    side = kc.quat_identity()
            axes = kc.quat_to_matrix(side)
            for k in (0, 1, 2):
                a = kc.float3(axes[0, k], axes[1, k], axes[2, k])
                if kind == FREE:
                    put3(dof, d + k, TURN, l, kc.float3())
                    put3(dof, d + k, SLIDE, l, a)
                put3(dof, f + k, TURN, l, a)
                put3(dof, f + k, SLIDE, l, kc.cross(x, a))
            rot = rot * kc.normalize(quat_at(coord, e, Q_MID, l))
        x = behind_joint(x, rot, held(g.anchor[at]))
        put3(node, i, X, l, x)
        put4(node, i, ROT, l, rot)
        mass = held(b.mass[at])
        first, diag, off = moments(x, rot, held(b.com[at]), mass, held(b.inertia[at]))
        node[i, MASS, l] = mass
        put3(node, i, FIRST, l, first)
        put3(node, i, DIAG, l, diag)
        put3(node, i, OFF, l, off)


# -- dynamics
@kc.func
def mass_rows(t: Tree, node, dof, M, l: int, r: int):
    """The mass matrix by composite bodies, armature included; see `dynamics_kernels.py`."""
    first = t.first[r]
    for i in range(first, first + t.count[r]):
        for k in range(10):
            node[i, HEAP + k, l] = node[i, MASS + k, l]
    for i in reversed(range(first, first + t.count[r])):
        mass, mc = node[i, HEAP, l], get3(node, i, HEAP_FIRST, l)
        diag, off = get3(node, i, HEAP_DIAG, l), get3(node, i, HEAP_OFF, l)
        d = t.dof[i]
        for k in range(d, d + dofs_of(t.kind[i])):
            a, s = get3(dof, k, TURN, l), get3(dof, k, SLIDE, l)
            f = s * mass + kc.cross(a, mc)
            n = times(diag, off, a) + kc.cross(mc, s)
            row = t.row[k]
            M[row, l] = kc.dot(a, n) + kc.dot(s, f) + dof[k, ARMATURE, l]
            j = k
            for e in range(1, t.depth[k]):
                j = t.above[j]
                entry = 0.0
                if t.reach[row + e] > 0:
                    entry = kc.dot(get3(dof, j, TURN, l), n) + kc.dot(get3(dof, j, SLIDE, l), f)
                M[row + e, l] = entry
        up = t.parent[i]
        if up != i:
            node[up, HEAP, l] = node[up, HEAP, l] + mass
            add3(node, up, HEAP_FIRST, l, mc)
            add3(node, up, HEAP_DIAG, l, diag)
            add3(node, up, HEAP_OFF, l, off)


@kc.func
def parent_motion(t: Tree, b: Masses, z: Sizes, node, i: int, w: int, l: int, r: int):
    """Velocity and acceleration of what a node hangs on."""
    u, v, du, dv = kc.float3(), kc.float3(), kc.float3(), kc.float3()
    up = t.parent[i]
    if up != i:
        u, v, du, dv = get3(node, up, W, l), get3(node, up, V, l), get3(node, up, DW, l), get3(node, up, DV, l)
    else:
        dv = -held(b.gravity[w * z.robots + r])
    return u, v, du, dv


@kc.func
def bias_torques(t: Tree, b: Masses, z: Sizes, node, dof, field: int, w: int, l: int, r: int):
    """The torques that joints need to go on at their rates (recursive Newton-Euler)."""
    first = t.first[r]
    for i in range(first, first + t.count[r]):
        u, v, du, dv = parent_motion(t, b, z, node, i, w, l, r)
        d = t.dof[i]
        ju, jv, along = kc.float3(), kc.float3(), kc.float3()
        for k in range(d, d + dofs_of(t.kind[i])):
            rate = dof[k, field, l]
            slide = get3(dof, k, SLIDE, l) * rate
            ju += get3(dof, k, TURN, l) * rate
            jv += slide
            if t.kind[i] == FREE and k < d + 3:
                along += slide
        du = du + kc.cross(u, ju)
        dv = dv + kc.cross(u, jv) + kc.cross(v + along, ju)
        u, v = u + ju, v + jv
        put3(node, i, W, l, u)
        put3(node, i, V, l, v)
        put3(node, i, DW, l, du)
        put3(node, i, DV, l, dv)
        n, f = wrench(u, v, du, dv, node[i, MASS, l], get3(node, i, FIRST, l), get3(node, i, DIAG, l),
                      get3(node, i, OFF, l))  # fmt: skip
        put3(node, i, N, l, n)
        put3(node, i, F, l, f)
    for i in reversed(range(first, first + t.count[r])):
        n, f, d = get3(node, i, N, l), get3(node, i, F, l), t.dof[i]
        for k in range(d, d + dofs_of(t.kind[i])):
            dof[k, BIAS, l] = kc.dot(get3(dof, k, TURN, l), n) + kc.dot(get3(dof, k, SLIDE, l), f)
        up = t.parent[i]
        if up != i:
            add3(node, up, N, l, n)
            add3(node, up, F, l, f)


# -- the equations of the step
@kc.func
def factor(t: Tree, L, p: int, l: int, r: int):
    """L^T D L in place; see `tree_kernels.py`. The inverse of D is kept instead of D."""
    begin = t.dof_first[r]
    for o in reversed(range(begin, begin + t.dof_count[r])):
        k = t.order[o]
        row, n = t.row[k], t.depth[k]
        inverse = 1.0 / L[row, p, l]
        j = k
        for a in range(1, n):
            j = t.above[j]
            entry = L[row + a, p, l]
            share = entry * inverse
            to = t.row[j]
            L[to, p, l] = L[to, p, l] - share * entry
            for e in range(1, n - a):
                L[to + e, p, l] = L[to + e, p, l] - share * L[row + a + e, p, l]
        for a in range(1, n):
            L[row + a, p, l] = L[row + a, p, l] * inverse
        L[row, p, l] = inverse


@kc.func
def solve(t: Tree, L, p: int, x, field: int, l: int, r: int):
    """Solve L^T D L y = x in place."""
    begin = t.dof_first[r]
    for o in reversed(range(begin, begin + t.dof_count[r])):
        k = t.order[o]
        y = x[k, field, l]
        row, j = t.row[k], k
        for a in range(1, t.depth[k]):
            j = t.above[j]
            x[j, field, l] = x[j, field, l] - L[row + a, p, l] * y
    for o in range(begin, begin + t.dof_count[r]):
        k = t.order[o]
        row, j = t.row[k], k
        y = x[k, field, l] * L[row, p, l]
        for a in range(1, t.depth[k]):
            j = t.above[j]
            y -= L[row + a, p, l] * x[j, field, l]
        x[k, field, l] = y


@kc.func
def acting(dof, k: int, dt: float, l: int) -> float:
    """All that acts in a degree of freedom, dry friction as it is supposed to be."""
    v, a, apparent = dof[k, RATE, l], dof[k, ACC, l], dof[k, APPARENT, l]
    tau = soft_torque(dof[k, PLACE, l], v, a, dt, dof[k, DAMPING, l], dof[k, STIFFNESS, l], dof[k, SPRING_REST, l],
                      dof[k, KP, l], dof[k, KD, l], dof[k, LIMIT, l], dof[k, TARGET, l], dof[k, TORQUE, l],
                      dof[k, LOW, l], dof[k, HIGH, l], dof[k, STOP_KE, l], dof[k, STOP_KD, l], apparent)  # fmt: skip
    most, side = dof[k, FRICTION, l], dof[k, HOLD, l]
    rub = STICK * apparent / dt * (v + dt * a)
    tau -= (rub if side == 0.0 else most * side) if most > 0.0 else 0.0
    return tau + dof[k, PUSH, l]


@kc.func
def stiffness_of(dof, k: int, dt: float, l: int) -> float:
    """The negative derivative of `acting` by the acceleration."""
    q, v, a, ahead = dof[k, PLACE, l], dof[k, RATE, l], dof[k, ACC, l], dof[k, LEAN, l]
    kp, kd = dof[k, KP, l], dof[k, KD, l]
    v_e, v_1 = v + ahead * dt * a, v + dt * a
    q_e, q_1, h = q + ahead * dt * v_e, q + dt * v_1, dt * ahead
    A = h * dof[k, DAMPING, l] + h * h * dof[k, STIFFNESS, l]
    u = motor_torque(q_e, v_e, kp, kd, dof[k, TARGET, l], dof[k, TORQUE, l])
    A += h * kd + h * h * kp if abs(u) <= dof[k, LIMIT, l] else 0.0
    ke, back = dof[k, STOP_KE, l], dof[k, STOP_KD, l]
    low, high = stop_torque(dof[k, LOW, l], ke, back, q_1, v_1), stop_torque(dof[k, HIGH, l], ke, back, q_1, v_1)
    A += dt * back + dt * dt * ke if low > 0.0 or high < 0.0 else 0.0
    A += STICK * dof[k, APPARENT, l] if dof[k, FRICTION, l] > 0.0 and dof[k, HOLD, l] == 0.0 else 0.0
    return A


@kc.func
def side_of(dof, k: int, dt: float, l: int) -> float:
    """To which side a joint slides by the law of dry friction."""
    rub, most = STICK * dof[k, APPARENT, l] / dt * (dof[k, RATE, l] + dt * dof[k, ACC, l]), dof[k, FRICTION, l]
    side = 0.0
    if most > 0.0:
        side = -1.0 if rub < -most else (1.0 if rub > most else 0.0)
    return side


@kc.func
def left_over(t: Tree, dof, M, dt: float, l: int, r: int):
    """REST: what is left over of the equations."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    for k in range(begin, end):
        dof[k, REST, l] = acting(dof, k, dt, l) - dof[k, BIAS, l]
    for k in range(begin, end):
        a, row, j = dof[k, ACC, l], t.row[k], k
        mine = M[row, l] * a
        for e in range(1, t.depth[k]):
            j = t.above[j]
            entry = M[row + e, l]
            mine += entry * dof[j, ACC, l]
            dof[j, REST, l] = dof[j, REST, l] - entry * a
        dof[k, REST, l] = dof[k, REST, l] - mine
    for k in range(begin, end):
        j = t.leads[k]
        if j != k:
            ratio = dof[k, RATIO, l]
            pull = pull_of(dof[k, PLACE, l], dof[k, RATE, l], dof[k, ACC, l], dof[j, PLACE, l], dof[j, RATE, l],
                           dof[j, ACC, l], ratio, dof[k, OFFSET, l], dof[k, TIE, l], dt)  # fmt: skip
            dof[k, REST, l] = dof[k, REST, l] - pull
            dof[j, REST, l] = dof[j, REST, l] + ratio * pull


@kc.func
def step_factors(t: Tree, dof, M, L, p: int, dt: float, l: int, r: int):
    """The factors of the matrix of the step."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    for k in range(begin, end):
        row, stiff = t.row[k], stiffness_of(dof, k, dt, l)
        for e in range(1, t.depth[k]):
            L[row + e, p, l] = M[row + e, l]
        dof[k, STIFF, l] = stiff
        L[row, p, l] = M[row, l] + stiff
    for k in range(begin, end):
        j = t.leads[k]
        if j != k:
            tie, ratio = dof[k, TIE, l], dof[k, RATIO, l]
            L[t.row[k], p, l] = L[t.row[k], p, l] + tie
            L[t.row[j], p, l] = L[t.row[j], p, l] + tie * ratio * ratio
            at = t.row[k] + t.depth[k] - t.depth[j]
            if t.depth[j] > t.depth[k]:
                at = t.row[j] + t.depth[j] - t.depth[k]
            L[at, p, l] = L[at, p, l] - tie * ratio
    factor(t, L, p, l, r)


@kc.func
def suppose(t: Tree, dof, dt: float, l: int, r: int) -> bool:
    """Suppose what sticks and what slides; whether that, or a piece of a law, is other than in the factors. What would
    turn round sticks."""
    changed = False
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        side, before = side_of(dof, k, dt, l), dof[k, HOLD, l]
        side = 0.0 if side * before < 0.0 else side
        dof[k, HOLD, l] = side
        changed = changed or side != before or dof[k, STIFF, l] != stiffness_of(dof, k, dt, l)
    return changed


@kc.func
def newton_step(t: Tree, dof, M, L, p: int, dt: float, l: int, r: int) -> float:
    """One step of Newton's method; the energy of what was left over before it."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    left_over(t, dof, M, dt, l, r)
    for k in range(begin, end):
        dof[k, WAY, l] = dof[k, REST, l]
    solve(t, L, p, dof, WAY, l, r)
    energy = 0.0
    for k in range(begin, end):
        way = dof[k, WAY, l]
        energy += dof[k, REST, l] * way
        dof[k, ACC, l] = dof[k, ACC, l] + way
    return energy


@kc.func
def is_solved(energy: float, last: float, whole: float, tol: float) -> bool:
    """Whether little enough is left over; or about as little as rounding leaves, and no less than in the last round."""
    return not energy > tol * whole or (energy <= ROUNDED * tol * whole and last >= 0.0 and energy > 0.1 * last)


@kc.func
def slope_at(t: Tree, dof, M, dt: float, l: int, r: int) -> float:
    """How much is left over along the way, with dry friction as its law says."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    for k in range(begin, end):
        dof[k, HOLD, l] = side_of(dof, k, dt, l)
    left_over(t, dof, M, dt, l, r)
    slope = 0.0
    for k in range(begin, end):
        slope += dof[k, REST, l] * dof[k, WAY, l]
    return slope


@kc.func
def descend(t: Tree, dof, M, L, p: int, dt: float, whole: float, tol: float, l: int, r: int) -> float:
    """The lowest point of the convex function of which the equations are the slope; see `newton_kernels.py`."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    last, left = -1.0, 1.0
    for k in range(begin, end):
        dof[k, HOLD, l] = side_of(dof, k, dt, l)
    for _ in range(DESCENTS):
        step_factors(t, dof, M, L, p, dt, l, r)
        energy = newton_step(t, dof, M, L, p, dt, l, r)
        left = energy / whole
        if is_solved(energy, last, whole, tol):
            break
        last = energy
        low, high, at, steep, back, slope = 0.0, 1.0, 1.0, energy, 0.0, 0.0
        for n in range(TRIALS):
            slope = slope_at(t, dof, M, dt, l, r)
            if n == 0:
                back = slope
            elif slope >= 0.0:
                low, steep = at, slope
            else:
                high, back = at, slope
            if slope >= 0.0 and ((high == 1.0 and back >= 0.0) or slope <= NEAR * energy):
                break
            goal = 0.5 * (low + high)
            if n % 2 > 0:
                goal = low + (high - low) * steep / (steep - back)
            for k in range(begin, end):
                dof[k, ACC, l] = dof[k, ACC, l] + (goal - at) * dof[k, WAY, l]
            at = goal
    return left


@kc.func
def newton(t: Tree, dof, M, L, p: int, dt: float, whole: float, tol: float, l: int, r: int):
    """Solve the equations from where the factors were made: what is left over, and the energy in play (`whole`, where it
    is known)."""
    begin = t.dof_first[r]
    last, left = -1.0, 1.0
    for _ in range(ROUNDS):
        energy = newton_step(t, dof, M, L, p, dt, l, r)
        if whole == 0.0:
            whole = energy
            for k in range(begin, begin + t.dof_count[r]):
                v, bias, m = dof[k, RATE, l] / dt, dof[k, BIAS, l], M[t.row[k], l]
                whole += bias * bias / m + tol * m * v * v
        left = energy / kc.max(whole, 1e-30)
        if is_solved(energy, last, whole, tol):
            break
        last = energy
        if not suppose(t, dof, dt, l, r):
            left = 0.0
            break
        step_factors(t, dof, M, L, p, dt, l, r)
    if left > ROUNDED * tol:
        left = descend(t, dof, M, L, p, dt, whole, tol, l, r)
    return left, whole


@kc.kernel(block=LANES)
def step_abreast(t: Tree, g: Rig, b: Masses, s: Drives, now: Now, z: Sizes, m: Abreast, found: Found,
                 tol: kc.Array[float], dt: float, left: kc.Array[float], q_next: kc.Array[float],
                 qd_next: kc.Array[float]):  # fmt: skip
    """A step."""
    group, r, l = kc.tid()
    w = copy_of(z, group, l)
    node, dof, coord, M, L = m.node[group], m.dof[group], m.coord[group], m.M[group], found.L[group]
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    take_drives(t, b, s, now, z, dof, w, dt, l, r)
    go_half_way(t, g, now, z, coord, dof, w, dt, l, r)
    place_and_weigh(t, g, b, z, node, dof, coord, w, l, r)
    mass_rows(t, node, dof, M, l, r)
    for k in range(begin, end):
        dof[k, ACC, l] = 0.0
        dof[k, HOLD, l] = 0.0
        dof[k, MID, l] = dof[k, RATE, l]
    step_factors(t, dof, M, L, 0, dt, l, r)
    whole, worst, limit = 0.0, 0.0, tol[w * z.robots + r]
    for p in range(2):
        # First with the inertial forces of the start, then with those of the middle.
        bias_torques(t, b, z, node, dof, MID, w, l, r)
        if p == 1:
            for k in range(begin, end):
                for e in range(t.depth[k]):
                    L[t.row[k] + e, 1, l] = L[t.row[k] + e, 0, l]
        worst, whole = newton(t, dof, M, L, p, dt, whole, limit, l, r)
        for k in range(begin, end):
            found.a[group, k, p, l] = dof[k, ACC, l]
            dof[k, MID, l] = dof[k, RATE, l] + 0.5 * dt * dof[k, ACC, l]
    if group * LANES + l < z.worlds:
        left[w * z.robots + r] = worst
        finish(t, g, z, dof, coord, q_next, qd_next, w, dt, l, r)


@kc.func
def finish(t: Tree, g: Rig, z: Sizes, dof, coord, q_next, qd_next, w: int, dt: float, l: int, r: int):
    """The end of the step, among the other copies."""
    n, nodes = dof.shape[0], g.pos.shape[0] // z.worlds
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        v, a = dof[k, RATE, l], dof[k, ACC, l]
        qd_next[w * n + k] = v + dt * a
        dof[k, MID, l] = v + dof[k, LEAN, l] * dt * a
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, c, d = t.kind[i], t.coord[i], t.dof[i]
        to = w * z.coords + c
        if kind == REVOLUTE or kind == PRISMATIC:
            q_next[to] = coord[c, Q, l] + dt * dof[d, MID, l]
        elif kind != FIXED:
            end = kc.quat_identity()
            if kind == FREE:
                side = free_side(held(g.base_rot[w * z.robots + r]), held(g.rot[w * nodes + i]),
                                 1.0 if t.parent[i] == i else 0.0)
                move, end = free_ahead(quat_at(coord, c + 3, Q, l), rates_at(dof, d, MID, l),
                                       rates_at(dof, d + 3, MID, l), side, dt)  # fmt: skip
                for k in range(3):
                    q_next[to + k] = coord[c + k, Q, l] + move[k]
                to += 3
            else:
                end = ball_ahead(quat_at(coord, c, Q, l), rates_at(dof, d, MID, l), dt)
            q_next[to] = end.x
            q_next[to + 1] = end.y
            q_next[to + 2] = end.z
            q_next[to + 3] = end.w
