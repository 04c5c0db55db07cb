"""The way back through a step of robots side by side: the adjoint of its solution, in one launch.

The accelerations solve A a = what acts - what inertia needs, so their adjoints, ā, come back as λ = A⁻¹ ā and the
derivative of one number, λ · (what is left over), by everything else. The part of inertia is the power of all inertial
wrenches along the twists that λ makes: a sum over links. Only the recursions over the tree are taken back by hand; the
derivatives of what happens in one joint or one link are those of `kc.grad`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.abreast_joints_kernels import (
    ball_ahead_dot,
    ball_dot,
    drive_torque,
    fixed_dot,
    free_ahead_dot,
    moments_dot,
    power,
    prismatic_dot,
    pull_power,
    rate_at_end,
    revolute_dot,
    unit_dot,
)
from nablasim.physics.laws.articulated.abreast_memory import (
    LANES,
    Abreast,
    Found,
    Sizes,
    Slopes,
    Wanted,
    add3,
    add4,
    copy_of,
    get3,
    get4,
    put3,
)
from nablasim.physics.laws.articulated.abreast_tree_kernels import (
    go_half_way,
    parent_motion,
    place_and_weigh,
    put_quat,
    quat_at,
    rates_at,
    solve,
    take_drives,
)
from nablasim.physics.laws.articulated.bundles import FIXED, FREE, PRISMATIC, REVOLUTE, Drives, Masses, Now, Rig, Tree
from nablasim.physics.laws.articulated.tree_kernels import dofs_of


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
def coords_back(t: Tree, g: Rig, z: Sizes, want: Wanted, out: Slopes, coord, dof, seed: int, to: int, rates: int,
                w: int, h: float, l: int, r: int):  # fmt: skip
    """From what coordinates came to in a time h at some rates: to the coordinates at the start, and to the field `to`
    of the rates."""
    nodes = g.pos.shape[0] // z.worlds
    for i in range(t.first[r], t.first[r] + t.count[r]):
        kind, c, d = t.kind[i], t.coord[i], t.dof[i]
        if kind == REVOLUTE or kind == PRISMATIC:
            a = coord[c, seed, l]
            coord[c, am.AQ, l] = coord[c, am.AQ, l] + a
            dof[d, to, l] = dof[d, to, l] + h * a
        elif kind == FREE:
            root = 1.0 if t.parent[i] == i else 0.0
            base, rot = g.base_rot[w * z.robots + r], g.rot[w * nodes + i]
            move = rates_at(coord, c, seed, l)
            by_q, by_v, by_w, by_base, by_rot, _by_root, _by_h, _by_m, _by_a = kc.grad(free_ahead_dot)(
                quat_at(coord, c + 3, am.Q, l), rates_at(dof, d, rates, l), rates_at(dof, d + 3, rates, l), base, rot,
                root, h, move, quat_at(coord, c + 3, seed, l))  # fmt: skip
            add_rates(coord, c, am.AQ, l, move)
            add_rates(dof, d, to, l, by_v)
            add_rates(dof, d + 3, to, l, by_w)
            put_quat(coord, c + 3, am.AQ, l, quat_at(coord, c + 3, am.AQ, l) + by_q)
            if want.frames > 0:
                kc.atomic_add(out.base_rot, w * z.robots + r, by_base)
                kc.atomic_add(out.rot, w * nodes + i, by_rot)
        elif kind != FIXED:
            by_q, by_w, _by_h, _by_a = kc.grad(ball_ahead_dot)(
                quat_at(coord, c, am.Q, l), rates_at(dof, d, rates, l), h, quat_at(coord, c, seed, l))
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
def more(dof, k: int, f: int, l: int, value: float):
    dof[k, f, l] = dof[k, f, l] + value


@kc.func
def laws_back(t: Tree, coord, dof, dt: float, l: int, r: int):
    """What acts in joints, along λ."""
    for k in range(t.dof_first[r], t.dof_first[r] + t.dof_count[r]):
        y, a = dof[k, am.LAMBDA, l], dof[k, am.ACC, l]
        (by_q, by_v, _by_a, _by_dt, by_damping, by_stiffness, by_rest, by_kp, by_kd, by_limit, by_target, by_torque,
         by_low, by_high, _by_ke, _by_back, _by_apparent, by_friction) = kc.grad(drive_torque)(
            dof[k, am.PLACE, l], dof[k, am.RATE, l], a, dt, dof[k, am.DAMPING, l], dof[k, am.STIFFNESS, l],
            dof[k, am.SPRING_REST, l], dof[k, am.KP, l], dof[k, am.KD, l], dof[k, am.LIMIT, l], dof[k, am.TARGET, l],
            dof[k, am.TORQUE, l], dof[k, am.LOW, l], dof[k, am.HIGH, l], dof[k, am.STOP_KE, l],
            dof[k, am.STOP_KD, l], dof[k, am.APPARENT, l], dof[k, am.FRICTION, l])  # fmt: skip
        more(coord, t.dof_coord[k], am.AQ, l, by_q * y)
        more(dof, k, am.ARATE, l, by_v * y)
        more(dof, k, am.ADAMPING, l, by_damping * y)
        more(dof, k, am.ASTIFFNESS, l, by_stiffness * y)
        more(dof, k, am.AREST, l, by_rest * y)
        more(dof, k, am.AKP, l, by_kp * y)
        more(dof, k, am.AKD, l, by_kd * y)
        more(dof, k, am.ALIMIT, l, by_limit * y)
        more(dof, k, am.ATARGET, l, by_target * y)
        more(dof, k, am.ATORQUE, l, by_torque * y)
        more(dof, k, am.ALOW, l, by_low * y)
        more(dof, k, am.AHIGH, l, by_high * y)
        more(dof, k, am.AFRICTION, l, by_friction * y)
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
def inertia_back(t: Tree, b: Masses, z: Sizes, want: Wanted, out: Slopes, node, dof, w: int, l: int, r: int):
    """What inertia needs at the rates MID and accelerations ACC, along λ: to the rates (AMID), to how degrees of
    freedom move, and to what nodes weigh."""
    first = t.first[r]
    for i in range(first, first + t.count[r]):
        u, v, du, dv = parent_motion(t, b, z, node, i, w, l, r)
        up, d = t.parent[i], t.dof[i]
        ju, jv, su, sv, lu, lv, along = (kc.float3(), kc.float3(), kc.float3(), kc.float3(), kc.float3(), kc.float3(),
                                         kc.float3())  # fmt: skip
        if up != i:
            lu, lv = get3(node, up, am.LW, l), get3(node, up, am.LV, l)
        for k in range(d, d + dofs_of(t.kind[i])):
            turn, slide = get3(dof, k, am.TURN, l), get3(dof, k, am.SLIDE, l)
            rate, a, y = dof[k, am.MID, l], dof[k, am.ACC, l], dof[k, am.LAMBDA, l]
            ju += turn * rate
            jv += slide * rate
            su += turn * a
            sv += slide * a
            lu -= turn * y
            lv -= slide * y
            if t.kind[i] == FREE and k < d + 3:
                along += slide * rate
        du = du + su + kc.cross(u, ju)
        dv = dv + sv + kc.cross(u, jv) + kc.cross(v + along, ju)
        u, v = u + ju, v + jv
        put3(node, i, am.W, l, u)
        put3(node, i, am.V, l, v)
        put3(node, i, am.DW, l, du)
        put3(node, i, am.DV, l, dv)
        put3(node, i, am.LW, l, lu)
        put3(node, i, am.LV, l, lv)
        by_lu, by_lv, by_u, by_v, by_du, by_dv, by_mass, by_first, by_diag, by_off = kc.grad(power)(
            lu, lv, u, v, du, dv, node[i, am.MASS, l], get3(node, i, am.FIRST, l), get3(node, i, am.DIAG, l),
            get3(node, i, am.OFF, l))  # fmt: skip
        put3(node, i, am.ALW, l, by_lu)
        put3(node, i, am.ALV, l, by_lv)
        put3(node, i, am.AW, l, by_u)
        put3(node, i, am.AV, l, by_v)
        put3(node, i, am.ADW, l, by_du)
        put3(node, i, am.ADV, l, by_dv)
        node[i, am.AMASS, l] = node[i, am.AMASS, l] + by_mass
        add3(node, i, am.AFIRST, l, by_first)
        add3(node, i, am.ADIAG, l, by_diag)
        add3(node, i, am.AOFF, l, by_off)
    for i in reversed(range(first, first + t.count[r])):
        up, d = t.parent[i], t.dof[i]
        au, av, adu, adv = (get3(node, i, am.AW, l), get3(node, i, am.AV, l), get3(node, i, am.ADW, l),
                            get3(node, i, am.ADV, l))  # fmt: skip
        alu, alv = get3(node, i, am.ALW, l), get3(node, i, am.ALV, l)
        u, v, along, ju, jv = kc.float3(), kc.float3(), kc.float3(), kc.float3(), kc.float3()
        if up != i:
            u, v = get3(node, up, am.W, l), get3(node, up, am.V, l)
        for k in range(d, d + dofs_of(t.kind[i])):
            slide = get3(dof, k, am.SLIDE, l) * dof[k, am.MID, l]
            ju += get3(dof, k, am.TURN, l) * dof[k, am.MID, l]
            jv += slide
            if t.kind[i] == FREE and k < d + 3:
                along += slide
        aju = au + kc.cross(adu, u) + kc.cross(adv, v + along)
        ajv, aalong = av + kc.cross(adv, u), kc.cross(ju, adv)
        for k in range(d, d + dofs_of(t.kind[i])):
            turn, slide = get3(dof, k, am.TURN, l), get3(dof, k, am.SLIDE, l)
            rate, a, y = dof[k, am.MID, l], dof[k, am.ACC, l], dof[k, am.LAMBDA, l]
            ajs = ajv
            if t.kind[i] == FREE and k < d + 3:
                ajs = ajv + aalong
            add3(dof, k, am.ATURN, l, aju * rate + adu * a - alu * y)
            add3(dof, k, am.ASLIDE, l, ajs * rate + adv * a - alv * y)
            dof[k, am.AMID, l] = kc.dot(turn, aju) + kc.dot(slide, ajs)
        if up != i:
            add3(node, up, am.AW, l, au + kc.cross(ju, adu) + kc.cross(jv, adv))
            add3(node, up, am.AV, l, av + kc.cross(ju, adv))
            add3(node, up, am.ADW, l, adu)
            add3(node, up, am.ADV, l, adv)
            add3(node, up, am.ALW, l, alu)
            add3(node, up, am.ALV, l, alv)
        elif want.weights > 0:
            kc.atomic_add(out.gravity, w * z.robots + r, -adv)


@kc.func
def weights_back(b: Masses, want: Wanted, out: Slopes, node, i: int, at: int, l: int):
    """From what a node weighs to where it is."""
    by_x, by_rot, by_com, by_mass, by_inertia, _by_f, _by_d, _by_o = kc.grad(moments_dot)(
        get3(node, i, am.X, l), get4(node, i, am.ROT, l), b.com[at], b.mass[at], b.inertia[at],
        get3(node, i, am.AFIRST, l), get3(node, i, am.ADIAG, l), get3(node, i, am.AOFF, l))  # fmt: skip
    add3(node, i, am.AX, l, by_x)
    add4(node, i, am.AROT, l, by_rot)
    if want.weights > 0:
        kc.atomic_add(out.mass, at, by_mass + node[i, am.AMASS, l])
        kc.atomic_add(out.com, at, by_com)
        kc.atomic_add(out.inertia, at, by_inertia)


@kc.func
def rows_at(dof, d: int, f: int, l: int) -> kc.mat33:
    return kc.mat33(dof[d, f, l], dof[d, f + 1, l], dof[d, f + 2, l],
                    dof[d + 1, f, l], dof[d + 1, f + 1, l], dof[d + 1, f + 2, l],
                    dof[d + 2, f, l], dof[d + 2, f + 1, l], dof[d + 2, f + 2, l])  # fmt: skip


@kc.func
def places_back(t: Tree, g: Rig, b: Masses, z: Sizes, want: Wanted, out: Slopes, node, dof, coord, w: int, l: int,
                r: int):  # fmt: skip
    """From where nodes are, and how degrees of freedom move them, to the coordinates in the middle (AQ_MID)."""
    first = t.first[r]
    base, base_rot = g.base_x[w * z.robots + r], g.base_rot[w * z.robots + r]
    for i in reversed(range(first, first + t.count[r])):
        at = w * node.shape[0] + i
        up, kind, c, d = t.parent[i], t.kind[i], t.coord[i], t.dof[i]
        weights_back(b, want, out, node, i, at, l)
        x, rot = kc.float3(), kc.quat_identity()
        if up != i:
            x, rot = get3(node, up, am.X, l), get4(node, up, am.ROT, l)
        else:
            x, rot = base - get3(node, first, am.ORIGIN, l), kc.normalize(base_rot)
        pos, joint, anchor = g.pos[at], g.rot[at], g.anchor[at]
        ax, arot = get3(node, i, am.AX, l), get4(node, i, am.AROT, l)
        ox, orot, opos, ojoint, oanchor, oaxis = (kc.float3(), kc.quat(), kc.float3(), kc.quat(), kc.float3(),
                                                  kc.float3())  # fmt: skip
        if kind == REVOLUTE:
            (ox, orot, opos, ojoint, oanchor, oaxis, by_q, _by_ref, _by_1, _by_2, _by_3, _by_4) = kc.grad(
                revolute_dot)(
                x, rot, pos, joint, anchor, g.axis[at], coord[c, am.Q_MID, l], g.ref[w * z.coords + c], ax, arot,
                get3(dof, d, am.ATURN, l), get3(dof, d, am.ASLIDE, l))  # fmt: skip
            coord[c, am.AQ_MID, l] = by_q
        elif kind == PRISMATIC:
            (ox, orot, opos, ojoint, oanchor, oaxis, by_q, _by_ref, _by_1, _by_2, _by_3) = kc.grad(
                prismatic_dot)(
                x, rot, pos, joint, anchor, g.axis[at], coord[c, am.Q_MID, l], g.ref[w * z.coords + c], ax, arot,
                get3(dof, d, am.ASLIDE, l))  # fmt: skip
            coord[c, am.AQ_MID, l] = by_q
        elif kind == FIXED:
            ox, orot, opos, ojoint, oanchor, _by_1, _by_2 = kc.grad(fixed_dot)(x, rot, pos, joint, anchor, ax, arot)
        else:
            move, root, e, f, amove = kc.float3(), 0.0, c, d, kc.mat33()
            if kind == FREE:
                move, e, f, amove = rates_at(coord, c, am.Q_MID, l), c + 3, d + 3, rows_at(dof, d, am.ASLIDE, l)
                root = 1.0 if up == i else 0.0
            ox, orot, opos, ojoint, oanchor, by_move, by_q4, _by_root, _by_1, _by_2, _by_5, _by_6, _by_7 = kc.grad(
                ball_dot)(
                x, rot, pos, joint, anchor, move, quat_at(coord, e, am.Q_MID, l), root, ax, arot,
                rows_at(dof, f, am.ATURN, l), rows_at(dof, f, am.ASLIDE, l), amove)  # fmt: skip
            put_quat(coord, e, am.AQ_MID, l, by_q4)
            if kind == FREE:
                for k in (0, 1, 2):
                    coord[c + k, am.AQ_MID, l] = by_move[k]
        if up != i:
            add3(node, up, am.AX, l, ox)
            add4(node, up, am.AROT, l, orot)
        if want.frames > 0:
            if up == i:
                by_base, _by_o = kc.grad(unit_dot)(base_rot, orot)
                kc.atomic_add(out.base_x, w * z.robots + r, ox)
                kc.atomic_add(out.base_rot, w * z.robots + r, by_base)
            kc.atomic_add(out.pos, at, opos)
            kc.atomic_add(out.rot, at, ojoint)
            kc.atomic_add(out.anchor, at, oanchor)
            if kind == REVOLUTE or kind == PRISMATIC:
                kc.atomic_add(out.axis, at, oaxis)
                kc.atomic_add(out.ref, w * z.coords + c, -coord[c, am.AQ_MID, l])


@kc.func
def give(t: Tree, z: Sizes, want: Wanted, out: Slopes, coord, dof, w: int, l: int, r: int):
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
        if want.weights > 0:
            kc.atomic_add(out.armature, at, dof[k, am.AARMATURE, l])
        if want.laws > 0:
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
        if want.ties > 0 and t.leads[k] != k:
            kc.atomic_add(out.ratio, at, dof[k, am.ARATIO, l])
            kc.atomic_add(out.offset, at, dof[k, am.AOFFSET, l])


@kc.kernel(block=LANES)
def back_abreast(t: Tree, g: Rig, b: Masses, s: Drives, now: Now, z: Sizes, m: Abreast, found: Found, want: Wanted,
                 dt: float, aq: kc.Array[float], aqd: kc.Array[float], out: Slopes):  # fmt: skip
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
        kind, c = t.kind[i], t.coord[i]
        count = 0
        if kind == REVOLUTE or kind == PRISMATIC:
            count = 1
        elif kind == FREE:
            count = 7
        elif kind != FIXED:
            count = 4
        for k in range(count):
            coord[c + k, am.AQ, l] = 0.0
            coord[c + k, am.AQ_MID, l] = mine * aq[w * z.coords + c + k]
    for k in range(begin, end):
        a, v = found.a[group, k, 1, l], mine * aqd[w * dof.shape[0] + k]
        dof[k, am.ACC, l] = a
        dof[k, am.ARATE, l] = v
        dof[k, am.LAMBDA, l] = dt * v
        dof[k, am.MID, l] = dof[k, am.RATE, l] + dof[k, am.LEAN, l] * dt * a
    coords_back(t, g, z, want, out, coord, dof, am.AQ_MID, am.AMID, am.MID, w, dt, l, r)
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
        inertia_back(t, b, z, want, out, node, dof, w, l, r)
        for k in range(begin, end):
            dof[k, am.ARATE, l] = dof[k, am.ARATE, l] + dof[k, am.AMID, l]
    places_back(t, g, b, z, want, out, node, dof, coord, w, l, r)
    coords_back(t, g, z, want, out, coord, dof, am.AQ_MID, am.ARATE, am.RATE, w, 0.5 * dt, l, r)
    give(t, z, want, out, coord, dof, w, l, r)
