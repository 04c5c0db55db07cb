"""Contact with what a user gets who says nothing: dominoes, a box on jelly, a ball that bounces, slopes of a stack."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

G = 9.81


def dominoes(count):
    scene = ph.Scene()
    for k in range(count):
        scene.add_rigid(f"d{k}", ph.Box(0.02, 0.2, 0.1), density=600.0, pos=(0.1 * k, 0.1, 0))
    scene.add_impulse("d0", (0.05, 0, 0), at=(0, 0.09, 0), t=0.0)
    return scene.add_ground("floor").build()


def fall_times(count, seconds):
    """When each has turned by twenty degrees."""
    frames = ph.rollout(dominoes(count), dt=2e-3, steps=int(seconds / 2e-3), every=10).numpy()
    turned = [2 * np.linalg.norm(frames[f"d{k}"].rot[:, :3], axis=1) > np.radians(20) for k in range(count)]
    assert all(t.any() for t in turned)
    return [frames.times[t.argmax()] for t in turned]


def test_dominoes_fall_in_order():
    times = fall_times(4, 0.8)
    assert (np.diff(times) > 0.03).all()


@pytest.mark.nightly
def test_twenty_dominoes_fall_in_order():
    assert (np.diff(fall_times(20, 3.0)) > 0.03).all()


def on_jelly(seconds):
    scene = ph.Scene()
    mesh = ph.TetMesh.box((0.4, 0.2, 0.4), cells=(4, 2, 4))
    scene.add_soft("jelly", mesh, density=1000.0, material=ph.NeoHookean(E=1e5, nu=0.3), damping=20.0)
    scene.add_rigid("box", ph.Box(0.2, 0.2, 0.2), density=500.0, pos=(0.2, 0.302, 0.2))
    model = scene.add_ground("floor").build()
    return ph.rollout(model, dt=2e-3, steps=int(seconds / 2e-3), every=125).numpy()["box"]


def test_a_box_comes_to_rest_on_jelly():
    box = on_jelly(2.0)
    assert 0.27 < box.x[-1, 1] < 0.3 and abs(box.v[-1]).max() < 2e-3


@pytest.mark.nightly
def test_a_box_stands_on_jelly_for_twenty_seconds():
    box = on_jelly(20.0)
    assert np.linalg.norm(box.x[-1] - box.x[-5]) < 3e-4  # In the last second.


def test_a_ball_without_dampers_bounces_on_and_on():
    scene = ph.Scene().add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=(0, 0.6, 0))
    model = scene.add_ground("floor", ke=1e4, kd=0.0, kf=0.0, mu=0.0).build("float64")
    ball = ph.rollout(model, dt=1e-3, steps=20_000, every=10).numpy()["ball"]
    height = ball.x[:, 1] - 0.1
    energy = G * height + 0.5 * ball.v[:, 1] ** 2
    flying = energy[height > 0] / energy[0]
    assert abs(flying - 1).max() < 1e-2


@pytest.mark.parametrize("friction", ["relaxed", "stick"])
def test_gradients_through_a_stack_that_slides_or_sticks_are_those_of_differences(friction):
    slides = friction == "relaxed"
    scene = ph.Scene().set_contact(mu=0.3, friction=friction)
    scene.add_rigid("low", ph.Box(0.2, 0.2, 0.2), density=1000.0, pos=(0, 0.0999, 0), vel=(0.02, 0, 0.01))
    # Turned a little: edges that run along each other are a switch.
    scene.add_rigid("top", ph.Box(0.1, 0.2, 0.1), density=1000.0, pos=(0.013, 0.2997, 0.017),
                    rot=ph.quat((0, 1, 0), 0.3), vel=(0.3 if slides else 1e-3, 0, 0),
                    omega=(0, 0.5 if slides else 2e-3, 0))  # fmt: skip
    model = scene.add_ground("floor", mu=0.4, friction=friction).build("float64")
    weights = torch.tensor([0.3, 0.9, -0.2], dtype=torch.float64)

    def end(values):
        top = ph.rollout(model.replace(values), dt=1e-3, steps=5, every=5)["top"]
        return ((top.x[-1] + 0.1 * top.v[-1] + 0.05 * top.omega[-1]) * weights).sum()

    names = {"top.v": 1e-5, "gravity": 1e-4}
    leaves = {n: torch.tensor(np.asarray(model[n]), dtype=torch.float64, requires_grad=True) for n in names}
    end(leaves).backward()
    plain, way = {n: v.detach() for n, v in leaves.items()}, torch.tensor([0.3, 0.8, -0.5], dtype=torch.float64)
    for name, h in names.items():
        there, back = (float(end({**plain, name: plain[name] + s * h * way})) for s in (1, -1))
        assert float((leaves[name].grad * way).sum()) == pytest.approx((there - back) / (2 * h), rel=1e-5), name
