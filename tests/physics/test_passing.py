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


def crossed(where, speed=100.0, shape=BALL, *, steps=4, **how):
    """A ball that crosses the corner x = y = 0.5 of a cube, deep enough inside, within one step."""
    scene, way = ph.Scene(gravity=(0, 0, 0)), np.array([1.0, 1.0, 0.0]) / np.sqrt(2)
    add = scene.add_obstacle if how.pop("fixed", True) else scene.add_rigid
    add("cube", ph.Box(1, 1, 1), ke=1e3, **({} if add == scene.add_obstacle else {"mass": 100.0}))
    middle = np.array([-0.5, 0.5, 0.0]) - np.array([-1.0, 1.0, 0.0]) / np.sqrt(2) * where
    scene.add_rigid("ball", shape, mass=0.01, pos=middle - 1.5 * speed * 1e-3 * way, vel=speed * way)
    return ph.rollout(scene.build("float64"), dt=1e-3, steps=steps)


@pytest.mark.parametrize("fixed", [True, False])
def test_what_shoots_through_a_corner_within_a_step_is_said(fixed):
    # It comes in by one side and leaves by the next one: nothing says there that it is behind anything.
    with pytest.raises(ph.PassedThrough, match="went through 'cube'"):
        crossed(0.02, fixed=fixed)
    crossed(-0.02, fixed=fixed)


@pytest.mark.parametrize("aside", [0.0, 0.012, 0.017])
def test_balls_that_overlap_only_between_two_steps_are_said(aside):
    # Not one centre comes into the other ball where they pass at 12 and at 17 mm.
    scene = ph.Scene(gravity=(0, 0, 0))
    for name, x, speed in (("left", -0.05, 100.0), ("right", 0.05, -100.0)):
        scene.add_rigid(name, ph.Sphere(0.01), mass=0.1, pos=(x, np.sign(x) * aside / 2, 0), vel=(speed, 0, 0), ke=1e3)
    with pytest.raises(ph.PassedThrough):
        ph.rollout(scene.build(), dt=1e-3, steps=2)


def test_a_ball_that_shoots_through_a_ridge_is_said():
    heights = np.zeros((41, 41))
    heights[20] = 0.3
    for height, passes in ((0.15, True), (0.6, False)):
        scene = ph.Scene(gravity=(0, 0, 0)).add_obstacle("hills", ph.Heightfield(heights, (4.0, 4.0)))
        scene.add_rigid("ball", ph.Sphere(0.02), mass=0.1, pos=(-0.75, height, 0), vel=(500.0, 0, 0))
        if passes:
            with pytest.raises(ph.PassedThrough, match="went through 'hills'"):
                ph.rollout(scene.build(), dt=1e-3, steps=3)
        else:
            ph.rollout(scene.build(), dt=1e-3, steps=3)
