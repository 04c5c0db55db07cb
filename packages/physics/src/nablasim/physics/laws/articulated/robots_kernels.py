"""Kernels of robots: what their links weigh, and the passes of a step. A thread is a robot.

A step of h seconds goes from (q, v) to (q', v'), with everything that depends on the configuration looked at in the
middle, q + h v / 2. There the acceleration a = (v' - v) / h solves

    M a + c(v + h a / 2) = gravity and what acts in the joints, taken at rates (1 - θ) v + θ v'

so that a passive robot keeps its energy to second order, back and forth alike. Springs, dampers, motors, stops and dry
friction are part of the equations: θ goes from 1/2 to 1 as they get stiff, and no gain limits the step.

Contact with half-spaces is part of the equations, too: its springs, dampers and friction are those of the end of the
step. Bodies and particles push with the forces of the start of the step, as they push each other.

`predict` finds a without gradients, by Newton's method. `correct` then takes one more step of it, a + A⁻¹ (what is left
over), with the matrix A held constant: that changes next to nothing, but its derivative is that of the solution (the
implicit function theorem), and costs one recursion instead of the derivative of a mass matrix.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import (
    Composite,
    Contacts,
    Drives,
    Masses,
    Motion,
    Now,
    Poses,
    Rig,
    Touch,
    Tree,
)
from nablasim.physics.laws.articulated.contacts_kernels import CONTACTS, CONTACTS_HELD
from nablasim.physics.laws.articulated.dynamics_kernels import DYNAMICS, DYNAMICS_HELD, held
from nablasim.physics.laws.articulated.joints_kernels import LAWS
from nablasim.physics.laws.articulated.newton_kernels import Solve, newton, step_factors
from nablasim.physics.laws.articulated.ties_kernels import TIES
from nablasim.physics.laws.articulated.tree_kernels import (
    advance_coords,
    dofs_of,
    factor,
    place,
    solve,
    turned_inertia,
)

NONE = -1e30
"""Stands for a number that was not given, where zero could be meant."""
inverse, mass_rows = DYNAMICS.inverse, DYNAMICS.mass_rows
lean, residual = LAWS.lean, LAWS.residual
held_inverse, held_mass_rows = DYNAMICS_HELD.inverse, DYNAMICS_HELD.mass_rows
add_torques, add_pulls = CONTACTS.add_torques, TIES.add_pulls
held_suppose_contacts, end_twists = CONTACTS_HELD.suppose, CONTACTS_HELD.node_twists


@kc.kernel
def link_inertias(
    mass: kc.Array[float], unit: kc.Array[kc.mat33], given: kc.Array[kc.mat33], inertia: kc.Array[kc.mat33]
):
    """The inertia about the centre of mass: that given, or that of the shape, which grows with the mass."""
    i = kc.tid()
    I = unit[i] * mass[i]
    if given[i][0, 0] > NONE:
        I = (given[i] + kc.transpose(given[i])) * 0.5
    inertia[i] = I


@kc.kernel
def tolerances(real: float, tol: kc.Array[float]):
    """How well the equations of steps are solved."""
    tol[kc.tid()] = real


@kc.kernel
def middle(t: Tree, g: Rig, q: kc.Array[float], qd: kc.Array[float], dt: float, q_mid: kc.Array[float], p: Poses):
    """The configuration half a step ahead, and where the links are in it."""
    r = kc.tid()
    advance_coords(t, g, q, qd, 0.5 * dt, q_mid, r)
    place(t, g, q_mid, p, r)


@kc.kernel
def poses(t: Tree, g: Rig, q: kc.Array[float], p: Poses):
    """Where the links are."""
    place(t, g, q, p, kc.tid())


@kc.kernel
def poses_of_frames(
    t: Tree,
    g: Rig,
    q: kc.Array[float, 2],
    x: kc.Array[kc.float3, 2],
    rot: kc.Array[kc.quat, 2],
    origin: kc.Array[kc.float3, 2],
    turn: kc.Array[kc.float3, 2],
    slide: kc.Array[kc.float3, 2],
):
    """Where the links are in every frame; the rest is memory."""
    f, r = kc.tid()
    place(t, g, q[f], Poses(x=x[f], rot=rot[f], origin=origin[f], turn=turn[f], slide=slide[f]), r)


# -- the passes of a step
@kc.struct
class Guess:
    """Accelerations near the solution with the inertial forces of rates v, and the factors of the matrix there."""

    v: kc.Array[float]
    a: kc.Array[float]
    L: kc.Array[float]
    hold: kc.Array[int]


@kc.kernel
def predict(t: Tree, b: Masses, s: Drives, p: Poses, m: Motion, n: Composite, c: Contacts | None, touch: Touch | None,
            x: Solve, now: Now, dt: float, a: kc.Array[float]):  # fmt: skip
    """Factors of the matrix of the step, and the accelerations: x.start with the inertial forces of the start, a with
    those of the middle."""
    r = kc.tid()
    begin = t.dof_first[r]
    end = begin + t.dof_count[r]
    held_mass_rows(t, b, p, n, x.M, r)
    held_inverse(t, b, p, now.qd, x.none, m, x.bias, r)
    for k in range(begin, end):
        x.start[k] = 0.0
        x.hold[k] = 0
    if c is not None:
        end_twists(t, p, now, x.start, dt, touch, r)
        held_suppose_contacts(c, p, touch, dt, True, 0, r)
    step_factors(t, s, p, c, touch, x, now, x.start, dt, r)
    whole = newton(t, s, p, c, touch, x, now, x.start, dt, 0.0, r)
    for k in range(begin, end):
        for e in range(t.depth[k]):
            x.start_L[t.row[k] + e] = x.L[t.row[k] + e]
        a[k] = x.start[k]
        x.mid[k] = held(now.qd[k]) + 0.5 * dt * x.start[k]
    held_inverse(t, b, p, x.mid, x.none, m, x.bias, r)
    newton(t, s, p, c, touch, x, now, a, dt, whole, r)


@kc.kernel
def correct(t: Tree, b: Masses, s: Drives, p: Poses, m: Motion, c: Contacts | None, touch: Touch | None,
            now: Now, given: Guess, dt: float, a: kc.Array[float]):  # fmt: skip
    """The acceleration from a guess of it, with the inertial forces of the rates v."""
    r = kc.tid()
    begin = t.dof_first[r]
    inverse(t, b, p, given.v, given.a, m, a, r)
    residual(t, s, given.hold, now, given.a, dt, a, r)
    add_pulls(t, s, now, given.a, dt, a, r)
    if c is not None:
        add_torques(t, p, c, touch, now, given.a, dt, a, r)
    solve(t, given.L, a, r)
    for k in range(begin, begin + t.dof_count[r]):
        a[k] = a[k] + given.a[k]


@kc.kernel
def half_way(qd: kc.Array[float], a: kc.Array[float], dt: float, mid: kc.Array[float]):
    """The rates in the middle of the step."""
    k = kc.tid()
    mid[k] = qd[k] + 0.5 * dt * a[k]


@kc.kernel
def finish(t: Tree, g: Rig, s: Drives, now: Now, a: kc.Array[float], dt: float, rate: kc.Array[float],
           q_next: kc.Array[float], qd_next: kc.Array[float]):  # fmt: skip
    """The end of the step."""
    r = kc.tid()
    begin = t.dof_first[r]
    for k in range(begin, begin + t.dof_count[r]):
        qd_next[k] = now.qd[k] + dt * a[k]
        rate[k] = now.qd[k] + lean(s, k, dt) * dt * a[k]
    advance_coords(t, g, now.q, rate, dt, q_next, r)


@kc.kernel
def with_tangents(end: kc.Array[float], way: kc.Array[float], out: kc.Array[float]):
    """What a step ends with, with the tangents that another way of computing the same has."""
    i = kc.tid()
    out[i] = kc.stop_grad(end[i]) + (way[i] - kc.stop_grad(way[i]))


@kc.kernel(lanes=0)
def unsolved(left: kc.Array[float], may: float, first: kc.Array[int], k: int, alarm: kc.Array[int, 2]):
    """Say which steps were not solved: their number, and what is left over in parts of a billion."""
    r = kc.tid()
    if alarm[r, 0] == 0 and not left[r] <= may:
        alarm[r, 0] = 1
        alarm[r, 1] = first[0] + k + 1
        alarm[r, 2] = int(1e9 * kc.min(left[r], 1.0))


# -- for study
@kc.kernel
def matrices(t: Tree, b: Masses, p: Poses, n: Composite, M: kc.Array[float]):
    """The mass matrices, by rows; see `mass_rows`."""
    mass_rows(t, b, p, n, M, kc.tid())


@kc.kernel
def inverse_dynamics(t: Tree, b: Masses, s: Drives, p: Poses, m: Motion, now: Now, qdd: kc.Array[float],
                     tau: kc.Array[float]):  # fmt: skip
    """The torques that a motion needs against inertia, gravity, damping and stiffness."""
    r = kc.tid()
    begin = t.dof_first[r]
    inverse(t, b, p, now.qd, qdd, m, tau, r)
    for k in range(begin, begin + t.dof_count[r]):
        tau[k] = tau[k] + resistance(s, k, now.q[t.dof_coord[k]], now.qd[k])


@kc.func
def resistance(s: Drives, k: int, q: float, v: float) -> float:
    return s.damping[k] * v + s.stiffness[k] * (q - s.rest[k])


@kc.kernel
def guess_forward(t: Tree, b: Masses, s: Drives, p: Poses, m: Motion, n: Composite, now: Now, L: kc.Array[float],
                  none: kc.Array[float], tau: kc.Array[float], a: kc.Array[float]):  # fmt: skip
    """Forward dynamics without gradients, and the factors of the mass matrix."""
    r = kc.tid()
    begin = t.dof_first[r]
    held_mass_rows(t, b, p, n, L, r)
    factor(t, L, r)
    held_inverse(t, b, p, now.qd, none, m, a, r)
    for k in range(begin, begin + t.dof_count[r]):
        a[k] = kc.stop_grad(tau[k] - a[k] - resistance(s, k, now.q[t.dof_coord[k]], now.qd[k]))
    solve(t, L, a, r)


@kc.kernel
def forward_dynamics(t: Tree, b: Masses, s: Drives, p: Poses, m: Motion, now: Now, L: kc.Array[float],
                     guess: kc.Array[float], tau: kc.Array[float], a: kc.Array[float]):  # fmt: skip
    """The accelerations that torques lead to, from a guess of them: see `correct`."""
    r = kc.tid()
    begin = t.dof_first[r]
    inverse(t, b, p, now.qd, guess, m, a, r)
    for k in range(begin, begin + t.dof_count[r]):
        a[k] = tau[k] - a[k] - resistance(s, k, now.q[t.dof_coord[k]], now.qd[k])
    solve(t, L, a, r)
    for k in range(begin, begin + t.dof_count[r]):
        a[k] = a[k] + guess[k]


@kc.kernel
def energies(t: Tree, b: Masses, s: Drives, p: Poses, now: Now, m: Motion, e: kc.Array[float]):
    """Kinetic and potential energy, of armatures and springs, too. Energy of gravity is zero at the world's origin."""
    r = kc.tid()
    first, origin = t.first[r], p.origin[r]
    total = 0.0
    for i in range(first, first + t.count[r]):
        w, v = kc.float3(), kc.float3()
        if t.parent[i] != i:
            w, v = m.w[t.parent[i]], m.v[t.parent[i]]
        for k in range(t.dof[i], t.dof[i] + dofs_of(t.kind[i])):
            w += p.turn[k] * now.qd[k]
            v += p.slide[k] * now.qd[k]
        m.w[i] = w
        m.v[i] = v
        at = p.x[i] + kc.quat_rotate(p.rot[i], b.com[i])
        v_c = v + kc.cross(w, at - origin)
        total += b.mass[i] * (0.5 * kc.length_sq(v_c) - kc.dot(b.gravity[r], at))
        total += 0.5 * kc.dot(w, turned_inertia(p.rot[i], b.inertia[i], w))
    begin = t.dof_first[r]
    for k in range(begin, begin + t.dof_count[r]):
        stretch = now.q[t.dof_coord[k]] - s.rest[k]
        total += 0.5 * b.armature[k] * now.qd[k] * now.qd[k] + 0.5 * s.stiffness[k] * stretch * stretch
    e[r] = total
