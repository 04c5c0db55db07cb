"""Heightfields: slopes, a bowl and what lies in it, and gradients by the heights."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

G = 9.81


def sampled(function, size=(4.0, 4.0), nodes=(33, 33)):
    x, z = np.meshgrid(*(np.linspace(-s / 2, s / 2, n) for s, n in zip(size, nodes)), indexing="ij")
    return ph.Heightfield(function(x, z), size)


def test_forces_on_a_slope_are_those_of_a_plane():
    a, b = 0.3, -0.2
    up = np.array([-a, 1, -b]) / np.linalg.norm([-a, 1, -b])
    found = []
    for kind in ("field", "plane"):
        scene = ph.Scene().set_contact(ke=1e4, kd=10.0, kf=20.0, mu=0.0)
        at = np.array([0.4, 0.3 * 0.4 - 0.2 * 0.3, 0.3])
        scene.add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=at + up * 0.098, vel=(0.3, -0.5, 0.1))
        scene.add_particles("dust", [at - 1e-3 * up], mass=0.1, vel=(0.2, -0.1, 0.3))
        if kind == "field":
            scene.add_obstacle("hill", sampled(lambda x, z: a * x + b * z, nodes=(9, 6)), mu=0.0)
        else:
            scene.add_plane("hill", normal=up, ke=1e4, kd=1e2, kf=1e2, mu=0.0)
        forces = ph.forces(scene.build("float64"))
        found.append(np.concatenate([forces["ball"].f, forces["ball"].torque, forces["dust"].f[0]]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)


def test_a_ball_swings_in_a_bowl_as_a_pendulum_does():
    R, r = 2.0, 0.1
    scene = ph.Scene().add_obstacle("bowl", sampled(lambda x, z: (x**2 + z**2) / (2 * R)), mu=0.0, ke=1e5, kd=1e3)
    scene.add_rigid("ball", ph.Sphere(r), mass=0.5, pos=(0.1, r + 0.0025, 0.0))
    ball = ph.rollout(scene.build("float64"), dt=5e-4, steps=8000, every=10).numpy()["ball"]
    time = np.arange(len(ball.x)) * 5e-3
    crossed = np.flatnonzero((ball.x[:-1, 0] > 0) & (ball.x[1:, 0] <= 0))
    exact = time[crossed] + 5e-3 * ball.x[crossed, 0] / (ball.x[crossed, 0] - ball.x[crossed + 1, 0])
    # The centre moves on a circle of R - r, without friction.
    assert np.diff(exact)[0] == pytest.approx(2 * np.pi * np.sqrt((R - r) / G), rel=0.01)


def test_everything_lies_on_it_and_shows_as_contact():
    scene = ph.Scene().add_obstacle("hill", sampled(lambda x, z: 0.2 + 0.0 * x), pos=(0, 0.1, 0), mu=0.5)
    scene.add_rigid("box", ph.Box(0.2, 0.2, 0.2), mass=1.0, pos=(0, 0.4, 0))
    scene.add_particles("dust", [[1.0, 0.3, 0.2], [5.0, 0.3, 0.0]], mass=0.1)
    scene.add_soft("block", ph.TetMesh.box((0.2, 0.2, 0.2), cells=1), density=200.0, pos=(-1.0, 0.3, 0), damping=5.0,
                   material=ph.NeoHookean(E=1e5, nu=0.3))  # fmt: skip
    trajectory = ph.rollout(scene.build(), dt=5e-4, steps=2000, every=2000)
    end, found = trajectory.numpy(), trajectory.contacts()
    assert end["box"].x[-1, 1] == pytest.approx(0.4, abs=2e-3)
    assert end["dust"].x[-1, 0, 1] == pytest.approx(0.3, abs=2e-3)
    assert end["dust"].x[-1, 1, 1] < -4  # Beyond the border.
    assert end["block"].x[-1, :, 1].min() == pytest.approx(0.3, abs=3e-3)
    assert set(found.b) == {"hill"} and {"box", "dust", "block"} <= set(found.a)
    np.testing.assert_allclose(found.of("box").force.sum(axis=0), [0, G, 0], atol=0.05)
    assert trajectory.vertices("hill").shape[-2:] == (33 * 33, 3)


def test_the_heights_have_a_gradient():
    scene = ph.Scene().add_obstacle("hill", sampled(lambda x, z: 0.1 * np.sin(2 * x) * np.cos(z), nodes=(9, 9)))
    scene.add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=(0.3, 0.3, 0.1), vel=(0.5, 0, 0.2))
    scene.add_rigid("box", ph.Box(0.2, 0.1, 0.3), mass=1.0, pos=(-0.7, 0.3, 0.1), vel=(0.5, 0, 0.2), omega=(1, 2, 0))
    model = scene.build("float64")
    heights = torch.tensor(model.layout.parameters["hill.heights"].value, requires_grad=True)

    def loss(h):
        end = ph.rollout(model.replace({"hill.heights": h}), dt=1e-3, steps=400, every=400)
        return (end["ball"].x[-1] * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)).sum() + end["box"].x[-1].sum()

    loss(heights).backward()
    way = torch.tensor(np.random.default_rng(0).normal(size=heights.shape))
    with torch.no_grad():
        h = 1e-7
        difference = (loss(heights + h * way) - loss(heights - h * way)) / (2 * h)
    assert float((heights.grad * way).sum()) == pytest.approx(float(difference), rel=1e-5)
    assert heights.grad.abs().max() > 1e-3


def test_nothing_falls_through_however_fast():
    scene = ph.Scene(gravity=(0, 0, 0)).add_obstacle("hill", sampled(lambda x, z: 0.05 * np.sin(3 * x)), ke=1e5)
    scene.add_rigid("shot", ph.Sphere(0.02), mass=0.1, pos=(0, 0.55, 0), vel=(0, -300.0, 0))
    shot = ph.rollout(scene.build(), dt=1e-3, steps=50).numpy()["shot"]
    assert shot.v[-1, 1] > 0 and shot.x[-1, 1] > 0


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: ph.Heightfield(np.zeros((3, 9)), (1, 1)), ValueError, r"\(3, 9\); expected at least \(4, 4\)"),
    (lambda: ph.Heightfield(np.zeros((9, 9)), (1, -1)), ValueError, "two positive lengths"),
    (lambda: ph.Heightfield(np.full((9, 9), np.nan), (1, 1)), ValueError, "not finite"),
    (lambda: ph.Scene().add_rigid("hill", ph.Heightfield(np.zeros((9, 9)), (1, 1)), mass=1.0), TypeError,
     "heights have no mass; use scene.add_obstacle"),
])  # fmt: skip
def test_what_is_wrong_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
