"""The way back through a step of robots side by side: the adjoint of its solution, in one launch.

The accelerations solve A a = what acts - what inertia needs, so their adjoints, ā, come back as λ = A⁻¹ ā and the
derivative of one number, λ · (what is left over), by everything else. The part of inertia is the power of all inertial
wrenches along the twists that λ makes: a sum over links. Only the recursions over the tree are taken back by hand; the
derivatives of what happens in one joint or one link are those of `kc.grad`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.abreast_back_tree_kernels import (
    contacts_back,
    inertia_back,
    motion_back,
    places_back,
)
from nablasim.physics.laws.articulated.abreast_joints_kernels import (
    ball_ahead_dot,
    drive_of,
    drive_torque,
    free_ahead_dot,
    pull_power,
    rate_at_end,
)
from nablasim.physics.laws.articulated.abreast_memory import LANES, Abreast, Ends, Found, Sizes, Slopes, copy_of, more
from nablasim.physics.laws.articulated.abreast_touch_kernels import end_twists
from nablasim.physics.laws.articulated.abreast_tree_kernels import (
    go_half_way,
    place_and_weigh,
    put_quat,
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


@kc.func
def clear(t: Tree, node, dof, l: int, r: int):
    for i in range(t.first[r], t.first[r] + t.count[r]):
        for k in range(am.AMASS, am.NODE_BACK):
            node[i, k, l] = 0.0
    for i in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        for k in range(am.ATURN, am.DOF_BACK):
            dof[i, k, l] = 0.0


@kc.func
def add_rates(dof, d: int, f: int, l: int, v: kc.float3):
    for k in (0, 1, 2):
        dof[d + k, f, l] = dof[d + k, f, l] + v[k]


@kc.func
def coords_back(t: Tree, g: Rig, z: Sizes, out: Slopes, coord, dof, to: int, rates: int, w: int, h: float, l: int,
                r: int):  # fmt: skip
    """From what coordinates came to in a time h at some rates (AQ_MID): to the coordinates at the start, and to the
    field `to` of the rates."""
    nodes = g.pos.shape[0] // z.worlds
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, c, d = t.kind[i], t.coord[i], t.dof[i]
        if kind == REVOLUTE or kind == PRISMATIC:
            a = coord[c, am.AQ_MID, l]
            coord[c, am.AQ, l] = coord[c, am.AQ, l] + a
            dof[d, to, l] = dof[d, to, l] + h * a
        elif kind == FREE:
            root = 1.0 if t.parent[i] == i else 0.0
            base, rot = g.base_rot[w * z.robots + r], g.rot[w * nodes + i]
            move = rates_at(coord, c, am.AQ_MID, l)
            by_q, by_v, by_w, by_base, by_rot, _by_root, _by_h, _by_m, _by_a = kc.grad(free_ahead_dot)(
                quat_at(coord, c + 3, am.Q, l), rates_at(dof, d, rates, l), rates_at(dof, d + 3, rates, l), base, rot,
                root, h, move, quat_at(coord, c + 3, am.AQ_MID, l))  # fmt: skip
            add_rates(coord, c, am.AQ, l, move)
            add_rates(dof, d, to, l, by_v)
            add_rates(dof, d + 3, to, l, by_w)
            put_quat(coord, c + 3, am.AQ, l, quat_at(coord, c + 3, am.AQ, l) + by_q)
            if out.wanted.frames > 0:
                kc.atomic_add(out.base_rot, w * z.robots + r, by_base)
                kc.atomic_add(out.rot, w * nodes + i, by_rot)
        elif kind != FIXED:
            by_q, by_w, _by_h, _by_a = kc.grad(ball_ahead_dot)(
                quat_at(coord, c, am.Q, l), rates_at(dof, d, rates, l), h, quat_at(coord, c, am.AQ_MID, l))
            add_rates(dof, d, to, l, by_w)
            put_quat(coord, c, am.AQ, l, quat_at(coord, c, am.AQ, l) + by_q)


@kc.func
def rates_back(t: Tree, dof, dt: float, l: int, r: int):
    """From the rates by which coordinates go through the step to those of its start, and its acceleration."""
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        a = dof[k, am.AMID, l]
        by_v, by_a, by_damping, by_kd, by_stiffness, by_kp, _by_apparent, _by_dt = kc.grad(rate_at_end)(
            dof[k, am.RATE, l], dof[k, am.ACC, l], dof[k, am.DAMPING, l], dof[k, am.KD, l], dof[k, am.STIFFNESS, l],
            dof[k, am.KP, l], dof[k, am.APPARENT, l], dt)  # fmt: skip
        dof[k, am.ARATE, l] = dof[k, am.ARATE, l] + by_v * a
        dof[k, am.LAMBDA, l] = dof[k, am.LAMBDA, l] + by_a * a
        dof[k, am.ADAMPING, l] = dof[k, am.ADAMPING, l] + by_damping * a
        dof[k, am.AKD, l] = dof[k, am.AKD, l] + by_kd * a
        dof[k, am.ASTIFFNESS, l] = dof[k, am.ASTIFFNESS, l] + by_stiffness * a
        dof[k, am.AKP, l] = dof[k, am.AKP, l] + by_kp * a


@kc.func
def laws_back(t: Tree, coord, dof, dt: float, l: int, r: int):
    """What acts in joints, along λ."""
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        y, a = dof[k, am.LAMBDA, l], dof[k, am.ACC, l]
        by_q, by_v, _by_a, _by_dt, by = kc.grad(drive_torque)(
            dof[k, am.PLACE, l], dof[k, am.RATE, l], a, dt, drive_of(dof, k, l))
        more(coord, t.dof_coord[k], am.AQ, l, by_q * y)
        more(dof, k, am.ARATE, l, by_v * y)
        more(dof, k, am.ADAMPING, l, by.damping * y)
        more(dof, k, am.ASTIFFNESS, l, by.stiffness * y)
        more(dof, k, am.AREST, l, by.rest * y)
        more(dof, k, am.AKP, l, by.kp * y)
        more(dof, k, am.AKD, l, by.kd * y)
        more(dof, k, am.ALIMIT, l, by.limit * y)
        more(dof, k, am.ATARGET, l, by.target * y)
        more(dof, k, am.ATORQUE, l, by.torque * y)
        more(dof, k, am.ALOW, l, by.low * y)
        more(dof, k, am.AHIGH, l, by.high * y)
        more(dof, k, am.AFRICTION, l, by.friction * y)
        more(dof, k, am.AARMATURE, l, -a * y)
        more(dof, k, am.APUSH, l, y)
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        j = t.leads[k]
        if j != k:
            by_q, by_v, _by_a, by_q_of, by_v_of, _by_a_of, by_ratio, by_offset, _by_tie, _by_dt, _by_m, _by_o = kc.grad(
                pull_power)(
                dof[k, am.PLACE, l], dof[k, am.RATE, l], dof[k, am.ACC, l], dof[j, am.PLACE, l], dof[j, am.RATE, l],
                dof[j, am.ACC, l], dof[k, am.RATIO, l], dof[k, am.OFFSET, l], dof[k, am.TIE, l], dt,
                dof[k, am.LAMBDA, l], dof[j, am.LAMBDA, l])  # fmt: skip
            more(coord, t.dof_coord[k], am.AQ, l, by_q)
            more(coord, t.dof_coord[j], am.AQ, l, by_q_of)
            more(dof, k, am.ARATE, l, by_v)
            more(dof, j, am.ARATE, l, by_v_of)
            more(dof, k, am.ARATIO, l, by_ratio)
            more(dof, k, am.AOFFSET, l, by_offset)


@kc.func
def give(t: Tree, z: Sizes, out: Slopes, coord, dof, w: int, l: int, r: int):
    """Add what was found to the gradients."""
    n = dof.shape[0]
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, c = t.kind[i], t.coord[i]
        count = 0
        if kind == REVOLUTE or kind == PRISMATIC:
            count = 1
        elif kind == FREE:
            count = 7
        elif kind != FIXED:
            count = 4
        for k in range(count):
            kc.atomic_add(out.q, w * z.coords + c + k, coord[c + k, am.AQ, l])
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        at = w * n + k
        kc.atomic_add(out.qd, at, dof[k, am.ARATE, l])
        if out.push is not None:
            kc.atomic_add(out.push, at, dof[k, am.APUSH, l])
        if out.wanted.weights > 0:
            kc.atomic_add(out.armature, at, dof[k, am.AARMATURE, l])
        if out.wanted.laws > 0:
            kc.atomic_add(out.damping, at, dof[k, am.ADAMPING, l])
            kc.atomic_add(out.stiffness, at, dof[k, am.ASTIFFNESS, l])
            kc.atomic_add(out.rest, at, dof[k, am.AREST, l])
            kc.atomic_add(out.friction, at, dof[k, am.AFRICTION, l])
            kc.atomic_add(out.kp, at, dof[k, am.AKP, l])
            kc.atomic_add(out.kd, at, dof[k, am.AKD, l])
            kc.atomic_add(out.limit, at, dof[k, am.ALIMIT, l])
            kc.atomic_add(out.target, at, dof[k, am.ATARGET, l])
            kc.atomic_add(out.torque, at, dof[k, am.ATORQUE, l])
            kc.atomic_add(out.more_torque, at, dof[k, am.ATORQUE, l])
            kc.atomic_add(out.limits, at, kc.float2(dof[k, am.ALOW, l], dof[k, am.AHIGH, l]))
        if out.wanted.ties > 0 and t.leads[k] != k:
            kc.atomic_add(out.ratio, at, dof[k, am.ARATIO, l])
            kc.atomic_add(out.offset, at, dof[k, am.AOFFSET, l])


@kc.kernel(block=LANES)
def back_abreast(t: Tree, g: Rig, b: Masses, s: Drives, now: Now, z: Sizes, m: Abreast, found: Found,
                 c: Contacts | None, dt: float, sent: Ends, out: Slopes):  # fmt: skip
    """Back through a step, from the gradients of its end."""
    group, r, l = kc.tid()
    w = copy_of(z, group, l)
    node, dof, coord, L = m.node[group], m.dof[group], m.coord[group], found.L[group]
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    clear(t, node, dof, l, r)
    take_drives(t, b, s, now, z, dof, w, dt, l, r)
    go_half_way(t, g, now, z, coord, dof, w, dt, l, r)
    place_and_weigh(t, g, b, z, node, dof, coord, w, l, r)
    # What fills up the last group gets nothing.
    mine = 1.0 if group * LANES + l < z.worlds else 0.0
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, first = t.kind[i], t.coord[i]
        count = 0
        if kind == REVOLUTE or kind == PRISMATIC:
            count = 1
        elif kind == FREE:
            count = 7
        elif kind != FIXED:
            count = 4
        for k in range(count):
            coord[first + k, am.AQ, l] = 0.0
            coord[first + k, am.AQ_MID, l] = mine * sent.q[w * z.coords + first + k]
    for k in range(begin, end):
        a, v = found.a[group, k, 1, l], mine * sent.qd[w * dof.shape[0] + k]
        dof[k, am.ACC, l] = a
        dof[k, am.ARATE, l] = v
        dof[k, am.LAMBDA, l] = dt * v
        dof[k, am.MID, l] = dof[k, am.RATE, l] + dof[k, am.LEAN, l] * dt * a
    coords_back(t, g, z, out, coord, dof, am.AMID, am.MID, w, dt, l, r)
    rates_back(t, dof, dt, l, r)
    for back in range(2):
        p = 1 - back
        for k in range(begin, end):
            rate, a = dof[k, am.RATE, l], found.a[group, k, 0, l]
            if p == 1:
                dof[k, am.MID, l] = rate + 0.5 * dt * a
            else:
                dof[k, am.MID, l] = rate
                dof[k, am.ACC, l] = a
                dof[k, am.LAMBDA, l] = 0.5 * dt * dof[k, am.AMID, l]
        solve(t, L, p, dof, am.LAMBDA, l, r)
        laws_back(t, coord, dof, dt, l, r)
        inertia_back(t, b, z, node, dof, w, l, r)
        if c is not None:
            end_twists(t, node, dof, dt, l, r)
            contacts_back(t, c, z, node, out.planes, w, dt, l, r)
        motion_back(t, z, out, node, dof, w, dt, c is not None, l, r)
        for k in range(begin, end):
            dof[k, am.ARATE, l] = dof[k, am.ARATE, l] + dof[k, am.AMID, l]
    places_back(t, g, b, z, out, node, dof, coord, w, l, r)
    coords_back(t, g, z, out, coord, dof, am.ARATE, am.RATE, w, 0.5 * dt, l, r)
    give(t, z, out, coord, dof, w, l, r)
