"""The step of robots that touch nothing fixed, for all copies side by side; see `robots_kernels.py` for its equations.

One launch is a whole step: a thread is a robot in one copy, a SIMD lane. Nothing here is differentiated; the way back
is `abreast_back_kernels.py`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.abreast_joints_kernels import (
    ball_ahead,
    drive_of,
    free_ahead,
    free_side,
    motor_torque,
    pull_of,
    soft_torque,
    stop_torque,
)
from nablasim.physics.laws.articulated.abreast_memory import LANES, Abreast, Ends, Enough, Found, Sizes, copy_of
from nablasim.physics.laws.articulated.abreast_touch_kernels import (
    add_contact_stiffness,
    add_contacts,
    end_twists,
    suppose_contacts,
    take_contacts,
)
from nablasim.physics.laws.articulated.abreast_tree_kernels import (
    bias_torques,
    factor,
    go_half_way,
    mass_rows,
    place_and_weigh,
    quat_at,
    rates_at,
    solve,
    take_drives,
)
from nablasim.physics.laws.articulated.bundles import (
    FIXED,
    FREE,
    PRISMATIC,
    REVOLUTE,
    Contacts,
    Drives,
    Masses,
    Now,
    Rig,
    Tree,
)
from nablasim.physics.laws.articulated.dynamics_kernels import held
from nablasim.physics.laws.articulated.joints_kernels import STICK
from nablasim.physics.laws.articulated.newton_kernels import DESCENTS, FAST, MANY, NEAR, ROUNDED, ROUNDS, TRIALS


# -- the equations of the step
@kc.func
def acting(dof, k: int, dt: float, l: int) -> float:
    """All that acts in a degree of freedom, dry friction as it is supposed to be."""
    v, a, drive, side = dof[k, am.RATE, l], dof[k, am.ACC, l], drive_of(dof, k, l), dof[k, am.HOLD, l]
    tau = soft_torque(dof[k, am.PLACE, l], v, a, dt, drive)
    rub = STICK * drive.apparent / dt * (v + dt * a)
    tau -= (rub if side == 0.0 else drive.friction * side) if drive.friction > 0.0 else 0.0
    return tau + dof[k, am.PUSH, l]


@kc.func
def stiffness_of(dof, k: int, dt: float, l: int) -> float:
    """The negative derivative of `acting` by the acceleration."""
    q, v, a, ahead = dof[k, am.PLACE, l], dof[k, am.RATE, l], dof[k, am.ACC, l], dof[k, am.LEAN, l]
    kp, kd = dof[k, am.KP, l], dof[k, am.KD, l]
    v_e, v_1 = v + ahead * dt * a, v + dt * a
    q_e, q_1, h = q + ahead * dt * v_e, q + dt * v_1, dt * ahead
    A = h * dof[k, am.DAMPING, l] + h * h * dof[k, am.STIFFNESS, l]
    u = motor_torque(q_e, v_e, kp, kd, dof[k, am.TARGET, l], dof[k, am.TORQUE, l])
    A += h * kd + h * h * kp if abs(u) <= dof[k, am.LIMIT, l] else 0.0
    ke, back = dof[k, am.STOP_KE, l], dof[k, am.STOP_KD, l]
    low, high = stop_torque(dof[k, am.LOW, l], ke, back, q_1, v_1), stop_torque(dof[k, am.HIGH, l], ke, back, q_1, v_1)
    A += dt * back + dt * dt * ke if low > 0.0 or high < 0.0 else 0.0
    A += STICK * dof[k, am.APPARENT, l] if dof[k, am.FRICTION, l] > 0.0 and dof[k, am.HOLD, l] == 0.0 else 0.0
    return A


@kc.func
def side_of(dof, k: int, dt: float, l: int) -> float:
    """To which side a joint slides by the law of dry friction."""
    rate, most = dof[k, am.RATE, l] + dt * dof[k, am.ACC, l], dof[k, am.FRICTION, l]
    rub = STICK * dof[k, am.APPARENT, l] / dt * rate
    side = 0.0
    if most > 0.0:
        side = -1.0 if rub < -most else (1.0 if rub > most else 0.0)
    return side


@kc.func
def left_over(t: Tree, c: Contacts | None, node, dof, rows, M, dt: float, l: int, r: int):
    """REST: what is left over of the equations."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    for k in range(begin, end):
        dof[k, am.REST, l] = acting(dof, k, dt, l) - dof[k, am.BIAS, l]
    for k in range(begin, end):
        a, row, j = dof[k, am.ACC, l], t.row[k], k
        mine = M[row, l] * a
        for e in range(1, t.depth[k]):
            j = t.above[j]
            entry = M[row + e, l]
            mine += entry * dof[j, am.ACC, l]
            dof[j, am.REST, l] = dof[j, am.REST, l] - entry * a
        dof[k, am.REST, l] = dof[k, am.REST, l] - mine
    for k in range(begin, end):
        j = t.leads[k]
        if j != k:
            ratio = dof[k, am.RATIO, l]
            pull = pull_of(
                dof[k, am.PLACE, l], dof[k, am.RATE, l], dof[k, am.ACC, l], dof[j, am.PLACE, l], dof[j, am.RATE, l],
                dof[j, am.ACC, l], ratio, dof[k, am.OFFSET, l], dof[k, am.TIE, l], dt)  # fmt: skip
            dof[k, am.REST, l] = dof[k, am.REST, l] - pull
            dof[j, am.REST, l] = dof[j, am.REST, l] + ratio * pull
    if c is not None:
        add_contacts(t, c, node, dof, rows, l, r)


@kc.func
def step_factors(t: Tree, c: Contacts | None, node, dof, rows, M, L, p: int, dt: float, l: int, r: int):
    """The factors of the matrix of the step."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    for k in range(begin, end):
        row, stiff = t.row[k], stiffness_of(dof, k, dt, l)
        for e in range(1, t.depth[k]):
            L[row + e, p, l] = M[row + e, l]
        dof[k, am.STIFF, l] = stiff
        L[row, p, l] = M[row, l] + stiff
    for k in range(begin, end):
        j = t.leads[k]
        if j != k:
            tie, ratio = dof[k, am.TIE, l], dof[k, am.RATIO, l]
            L[t.row[k], p, l] = L[t.row[k], p, l] + tie
            L[t.row[j], p, l] = L[t.row[j], p, l] + tie * ratio * ratio
            at = t.row[k] + t.depth[k] - t.depth[j]
            if t.depth[j] > t.depth[k]:
                at = t.row[j] + t.depth[j] - t.depth[k]
            L[at, p, l] = L[at, p, l] - tie * ratio
    if c is not None:
        add_contact_stiffness(t, c, node, dof, rows, L, p, dt, l, r)
    factor(t, L, p, l, r)


@kc.func
def suppose(t: Tree, c: Contacts | None, node, dof, rows, many: int, dt: float, l: int, r: int) -> bool:
    """Suppose what sticks and what slides; whether that, or a piece of a law, is other than in the factors. What would
    turn round sticks."""
    changed = False
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        side, before = side_of(dof, k, dt, l), dof[k, am.HOLD, l]
        side = 0.0 if side * before < 0.0 else side
        dof[k, am.HOLD, l] = side
        changed = changed or side != before or dof[k, am.STIFF, l] != stiffness_of(dof, k, dt, l)
    if c is not None:
        if suppose_contacts(t, c, node, rows, True, many, l, r):
            changed = True
    return changed


@kc.func
def newton_step(t: Tree, c: Contacts | None, node, dof, rows, M, L, p: int, dt: float, l: int, r: int) -> float:
    """One step of Newton's method; the energy of what was left over before it."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    left_over(t, c, node, dof, rows, M, dt, l, r)
    for k in range(begin, end):
        dof[k, am.WAY, l] = dof[k, am.REST, l]
    solve(t, L, p, dof, am.WAY, l, r)
    energy = 0.0
    for k in range(begin, end):
        way = dof[k, am.WAY, l]
        energy += dof[k, am.REST, l] * way
        dof[k, am.ACC, l] = dof[k, am.ACC, l] + way
    if c is not None:
        end_twists(t, node, dof, dt, l, r)
    return energy


@kc.func
def is_solved(energy: float, last: float, enough: Enough) -> bool:
    """Whether little enough is left over; or about as little as rounding leaves, and no less than in the last round."""
    tol, whole = enough.tol, enough.whole
    return not energy > tol * whole or (energy <= ROUNDED * tol * whole and last >= 0.0 and energy > 0.1 * last)


@kc.func
def take_friction(t: Tree, c: Contacts | None, node, dof, rows, dt: float, l: int, r: int):
    """Suppose of friction what its law says."""
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        dof[k, am.HOLD, l] = side_of(dof, k, dt, l)
    if c is not None:
        suppose_contacts(t, c, node, rows, False, MANY, l, r)


@kc.func
def slope_at(t: Tree, c: Contacts | None, node, dof, rows, M, dt: float, l: int, r: int) -> float:
    """How much is left over along the way, with friction as its law says."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    take_friction(t, c, node, dof, rows, dt, l, r)
    left_over(t, c, node, dof, rows, M, dt, l, r)
    slope = 0.0
    for k in range(begin, end):
        slope += dof[k, am.REST, l] * dof[k, am.WAY, l]
    return slope


@kc.func
def go_downhill(t: Tree, c: Contacts | None, node, dof, rows, M, energy: float, dt: float, l: int, r: int):
    """Take back a part of a step of Newton's method, if it went farther than downhill; see `newton_kernels.py`."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    low, high, at, steep, back = 0.0, 1.0, 1.0, energy, 0.0
    for n in range(TRIALS):
        slope = slope_at(t, c, node, dof, rows, M, dt, l, r)
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
            dof[k, am.ACC, l] = dof[k, am.ACC, l] + (goal - at) * dof[k, am.WAY, l]
        if c is not None:
            end_twists(t, node, dof, dt, l, r)
        at = goal


@kc.func
def newton(t: Tree, c: Contacts | None, node, dof, rows, M, L, p: int, dt: float, enough: Enough, l: int, r: int):
    """Solve the equations: what is left over, and what is enough, with the energy in play. It is `newton` and
    `descend` of `newton_kernels.py` in one loop. The first time (p = 0) there are no factors yet."""
    begin = t.dof_first[r]
    last, left = -1.0, 1.0
    for n in range(ROUNDS + DESCENTS):
        if n > 0 or p == 0:
            if n == ROUNDS:
                take_friction(t, c, node, dof, rows, dt, l, r)
                last = -1.0
            step_factors(t, c, node, dof, rows, M, L, p, dt, l, r)
        energy = newton_step(t, c, node, dof, rows, M, L, p, dt, l, r)
        if enough.whole == 0.0:
            enough.whole = energy
            for k in range(begin, begin + t.dof_count[r]):
                v, bias, m = dof[k, am.RATE, l] / dt, dof[k, am.BIAS, l], M[t.row[k], l]
                enough.whole += bias * bias / m + enough.tol * m * v * v
        left = energy / kc.max(enough.whole, 1e-30)
        if is_solved(energy, last, enough):
            break
        last = energy
        if n < ROUNDS:
            if not suppose(t, c, node, dof, rows, MANY if n < FAST else 1, dt, l, r):
                left = 0.0
                break
        else:
            go_downhill(t, c, node, dof, rows, M, energy, dt, l, r)
    return left, enough


@kc.kernel(block=LANES)
def step_abreast(t: Tree, g: Rig, b: Masses, s: Drives, now: Now, z: Sizes, m: Abreast, found: Found,
                 c: Contacts | None, tol: kc.Array[float], dt: float, ends: Ends):  # fmt: skip
    """A step."""
    group, r, l = kc.tid()
    w = copy_of(z, group, l)
    node, dof, coord, M, L = m.node[group], m.dof[group], m.coord[group], m.M[group], found.L[group]
    rows = m.touch[group]
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    take_drives(t, b, s, now, z, dof, w, dt, l, r)
    go_half_way(t, g, now, z, coord, dof, w, dt, l, r)
    place_and_weigh(t, g, b, z, node, dof, coord, w, l, r)
    mass_rows(t, node, dof, M, l, r)
    for k in range(begin, end):
        dof[k, am.ACC, l] = 0.0
        dof[k, am.HOLD, l] = 0.0
        dof[k, am.MID, l] = dof[k, am.RATE, l]
    if c is not None:
        take_contacts(t, c, z, node, rows, w, dt, l, r)
        end_twists(t, node, dof, dt, l, r)
    worst, enough = 0.0, Enough(tol[w * z.robots + r], 0.0)
    for p in range(2):
        # First with the inertial forces of the start, then with those of the middle.
        bias_torques(t, b, z, node, dof, am.MID, w, l, r)
        if p == 1:
            for k in range(begin, end):
                for e in range(t.depth[k]):
                    L[t.row[k] + e, 1, l] = L[t.row[k] + e, 0, l]
        worst, enough = newton(t, c, node, dof, rows, M, L, p, dt, enough, l, r)
        for k in range(begin, end):
            found.a[group, k, p, l] = dof[k, am.ACC, l]
            dof[k, am.MID, l] = dof[k, am.RATE, l] + 0.5 * dt * dof[k, am.ACC, l]
    if group * LANES + l < z.worlds:
        found.left[w * z.robots + r] = worst
        finish(t, g, z, dof, coord, ends, w, dt, l, r)


@kc.func
def finish(t: Tree, g: Rig, z: Sizes, dof, coord, ends: Ends, w: int, dt: float, l: int, r: int):
    """The end of the step, among the other copies."""
    n, nodes = dof.shape[0], g.pos.shape[0] // z.worlds
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        v, a = dof[k, am.RATE, l], dof[k, am.ACC, l]
        ends.qd[w * n + k] = v + dt * a
        dof[k, am.MID, l] = v + dof[k, am.LEAN, l] * dt * a
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, c, d = t.kind[i], t.coord[i], t.dof[i]
        to = w * z.coords + c
        if kind == REVOLUTE or kind == PRISMATIC:
            ends.q[to] = coord[c, am.Q, l] + dt * dof[d, am.MID, l]
        elif kind != FIXED:
            end = kc.quat_identity()
            if kind == FREE:
                side = free_side(held(g.base_rot[w * z.robots + r]), held(g.rot[w * nodes + i]),
                                 1.0 if t.parent[i] == i else 0.0)
                move, end = free_ahead(quat_at(coord, c + 3, am.Q, l), rates_at(dof, d, am.MID, l),
                                       rates_at(dof, d + 3, am.MID, l), side, dt)  # fmt: skip
                for k in range(3):
                    ends.q[to + k] = coord[c + k, am.Q, l] + move[k]
                to += 3
            else:
                end = ball_ahead(quat_at(coord, c, am.Q, l), rates_at(dof, d, am.MID, l), dt)
            ends.q[to] = end.x
            ends.q[to + 1] = end.y
            ends.q[to + 2] = end.z
            ends.q[to + 3] = end.w
