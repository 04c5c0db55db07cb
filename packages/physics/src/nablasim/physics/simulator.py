"""Runs a model: launches the kernels of `kernels/` step after step, on the tape that is recording, if one is.

Every step writes to arrays of its own. Nothing that a reverse sweep needs is overwritten, so a tape keeps no copies,
and every state of the rollout can be looked at, or enter a loss.
"""

from __future__ import annotations

import numpy as np

import kernelc as kc
from nablasim.physics.kernels.particles import integrate_particles, rigid_velocities, spring_forces
from nablasim.physics.model import SpringModel
from nablasim.physics.state import Array, State


def rollout_springs(model: SpringModel, state: State, *, dt: float, steps: int) -> list[State]:
    """The states at 0, dt, 2 dt ... steps·dt by semi-implicit Euler: steps + 1 of them, `state` the first."""
    if dt <= 0 or steps < 0:
        raise ValueError(f"dt must be positive and steps not negative, not dt={dt}, steps={steps}")
    states = [state]
    for _ in range(steps):
        states.append(step_springs(model, states[-1], dt=dt))
    return states


def step_springs(model: SpringModel, state: State, *, dt: float) -> State:
    """The state one step of dt later."""
    after = State(x=kc.zeros_like(state.x), v=kc.zeros_like(state.v))
    kc.launch(
        integrate_particles,
        dim=state.x.shape[0],
        inputs=[state.x, state.v, sum_spring_forces(model, state), model.mass, model.free, model.gravity, dt],
        outputs=[after.x, after.v],
    )
    return after


def sum_spring_forces(model: SpringModel, state: State) -> Array:
    """The force (N) of all springs on each particle; without gravity, which is an acceleration."""
    f = kc.zeros_like(state.x)
    f.zero_()  # On the tape: a replay has to start from zero again, the launch below only adds.
    kc.launch(
        spring_forces,
        dim=model.pairs.shape[0],
        inputs=[state.x, state.v, model.pairs, model.rest, model.ke, model.kd],
        outputs=[f],
    )
    return f


def move_rigidly(x: Array, *, centre: Array, vel: Array, spin: Array) -> State:
    """The state of particles at x that move together: velocity `vel` (m/s) at `centre`, turning with `spin` (rad/s).

    The three are arrays of one float3, each of which may require a gradient.
    """
    state = State(x=x, v=kc.zeros_like(x))
    kc.launch(rigid_velocities, dim=x.shape[0], inputs=[x, centre, vel, spin], outputs=[state.v])
    return state


def stable_dt(model: SpringModel) -> float:
    """A step that is surely stable: k dt² + 2 c dt ≤ 4 m at every free particle.

    k and c are Gershgorin's bounds of the network's stiffness and damping: twice the sum over the particle's springs.
    """
    mass, free = model.mass.numpy().astype(float), model.free.numpy() != 0
    k, c = (np.zeros(len(mass)) for _ in range(2))
    for total, value in ((k, model.ke.numpy()), (c, model.kd.numpy())):
        np.add.at(total, model.pairs.numpy().ravel(), np.repeat(2.0 * value, 2))
    k, c, m = k[free], c[free], mass[free]
    held = (k > 0) | (c > 0)
    # The positive root of k dt² + 2 c dt - 4 m = 0, in the form that is also right for k = 0.
    dt = 4 * m[held] / (c[held] + np.sqrt(c[held] ** 2 + 4 * k[held] * m[held]))
    return float(dt.min(initial=np.inf))
