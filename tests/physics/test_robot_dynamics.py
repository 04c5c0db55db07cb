"""Kinematics and dynamics of robots, and their derivatives, against Pinocchio."""

import numpy as np
import pytest
import torch

pin = pytest.importorskip("pinocchio")

from robots_by_chance import KINDS, random_coords, random_tree, rates  # noqa: E402

from nablasim import physics as ph  # noqa: E402

SEEDS = range(6)


def built(robot, q, qd, **more):
    return ph.Scene().add_robot("arm", robot, q=q, qd=qd, **more).build(real="float64")


def random_case(seed, kinds=KINDS):
    rng = np.random.default_rng(seed)
    robot, model = random_tree(rng, kinds)
    q = random_coords(rng, robot)
    return rng, robot, model, model.createData(), q, rng.normal(size=robot.dofs)


@pytest.mark.parametrize("seed", SEEDS)
def test_links_are_where_pinocchio_has_them(seed):
    _, robot, model, data, q, _ = random_case(seed)
    pin.framesForwardKinematics(model, data, q)
    found = ph.kinematics(built(robot, q, None))["arm"]
    for name in robot.links:
        place = data.oMf[model.getFrameId(name)]
        np.testing.assert_allclose(found[name].x, place.translation, atol=1e-9)
        R = pin.Quaternion(found[name].rot.numpy()).matrix()
        np.testing.assert_allclose(R, place.rotation, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_and_dynamics_are_those_of_pinocchio(seed):
    rng, robot, model, data, q, v = random_case(seed)
    T, bent = rates(robot, q, v)
    arm = built(robot, q, T @ v)
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    np.testing.assert_allclose(T.T @ ph.mass_matrix(arm)["arm"].numpy() @ T, M, atol=1e-9)
    a = rng.normal(size=robot.dofs)
    tau = ph.inverse_dynamics(arm, None, {"arm": T @ a + bent})["arm"].numpy()
    np.testing.assert_allclose(T.T @ tau, pin.rnea(model, data, q, v, a), atol=1e-9)
    given = rng.normal(size=robot.dofs)
    qdd = ph.forward_dynamics(arm, None, {"arm": np.linalg.solve(T.T, given)})["arm"].numpy()
    expected = T @ pin.aba(model, data, q, v, given) + bent
    np.testing.assert_allclose(qdd, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_are_those_of_pinocchio(seed):
    rng, robot, model, data, q, v = random_case(seed, ("revolute", "prismatic", "universal", "planar"))
    a, given = rng.normal(size=robot.dofs), rng.normal(size=robot.dofs)
    arm = built(robot, q, v)
    pin.computeRNEADerivatives(model, data, q, v, a)
    M = np.triu(data.M) + np.triu(data.M, 1).T
    inverse = data.dtau_dq.copy(), data.dtau_dv.copy(), M
    pin.computeABADerivatives(model, data, q, v, given)
    inv = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    forward = data.ddq_dq.copy(), data.ddq_dv.copy(), inv

    def of(function):
        def run(q, qd, x):
            return function(arm.replace({"arm.q": q, "arm.qd": qd}), None, {"arm": x})["arm"]

        return run

    for function, x, expected in ((ph.inverse_dynamics, a, inverse), (ph.forward_dynamics, given, forward)):
        found = torch.autograd.functional.jacobian(of(function), tuple(torch.tensor(y) for y in (q, v, x)))
        for ours, theirs in zip(found, expected):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())


@pytest.mark.parametrize("function", [ph.inverse_dynamics, ph.forward_dynamics])
def test_every_parameter_of_a_robot_has_its_gradient(function):
    """Against central differences: joints of all kinds, links with all their numbers."""
    rng, robot, _, _, q, v = random_case(11)
    model = built(robot, q, v, pos=(0.1, 0.2, 0.3), rot=(0.1, 0.2, 0.3, 0.9))
    x, weight = rng.normal(size=robot.dofs), torch.tensor(rng.normal(size=robot.dofs))
    without = ("torque", "friction", "limits", "rest", "stiffness")
    names = [p.name for p in model.parameters() if p.name.rpartition(".")[2] not in without]
    assert len(names) > 40
    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}

    def loss(values):
        return (function(model.replace(values), None, {"arm": x})["arm"] * weight).sum()

    loss(values).backward()
    for name in names:
        direction = rng.normal(size=values[name].shape)
        if name.endswith("inertia"):
            direction = direction + direction.swapaxes(-1, -2)
        h = 1e-6
        with torch.no_grad():
            up, down = (loss(values | {name: values[name] + s * h * torch.tensor(direction)}) for s in (1, -1))
        expected = float(up - down) / (2 * h)
        found = float((values[name].grad * torch.tensor(direction)).sum())
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * (1 + abs(float(up)))), name


def test_inverse_dynamics_undoes_forward_dynamics_with_springs_dampers_and_armature():
    robot = ph.Robot().add_link("a", ph.Capsule(0.05, 0.4), mass=1.0).add_link("b", ph.Sphere(0.1), mass=0.5)
    robot.add_joint("s", "revolute", child="a", axis=(0, 0, 1), damping=0.3, armature=0.2, stiffness=2.0, rest=0.1)
    robot.add_joint("e", "prismatic", parent="a", child="b", axis=(0, 1, 0), damping=0.1, armature=0.1)
    model = built(robot, [0.4, 0.2], [1.0, -2.0])
    torque = np.array([0.7, -0.4])
    qdd = ph.forward_dynamics(model, None, {"arm": torque})["arm"]
    np.testing.assert_allclose(ph.inverse_dynamics(model, None, {"arm": qdd})["arm"], torque, atol=1e-12)
    free = ph.inverse_dynamics(model.replace({"arm.s.damping": 0.0, "arm.s.stiffness": 0.0}), None, {"arm": qdd})["arm"]
    assert float(torque[0] - free[0]) == pytest.approx(0.3 * 1.0 + 2.0 * 0.3)


def test_copies_are_the_same_as_one_by_one():
    _, robot, _, _, q, v = random_case(3)
    one = built(robot, q, v)
    many = one.batched(3).replace({"arm.q": np.stack([q, q * 0.9, q * 1.1])})
    x = np.ones(robot.dofs)
    together = ph.forward_dynamics(many, None, {"arm": x})["arm"]
    for k, scene in enumerate(many.scenes):
        assert torch.equal(together[k], ph.forward_dynamics(scene, None, {"arm": x})["arm"])
        assert torch.equal(ph.kinematics(many)["arm"]["l7"].x[k], ph.kinematics(scene)["arm"]["l7"].x)
    assert ph.mass_matrix(many)["arm"].shape == (3, robot.dofs, robot.dofs)
