"""Stacks of boxes with offsets: they stand where contact is stiff enough for what lies on it, and creep slowly."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

SIDE = 0.2


def stack(count, rate=2400.0, sunk=0.0):
    """Boxes of 8 kg, up to 2 cm off the axis, on ground as stiff as they are; every joint is pressed by `sunk`."""
    rng = np.random.default_rng(0)
    scene = ph.Scene().set_contact(rate=rate)
    for k, (x, z) in enumerate(rng.uniform(-0.02, 0.02, (count, 2))):
        height = SIDE * (k + 0.5) - sunk * (k + 1)
        scene.add_rigid(f"box{k}", ph.Box(SIDE, SIDE, SIDE), density=1000.0, pos=(x, height, z))
    return scene.add_ground("floor", ke=None, kd=None, kf=None).build("float64")


def moved(model, count, seconds):
    """How far each box is from where it began, every half second."""
    frames = ph.rollout(model, dt=2e-3, substeps=8, steps=int(seconds / 2e-3), every=250)
    x = np.stack([frames[f"box{k}"].x.numpy() for k in range(count)], axis=1)
    return np.linalg.norm(x - x[0], axis=2)


def stands(count, seconds):
    away = moved(stack(count), count, seconds)
    assert away.max() < 1e-3 * max(1.0, seconds / 5)
    # MuJoCo's boxes creep at 3e-4 m/s on such a scene.
    assert (away[-1] - away[-2]).max() / 0.5 < 1e-4


@pytest.mark.parametrize("count", [5, 10])
def test_a_stack_of_boxes_with_offsets_stands(count):
    stands(count, 1.5)


@pytest.mark.nightly
@pytest.mark.parametrize(("count", "seconds"), [(5, 10.0), (10, 20.0)])
def test_a_stack_stands_for_long(count, seconds):
    stands(count, seconds)


@pytest.mark.nightly
def test_soft_joints_let_ten_boxes_fall():
    # What the numbers above are for: joints this soft turn more under the boxes on them than they push back.
    assert moved(stack(10, rate=150.0), 10, 3.0).max() > SIDE


@pytest.mark.parametrize("order", ["before", "after"])
def test_ground_without_numbers_carries_bodies_by_their_mass(order):
    scene = ph.Scene()
    if order == "before":
        scene.set_contact(rate=200.0)
    scene.add_rigid("light", ph.Box(0.2, 0.2, 0.2), mass=0.1, pos=(0, 0.0995, 0))
    scene.add_rigid("heavy", ph.Box(0.2, 0.2, 0.2), mass=50.0, pos=(2, 0.0995, 0))
    scene.add_rigid("own", ph.Box(0.2, 0.2, 0.2), mass=50.0, ke=1e3, pos=(4, 0.0995, 0))
    scene.add_ground("floor", ke=None, kd=None, kf=None)
    if order == "after":
        scene.set_contact(rate=200.0)
    model = scene.build("float64")
    assert "floor.ke" not in model.names() and "contact.rate" in model.names()
    pushed = ph.forces(model)
    for name, ke in (("light", 0.1 * 200.0**2), ("heavy", 50.0 * 200.0**2), ("own", 1e3)):
        np.testing.assert_allclose(pushed[name].f, [0, 4 * ke * 5e-4, 0], rtol=1e-9)


def test_particles_on_ground_without_numbers_have_the_usual_ones():
    def pushed(**numbers):
        scene = ph.Scene().add_particles("dust", [[0.0, -1e-3, 0.0]], mass=0.1, vel=(1.0, -0.1, 0.0))
        return ph.forces(scene.add_ground("floor", **numbers).build("float64"))["dust"].f

    np.testing.assert_array_equal(pushed(ke=None, kd=None, kf=None), pushed())


def test_gradients_through_a_stack_are_those_of_differences():
    # Where all joints are pressed: at the touch itself there are two slopes, one for each side.
    model, names = stack(3, sunk=2e-6), ["contact.rate", "box1.x", "floor.mu", "box0.density"]

    def height(values):
        frames = ph.rollout(model.replace(values), dt=5e-4, steps=40, every=40, substeps=2)
        end = frames["box2"].x[-1]
        return end[1] + 0.3 * end[0]

    start = {name: torch.tensor(np.asarray(model[name]), dtype=torch.float64, requires_grad=True) for name in names}
    height(start).backward()
    for name, value in start.items():
        way = torch.tensor([0.3, 0.9, -0.2], dtype=torch.float64) if name == "box1.x" else torch.tensor(1.0)
        h = 1e-8 * float(value.detach().abs().max())  # Joints are pressed by 1e-6 m: more would be across a touch.
        plain = {n: v.detach() for n, v in start.items()}
        there, back = (float(height({**plain, name: plain[name] + s * h * way})) for s in (1, -1))
        slope = float((value.grad * way).sum())
        assert slope == pytest.approx((there - back) / (2 * h), rel=1e-4, abs=1e-11), name
