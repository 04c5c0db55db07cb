"""Shapes of links as bodies that others touch: where links have them, and what contact with them does in joints."""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import Motion, Poses, Tree
from nablasim.physics.laws.articulated.tree_kernels import dofs_of
from nablasim.physics.laws.rigid.bodies_kernels import Forces, State, put, total


@kc.struct
class Carried:
    """Shapes of links. A body is one if it is `linked`, then `link` is its row; pos, rot: where it is in its node."""

    linked: kc.Array[int]
    link: kc.Array[int]
    body: kc.Array[int]
    node: kc.Array[int]
    robot: kc.Array[int]
    pos: kc.Array[kc.float3]
    rot: kc.Array[kc.quat]


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
def carry(p: Poses, m: Motion, c: Carried, before: State, after: State):
    """Bodies with shapes of links where the links have them. A thread is a body."""
    b = kc.tid()
    x, rot, v, omega = before.x[b], before.rot[b], before.v[b], before.omega[b]
    if c.linked[b] > 0:
        l = c.link[b]
        i = c.node[l]
        x = p.x[i] + kc.quat_rotate(p.rot[i], c.pos[l])
        rot = p.rot[i] * c.rot[l]
        omega = m.w[i]
        v = m.v[i] + kc.cross(omega, x - p.origin[c.robot[l]])
    put(after, b, x, rot, v, omega)


@kc.kernel
def wrenches(c: Carried, p: Poses, bodies: State, com: kc.Array[kc.float3], forces: Forces, rub: Forces | None,
             n: kc.Array[kc.float3], f: kc.Array[kc.float3]):  # fmt: skip
    """What pushes the bodies pushes their links; about the robot's origin. A thread is a shape of a link."""
    l = kc.tid()
    b, i = c.body[l], c.node[l]
    arm = bodies.x[b] + kc.quat_rotate(kc.normalize(bodies.rot[b]), com[b]) - p.origin[c.robot[l]]
    force, torque = total(forces, rub, b)
    kc.atomic_add(f, i, force)
    kc.atomic_add(n, i, torque + kc.cross(arm, force))


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
