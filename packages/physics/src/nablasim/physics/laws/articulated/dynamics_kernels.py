"""Recursions of the dynamics of robots: the torques that a motion needs, and the mass matrix.

`recursions(load)` makes them for one way to read what they depend on: `kept`, or `held`, which cuts the gradient.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import FREE, Composite, Masses, Motion, Poses, Tree
from nablasim.physics.laws.articulated.tree_kernels import dofs_of, turned_inertia


@kc.func
def kept(x):
    return x


@kc.func
def held(x):
    return kc.stop_grad(x)


def recursions(load):
    """Newton-Euler and composite bodies, of what `load` reads."""

    @kc.func
    def inverse(t: Tree, b: Masses, p: Poses, qd, qdd, m: Motion, tau, r: int):
        """The torques that a motion of robot r needs (recursive Newton-Euler), armature included."""
        first, origin = t.first[r], load(p.origin[r])
        for i in range(first, first + t.count[r]):
            w, v, dw, dv = kc.float3(), kc.float3(), kc.float3(), -load(b.gravity[r])
            if t.parent[i] != i:
                w, v, dw, dv = m.w[t.parent[i]], m.v[t.parent[i]], m.dw[t.parent[i]], m.dv[t.parent[i]]
            d = t.dof[i]
            jw, jv, sw, sv = kc.float3(), kc.float3(), kc.float3(), kc.float3()
            for k in range(d, d + dofs_of(t.kind[i])):
                jw += load(p.turn[k]) * load(qd[k])
                jv += load(p.slide[k]) * load(qd[k])
                sw += load(p.turn[k]) * load(qdd[k])
                sv += load(p.slide[k]) * load(qdd[k])
            dw = dw + sw + kc.cross(w, jw)
            dv = dv + sv + kc.cross(w, jv) + kc.cross(v, jw)
            if t.kind[i] == FREE:
                # The point about which it turns moves along.
                along = kc.float3()
                for k in range(d, d + 3):
                    along += load(p.slide[k]) * load(qd[k])
                dv += kc.cross(along, jw)
            w, v = w + jw, v + jv
            m.w[i] = w
            m.v[i] = v
            m.dw[i] = dw
            m.dv[i] = dv
            c = load(p.x[i]) + kc.quat_rotate(load(p.rot[i]), load(b.com[i])) - origin
            f = (dv + kc.cross(dw, c) + kc.cross(w, v + kc.cross(w, c))) * load(b.mass[i])
            rot, I = load(p.rot[i]), load(b.inertia[i])
            n = turned_inertia(rot, I, dw) + kc.cross(w, turned_inertia(rot, I, w))
            m.f[i] = f
            m.n[i] = n + kc.cross(c, f)
        for i in reversed(range(first, first + t.count[r])):
            n, f = m.n[i], m.f[i]
            d = t.dof[i]
            for k in range(d, d + dofs_of(t.kind[i])):
                tau[k] = kc.dot(load(p.turn[k]), n) + kc.dot(load(p.slide[k]), f) + load(b.armature[k]) * load(qdd[k])
            up = t.parent[i]
            if up != i:
                m.n[up] = m.n[up] + n
                m.f[up] = m.f[up] + f

    @kc.func
    def mass_rows(t: Tree, b: Masses, p: Poses, c: Composite, M, r: int):
        """The mass matrix of robot r by composite bodies, armature included: for each degree of freedom a row, of
        itself and those before it on the way to the base."""
        first, origin = t.first[r], load(p.origin[r])
        for i in range(first, first + t.count[r]):
            at = load(p.x[i]) + kc.quat_rotate(load(p.rot[i]), load(b.com[i])) - origin
            R = kc.quat_to_matrix(load(p.rot[i]))
            c.mass[i] = load(b.mass[i])
            c.first[i] = at * load(b.mass[i])
            about = kc.diag(kc.float3(1.0, 1.0, 1.0)) * kc.length_sq(at) - kc.outer(at, at)
            c.second[i] = R * load(b.inertia[i]) * kc.transpose(R) + about * load(b.mass[i])
        for i in reversed(range(first, first + t.count[r])):
            mass, mc, I = c.mass[i], c.first[i], c.second[i]
            d = t.dof[i]
            for k in range(d, d + dofs_of(t.kind[i])):
                a, s = load(p.turn[k]), load(p.slide[k])
                f = s * mass + kc.cross(a, mc)
                n = I * a + kc.cross(mc, s)
                j = k
                for e in range(t.depth[k]):
                    entry = kc.dot(load(p.turn[j]), n) + kc.dot(load(p.slide[j]), f)
                    if e == 0:
                        entry += load(b.armature[k])
                    M[t.row[k] + e] = entry if t.reach[t.row[k] + e] > 0 else 0.0
                    j = t.above[j]
            up = t.parent[i]
            if up != i:
                c.mass[up] = c.mass[up] + mass
                c.first[up] = c.first[up] + mc
                c.second[up] = c.second[up] + I

    return SimpleNamespace(inverse=inverse, mass_rows=mass_rows)


DYNAMICS, DYNAMICS_HELD = recursions(kept), recursions(held)
