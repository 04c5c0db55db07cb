"""Contact of links with half-spaces in the equations of a step: `contacts_kernels.py` for copies side by side.

What does not change while the equations are solved is written down once.

The matrix of all contacts is made as the mass matrix is: the stiffness of a link is a map from twists to wrenches,
which adds up along the tree.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.abreast_memory import Sizes, add3, get3, get4, put3
from nablasim.physics.laws.articulated.bundles import Contacts, Tree
from nablasim.physics.laws.articulated.contacts_kernels import hinge_slope
from nablasim.physics.laws.articulated.dynamics_kernels import held
from nablasim.physics.laws.articulated.tree_kernels import dofs_of
from nablasim.physics.laws.contact.compliant_kernels import hinge


@kc.func
def take_contacts(t: Tree, c: Contacts, z: Sizes, node, rows, w: int, dt: float, l: int, r: int):
    """What contacts are in the configuration of a step; all of them stick at first."""
    count, points = rows.shape[0], c.node.shape[0] // z.worlds
    origin = get3(node, t.first[r], am.ORIGIN, l)
    for o in range(c.first[r], c.first[r] + c.count[r]):
        row = c.order[o]
        i, at = c.point[row], w * count + row
        b, of, up = c.node[i], w * points + i, held(c.normal[at])
        local, ball, ke = held(c.local[of]), held(c.ball[of]), held(c.ke[at])
        arm = get3(node, b, am.X, l) + kc.quat_rotate(get4(node, b, am.ROT, l), local) - up * ball
        gap = kc.dot(up, arm + origin) - held(c.offset[at])
        deep = hinge(-gap, held(c.smoothing[at]))
        stiff, kd = dt * dt * ke * held(c.light[of]), held(c.kd[at])
        if c.law[row] == 1:
            kd = kd * deep / (deep + held(c.touch[at]))
        else:
            kd = kd if deep > 0.0 else 0.0
        put3(rows, row, am.ARM, l, arm)
        put3(rows, row, am.UP, l, up)
        rows[row, am.GAP, l] = gap
        rows[row, am.KE, l] = ke
        rows[row, am.SOFT, l] = ke * held(c.smoothing[at])
        rows[row, am.AHEAD, l] = dt * (0.5 + 0.5 * stiff / (stiff + 2.0))
        rows[row, am.DAMPER, l] = kd
        rows[row, am.MOST, l] = held(c.mu[at]) * ke * deep
        rows[row, am.GRIP, l] = held(c.grip[at]) / dt
        rows[row, am.SLIDES, l] = 0.0
        put3(rows, row, am.WAYS, l, kc.float3())


@kc.func
def end_twists(t: Tree, node, dof, dt: float, l: int, r: int):
    """Velocities of nodes at the end of the step."""
    for i in range(t.first[r], t.first[r] + t.count[r]):
        up, u, v = t.parent[i], kc.float3(), kc.float3()
        if up != i:
            u, v = get3(node, up, am.EW, l), get3(node, up, am.EV, l)
        for k in range(t.dof[i], t.dof[i] + dofs_of(t.kind[i])):
            rate = dof[k, am.RATE, l] + dt * dof[k, am.ACC, l]
            u += get3(dof, k, am.TURN, l) * rate
            v += get3(dof, k, am.SLIDE, l) * rate
        put3(node, i, am.EW, l, u)
        put3(node, i, am.EV, l, v)


@kc.func
def damper_of(c: Contacts, rows, row: int, rate: float, l: int) -> float:
    kd = rows[row, am.DAMPER, l]
    if c.law[row] != 1:
        kd = kd if rate < 0.0 else 0.0
    return kd


@kc.func
def slip_of(node, rows, b: int, row: int, l: int):
    """How fast a point comes up from its plane, and how it goes along it."""
    up = get3(rows, row, am.UP, l)
    u = get3(node, b, am.EV, l) + kc.cross(get3(node, b, am.EW, l), get3(rows, row, am.ARM, l))
    rate = kc.dot(u, up)
    return rate, u - up * rate


@kc.func
def add_contacts(t: Tree, c: Contacts, node, dof, rows, l: int, r: int):
    """Add to REST what contact does in joints; the velocities of the end of the step are there."""
    first = t.first[r]
    for i in range(first, first + t.count[r]):
        put3(node, i, am.EN, l, kc.float3())
        put3(node, i, am.EF, l, kc.float3())
    for o in range(c.first[r], c.first[r] + c.count[r]):
        row = c.order[o]
        b = c.node[c.point[row]]
        rate, u = slip_of(node, rows, b, row, l)
        fn = hinge(pull_of_contact(c, rows, row, rate, l), rows[row, am.SOFT, l])
        most, rub = rows[row, am.MOST, l], rows[row, am.GRIP, l]
        rub = most / kc.max(kc.length(u), 1e-30) if rows[row, am.SLIDES, l] > 0.0 else rub
        rub = rub if fn > 0.0 or most > 0.0 else 0.0
        force = get3(rows, row, am.UP, l) * fn - u * rub
        add3(node, b, am.EF, l, force)
        add3(node, b, am.EN, l, kc.cross(get3(rows, row, am.ARM, l), force))
    for i in reversed(range(first, first + t.count[r])):
        n, f, up = get3(node, i, am.EN, l), get3(node, i, am.EF, l), t.parent[i]
        for k in range(t.dof[i], t.dof[i] + dofs_of(t.kind[i])):
            push = kc.dot(get3(dof, k, am.TURN, l), n) + kc.dot(get3(dof, k, am.SLIDE, l), f)
            dof[k, am.REST, l] = dof[k, am.REST, l] + push
        if up != i:
            add3(node, up, am.EN, l, n)
            add3(node, up, am.EF, l, f)


@kc.func
def get9(m, i: int, f: int, l: int) -> kc.mat33:
    return kc.mat33(m[i, f, l], m[i, f + 1, l], m[i, f + 2, l], m[i, f + 3, l], m[i, f + 4, l], m[i, f + 5, l],
                    m[i, f + 6, l], m[i, f + 7, l], m[i, f + 8, l])  # fmt: skip


@kc.func
def add9(m, i: int, f: int, l: int, A: kc.mat33):
    for a in (0, 1, 2):
        for b in (0, 1, 2):
            m[i, f + 3 * a + b, l] = m[i, f + 3 * a + b, l] + A[a, b]


@kc.func
def add_contact_stiffness(t: Tree, c: Contacts, node, dof, rows, L, p: int, dt: float, l: int, r: int):
    """Add the negative derivative of `add_contacts` by the accelerations."""
    first = t.first[r]
    for i in range(first, first + t.count[r]):
        for k in range(am.PULL, am.PULL + 27):
            node[i, k, l] = 0.0
    for o in range(c.first[r], c.first[r] + c.count[r]):
        row = c.order[o]
        b, arm, normal = c.node[c.point[row]], get3(rows, row, am.ARM, l), get3(rows, row, am.UP, l)
        rate, u = slip_of(node, rows, b, row, l)
        ke, kd, most = rows[row, am.KE, l], damper_of(c, rows, row, rate, l), rows[row, am.MOST, l]
        along = hinge_slope(pull_of_contact(c, rows, row, rate, l), rows[row, am.SOFT, l])
        rows[row, am.PIECE, l] = piece_of(c, node, rows, b, row, l)
        acts = along > 0.0 or most > 0.0
        along = along * (rows[row, am.AHEAD, l] * ke + kd)
        slip, rub, back = kc.max(kc.length(u), 1e-30), rows[row, am.GRIP, l], 0.0
        if rows[row, am.SLIDES, l] > 0.0:
            rub = most / slip
            back = rub / (slip * slip)
        K = kc.diag(kc.float3(1.0, 1.0, 1.0)) * rub + kc.outer(normal, normal) * (along - rub)
        K = (K - kc.outer(u, u) * back) * (dt if acts else 0.0)
        S = kc.mat33(0.0, -arm.z, arm.y, arm.z, 0.0, -arm.x, -arm.y, arm.x, 0.0)
        B = K * S * -1.0
        add9(node, b, am.PULL, l, K)
        add9(node, b, am.PULL + 9, l, B)
        add9(node, b, am.PULL + 18, l, S * B)
    for i in reversed(range(first, first + t.count[r])):
        K, B, C = get9(node, i, am.PULL, l), get9(node, i, am.PULL + 9, l), get9(node, i, am.PULL + 18, l)
        d, up = t.dof[i], t.parent[i]
        for k in range(d, d + dofs_of(t.kind[i])):
            a, s, row = get3(dof, k, am.TURN, l), get3(dof, k, am.SLIDE, l), t.row[k]
            f = K * s + B * a
            n = kc.transpose(B) * s + C * a
            j = k
            for e in range(t.depth[k]):
                if t.reach[row + e] > 0:
                    entry = kc.dot(get3(dof, j, am.TURN, l), n) + kc.dot(get3(dof, j, am.SLIDE, l), f)
                    L[row + e, p, l] = L[row + e, p, l] + entry
                j = t.above[j]
        if up != i:
            add9(node, up, am.PULL, l, K)
            add9(node, up, am.PULL + 9, l, B)
            add9(node, up, am.PULL + 18, l, C)


@kc.func
def piece_of(c: Contacts, node, rows, b: int, row: int, l: int) -> float:
    """Which piece of its laws a contact is at, as a number; -1 where it is at none, but on a curve."""
    rate, _u = slip_of(node, rows, b, row, l)
    pull, soft = pull_of_contact(c, rows, row, rate, l), rows[row, am.SOFT, l]
    piece = (1.0 if pull > 0.0 else 0.0) + (2.0 if rate < 0.0 else 0.0)
    return -1.0 if abs(pull) < soft or (rows[row, am.SLIDES, l] > 0.0 and rows[row, am.MOST, l] > 0.0) else piece


@kc.func
def pull_of_contact(c: Contacts, rows, row: int, rate: float, l: int) -> float:
    """The force of spring and damper before it is cut where it would pull."""
    pull = -rows[row, am.KE, l] * (rows[row, am.GAP, l] + rows[row, am.AHEAD, l] * rate)
    return pull - damper_of(c, rows, row, rate, l) * rate


@kc.func
def suppose_contacts(t: Tree, c: Contacts, node, rows, turns: bool, most_changes: int, l: int, r: int) -> bool:
    """Suppose of each point that it sticks, or slides; whether anything is other than it was supposed, or than in the
    factors. Where it `turns` round it sticks. Where many change at once, again and again, fewer may."""
    changes, other = 0, False
    for o in range(c.first[r], c.first[r] + c.count[r]):
        row = c.order[o]
        b = c.node[c.point[row]]
        _rate, u = slip_of(node, rows, b, row, l)
        before, side = rows[row, am.SLIDES, l], 0.0
        turned = turns and before > 0.0 and kc.dot(u, get3(rows, row, am.WAYS, l)) < 0.0
        side = 1.0 if rows[row, am.GRIP, l] * kc.length(u) > rows[row, am.MOST, l] and not turned else 0.0
        changes += 1 if side != before else 0
        rows[row, am.SLIDES, l] = side if changes <= most_changes or side == before else before
        put3(rows, row, am.WAYS, l, u)
        piece = piece_of(c, node, rows, b, row, l)
        other = other or piece < 0.0 or piece != rows[row, am.PIECE, l]
    return other or changes > 0
