"""Laws of bodies that bounce by impulses: heights, rolling, energy, rest, gradients through the times of impacts."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

TOSSED = {
    "mass": 0.37, "inertia": (7e-4, 9e-4, 1.1e-3), "position": (0.0, 0.3, 0.0), "rotation": (0.2, 0.1, -0.3, 0.9),
    "velocity": (1.0, 0.4, -0.3), "spin": (2.0, 3.0, -4.0), "restitution": 0.4, "friction": 0.2, "floor": 0.02,
    "gravity": (0.1, -9.81, 0.05), "radius": 0.004,
}  # fmt: skip


def heights(times, drop, e, g=9.81):
    """Of a ball that is let go, in closed form."""
    found = []
    for t in times:
        s, speed = t - np.sqrt(2 * drop / g), e * np.sqrt(2 * drop * g)
        if s < 0:
            found.append(drop - g * t**2 / 2)
            continue
        while s > 2 * speed / g:
            s, speed = s - 2 * speed / g, e * speed
        found.append(speed * s - g * s**2 / 2)
    return np.array(found)


@pytest.mark.parametrize("dt", [1 / 30, 1 / 240])
def test_a_ball_bounces_to_the_heights_that_restitution_says_whatever_the_step(dt):
    ball = ph.Bounce(0.04, position=(0, 1.02, 0), restitution=0.8, friction=0.0)
    frames = ball.rollout(dt=dt, steps=round(2 / dt)).numpy()
    assert np.allclose(frames.x[:, 1] - 0.02, heights(frames.times, 1.0, 0.8), atol=1e-12)


def test_what_skids_rolls_after_an_impact_that_friction_holds():
    frames = ph.Bounce(0.04, position=(0, 0.5, 0), velocity=(1, 0, 0), friction=2.0).rollout(dt=0.01, steps=60).numpy()
    assert np.allclose(frames.v[-1, 0], 5 / 7) and np.allclose(frames.omega[-1], [0, 0, -5 / 7 / 0.02])
    slips = ph.Bounce(0.04, position=(0, 0.5, 0), velocity=(1, 0, 0), friction=0.02, restitution=0.0)
    fell = np.sqrt(2 * 0.48 * 9.81)
    assert np.isclose(slips.rollout(dt=0.01, steps=33).numpy().v[-1, 0], 1 - 0.02 * fell, atol=5e-3)


def test_a_slope_turns_what_bounces():
    """Along the slope nothing happens without friction, across it the speed is turned and shrinks."""
    up = np.array([0.6, 0.8, 0.0])
    ball = ph.Bounce(0.1, position=(0, 0.3, 0), restitution=0.5, friction=0.0, normal=tuple(up))
    frames = ball.rollout(dt=0.01, steps=30).numpy()
    hit = int(np.argmax(frames.v @ up > 0))
    t = np.sqrt(2 * (0.3 * 0.8 - 0.05) / (9.81 * 0.8))
    after = np.array([0, -9.81 * t, 0])
    after -= 1.5 * (after @ up) * up
    assert np.allclose(frames.v[hit], after + np.array([0, -9.81, 0]) * (frames.times[hit] - t), atol=1e-12)


def test_energy_is_kept_without_friction_and_lost_with_it():
    """Of a box that tumbles. Impulses of several corners at once come one after the other."""

    def energy(friction, restitution):
        given = {name: value for name, value in TOSSED.items() if name not in ("radius", "gravity")}
        box = ph.Bounce((0.1, 0.08, 0.06), **{**given, "friction": friction, "restitution": restitution})
        f = box.rollout(dt=1 / 500, steps=500).numpy()
        q = f.rot / np.linalg.norm(f.rot, axis=1, keepdims=True)
        u, s = q[:, :3], q[:, 3:]
        cross = np.cross(-u, f.omega)
        w = f.omega + 2 * s * cross + 2 * np.cross(-u, cross)
        return 0.37 * (9.81 * f.x[:, 1] + (f.v**2).sum(1) / 2) + (w**2 @ np.array(TOSSED["inertia"])) / 2

    kept, lost = energy(0.0, 1.0), energy(0.3, 0.5)
    assert np.allclose(kept, kept[0], rtol=2e-3)
    assert np.diff(lost).max() < 3e-5 and lost[-1] < 0.6 * lost[0]  # what rests shakes a little


def test_a_box_comes_to_rest_and_stays():
    box = ph.Bounce((0.1, 0.1, 0.1), position=(0, 0.2, 0), rotation=(0.1, 0.05, 0.2, 1), velocity=(0.5, 0, 0.2))
    frames = box.rollout(dt=1 / 250, steps=750, substeps=4, every=50).numpy()
    assert np.isclose(frames.x[-1, 1], 0.05, atol=2e-4)
    assert np.abs(frames.v[-4:]).max() < 0.02 and np.ptp(frames.x[-4:], axis=0).max() < 1e-3


@pytest.mark.parametrize("size", [0.1, (0.1, 0.08, 0.06)])
def test_gradients_of_everything_agree_with_differences(size):
    """Through several impacts, whose times move with every quantity."""
    given = {name: value for name, value in TOSSED.items() if name != "radius"}
    start = ph.Bounce(size, **given, rounded=0.0 if size == 0.1 else TOSSED["radius"])
    weights = torch.from_numpy(np.random.default_rng(0).normal(size=13))

    def loss(values):
        f = start.replace(values).rollout(dt=1 / 120, steps=60, every=60)
        end = torch.cat([torch.as_tensor(f[name][-1]) for name in ("x", "rot", "v", "omega")])
        return (end * weights).sum()

    tensors = {name: torch.tensor(np.asarray(start[name]), requires_grad=True) for name in start.names()}
    loss(tensors).backward()
    for name, tensor in tensors.items():
        flat = np.asarray(start[name], np.float64).ravel()
        for k in {0, len(flat) - 1}:
            h = 1e-6 * max(abs(flat[k]), 1e-2)
            moved = [flat.copy(), flat.copy()]
            moved[0][k] -= h
            moved[1][k] += h
            low, high = (float(loss({name: m.reshape(np.shape(start[name]))})) for m in moved)
            slope = float(tensor.grad.reshape(-1)[k])
            assert slope == pytest.approx((high - low) / (2 * h), rel=2e-5, abs=2e-5), name


def test_many_bodies_move_as_each_alone():
    speeds = [(1.0, 0, 0), (0.5, 1, 0.2), (0, 2, 0)]
    many = ph.Bounce((0.1, 0.1, 0.1), velocity=speeds, rotation=(0.1, 0.2, 0.3, 0.9)).rollout(dt=0.01, steps=80).numpy()
    for k, speed in enumerate(speeds):
        one = ph.Bounce((0.1, 0.1, 0.1), velocity=speed, rotation=(0.1, 0.2, 0.3, 0.9)).rollout(dt=0.01, steps=80)
        assert np.array_equal(many.x[k], one.numpy().x)


@pytest.mark.parametrize(("given", "said"), [
    ({"size": (0.1, 0.1)}, "the diameter of a ball or the three sides of a box"),
    ({"size": (0.1, 0.1, 0.1), "rounded": 0.06}, "half of the shortest side, 0.05 m"),
    ({"normal": (0, 0, 0)}, "normal is a direction"),
    ({"restitution": -0.1}, "restitution must not be below 0"),
    ({"mass": [1.0, 2.0], "friction": [0.1, 0.2, 0.3]}, "how many bodies are there"),
])  # fmt: skip
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        ph.Bounce(**given)
