"""Newton's method for the equations of a step: see `robots_kernels.py`. Nothing here is differentiated."""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import Contacts, Drives, Now, Poses, Touch, Tree
from nablasim.physics.laws.articulated.contacts_kernels import CONTACTS_HELD
from nablasim.physics.laws.articulated.dynamics_kernels import held
from nablasim.physics.laws.articulated.joints_kernels import LAWS_HELD
from nablasim.physics.laws.articulated.ties_kernels import TIES_HELD, add_tie_stiffness
from nablasim.physics.laws.articulated.tree_kernels import factor, solve

held_stiffness, held_residual = LAWS_HELD.joint_stiffness, LAWS_HELD.residual
held_suppose, held_take = LAWS_HELD.suppose, LAWS_HELD.take
held_add_torques, held_add_stiffness = CONTACTS_HELD.add_torques, CONTACTS_HELD.add_stiffness
held_suppose_contacts, held_take_contacts = CONTACTS_HELD.suppose, CONTACTS_HELD.take
end_twists, held_add_pulls = CONTACTS_HELD.node_twists, TIES_HELD.add_pulls
ROUNDS, FAST, MANY = 40, 6, 1000000
"""Steps of Newton's method at most, and in how many of the first any number of points may change over to sliding."""
DESCENTS, TRIALS, NEAR = 200, 60, 0.1
"""Steps downhill where that does not find it, tries for how far each goes, and which part of the slope may be left."""


ROUNDED = 1e3
"""Where rounding may keep what is left over, as so many times the tolerance."""


@kc.struct
class Solve:
    """The equations of a step: the mass matrix, the factors of the matrix of the step, where it was looked at in
    between (`start_L`) and at last (`L`), what is left over, a way to go, and what else is in play.

    tol: the energy of what may be left over, compared with that in play; `left` is what was.
    """

    M: kc.Array[float]
    start_L: kc.Array[float]
    L: kc.Array[float]
    tol: kc.Array[float]
    none: kc.Array[float]
    mid: kc.Array[float]
    bias: kc.Array[float]
    rest: kc.Array[float]
    way: kc.Array[float]
    stiff: kc.Array[float]
    hold: kc.Array[int]
    start: kc.Array[float]
    left: kc.Array[float]


@kc.func
def left_over(t: Tree, s: Drives, p: Poses, c: Contacts | None, m: Touch | None, x: Solve, now: Now, a, dt: float,
              r: int):  # fmt: skip
    """x.rest: what is left over of the equations at the accelerations a, with the inertial forces x.bias."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    for k in range(begin, end):
        x.rest[k] = x.bias[k]
    for k in range(begin, end):
        x.rest[k] = x.rest[k] + x.M[t.row[k]] * a[k]
        j = k
        for e in range(1, t.depth[k]):
            j = t.above[j]
            x.rest[k] = x.rest[k] + x.M[t.row[k] + e] * a[j]
            x.rest[j] = x.rest[j] + x.M[t.row[k] + e] * a[k]
    held_residual(t, s, x.hold, now, a, dt, x.rest, r)
    held_add_pulls(t, s, now, a, dt, x.rest, r)
    if c is not None:
        held_add_torques(t, p, c, m, now, a, dt, x.rest, r)


@kc.func
def step_factors(t: Tree, s: Drives, p: Poses, c: Contacts | None, m: Touch | None, x: Solve, now: Now, a, dt: float,
                 r: int):  # fmt: skip
    """x.L: the factors of the matrix of the step where it was looked at last."""
    begin = t.dof_first[r]
    for k in range(begin, begin + t.dof_count[r]):
        for e in range(t.depth[k]):
            x.L[t.row[k] + e] = x.M[t.row[k] + e]
        x.stiff[k] = held_stiffness(s, x.hold, k, held(now.q[t.dof_coord[k]]), held(now.qd[k]), a[k], dt)
        x.L[t.row[k]] = x.L[t.row[k]] + x.stiff[k]
    add_tie_stiffness(t, s, x.L, r)
    if c is not None:
        held_add_stiffness(t, p, c, m, dt, x.L, r)
    factor(t, x.L, r)


@kc.func
def suppose(t: Tree, s: Drives, p: Poses, c: Contacts | None, m: Touch | None, x: Solve, now: Now, a, dt: float,
            many: int, r: int) -> bool:  # fmt: skip
    """Suppose what sticks and what slides; whether that, or a piece of a law of a joint, is other than in x.L."""
    changed, begin = False, t.dof_first[r]
    for k in range(begin, begin + t.dof_count[r]):
        q, v = held(now.q[t.dof_coord[k]]), held(now.qd[k])
        if held_suppose(s, x.hold, k, v, a[k], dt):
            changed = True
        if x.stiff[k] != held_stiffness(s, x.hold, k, q, v, a[k], dt):
            changed = True
    if c is not None:
        if held_suppose_contacts(c, p, m, dt, False, many, r):
            changed = True
    return changed


@kc.func
def solved(x: Solve, energy: float, last: float, whole: float, r: int) -> bool:
    """Whether little enough is left over; or about as little as rounding leaves, and no less than in the last round."""
    return not energy > x.tol[r] * whole or (
        energy <= ROUNDED * x.tol[r] * whole and last >= 0.0 and energy > 0.1 * last
    )


@kc.func
def slope_at(t: Tree, s: Drives, p: Poses, c: Contacts | None, m: Touch | None, x: Solve, now: Now, a, dt: float,
             r: int) -> float:  # fmt: skip
    """How much is left over at the accelerations a, along the way; with everything as its law says there."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    for k in range(begin, end):
        held_take(s, x.hold, k, held(now.qd[k]), a[k], dt)
    if c is not None:
        end_twists(t, p, now, a, dt, m, r)
        held_take_contacts(c, p, m, dt, r)
    left_over(t, s, p, c, m, x, now, a, dt, r)
    slope = 0.0
    for k in range(begin, end):
        slope += x.rest[k] * x.way[k]
    return slope


@kc.func
def descend(t: Tree, s: Drives, p: Poses, c: Contacts | None, m: Touch | None, x: Solve, now: Now, a, dt: float,
            whole: float, r: int):  # fmt: skip
    """The same equations as the lowest point of a convex function, of which they are the slope: each step of Newton's
    method goes no farther than downhill. Slower, and always closer: for where what sticks and what slides goes round
    in a circle."""
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    last = -1.0
    for k in range(begin, end):
        x.way[k] = 0.0
    for _ in range(DESCENTS):
        slope_at(t, s, p, c, m, x, now, a, dt, r)
        for k in range(begin, end):
            x.way[k] = x.rest[k]
        step_factors(t, s, p, c, m, x, now, a, dt, r)
        solve(t, x.L, x.way, r)
        energy = 0.0
        for k in range(begin, end):
            energy += x.rest[k] * x.way[k]
        x.left[r] = energy / whole
        for k in range(begin, end):
            a[k] = a[k] + x.way[k]
        if solved(x, energy, last, whole, r):
            break
        last = energy
        # Downhill up to `low`, uphill from `high` on.
        low, high, at, steep = 0.0, 1.0, 1.0, energy
        slope = slope_at(t, s, p, c, m, x, now, a, dt, r)
        back = slope
        for n in range(TRIALS):
            if slope >= 0.0 and ((high == 1.0 and back >= 0.0) or slope <= NEAR * energy):
                break
            goal = 0.5 * (low + high)
            if n % 2 > 0:
                goal = low + (high - low) * steep / (steep - back)
            for k in range(begin, end):
                a[k] = a[k] + (goal - at) * x.way[k]
            at = goal
            slope = slope_at(t, s, p, c, m, x, now, a, dt, r)
            if slope >= 0.0:
                low, steep = at, slope
            else:
                high, back = at, slope
        if slope < 0.0:
            for k in range(begin, end):
                a[k] = a[k] + (low - at) * x.way[k]


@kc.func
def newton(t: Tree, s: Drives, p: Poses, c: Contacts | None, m: Touch | None, x: Solve, now: Now, a, dt: float,
           whole: float, r: int) -> float:  # fmt: skip
    """Solve the equations from accelerations a at which x.L was made. All laws get less as the joints go faster, and
    are made of pieces: what sticks is supposed to slide once friction would have to do more than it can, and back.

    whole: the energy in play, or 0 where it is not known yet; returned.
    """
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    x.left[r], last = 1.0, -1.0
    for n in range(ROUNDS):
        left_over(t, s, p, c, m, x, now, a, dt, r)
        for k in range(begin, end):
            x.way[k] = x.rest[k]
        solve(t, x.L, x.way, r)
        energy = 0.0
        for k in range(begin, end):
            energy += x.rest[k] * x.way[k]
        if whole == 0.0:
            # What lies still is out of balance by next to nothing: what weighs on it counts, too; and what goes on
            # evenly by what is rounded of its speed.
            whole = energy
            for k in range(begin, end):
                v = held(now.qd[k]) / dt
                whole += x.bias[k] * x.bias[k] / x.M[t.row[k]] + x.tol[r] * x.M[t.row[k]] * v * v
        x.left[r] = energy / kc.max(whole, 1e-30)
        for k in range(begin, end):
            a[k] = a[k] + x.way[k]
        if solved(x, energy, last, whole, r):
            break
        last = energy
        touching = False
        if c is not None:
            end_twists(t, p, now, a, dt, m, r)
            touching = True
        many = MANY if n < FAST else 1
        if not suppose(t, s, p, c, m, x, now, a, dt, many, r) and not touching:
            x.left[r] = 0.0
            break
        step_factors(t, s, p, c, m, x, now, a, dt, r)
    if x.left[r] > ROUNDED * x.tol[r]:
        descend(t, s, p, c, m, x, now, a, dt, whole, r)
    return whole
