"""Copies of robots side by side: each is what it is alone, and gradients are what tangents say, another way."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph


def arm_and_top():
    """An arm with a ball joint, a motor, a stop, dry friction and a joint that follows; and something that flies."""
    arm = ph.Robot()
    for name, mass in (("upper", 1.0), ("lower", 0.7), ("left", 0.1), ("right", 0.1)):
        arm.add_link(name, ph.Capsule(0.05, 0.4), mass=mass, pos=(0, -0.2, 0.01))
    arm.add_joint("shoulder", "spherical", child="upper", pos=(0, 1, 0), damping=0.1)
    arm.add_joint("elbow", "revolute", parent="upper", child="lower", pos=(0, -0.4, 0), axis=(0, 0.1, 1),
                  limits=(-0.5, 0.6), friction=0.05, stiffness=0.3, rest=0.1)  # fmt: skip
    for name, side in (("left", -1.0), ("right", 1.0)):
        arm.add_joint(name, "prismatic", parent="lower", child=name, pos=(0, -0.4, 0), axis=(side, 0, 0), armature=0.02)
    arm.add_mimic("right", "left", ratio=0.8, offset=0.01)
    arm.add_motor("elbow", kp=5.0, kd=0.1, target=0.9, limit=1.0).add_motor("left", kp=20.0, kd=1.0, target=0.05)
    top = ph.Robot().add_link("top", ph.Box(0.1, 0.2, 0.3), mass=0.5).add_joint("root", "free", child="top")
    scene = ph.Scene()
    scene.add_robot("arm", arm, q=[0.1, 0.2, 0.1, 0.9, 0.5, 0.0, 0.01], qd=[1.0, -0.5, 0.3, 2.0, 0.1, 0.08])
    scene.add_robot("top", top, q=[3.0, 0, 0, 0.1, 0, 0, 1], qd=[0.1, 1, 0, 1, 2, 3], rot=(0, 0.2, 0, 1), pos=(0, 0, 9),
                    self_contact=False)  # fmt: skip
    return scene.build(real="float64")


HOW = dict(dt=2e-3, steps=40, every=40)


def ends(model):
    run = ph.rollout(model, **HOW)
    return [look[..., -1, :] for name in ("arm", "top") for look in (run[name].q, run[name].qd)]


def test_each_copy_is_what_it_is_alone():
    """More copies than there are lanes, in a last group that is not full."""
    one, count, rng = arm_and_top(), 18, np.random.default_rng(0)
    names = ["arm.q", "arm.lower.mass", "arm.elbow.friction", "top.qd"]
    given = {n: np.array(one[n]) * (1 + 0.05 * rng.normal(size=(count, *np.shape(one[n])))) for n in names}
    leaves = {n: torch.tensor(value, requires_grad=True) for n, value in given.items()}
    found = ends(one.batched(count).replace(leaves))
    weights = [torch.tensor(rng.normal(size=a.shape)) for a in found]
    grads = torch.autograd.grad(sum((a * w).sum() for a, w in zip(found, weights)), list(leaves.values()))
    assert all(bool(torch.isfinite(g).all()) and float(g.abs().max()) > 0 for g in grads)
    for k in (0, 15, 16, 17):
        mine = {n: torch.tensor(value[k], requires_grad=True) for n, value in given.items()}
        alone = ends(one.replace(mine))
        assert all(torch.equal(a[k], b) for a, b in zip(found, alone))
        loss = sum((b * w[k]).sum() for b, w in zip(alone, weights))
        for together, apart in zip(grads, torch.autograd.grad(loss, list(mine.values()))):
            assert torch.equal(together[k], apart)


def test_gradients_agree_with_tangents():
    model, rng = arm_and_top(), np.random.default_rng(1)
    names = [p.name for p in model.parameters() if not p.name.endswith("inertia")]
    leaves = {n: torch.tensor(np.array(model[n], float), requires_grad=True) for n in names}
    found = ends(model.replace(leaves))
    weights = [rng.normal(size=a.shape) for a in found]
    grads = torch.autograd.grad(sum((a * torch.tensor(w)).sum() for a, w in zip(found, weights)), list(leaves.values()))
    # Every parameter counts for about as much.
    ways = {n: rng.normal(size=(3, *g.shape)) / (float(g.abs().max()) + 1e-3) for n, g in zip(names, grads)}
    moved = ph.jvp(model, ways, **HOW)
    along = [np.asarray(look)[:, -1] for n in ("arm", "top") for look in (moved[n].q, moved[n].qd)]
    for k in range(3):
        terms = [float((g.numpy() * ways[n][k]).sum()) for n, g in zip(names, grads)]
        found = sum(float((a[k] * w).sum()) for a, w in zip(along, weights))
        assert found == pytest.approx(sum(terms), rel=0, abs=1e-7 * np.abs(terms).max())


def test_a_robot_may_end_in_a_joint_that_does_not_move():
    robot = ph.Robot().add_link("arm", ph.Capsule(0.05, 0.4), mass=1.0)
    robot.add_link("tool", ph.Box(0.1, 0.1, 0.1), mass=0.1)
    robot.add_joint("hinge", "revolute", child="arm", axis=(0, 0, 1))
    robot.add_joint("flange", "fixed", parent="arm", child="tool", pos=(0, -0.2, 0))
    model = ph.Scene().add_robot("it", robot, q=[0.5]).build(real="float64")
    assert model["it.q"].tolist() == [0.5]


@pytest.mark.parametrize("real", ["float32", "float64"])
def test_a_wheel_about_its_middle_is_braked_by_the_ground(real):
    """Its middle does not move, whatever touches it: contact feels its rim. It slows down evenly, and stays."""
    wheel = ph.Robot().add_link("wheel", ph.Sphere(0.1), mass=1.0)
    wheel.add_joint("axle", "continuous", child="wheel", axis=(0, 0, 1))
    for height, braked in ((0.0999, True), (0.5, False)):
        scene = ph.Scene().add_robot("it", wheel, pos=(0, height, 0), qd=[2.0])
        scene.add_ground("floor", ke=1e4, kd=0.0, mu=0.5)
        rate = ph.rollout(scene.build(real), dt=1e-3, steps=400, every=100)["it"].qd.numpy()[:, 0]
        slower = 0.5 * 1e4 * 1e-4 * 0.1 / (0.4 * 1.0 * 0.1**2) * 1e-3 if braked else 0.0
        np.testing.assert_allclose(rate, np.maximum(0, 2.0 - slower * np.arange(0, 401, 100)), atol=2e-3)
