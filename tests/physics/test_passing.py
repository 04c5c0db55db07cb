"""A body that moves farther in a step than the thing it meets is thick does not pass it without a word."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

WALL, BALL = ph.Box(0.02, 1.0, 1.0), ph.Sphere(0.01)


def thrown(speed, shape=BALL, *, wall=WALL, free=False, height=0.0, ke=None, **wall_place):
    scene = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=ke)
    scene.add_rigid("ball", shape, mass=0.1, pos=(-1, height, 0), vel=(speed, 0, 0))
    if free:
        scene.add_rigid("wall", wall, mass=5.0)
    else:
        scene.add_obstacle("wall", wall, ke=ke or 1e4, **wall_place)
    return scene.build()


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("shape", [BALL, ph.Box(0.02, 0.02, 0.02), ph.Capsule(0.01, 0.03)],
                         ids=lambda s: type(s).__name__)  # fmt: skip
@pytest.mark.parametrize("wall", [WALL, WALL.mesh()], ids=["box", "mesh"])
def test_what_would_pass_a_wall_is_said_with_a_step_that_stops_it(shape, free, wall):
    # Two free bodies have no ke: the step that passes solves for how they push, and brakes the ball meanwhile.
    model, speed = thrown(60.0, shape, wall=wall, free=free), "4[0-9.]+" if free else "60"
    with pytest.raises(ph.PassedThrough, match=f"went through .* at {speed} m/s.*Use dt <= ") as caught:
        ph.rollout(model, dt=1e-3, steps=40)
    assert set(caught.value.things) == {"ball", "wall"}
    hard = thrown(60.0, shape, wall=wall, free=free, ke=2e7)
    dt = min(caught.value.dt, ph.stable_dt(hard))
    end = ph.rollout(hard, dt=dt, steps=int(0.05 / dt)).numpy()
    assert (end["ball"].x[:, 0] < end["wall"].x[..., 0]).all() and end["ball"].v[-1, 0] < 0
    if free:
        end = ph.rollout(model, dt=caught.value.dt, steps=int(0.05 / caught.value.dt)).numpy()
        assert (end["ball"].x[:, 0] < end["wall"].x[..., 0]).all() and end["ball"].v[-1, 0] < 0
        return
    with pytest.raises(ph.PassedThrough, match=r"went through .* contact is too soft.* larger ke"):
        ph.rollout(model, dt=dt, steps=int(0.05 / dt))


def test_a_thin_plate_that_is_driven_through_a_ball_is_said():
    model = thrown(0.0, vel=(-60.0, 0.0, 0.0))
    with pytest.raises(ph.PassedThrough, match="60 m/s"):
        ph.rollout(model, dt=1e-3, steps=40)


@pytest.mark.parametrize("speed", [60.0, 6000.0])
def test_free_flight_past_things_is_not_blamed(speed):
    end = ph.rollout(thrown(speed, height=0.6), dt=1e-3, steps=40, every=40).numpy()["ball"]
    np.testing.assert_allclose(end.x[-1, 0], speed * 0.04 - 1, rtol=1e-4)


def test_gradients_and_later_rollouts_do_not_mind():
    v = torch.tensor([60.0, 0.0, 0.0], requires_grad=True)
    model = thrown(60.0)
    with pytest.raises(ph.PassedThrough):
        ph.rollout(model.replace({"ball.v": v}), dt=1e-3, steps=40)
    slow = torch.tensor([2.0, 0.0, 0.0], requires_grad=True)
    ph.rollout(model.replace({"ball.v": slow}), dt=1e-3, steps=40)["ball"].x[-1, 0].backward()
    assert slow.grad[0] == pytest.approx(0.04)
