"""What acts in the joints of robots: dampers, springs, motors, stops and dry friction.

Each law is made of straight pieces, and each gets less as the joint goes faster: so the equations of a step have one
solution. `joint_laws(load)` makes them for one way to read what they depend on; see `dynamics_kernels.py`.
"""
# mypy: ignore-errors

from types import SimpleNamespace

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import Drives, Now, Tree
from nablasim.physics.laws.articulated.dynamics_kernels import held, kept

STICK = 1e6
"""How much faster than a step dry friction brakes what it can hold: what it lets creep is below all measuring."""


@kc.func
def as_it_is(hold, k: int, side: int) -> int:
    return side


@kc.func
def as_supposed(hold, k: int, side: int) -> int:
    return hold[k]


def joint_laws(load, slides):
    """The laws of one degree of freedom, and the equations of a step.

    `slides`: to which side a joint slides against dry friction, or is supposed to while that is looked for (`hold`).
    """

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
    def ends(s: Drives, k: int, v: float, q: float, a: float, dt: float):
        """Place and rate at which soft laws are looked at, and those at the end of the step, at the acceleration a."""
        ahead = lean(s, k, dt)
        v_e, v_1 = v + ahead * dt * a, v + dt * a
        return q + ahead * dt * v_e, v_e, q + dt * v_1, v_1

    @kc.func
    def joint_torque(s: Drives, hold, k: int, q: float, v: float, a: float, dt: float) -> float:
        """All that acts in a degree of freedom, at the acceleration a."""
        q_e, v_e, q_1, v_1 = ends(s, k, v, q, a, dt)
        tau = -load(s.damping[k]) * v_e - load(s.stiffness[k]) * (q_e - load(s.rest[k]))
        u, most = motor_torque(s, k, q_e, v_e), load(s.limit[k])
        if u > most:
            u = most
        elif u < -most:
            u = -most
        tau += u
        low, high = stop_torque(s, k, -1, q_1, v_1), stop_torque(s, k, 1, q_1, v_1)
        if low > 0.0:
            tau += low
        elif high < 0.0:
            tau += high
        if load(s.friction[k]) > 0.0:
            rub, most = kc.stop_grad(STICK * load(s.apparent[k]) / dt) * v_1, load(s.friction[k])
            side = slides(hold, k, -1 if rub < -most else (1 if rub > most else 0))
            if side != 0:
                rub = most * float(side)
            tau -= rub
        return tau

    @kc.func
    def joint_stiffness(s: Drives, hold, k: int, q: float, v: float, a: float, dt: float) -> float:
        """The negative derivative of `joint_torque` by a."""
        q_e, v_e, q_1, v_1 = ends(s, k, v, q, a, dt)
        b = dt * lean(s, k, dt)
        A = b * load(s.damping[k]) + b * b * load(s.stiffness[k])
        if abs(motor_torque(s, k, q_e, v_e)) <= load(s.limit[k]):
            A += b * load(s.kd[k]) + b * b * load(s.kp[k])
        if stop_torque(s, k, -1, q_1, v_1) > 0.0 or stop_torque(s, k, 1, q_1, v_1) < 0.0:
            A += dt * load(s.stop_kd[k]) + dt * dt * load(s.stop_ke[k])
        if load(s.friction[k]) > 0.0 and hold[k] == 0:
            A += STICK * load(s.apparent[k])
        return A

    @kc.func
    def suppose(s: Drives, hold, k: int, v: float, a: float, dt: float) -> bool:
        """Suppose that dry friction holds, or slides to one side; whether that is other than it was supposed. What
        would turn round sticks."""
        changed = False
        if load(s.friction[k]) > 0.0:
            rub, side = STICK * load(s.apparent[k]) / dt * (v + dt * a), 0
            if abs(rub) > load(s.friction[k]):
                side = 1 if rub > 0.0 else -1
                if side * hold[k] < 0:
                    side = 0
            changed = side != hold[k]
            hold[k] = side
        return changed

    @kc.func
    def take(s: Drives, hold, k: int, v: float, a: float, dt: float):
        """Suppose of dry friction what its law says."""
        hold[k] = 0
        if load(s.friction[k]) > 0.0:
            rub, most = STICK * load(s.apparent[k]) / dt * (v + dt * a), load(s.friction[k])
            hold[k] = -1 if rub < -most else (1 if rub > most else 0)

    @kc.func
    def residual(t: Tree, s: Drives, hold, now: Now, a, dt: float, rest, r: int):
        """What is left over of the equations, from the torques that `inverse` wrote to `rest`."""
        begin = t.dof_first[r]
        for k in range(begin, begin + t.dof_count[r]):
            rest[k] = joint_torque(s, hold, k, load(now.q[t.dof_coord[k]]), load(now.qd[k]), load(a[k]), dt) - rest[k]
            if now.push is not None:
                rest[k] = rest[k] + load(now.push[k])

    return SimpleNamespace(lean=lean, suppose=suppose, take=take, joint_torque=joint_torque,
                           joint_stiffness=joint_stiffness, residual=residual)  # fmt: skip


LAWS, LAWS_HELD = joint_laws(kept, as_it_is), joint_laws(held, as_supposed)
