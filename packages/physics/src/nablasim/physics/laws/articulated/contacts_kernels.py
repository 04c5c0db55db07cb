"""Contact of links with half-spaces, as part of the equations of a step. `contacts(load)`: see `dynamics_kernels.py`.

Springs, dampers and friction are those of the end of the step, and push along the way that one point goes: so they
couple only degrees of freedom of one branch, as the mass matrix does. Friction holds what it can hold: below the cone
it lets creep what is below all measuring. How much that is goes by what the spring bears in the middle of the step, not
by dampers: so the matrix stays symmetric, and what lies still does not chatter.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import Contacts, Now, Poses, Touch, Tree
from nablasim.physics.laws.articulated.dynamics_kernels import held, kept
from nablasim.physics.laws.articulated.tree_kernels import dofs_of
from nablasim.physics.laws.contact.compliant_kernels import hinge


@kc.func
def hinge_slope(s: float, width: float) -> float:
    slope = 0.0
    if s >= width:
        slope = 1.0
    elif s > -width:
        slope = (s + width) / (2.0 * width)
    return slope


@kc.func
def as_it_is(m: Touch, row: int, slides: bool) -> bool:
    return slides


@kc.func
def as_supposed(m: Touch, row: int, slides: bool) -> bool:
    return m.slide[row] > 0


def contacts(load, slides):
    """What contact does in joints, and how that changes with their accelerations.

    `slides`: whether a point slides, or is supposed to while that is looked for.
    """

    @kc.func
    def arm_of(c: Contacts, p: Poses, i: int, row: int, origin: kc.float3) -> kc.float3:
        """Where point i is lowest towards the plane of a row, from the robot's origin."""
        b = c.node[i]
        at = load(p.x[b]) + kc.quat_rotate(load(p.rot[b]), load(c.local[i]))
        return at - load(c.normal[row]) * load(c.ball[i]) - origin

    @kc.func
    def gap_of(c: Contacts, row: int, arm: kc.float3, origin: kc.float3) -> float:
        return kc.dot(load(c.normal[row]), arm + origin) - load(c.offset[row])

    @kc.func
    def meeting(c: Contacts, p: Poses, row: int, origin: kc.float3):
        """Where a row touches: the node, the arm from the robot's origin, the plane's normal, and the gap."""
        i = c.point[row]
        arm = arm_of(c, p, i, row, origin)
        return c.node[i], arm, load(c.normal[row]), gap_of(c, row, arm, origin)

    @kc.func
    def damper(c: Contacts, row: int, gap: float, rate: float) -> float:
        """Grows with how deep it is ("smooth"), or acts while approaching ("linear"): see `compliant_kernels.py`."""
        deep, kd = hinge(-gap, load(c.smoothing[row])), 0.0
        if c.law[row] == 1:
            kd = load(c.kd[row]) * deep / (deep + load(c.touch[row]))
        elif deep > 0.0 and rate < 0.0:
            kd = load(c.kd[row])
        return kd

    @kc.func
    def ahead(c: Contacts, row: int, dt: float) -> float:
        """How far its spring looks ahead from the middle of the step: half a step, where it is soft; and up to a whole
        one, so that what is stiff does not go on to swing."""
        z = dt * dt * load(c.ke[row]) * load(c.light[c.point[row]])
        return dt * (0.5 + 0.5 * z / (z + 2.0))

    @kc.func
    def pull(c: Contacts, row: int, gap: float, rate: float, dt: float) -> float:
        """The force before it is cut where it would pull."""
        return -load(c.ke[row]) * (gap + ahead(c, row, dt) * rate) - damper(c, row, gap, rate) * rate

    @kc.func
    def spring(c: Contacts, row: int, gap: float) -> float:
        return load(c.ke[row]) * hinge(-gap, load(c.smoothing[row]))

    @kc.func
    def node_twists(t: Tree, p: Poses, now: Now, a, dt: float, m: Touch, r: int):
        """Velocities of nodes at the end of the step."""
        for i in range(t.first[r], t.first[r] + t.count[r]):
            turn, move = kc.float3(), kc.float3()
            if t.parent[i] != i:
                turn, move = m.w[t.parent[i]], m.v[t.parent[i]]
            for k in range(t.dof[i], t.dof[i] + dofs_of(t.kind[i])):
                rate = load(now.qd[k]) + dt * load(a[k])
                turn += load(p.turn[k]) * rate
                move += load(p.slide[k]) * rate
            m.w[i] = turn
            m.v[i] = move

    @kc.func
    def add_torques(t: Tree, p: Poses, c: Contacts, m: Touch, now: Now, a, dt: float, rest, r: int):
        """Add what contact does in joints at the accelerations a."""
        first, origin = t.first[r], load(p.origin[r])
        node_twists(t, p, now, a, dt, m, r)
        for i in range(first, first + t.count[r]):
            m.n[i] = kc.float3()
            m.f[i] = kc.float3()
        for o in range(c.first[r], c.first[r] + c.count[r]):
            row = c.order[o]
            b, arm, up, gap = meeting(c, p, row, origin)
            u = m.v[b] + kc.cross(m.w[b], arm)
            rate, most = kc.dot(u, up), load(c.mu[row]) * spring(c, row, gap)
            fn = hinge(pull(c, row, gap, rate, dt), load(c.ke[row]) * load(c.smoothing[row]))
            if fn > 0.0 or most > 0.0:
                u = u - up * rate
                slip, rub = kc.length(u), load(c.grip[row]) / dt
                if slides(m, row, rub * slip > most):
                    rub = most / slip
                force = up * fn - u * rub
                m.f[b] = m.f[b] + force
                m.n[b] = m.n[b] + kc.cross(arm, force)
        for i in reversed(range(first, first + t.count[r])):
            for k in range(t.dof[i], t.dof[i] + dofs_of(t.kind[i])):
                rest[k] = rest[k] + kc.dot(load(p.turn[k]), m.n[i]) + kc.dot(load(p.slide[k]), m.f[i])
            above = t.parent[i]
            if above != i:
                m.n[above] = m.n[above] + m.n[i]
                m.f[above] = m.f[above] + m.f[i]

    @kc.func
    def add_stiffness(t: Tree, p: Poses, c: Contacts, m: Touch, dt: float, L, r: int):
        """Add the negative derivative of `add_torques` by a, where that was looked at last."""
        origin = load(p.origin[r])
        for o in range(c.first[r], c.first[r] + c.count[r]):
            row = c.order[o]
            b, arm, up, gap = meeting(c, p, row, origin)
            u = m.v[b] + kc.cross(m.w[b], arm)
            rate, most = kc.dot(u, up), load(c.mu[row]) * spring(c, row, gap)
            along = hinge_slope(pull(c, row, gap, rate, dt), load(c.ke[row]) * load(c.smoothing[row]))
            if along > 0.0 or most > 0.0:
                along = along * (ahead(c, row, dt) * load(c.ke[row]) + damper(c, row, gap, rate))
                u = u - up * rate
                slip, rub, back = kc.length(u), load(c.grip[row]) / dt, 0.0
                if m.slide[row] > 0:
                    rub = most / slip
                    back = rub / (slip * slip)
                while t.parent[b] != b and dofs_of(t.kind[b]) == 0:
                    b = t.parent[b]
                k, deep, reach = t.dof[b] + dofs_of(t.kind[b]) - 1, 0, 0
                if dofs_of(t.kind[b]) > 0:
                    deep, reach = t.depth[k], t.row[k]
                for e in range(deep):
                    way = load(p.slide[k]) + kc.cross(load(p.turn[k]), arm)
                    # The force that a rate of 1 in this joint takes away.
                    force = (way - up * kc.dot(up, way)) * rub - u * (back * kc.dot(u, way))
                    force = (force + up * (along * kc.dot(up, way))) * (dt * float(t.reach[reach + e]))
                    j = k
                    for q in range(deep - e):
                        other = load(p.slide[j]) + kc.cross(load(p.turn[j]), arm)
                        L[t.row[k] + q] = L[t.row[k] + q] + kc.dot(other, force) * float(t.reach[reach + e + q])
                        j = t.above[j]
                    k = t.above[k]

    @kc.func
    def suppose(c: Contacts, p: Poses, m: Touch, dt: float, first: bool, most_changes: int, r: int) -> bool:
        """Suppose of each point that it sticks, or slides on the way that it goes; whether anything is other than it
        was supposed. What would turn round sticks. Where many change at once, again and again, fewer may."""
        changes, origin = 0, load(p.origin[r])
        for o in range(c.first[r], c.first[r] + c.count[r]):
            row = c.order[o]
            i, up = c.point[row], load(c.normal[row])
            b, arm = c.node[i], arm_of(c, p, i, row, origin)
            most = load(c.mu[row]) * spring(c, row, gap_of(c, row, arm, origin))
            u, slide = m.v[b] + kc.cross(m.w[b], arm), 0
            u = u - up * kc.dot(u, up)
            if not first and load(c.grip[row]) / dt * kc.length(u) > most:
                slide = 1
                if m.slide[row] > 0 and kc.dot(u, m.way[row]) < 0.0:
                    slide = 0
            if slide != m.slide[row]:
                changes += 1
                if first or changes <= most_changes:
                    m.slide[row] = slide
            m.way[row] = u
        return changes > 0

    @kc.func
    def take(c: Contacts, p: Poses, m: Touch, dt: float, r: int):
        """Suppose of each point what its law says at these rates."""
        origin = load(p.origin[r])
        for o in range(c.first[r], c.first[r] + c.count[r]):
            row = c.order[o]
            i, up = c.point[row], load(c.normal[row])
            b, arm = c.node[i], arm_of(c, p, i, row, origin)
            most = load(c.mu[row]) * spring(c, row, gap_of(c, row, arm, origin))
            u = m.v[b] + kc.cross(m.w[b], arm)
            u = u - up * kc.dot(u, up)
            m.slide[row] = 1 if load(c.grip[row]) / dt * kc.length(u) > most else 0
            m.way[row] = u

    return SimpleNamespace(suppose=suppose, take=take, node_twists=node_twists, add_torques=add_torques,
                           add_stiffness=add_stiffness)  # fmt: skip


CONTACTS, CONTACTS_HELD = contacts(kept, as_it_is), contacts(held, as_supposed)
