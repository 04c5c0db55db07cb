"""Recursions over robots of copies side by side: where links are, what they weigh, what torques they need, and the
factors of matrices. The same as `tree_kernels.py` and `dynamics_kernels.py`, on other memory, and without gradients.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.abreast_joints_kernels import (
    ball_ahead,
    before_joint,
    behind_joint,
    free_ahead,
    free_side,
    lean_of,
    moments,
    revolve,
    times,
    wrench,
)
from nablasim.physics.laws.articulated.abreast_memory import Sizes, add3, get3, get4, put3, put4
from nablasim.physics.laws.articulated.bundles import FIXED, FREE, PRISMATIC, REVOLUTE, Drives, Masses, Now, Rig, Tree
from nablasim.physics.laws.articulated.dynamics_kernels import held
from nablasim.physics.laws.articulated.tree_kernels import dofs_of


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
        damping, kd, apparent = held(s.damping[at]), held(s.kd[at]), held(s.apparent[at])
        stiffness, kp = held(s.stiffness[at]), held(s.kp[at])
        dof[k, am.RATE, l] = held(now.qd[at])
        dof[k, am.PLACE, l] = held(now.q[w * z.coords + t.dof_coord[k]])
        dof[k, am.DAMPING, l] = damping
        dof[k, am.STIFFNESS, l] = stiffness
        dof[k, am.SPRING_REST, l] = held(s.rest[at])
        dof[k, am.FRICTION, l] = held(s.friction[at])
        dof[k, am.KP, l] = kp
        dof[k, am.KD, l] = kd
        dof[k, am.LIMIT, l] = held(s.limit[at])
        dof[k, am.TARGET, l] = held(s.target[at])
        dof[k, am.TORQUE, l] = held(s.torque[at]) + held(s.more_torque[at])
        ends = held(s.limits[at])
        dof[k, am.LOW, l] = ends.x
        dof[k, am.HIGH, l] = ends.y
        dof[k, am.STOP_KE, l] = held(s.stop_ke[at])
        dof[k, am.STOP_KD, l] = held(s.stop_kd[at])
        dof[k, am.APPARENT, l] = apparent
        dof[k, am.ARMATURE, l] = held(b.armature[at])
        dof[k, am.LEAN, l] = lean_of(damping, kd, stiffness, kp, apparent, dt)
        push = 0.0
        if now.push is not None:
            push = held(now.push[at])
        dof[k, am.PUSH, l] = push
        if t.leads[k] != k:
            dof[k, am.TIE, l] = held(s.tie[at])
            dof[k, am.RATIO, l] = held(s.ratio[at])
            dof[k, am.OFFSET, l] = held(s.offset[at])


@kc.func
def go_half_way(t: Tree, g: Rig, now: Now, z: Sizes, coord, dof, w: int, dt: float, l: int, r: int):
    """The coordinates at the start and half a step ahead."""
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, c, d = t.kind[i], t.coord[i], t.dof[i]
        if kind == REVOLUTE or kind == PRISMATIC:
            q = held(now.q[w * z.coords + c])
            coord[c, am.Q, l] = q
            coord[c, am.Q_MID, l] = q + 0.5 * dt * dof[d, am.RATE, l]
        elif kind != FIXED:
            moves = 3 if kind == FREE else 0
            for k in range(4 + moves):
                coord[c + k, am.Q, l] = held(now.q[w * z.coords + c + k])
            if kind == FREE:
                at = w * (g.pos.shape[0] // z.worlds) + i
                root = 1.0 if t.parent[i] == i else 0.0
                side = free_side(held(g.base_rot[w * z.robots + r]), held(g.rot[at]), root)
                turn = quat_at(coord, c + 3, am.Q, l)
                v, u = rates_at(dof, d, am.RATE, l), rates_at(dof, d + 3, am.RATE, l)
                move, end = free_ahead(turn, v, u, side, 0.5 * dt)
                for k in range(3):
                    coord[c + k, am.Q_MID, l] = coord[c + k, am.Q, l] + move[k]
                put_quat(coord, c + 3, am.Q_MID, l, end)
            else:
                turn, u = quat_at(coord, c, am.Q, l), rates_at(dof, d, am.RATE, l)
                put_quat(coord, c, am.Q_MID, l, ball_ahead(turn, u, 0.5 * dt))


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
            x, rot = get3(node, up, am.X, l), get4(node, up, am.ROT, l)
        else:
            x, rot = held(g.base_x[w * z.robots + r]) - origin, kc.normalize(held(g.base_rot[w * z.robots + r]))
        x, rot = before_joint(x, rot, held(g.pos[at]), held(g.rot[at]))
        if kind == FREE:
            x = x + kc.quat_rotate(rot, rates_at(coord, c, am.Q_MID, l))
        if i == t.first[r]:
            origin = x
            x = kc.float3()
            put3(node, i, am.ORIGIN, l, origin)
        if kind == REVOLUTE:
            rot, a = revolve(rot, held(g.axis[at]), coord[c, am.Q_MID, l] - held(g.ref[w * z.coords + c]))
            put3(dof, d, am.TURN, l, a)
            put3(dof, d, am.SLIDE, l, kc.cross(x, a))
        elif kind == PRISMATIC:
            a = kc.quat_rotate(rot, kc.normalize(held(g.axis[at])))
            put3(dof, d, am.TURN, l, kc.float3())
            put3(dof, d, am.SLIDE, l, a)
            x = x + a * (coord[c, am.Q_MID, l] - held(g.ref[w * z.coords + c]))
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
                    put3(dof, d + k, am.TURN, l, kc.float3())
                    put3(dof, d + k, am.SLIDE, l, a)
                put3(dof, f + k, am.TURN, l, a)
                put3(dof, f + k, am.SLIDE, l, kc.cross(x, a))
            rot = rot * kc.normalize(quat_at(coord, e, am.Q_MID, l))
        x = behind_joint(x, rot, held(g.anchor[at]))
        put3(node, i, am.X, l, x)
        put4(node, i, am.ROT, l, rot)
        mass = held(b.mass[at])
        first, diag, off = moments(x, rot, held(b.com[at]), mass, held(b.inertia[at]))
        node[i, am.MASS, l] = mass
        put3(node, i, am.FIRST, l, first)
        put3(node, i, am.DIAG, l, diag)
        put3(node, i, am.OFF, l, off)


# -- dynamics
@kc.func
def mass_rows(t: Tree, node, dof, M, l: int, r: int):
    """The mass matrix by composite bodies, armature included; see `dynamics_kernels.py`."""
    first = t.first[r]
    for i in range(first, first + t.count[r]):
        for k in range(10):
            node[i, am.HEAP + k, l] = node[i, am.MASS + k, l]
    for i in reversed(range(first, first + t.count[r])):
        mass, mc = node[i, am.HEAP, l], get3(node, i, am.HEAP_FIRST, l)
        diag, off = get3(node, i, am.HEAP_DIAG, l), get3(node, i, am.HEAP_OFF, l)
        d = t.dof[i]
        for k in range(d, d + dofs_of(t.kind[i])):
            a, s = get3(dof, k, am.TURN, l), get3(dof, k, am.SLIDE, l)
            f = s * mass + kc.cross(a, mc)
            n = times(diag, off, a) + kc.cross(mc, s)
            row = t.row[k]
            M[row, l] = kc.dot(a, n) + kc.dot(s, f) + dof[k, am.ARMATURE, l]
            j = k
            for e in range(1, t.depth[k]):
                j = t.above[j]
                entry = 0.0
                if t.reach[row + e] > 0:
                    entry = kc.dot(get3(dof, j, am.TURN, l), n) + kc.dot(get3(dof, j, am.SLIDE, l), f)
                M[row + e, l] = entry
        up = t.parent[i]
        if up != i:
            node[up, am.HEAP, l] = node[up, am.HEAP, l] + mass
            add3(node, up, am.HEAP_FIRST, l, mc)
            add3(node, up, am.HEAP_DIAG, l, diag)
            add3(node, up, am.HEAP_OFF, l, off)


@kc.func
def parent_motion(t: Tree, b: Masses, z: Sizes, node, i: int, w: int, l: int, r: int):
    """Velocity and acceleration of what a node hangs on."""
    u, v, du, dv = kc.float3(), kc.float3(), kc.float3(), kc.float3()
    up = t.parent[i]
    if up != i:
        u, v = get3(node, up, am.W, l), get3(node, up, am.V, l)
        du, dv = get3(node, up, am.DW, l), get3(node, up, am.DV, l)
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
            slide = get3(dof, k, am.SLIDE, l) * rate
            ju += get3(dof, k, am.TURN, l) * rate
            jv += slide
            if t.kind[i] == FREE and k < d + 3:
                along += slide
        du = du + kc.cross(u, ju)
        dv = dv + kc.cross(u, jv) + kc.cross(v + along, ju)
        u, v = u + ju, v + jv
        put3(node, i, am.W, l, u)
        put3(node, i, am.V, l, v)
        put3(node, i, am.DW, l, du)
        put3(node, i, am.DV, l, dv)
        n, f = wrench(u, v, du, dv, node[i, am.MASS, l], get3(node, i, am.FIRST, l), get3(node, i, am.DIAG, l),
                      get3(node, i, am.OFF, l))  # fmt: skip
        put3(node, i, am.N, l, n)
        put3(node, i, am.F, l, f)
    for i in reversed(range(first, first + t.count[r])):
        n, f, d = get3(node, i, am.N, l), get3(node, i, am.F, l), t.dof[i]
        for k in range(d, d + dofs_of(t.kind[i])):
            dof[k, am.BIAS, l] = kc.dot(get3(dof, k, am.TURN, l), n) + kc.dot(get3(dof, k, am.SLIDE, l), f)
        up = t.parent[i]
        if up != i:
            add3(node, up, am.N, l, n)
            add3(node, up, am.F, l, f)


# -- matrices that couple degrees of freedom of one branch
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
