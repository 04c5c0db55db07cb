"""Contact of the links of robots with half-spaces: forces at points, and what they do in joints."""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import Motion, Poses, Tree
from nablasim.physics.laws.articulated.tree_kernels import dofs_of
from nablasim.physics.laws.contact.compliant_kernels import bounded, contact_force
from nablasim.physics.laws.contact.reports_kernels import Report, note


@kc.struct
class Points:
    """Points of links: balls about a place in the frame of a node; `light` is the inverse mass that contacts feel."""

    node: kc.Array[int]
    robot: kc.Array[int]
    local: kc.Array[kc.float3]
    ball: kc.Array[float]
    light: kc.Array[float]


@kc.struct
class Planes:
    """Pairs of a point and a plane."""

    point: kc.Array[int]
    normal: kc.Array[kc.float3]
    offset: kc.Array[float]
    ke: kc.Array[float]
    kd: kc.Array[float]
    kf: kc.Array[float]
    mu: kc.Array[float]
    law: kc.Array[int]
    touch: kc.Array[float]
    smoothing: kc.Array[float]


@kc.kernel
def twists(t: Tree, p: Poses, qd: kc.Array[float], m: Motion):
    """Velocities of nodes, about the robot's origin."""
    r = kc.tid()
    for i in range(t.first[r], t.first[r] + t.count[r]):
        w, v = kc.float3(), kc.float3()
        if t.parent[i] != i:
            w, v = m.w[t.parent[i]], m.v[t.parent[i]]
        for k in range(t.dof[i], t.dof[i] + dofs_of(t.kind[i])):
            w += p.turn[k] * qd[k]
            v += p.slide[k] * qd[k]
        m.w[i] = w
        m.v[i] = v


@kc.kernel
def plane_wrenches(p: Poses, m: Motion, a: Points, c: Planes, dt: float, n: kc.Array[kc.float3],
                   f: kc.Array[kc.float3]):  # fmt: skip
    """Push a point of a link out of a half-space; torques are about the robot's origin."""
    r = kc.tid()
    i = c.point[r]
    b, up = a.node[i], c.normal[r]
    at = p.x[b] + kc.quat_rotate(p.rot[b], a.local[i]) - up * a.ball[i]
    arm = at - p.origin[a.robot[i]]
    v = m.v[b] + kc.cross(m.w[b], arm)
    gap = kc.dot(up, at) - c.offset[r]
    if gap < c.smoothing[r]:
        # Several contacts share the masses of a robot: dampers are bounded.
        kd, kf = bounded(c.kd[r], dt * a.light[i]), bounded(c.kf[r], dt * a.light[i])
        force = contact_force(gap, v, up, c.ke[r], kd, kf, c.mu[r], c.law[r], c.touch[r], c.smoothing[r], 0.0)
        kc.atomic_add(f, b, force)
        kc.atomic_add(n, b, kc.cross(arm, force))


@kc.kernel
def report_links(p: Poses, m: Motion, a: Points, c: Planes, report: Report):
    """Write the contacts of links down, in a state that is looked at."""
    r = kc.tid()
    i = c.point[r]
    b, up = a.node[i], c.normal[r]
    at = p.x[b] + kc.quat_rotate(p.rot[b], a.local[i]) - up * a.ball[i]
    v = m.v[b] + kc.cross(m.w[b], at - p.origin[a.robot[i]])
    gap = kc.dot(up, at) - c.offset[r]
    if gap < c.smoothing[r]:
        force = contact_force(
            gap, v, up, c.ke[r], c.kd[r], c.kf[r], c.mu[r], c.law[r], c.touch[r], c.smoothing[r], 0.0
        )
        note(report, r, at, up, force, gap)


@kc.kernel
def joint_pushes(t: Tree, p: Poses, n: kc.Array[kc.float3], f: kc.Array[kc.float3], m: Motion, push: kc.Array[float]):
    """What wrenches on links do in joints."""
    r = kc.tid()
    first = t.first[r]
    for i in range(first, first + t.count[r]):
        m.n[i] = n[i]
        m.f[i] = f[i]
    for i in reversed(range(first, first + t.count[r])):
        for k in range(t.dof[i], t.dof[i] + dofs_of(t.kind[i])):
            push[k] = kc.dot(p.turn[k], m.n[i]) + kc.dot(p.slide[k], m.f[i])
        up = t.parent[i]
        if up != i:
            m.n[up] = m.n[up] + m.n[i]
            m.f[up] = m.f[up] + m.f[i]
