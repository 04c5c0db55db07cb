"""Robots from what was seen of them: masses of links, damping and dry friction of joints, with intervals."""

import numpy as np
import pytest

from nablasim import physics as ph
from nablasim import sysid

NOISE = 1e-3
"""Of measured angles (rad)."""


def chain(links, **joint):
    """Rods on hinges whose axes turn on, with motors that push them as they are told."""
    robot = ph.Robot()
    for k in range(links):
        parent, axis = ("world", (0, 0, 1)) if k == 0 else (f"l{k - 1}", ((0, 0, 1), (1, 0, 0), (0, 0.6, 0.8))[k % 3])
        robot.add_link(f"l{k}", ph.Capsule(0.03, 0.3), mass=0.6 + 0.1 * k, pos=(0.02, -0.15, 0.01))
        robot.add_joint(f"j{k}", "revolute", parent=parent, child=f"l{k}", pos=(0, 0 if k == 0 else -0.3, 0), axis=axis,
                        **joint)
    return robot


def pushes(model, joints, steps, dt, size):
    """Torques that are known: without them only ratios of masses, damping and friction would show."""
    t, rng = np.arange(steps) * dt, np.random.default_rng(5)
    made = {}
    for k in range(joints):
        a, f, p = rng.uniform(0.5, 1.0, 3), rng.uniform(0.4, 2.5, 3), rng.uniform(0, 6, 3)
        made[f"arm.j{k}.torque"] = size * 0.75**k * (a * np.sin(2 * np.pi * f * t[:, None] + p)).sum(axis=1)
    return made


def measured(model, names, how, seed):
    traj, rng = ph.rollout(model, **how), np.random.default_rng(seed)
    values = {name: traj["arm"].q.numpy() for name in names}
    return sysid.Track(traj.times, {n: v + NOISE * rng.normal(size=v.shape) for n, v in values.items()})


def identified(links, truth, *, seconds, size, seed, dt=2e-3, every=20, starts=2, **joint):
    """The fit of these numbers to angles with noise."""
    robot = chain(links, **joint)
    steps = round(seconds / dt)
    q = np.linspace(0.8, -0.3, links)
    model = ph.Scene().add_robot("arm", robot, q=q, self_contact=False).build(real="float64")
    control = pushes(model, links, steps, dt, size)
    target = measured(model.replace(truth), ["arm.q"], dict(dt=dt, steps=steps, every=every, control=control), seed)
    params = [sysid.Param(name, (0.3 * value, 3.0 * value)) for name, value in truth.items()]
    problem = sysid.Problem(model, target=target, observe=sysid.States("arm.q", noise=NOISE), dt=dt, params=params,
                            control=control)  # fmt: skip
    return problem.fit(starts=starts, seed=0)


def holds(fit, truth, *, near, least):
    """Everything near the truth and certified, and nearly all in their intervals of 90 %."""
    for name, value in truth.items():
        assert fit[name].certified, fit[name]
        assert fit[name].value == pytest.approx(value, rel=near), fit[name]
    inside = sum(fit[name].low <= value <= fit[name].high for name, value in truth.items())
    assert inside >= least * len(truth), fit.table()


@pytest.mark.nightly
@pytest.mark.slow
def test_masses_damping_and_friction_of_a_double_pendulum_from_states():
    truth = {"arm.l0.mass": 0.8, "arm.l1.mass": 0.5, "arm.j0.damping": 0.03, "arm.j1.damping": 0.02,
             "arm.j0.friction": 0.05, "arm.j1.friction": 0.03}  # fmt: skip
    fit = identified(2, truth, seconds=1.6, size=1.0, seed=0, damping=0.05, friction=0.05)
    holds(fit, truth, near=0.05, least=0.5)


def test_fits_go_on_growing_windows_of_what_is_controlled():
    model = ph.Scene(gravity=(0, 0, 0)).add_robot("arm", chain(1)).build(real="float64")
    how = dict(dt=1e-2, steps=40, every=5, control={"arm.j0.torque": np.sin(np.arange(40) / 5.0)})
    target = measured(model.replace({"arm.l0.mass": 0.8}), ["arm.q"], how, 0)
    problem = sysid.Problem(model, target=target, observe=sysid.States("arm.q"), dt=1e-2, control=how["control"],
                            params=[sysid.Param("arm.l0.mass", (0.3, 2.0))])  # fmt: skip
    u = problem.space.vector({"arm.l0.mass": 0.8})
    short, long = (problem.jacobian(u, frames=frames)[0] for frames in (3, 9))
    np.testing.assert_array_equal(short, long[:3])
    assert np.abs(long).max() < 5 * NOISE
