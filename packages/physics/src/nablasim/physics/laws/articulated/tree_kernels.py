"""Recursions over the links of robots: where they are, what torques a motion needs, the mass matrix, and its factors.

World axes throughout, about a point of the world next to the robot (`Poses.origin`): what comes out does not depend on
it, but rounding does. Letters and passes are those of Featherstone, Rigid Body Dynamics Algorithms, 2008: the recursive
Newton-Euler algorithm (chapter 5), composite bodies and the factors L^T D L along the branches of the tree (6, 8).
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import (
    FIXED,
    FREE,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    Poses,
    Rig,
    Tree,
)


@kc.func
def dofs_of(kind: int) -> int:
    n = 1
    if kind == FIXED:
        n = 0
    elif kind == SPHERICAL:
        n = 3
    elif kind == FREE:
        n = 6
    return n


@kc.func
def unit_axis(k: int) -> kc.float3:
    a = kc.float3()
    a[k] = 1.0
    return a


@kc.func
def place(t: Tree, g: Rig, q, p: Poses, r: int):
    """Forward kinematics of robot r."""
    origin = kc.float3()
    for i in range(t.first[r], t.first[r] + t.count[r]):
        at, turned = g.base_x[r], kc.normalize(g.base_rot[r])
        if t.parent[i] != i:
            at, turned = p.x[t.parent[i]], p.rot[t.parent[i]]
        at = at + kc.quat_rotate(turned, g.pos[i])
        turned = turned * kc.normalize(g.rot[i])
        kind, c, d = t.kind[i], t.coord[i], t.dof[i]
        side = turned
        if kind == FREE:
            # On the base its rates are those of the world.
            if t.parent[i] == i:
                side = kc.quat_identity()
            at = at + kc.quat_rotate(turned, kc.float3(q[c], q[c + 1], q[c + 2]))
        if i == t.first[r]:
            origin = kc.stop_grad(at)
            p.origin[r] = origin
        if kind == REVOLUTE:
            axis = kc.normalize(g.axis[i])
            a = kc.quat_rotate(turned, axis)
            p.turn[d] = a
            p.slide[d] = kc.cross(at - origin, a)
            half = 0.5 * (q[c] - g.ref[c])
            u = axis * kc.sin(half)
            turned = turned * kc.quat(u.x, u.y, u.z, kc.cos(half))
        elif kind == PRISMATIC:
            a = kc.quat_rotate(turned, kc.normalize(g.axis[i]))
            p.turn[d] = kc.float3()
            p.slide[d] = a
            at = at + a * (q[c] - g.ref[c])
        elif kind != FIXED:
            e, f = c, d
            if kind == FREE:
                e, f = c + 3, d + 3
                for k in range(3):
                    p.turn[d + k] = kc.float3()
                    p.slide[d + k] = kc.quat_rotate(side, unit_axis(k))
            for k in range(3):
                a = kc.quat_rotate(side, unit_axis(k))
                p.turn[f + k] = a
                p.slide[f + k] = kc.cross(at - origin, a)
            turned = turned * kc.normalize(kc.quat(q[e], q[e + 1], q[e + 2], q[e + 3]))
        p.rot[i] = turned
        p.x[i] = at - kc.quat_rotate(turned, g.anchor[i])


@kc.func
def turned_inertia(rot: kc.quat, inertia: kc.mat33, w: kc.float3) -> kc.float3:
    return kc.quat_rotate(rot, inertia * kc.quat_rotate_inv(rot, w))


@kc.func
def factor(t: Tree, L, r: int):
    """Rows of a matrix that couples degrees of freedom of one branch only, in place: L^T D L."""
    begin = t.dof_first[r]
    for o in reversed(range(begin, begin + t.dof_count[r])):
        k = t.order[o]
        row, n = t.row[k], t.depth[k]
        j = k
        for a in range(1, n):
            j = t.above[j]
            share = L[row + a] / L[row]
            for e in range(n - a):
                L[t.row[j] + e] = L[t.row[j] + e] - share * L[row + a + e]
        for a in range(1, n):
            L[row + a] = L[row + a] / L[row]


@kc.func
def solve(t: Tree, L, x, r: int):
    """Solve L^T D L y = x in place."""
    begin = t.dof_first[r]
    for o in reversed(range(begin, begin + t.dof_count[r])):
        k = t.order[o]
        j = k
        for a in range(1, t.depth[k]):
            j = t.above[j]
            x[j] = x[j] - L[t.row[k] + a] * x[k]
    for o in range(begin, begin + t.dof_count[r]):
        k = t.order[o]
        y = x[k] / L[t.row[k]]
        j = k
        for a in range(1, t.depth[k]):
            j = t.above[j]
            y -= L[t.row[k] + a] * x[j]
        x[k] = y


@kc.func
def advance_coords(t: Tree, g: Rig, q, rate, dt: float, q_next, r: int):
    """q moved by the rates for a time, on the manifold: quaternions turn."""
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, c, d = t.kind[i], t.coord[i], t.dof[i]
        if kind == REVOLUTE or kind == PRISMATIC:
            q_next[c] = q[c] + rate[d] * dt
        elif kind != FIXED:
            side = kc.quat_identity()
            if kind == FREE:
                if t.parent[i] == i:
                    side = kc.normalize(g.base_rot[r]) * kc.normalize(g.rot[i])
                along = kc.quat_rotate_inv(side, kc.float3(rate[d], rate[d + 1], rate[d + 2]))
                for k in range(3):
                    q_next[c + k] = q[c + k] + along[k] * dt
                c += 3
                d += 3
            w = kc.quat_rotate_inv(side, kc.float3(rate[d], rate[d + 1], rate[d + 2]))
            turn = kc.normalize(kc.quat(q[c], q[c + 1], q[c + 2], q[c + 3]))
            turn = kc.normalize(kc.quat_from_rotvec(w * dt) * turn)
            q_next[c] = turn.x
            q_next[c + 1] = turn.y
            q_next[c + 2] = turn.z
            q_next[c + 3] = turn.w
