"""The recursions over the tree on the way back through a step of robots side by side: from wrenches to places.

Power along λ is a sum over links. It goes back to the motion of links, from there to the rates of joints, to how these
move what is behind them, and last to where links are; see `abreast_back_kernels.py`.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated import abreast_memory as am
from nablasim.physics.laws.articulated.abreast_joints_kernels import (
    Mount,
    Moving,
    Pair,
    Plane,
    ball_dot,
    fixed_dot,
    moments_dot,
    power,
    prismatic_dot,
    revolute_dot,
    touch_power,
    unit_dot,
)
from nablasim.physics.laws.articulated.abreast_memory import (
    PlaneSlopes,
    Sizes,
    Slopes,
    add3,
    add4,
    get3,
    get4,
    more,
    put3,
)
from nablasim.physics.laws.articulated.abreast_tree_kernels import parent_motion, put_quat, quat_at, rates_at
from nablasim.physics.laws.articulated.bundles import FIXED, FREE, PRISMATIC, REVOLUTE, Contacts, Masses, Rig, Tree
from nablasim.physics.laws.articulated.tree_kernels import dofs_of


@kc.func
def inertia_back(t: Tree, b: Masses, z: Sizes, node, dof, w: int, l: int, r: int):
    """What inertia needs at the rates MID and accelerations ACC, along λ: to the motion of nodes, and to what they
    weigh."""
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
        put3(node, i, am.AEW, l, kc.float3())
        put3(node, i, am.AEV, l, kc.float3())
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


@kc.func
def motion_back(t: Tree, z: Sizes, out: Slopes, node, dof, w: int, dt: float, touches: bool, l: int,
                r: int):  # fmt: skip
    """From the motion of nodes to the rates of joints (AMID), and to how these move what is behind them."""
    first = t.first[r]
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
            aturn, aslide = aju * rate + adu * a - alu * y, ajs * rate + adv * a - alv * y
            if touches:
                end, aeu, aev = dof[k, am.RATE, l] + dt * a, get3(node, i, am.AEW, l), get3(node, i, am.AEV, l)
                aturn, aslide = aturn + aeu * end, aslide + aev * end
                more(dof, k, am.ARATE, l, kc.dot(turn, aeu) + kc.dot(slide, aev))
            add3(dof, k, am.ATURN, l, aturn)
            add3(dof, k, am.ASLIDE, l, aslide)
            dof[k, am.AMID, l] = kc.dot(turn, aju) + kc.dot(slide, ajs)
        if up != i:
            add3(node, up, am.AW, l, au + kc.cross(ju, adu) + kc.cross(jv, adv))
            add3(node, up, am.AV, l, av + kc.cross(ju, adv))
            add3(node, up, am.ADW, l, adu)
            add3(node, up, am.ADV, l, adv)
            add3(node, up, am.ALW, l, alu)
            add3(node, up, am.ALV, l, alv)
            if touches:
                add3(node, up, am.AEW, l, get3(node, i, am.AEW, l))
                add3(node, up, am.AEV, l, get3(node, i, am.AEV, l))
        elif out.wanted.weights > 0:
            kc.atomic_add(out.gravity, w * z.robots + r, -adv)


@kc.func
def contacts_back(t: Tree, c: Contacts, z: Sizes, node, out: PlaneSlopes, w: int, dt: float, l: int, r: int):
    """What contact does, along λ: to the velocities of nodes at the end of the step, to where nodes are, to planes."""
    count, points = c.normal.shape[0] // z.worlds, c.node.shape[0] // z.worlds
    origin = get3(node, t.first[r], am.ORIGIN, l)
    for o in range(c.first[r], c.first[r] + c.count[r]):
        row = c.order[o]
        i, at = c.point[row], w * count + row
        b, of = c.node[i], w * points + i
        moving = Moving(get3(node, b, am.X, l), get4(node, b, am.ROT, l), get3(node, b, am.EW, l),
                        get3(node, b, am.EV, l), get3(node, b, am.LW, l), get3(node, b, am.LV, l))  # fmt: skip
        plane = Plane(c.normal[at], c.offset[at], c.ke[at], c.kd[at], c.mu[at])
        pair = Pair(origin, c.local[of], c.ball[of], c.light[of], c.touch[at], c.smoothing[at], c.grip[at])
        by, by_plane, _by_pair, _by_dt = kc.grad(touch_power)(moving, plane, pair, dt, c.law[row])
        # The twist is that of -λ.
        add3(node, b, am.AX, l, -by.x)
        add4(node, b, am.AROT, l, by.rot * -1.0)
        add3(node, b, am.AEW, l, -by.w)
        add3(node, b, am.AEV, l, -by.v)
        add3(node, b, am.ALW, l, -by.lw)
        add3(node, b, am.ALV, l, -by.lv)
        if out.wanted > 0:
            kc.atomic_add(out.normal, at, -by_plane.normal)
            kc.atomic_add(out.offset, at, -by_plane.offset)
            kc.atomic_add(out.ke, at, -by_plane.ke)
            kc.atomic_add(out.kd, at, -by_plane.kd)
            kc.atomic_add(out.mu, at, -by_plane.mu)


@kc.func
def weights_back(b: Masses, out: Slopes, node, i: int, at: int, l: int):
    """From what a node weighs to where it is."""
    by_x, by_rot, by_com, by_mass, by_inertia, _by_f, _by_d, _by_o = kc.grad(moments_dot)(
        get3(node, i, am.X, l), get4(node, i, am.ROT, l), b.com[at], b.mass[at], b.inertia[at],
        get3(node, i, am.AFIRST, l), get3(node, i, am.ADIAG, l), get3(node, i, am.AOFF, l))  # fmt: skip
    add3(node, i, am.AX, l, by_x)
    add4(node, i, am.AROT, l, by_rot)
    if out.wanted.weights > 0:
        kc.atomic_add(out.mass, at, by_mass + node[i, am.AMASS, l])
        kc.atomic_add(out.com, at, by_com)
        kc.atomic_add(out.inertia, at, by_inertia)


@kc.func
def rows_at(dof, d: int, f: int, l: int) -> kc.mat33:
    return kc.mat33(dof[d, f, l], dof[d, f + 1, l], dof[d, f + 2, l],
                    dof[d + 1, f, l], dof[d + 1, f + 1, l], dof[d + 1, f + 2, l],
                    dof[d + 2, f, l], dof[d + 2, f + 1, l], dof[d + 2, f + 2, l])  # fmt: skip


@kc.func
def places_back(t: Tree, g: Rig, b: Masses, z: Sizes, out: Slopes, node, dof, coord, w: int, l: int,
                r: int):  # fmt: skip
    """From where nodes are, and how degrees of freedom move them, to the coordinates in the middle (AQ_MID)."""
    first = t.first[r]
    base, base_rot = g.base_x[w * z.robots + r], g.base_rot[w * z.robots + r]
    for i in reversed(range(first, first + t.count[r])):
        at = w * node.shape[0] + i
        up, kind, c, d = t.parent[i], t.kind[i], t.coord[i], t.dof[i]
        weights_back(b, out, node, i, at, l)
        x, rot = kc.float3(), kc.quat_identity()
        if up != i:
            x, rot = get3(node, up, am.X, l), get4(node, up, am.ROT, l)
        else:
            x, rot = base - get3(node, first, am.ORIGIN, l), kc.normalize(base_rot)
        mount, by, by_axis = Mount(x, rot, g.pos[at], g.rot[at], g.anchor[at]), Mount(), kc.float3()
        ax, arot = get3(node, i, am.AX, l), get4(node, i, am.AROT, l)
        if kind == REVOLUTE:
            by, by_axis, by_q, _by_ref, _by_1, _by_2, _by_3, _by_4 = kc.grad(revolute_dot)(
                mount, g.axis[at], coord[c, am.Q_MID, l], g.ref[w * z.coords + c], ax, arot,
                get3(dof, d, am.ATURN, l), get3(dof, d, am.ASLIDE, l))  # fmt: skip
            coord[c, am.AQ_MID, l] = by_q
        elif kind == PRISMATIC:
            by, by_axis, by_q, _by_ref, _by_1, _by_2, _by_3 = kc.grad(prismatic_dot)(
                mount, g.axis[at], coord[c, am.Q_MID, l], g.ref[w * z.coords + c], ax, arot,
                get3(dof, d, am.ASLIDE, l))  # fmt: skip
            coord[c, am.AQ_MID, l] = by_q
        elif kind == FIXED:
            by, _by_1, _by_2 = kc.grad(fixed_dot)(mount, ax, arot)
        else:
            move, root, e, f, amove = kc.float3(), 0.0, c, d, kc.mat33()
            if kind == FREE:
                move, e, f, amove = rates_at(coord, c, am.Q_MID, l), c + 3, d + 3, rows_at(dof, d, am.ASLIDE, l)
                root = 1.0 if up == i else 0.0
            by, by_move, by_q4, _by_root, _by_1, _by_2, _by_5, _by_6, _by_7 = kc.grad(ball_dot)(
                mount, move, quat_at(coord, e, am.Q_MID, l), root, ax, arot, rows_at(dof, f, am.ATURN, l),
                rows_at(dof, f, am.ASLIDE, l), amove)  # fmt: skip
            put_quat(coord, e, am.AQ_MID, l, by_q4)
            if kind == FREE:
                for k in (0, 1, 2):
                    coord[c + k, am.AQ_MID, l] = by_move[k]
        if up != i:
            add3(node, up, am.AX, l, by.x)
            add4(node, up, am.AROT, l, by.turned)
        if out.wanted.frames > 0:
            if up == i:
                by_base, _by_o = kc.grad(unit_dot)(base_rot, by.turned)
                kc.atomic_add(out.base_x, w * z.robots + r, by.x)
                kc.atomic_add(out.base_rot, w * z.robots + r, by_base)
            kc.atomic_add(out.pos, at, by.pos)
            kc.atomic_add(out.rot, at, by.rot)
            kc.atomic_add(out.anchor, at, by.anchor)
            if kind == REVOLUTE or kind == PRISMATIC:
                kc.atomic_add(out.axis, at, by_axis)
                kc.atomic_add(out.ref, w * z.coords + c, -coord[c, am.AQ_MID, l])
