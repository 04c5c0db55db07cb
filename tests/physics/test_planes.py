"""Laws of contact with planes: contact time, restitution, friction, smoothness."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nablasim import physics as ph

MASS, KE = 0.5, 2e3


def ball(vel=(0, -1, 0), gravity=(0, 0, 0), height=0.0, normal=(0, 1, 0), **plane):
    settings = {"ke": KE, "kd": 0.0, "kf": 0.0, "mu": 0.0, **plane}
    scene = ph.Scene(gravity=gravity).add_particles("ball", [np.multiply(normal, height)], mass=MASS, vel=vel)
    return scene.add_plane("wall", normal=normal, **settings).build("float64")


def bounce(model, dt=1e-5, steps=12_000):
    """Contact time and the ratio of speeds of a ball that starts at touch."""
    y, v = (a.numpy()[:, 0, 1] for a in (lambda b: (b.x, b.v))(ph.rollout(model, dt=dt, steps=steps)["ball"]))
    out = int(np.argmax((y > 0) & (np.arange(len(y)) > 0)))
    assert out > 0, "it never left"
    return out * dt, v[-1] / -v[0]


def test_contact_lasts_half_a_period():
    duration, ratio = bounce(ball())
    assert duration == pytest.approx(np.pi * np.sqrt(MASS / KE), rel=1e-3)
    assert ratio == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("zeta", [0.05, 0.2, 0.5])
def test_restitution_of_damping_while_approaching(zeta):
    # Half a swing: damped on the way in, undamped on the way out.
    model = ball(kd=2 * zeta * np.sqrt(KE * MASS), damping="linear")
    expected = np.exp(-zeta * np.arccos(zeta) / np.sqrt(1 - zeta**2))
    assert bounce(model)[1] == pytest.approx(expected, rel=2e-3)


def test_smooth_damping_starts_from_nothing_and_never_pulls():
    model = ball(kd=50.0)

    def push(depth, speed):
        state = model.state0.replace({"ball.x": [[0, -depth, 0]], "ball.v": [[0, speed, 0]]})
        return ph.forces(model, state)["ball"].f[0, 1]

    assert push(1e-9, -10.0) == pytest.approx(0.0, abs=1e-3)
    assert push(0.05, -1.0) == pytest.approx(KE * 0.05 + 50.0 * 0.05 / 0.055)
    assert push(1e-3, 100.0) == 0.0
    assert 0.1 < bounce(model)[1] < 0.9


@given(st.floats(0, 2 * np.pi), st.floats(0.2, 0.8))
def test_a_block_slides_as_far_as_coulomb_says_in_every_direction(angle, mu):
    # v² / (2 mu g), the same along the axes and between them.
    way, speed, g, dt = np.array([np.cos(angle), 0, np.sin(angle)]), 2.0, 9.81, 5e-4
    rest = MASS * g / KE
    model = ball(vel=speed * way, gravity=(0, -g, 0), height=-rest, kd=5.0, kf=500.0, mu=mu)
    time = 1.2 * speed / (mu * g)
    end = ph.rollout(model, dt=dt, steps=int(time / dt), every=int(time / dt)).state()["ball"]
    assert np.linalg.norm(end.v) < 1e-2
    np.testing.assert_allclose(end.x[0] @ way, speed**2 / (2 * mu * g), rtol=5e-3)


@given(st.floats(0.01, 0.3), st.floats(-2, 2), st.floats(0.1, 5), st.booleans())
def test_friction_is_the_smaller_of_cap_and_drag(depth, rate, slip, linear):
    model = ball(kd=3.0, kf=20.0, mu=0.4, damping="linear" if linear else "smooth")
    state = model.state0.replace({"ball.x": [[0, -depth, 0]], "ball.v": [[0.6 * slip, rate, 0.8 * slip]]})
    f = ph.forces(model, state)["ball"].f[0]
    assert np.hypot(f[0], f[2]) == pytest.approx(min(0.4 * f[1], 20.0 * slip), rel=1e-12)
    assert f[0] * 0.8 == pytest.approx(f[2] * 0.6)


def test_a_block_on_a_slope_stays_or_slides():
    g, dt = 9.81, 1e-3
    for tilt, mu, slides in ((0.3, 0.5, False), (0.3, 0.1, True)):
        normal = np.array([-np.sin(tilt), np.cos(tilt), 0])
        height = -MASS * g * np.cos(tilt) / KE
        model = ball(vel=(0, 0, 0), gravity=(0, -g, 0), height=height, normal=normal, kd=5.0, kf=400.0, mu=mu)
        end = ph.rollout(model, dt=dt, steps=500, every=500).state()["ball"]
        down = -end.v[0] @ [np.cos(tilt), np.sin(tilt), 0]
        if slides:
            assert down == pytest.approx(0.5 * g * (np.sin(tilt) - mu * np.cos(tilt)), rel=1e-2)
        else:
            # It creeps: friction needs a slip of m g sin / kf.
            assert 0 < down < 1.01 * MASS * g * np.sin(tilt) / 400.0


@given(st.floats(-0.03, 0.05), st.floats(-1, 1), st.floats(0.0, 2.0))
@example(0.0, 0.0, 0.125)  # between sticking and sliding, just at touch
def test_smoothing_makes_the_force_continuously_differentiable(depth, rate, slip):
    # One-sided slopes agree everywhere; without smoothing they differ at touch.
    model, h = ball(kd=3.0, kf=20.0, mu=0.4, smoothing=0.01), 1e-7

    def at(d, r, s):
        state = model.state0.replace({"ball.x": [[0, -d, 0]], "ball.v": [[s, r, 0]]})
        return ph.forces(model, state)["ball"].f[0]

    here = at(depth, rate, slip)
    for way in np.eye(3):
        right = (at(*(np.array([depth, rate, slip]) + h * way)) - here) / h
        left = (here - at(*(np.array([depth, rate, slip]) - h * way))) / h
        np.testing.assert_allclose(right, left, atol=2e-2)


def test_no_smoothing_is_the_limit_of_little_smoothing():
    def force(smoothing):
        model = ball(kd=3.0, kf=20.0, mu=0.4, smoothing=smoothing)
        state = model.state0.replace({"ball.x": [[0, -0.01, 0]], "ball.v": [[1, -0.5, 0]]})
        return ph.forces(model, state)["ball"].f[0]

    np.testing.assert_allclose(force(1e-9), force(0.0), rtol=1e-6)


def test_contact_stores_the_energy_that_it_gives_back():
    model, h = ball(smoothing=0.01), 1e-7

    def at(depth):
        return model.state0.replace({"ball.x": [[0, -depth, 0]]})

    for depth in (-0.02, -0.005, 0.0, 0.004, 0.02):
        low, high = (ph.energy(model, at(depth + s * h))["plane_contacts"] for s in (-1, 1))
        assert (high - low) / (2 * h) == pytest.approx(ph.forces(model, at(depth))["ball"].f[0, 1], abs=1e-4)


@pytest.mark.parametrize(
    ("plane", "message"),
    [
        ({"ke": -1.0}, "wall.ke must not be negative"),
        ({"damping": "bouncy"}, 'damping is "smooth" or "linear"'),
        ({"normal": (0, 0, 0)}, "wall.normal is .* not all zero"),
        ({"touch": 0.0}, "wall.touch must be positive"),
        ({"smoothing": -1.0}, "wall.smoothing must not be negative"),
    ],
)
def test_wrong_planes_are_named(plane, message):
    with pytest.raises(ValueError, match=message):
        ball(**plane)
