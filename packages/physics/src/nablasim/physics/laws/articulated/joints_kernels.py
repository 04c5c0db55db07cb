"""What acts in the joints of robots: dampers, springs, motors, stops and dry friction.

Each law is made of straight pieces, and each gets less as the joint goes faster: so the equations of a step have one
solution, and `Switches` say on which piece it lies. `joint_laws(load)` makes them for one way to read what they depend
on; see `dynamics_kernels.py`.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import Drives, Now, Switches, Tree
from nablasim.physics.laws.articulated.dynamics_kernels import held, kept

STICK = 1e6
"""How much faster than a step dry friction brakes what it can hold: what it lets creep is below all measuring."""


def joint_laws(load):
    """The laws of one degree of freedom, and the equations of a step."""

    @kc.func
    def lean(s: Drives, k: int, dt: float) -> float:
        """θ: how far ahead in the step the laws of a joint look: 1/2 for soft ones, 1 for stiff ones. It leaves 1/2 no
        faster than dt does zero, so the step stays of second order, and nothing stiff overshoots."""
        damper, spring = load(s.damping[k]) + load(s.kd[k]), load(s.stiffness[k]) + load(s.kp[k])
        z = dt * (damper + dt * spring) / load(s.apparent[k])
        return 0.5 + 0.5 * z / (z + 2.0)

    @kc.func
    def motor_torque(s: Drives, k: int, q: float, v: float) -> float:
        return load(s.kp[k]) * (load(s.target[k]) - q) - load(s.kd[k]) * v + load(s.torque[k]) + load(s.more_torque[k])

    @kc.func
    def stop_torque(s: Drives, k: int, side: int, q: float, v: float) -> float:
        """Spring and damper at the lower (-1) or upper (1) end; acts while it pushes back."""
        end = load(s.limits[k]).x if side < 0 else load(s.limits[k]).y
        return load(s.stop_ke[k]) * (end - q) - load(s.stop_kd[k]) * v

    @kc.func
    def joint_torque(s: Drives, c: Switches, k: int, q: float, v: float, a: float, dt: float) -> float:
        """All that acts in a degree of freedom, at the acceleration a, each law on the piece that it was found on."""
        ahead = lean(s, k, dt)
        v_e = v + ahead * dt * a
        q_e = q + ahead * dt * v_e
        v_1 = v + dt * a
        q_1 = q + dt * v_1
        tau = -load(s.damping[k]) * v_e - load(s.stiffness[k]) * (q_e - load(s.rest[k]))
        if c.motor[k] == 0:
            tau += motor_torque(s, k, q_e, v_e)
        else:
            tau += load(s.limit[k]) * float(c.motor[k])
        if c.stop[k] != 0:
            tau += stop_torque(s, k, c.stop[k], q_1, v_1)
        if c.slip[k] == 0:
            if load(s.friction[k]) > 0.0:
                tau -= kc.stop_grad(STICK * load(s.apparent[k]) / dt) * v_1
        else:
            tau -= load(s.friction[k]) * float(c.slip[k])
        return tau

    @kc.func
    def joint_stiffness(s: Drives, c: Switches, k: int, dt: float) -> float:
        """The negative derivative of `joint_torque` by a."""
        b = dt * lean(s, k, dt)
        A = b * load(s.damping[k]) + b * b * load(s.stiffness[k])
        if c.motor[k] == 0:
            A += b * load(s.kd[k]) + b * b * load(s.kp[k])
        if c.stop[k] != 0:
            A += dt * load(s.stop_kd[k]) + dt * dt * load(s.stop_ke[k])
        if c.slip[k] == 0 and load(s.friction[k]) > 0.0:
            A += STICK * load(s.apparent[k])
        return A

    @kc.func
    def switch(s: Drives, c: Switches, k: int, q: float, v: float, a: float, dt: float) -> bool:
        """Put the laws of a degree of freedom on the pieces that belong to a; whether that changed any."""
        ahead = lean(s, k, dt)
        v_e = v + ahead * dt * a
        q_e = q + ahead * dt * v_e
        v_1 = v + dt * a
        q_1 = q + dt * v_1
        u = motor_torque(s, k, q_e, v_e)
        motor, stop, slip = 0, 0, 0
        if abs(u) > load(s.limit[k]):
            motor = 1 if u > 0.0 else -1
        if stop_torque(s, k, -1, q_1, v_1) > 0.0:
            stop = -1
        elif stop_torque(s, k, 1, q_1, v_1) < 0.0:
            stop = 1
        if load(s.friction[k]) > 0.0 and abs(STICK * load(s.apparent[k]) / dt * v_1) > load(s.friction[k]):
            slip = 1 if v_1 > 0.0 else -1
        changed = motor != c.motor[k] or stop != c.stop[k] or slip != c.slip[k]
        c.motor[k] = motor
        c.stop[k] = stop
        c.slip[k] = slip
        return changed

    @kc.func
    def residual(t: Tree, s: Drives, c: Switches, now: Now, a, dt: float, rest, r: int):
        """What is left over of the equations, from the torques that `inverse` wrote to `rest`."""
        begin = t.dof_first[r]
        for k in range(begin, begin + t.dof_count[r]):
            rest[k] = joint_torque(s, c, k, load(now.q[t.dof_coord[k]]), load(now.qd[k]), load(a[k]), dt) - rest[k]
            if now.push is not None:
                rest[k] = rest[k] + load(now.push[k])

    return SimpleNamespace(lean=lean, joint_torque=joint_torque, joint_stiffness=joint_stiffness, switch=switch,
                           residual=residual)  # fmt: skip


LAWS, LAWS_HELD = joint_laws(kept), joint_laws(held)
