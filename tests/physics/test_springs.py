"""Laws of the mass-spring system, through whole rollouts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablasim import physics as ph

G = np.array([0.0, -9.81, 0.0])
POINTS, PAIRS = ph.spring_grid((1.0, 0.5), (3, 2))
seeds = st.integers(0, 2**32 - 1)


def scene(gravity=G, **changes):
    settings = {"mass": 0.05, "ke": 30.0, "kd": 0.1}
    return ph.Scene(gravity=gravity).add_springs("cloth", POINTS, PAIRS, **{**settings, **changes})


# Compiled once: the values of a model are replaced, its structure stays.
MODEL = scene().build(real="float64")


def shaken(seed, amount=0.1, **values):
    """A cloth out of shape and in motion, without gravity."""
    rng = np.random.default_rng(seed)
    return MODEL.replace({
        "gravity": np.zeros(3), "cloth.mass": rng.uniform(0.02, 0.1, len(POINTS)),
        "cloth.x": POINTS + amount * rng.normal(size=POINTS.shape), "cloth.v": rng.normal(size=POINTS.shape),
        **values,
    })  # fmt: skip


def last(model, **settings):
    return ph.rollout(model, every=settings["steps"], **settings).state()["cloth"]


def rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


@pytest.mark.parametrize(("real", "tolerance"), [("float32", 2e-5), ("float64", 1e-13)])
def test_free_fall_is_that_of_semi_implicit_euler(real, tolerance):
    # x0 + n dt v0 + g dt² n (n + 1) / 2: a cloth at rest in itself falls as one, whatever its masses.
    v0, dt, n = np.array([1.0, 2.0, 3.0]), 0.01, 50
    model = scene(vel=v0, mass=np.linspace(0.01, 0.1, len(POINTS))).build(real=real)
    end = last(model, dt=dt, steps=n)
    expected = POINTS + n * dt * v0 + G * dt**2 * n * (n + 1) / 2
    np.testing.assert_allclose(end.x, expected, rtol=0, atol=tolerance * 10)
    np.testing.assert_allclose(end.v, np.broadcast_to(v0 + n * dt * G, POINTS.shape), rtol=tolerance)


@given(seeds)
def test_momentum_and_angular_momentum_are_kept(seed):
    model = shaken(seed)
    end = last(model, dt=1e-3, steps=100)

    def momenta(x, v):
        p = model["cloth.mass"][:, None] * v
        return np.concatenate([p.sum(axis=0), np.cross(x, p).sum(axis=0)])

    expected = momenta(model["cloth.x"], model["cloth.v"])
    np.testing.assert_allclose(momenta(end.x, end.v), expected, rtol=0, atol=1e-12)


@given(seeds)
def test_forces_turn_with_the_cloth_and_ignore_its_uniform_motion(seed):
    rng = np.random.default_rng(seed)
    model = shaken(seed)
    R, shift, wind = rotation(rng), rng.normal(size=3), rng.normal(size=3)
    moved = model.state0.replace({
        "cloth.x": model["cloth.x"] @ R.T + shift, "cloth.v": model["cloth.v"] @ R.T + wind,
    })  # fmt: skip
    expected = ph.forces(model)["cloth"].f @ R.T
    np.testing.assert_allclose(ph.forces(model, moved)["cloth"].f, expected, rtol=0, atol=1e-11)


@given(seeds)
def test_damping_does_not_brake_a_spinning_cloth(seed):
    # Rigid motion changes no length: at rest length there is no force, however fast it turns.
    rng = np.random.default_rng(seed)
    v = rng.normal(size=3) + np.cross(rng.normal(size=3), POINTS - rng.normal(size=3))
    spinning = MODEL.replace({"cloth.kd": 50.0, "cloth.v": v})
    np.testing.assert_allclose(ph.forces(spinning)["cloth"].f, 0.0, atol=1e-12)


@given(seeds)
def test_forces_are_minus_the_slope_of_the_energy(seed):
    model, h = shaken(seed, **{"cloth.kd": 0.0}), 1e-6
    way = np.random.default_rng(seed + 1).normal(size=POINTS.shape)

    def at(s):
        return ph.energy(model, model.state0.replace({"cloth.x": model["cloth.x"] + s * h * way}))["springs"]

    slope = (at(1) - at(-1)) / (2 * h)
    assert -slope == pytest.approx((ph.forces(model)["cloth"].f * way).sum(), rel=1e-6, abs=1e-7)


def test_an_undamped_spring_swings_with_its_period():
    # Two masses m on a spring: omega² = 2 ke / m. After one period both are back.
    ke, m, stretch, n = 8.0, 0.5, 0.1, 20_000
    period = 2 * np.pi / np.sqrt(2 * ke / m)
    points = [[0.0, 0, 0], [1.0 + stretch, 0, 0]]
    pair = ph.Scene(gravity=(0, 0, 0)).add_springs("cloth", points, [[0, 1]], mass=m, ke=ke, rest=1.0)
    np.testing.assert_allclose(last(pair.build("float64"), dt=period / n, steps=n).x, points, atol=1e-4 * stretch)


def test_actuation_shortens_springs():
    # Damped to rest: a bar of one spring is as long as its actuated rest length.
    bar = ph.Scene(gravity=(0, 0, 0)).add_springs("cloth", [[0, 0, 0], [1, 0, 0]], [[0, 1]], ke=50.0, kd=5.0,
                                                  actuation=0.2)  # fmt: skip
    x = last(bar.build("float64"), dt=1e-2, steps=2000).x
    assert np.linalg.norm(x[1] - x[0]) == pytest.approx(0.8, rel=1e-9)


@given(seeds)
def test_energy_stays_bounded_below_the_stable_step(seed):
    model = shaken(seed, amount=0.02, **{"cloth.kd": 0.0})
    trajectory = ph.rollout(model, dt=0.25 * ph.stable_dt(model), steps=400, every=20)
    energies = [ph.energy(model, trajectory.state(k))["total"] for k in range(len(trajectory))]
    assert max(energies) < 1.5 * energies[0]


def test_stable_dt_is_the_edge_for_one_spring():
    # Two equal masses on a spring: the bound 4 m = (2 k) dt² is exact.
    pair = ph.Scene(gravity=(0, 0, 0)).add_springs("cloth", [[0.0, 0, 0], [1.01, 0, 0]], [[0, 1]], mass=0.5, ke=100.0,
                                                   rest=1.0)  # fmt: skip
    model = pair.build("float64")
    dt = ph.stable_dt(model)
    assert dt == pytest.approx(np.sqrt(4 * 0.5 / 200.0))

    def largest_stretch(factor):
        x = ph.rollout(model, dt=factor * dt, steps=60, check=False)["cloth"].x.numpy()
        return np.abs(np.linalg.norm(x[:, 1] - x[:, 0], axis=1) - 1.0).max()

    assert largest_stretch(0.99) < 0.2
    assert largest_stretch(1.01) > 1.0
    with pytest.raises(ph.StepTooLarge, match=r"dt = 0\.101 s is too large for 'cloth'.* allow about 0\.1 s"):
        ph.rollout(model, dt=1.01 * dt, steps=1)


def test_fixed_particles_stay():
    model = scene(vel=(1.0, 1.0, 1.0)).fix("cloth", where=[0, 3]).build("float64")
    x = last(model, dt=1e-3, steps=50).x
    np.testing.assert_array_equal(x[[0, 3]], POINTS[[0, 3]])
    assert np.linalg.norm(x[5] - POINTS[5]) > 0.01


def test_the_callers_arrays_are_not_shared():
    points = POINTS.copy()
    model = ph.Scene().add_springs("cloth", points, PAIRS, ke=1.0).build("float64")
    points[:] = 7.0
    np.testing.assert_array_equal(model.state0["cloth"].x, POINTS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": 0.0}, "cloth.mass must be positive, and is 0"),
        ({"mass": [1.0, 2.0]}, r"cloth.mass has shape \(2,\); expected one value, or shape \(12,\)"),
        ({"ke": float("nan")}, "cloth.ke has an entry that is not finite"),
        ({"kd": -1.0}, "cloth.kd must not be negative, and is -1"),
        ({"vel": [1.0, 2.0]}, r"cloth: vel has shape \(2,\)"),
    ],
)
def test_wrong_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        scene(**changes)


@pytest.mark.parametrize(
    ("points", "pairs", "message"),
    [
        ([[0.0, 0.0]], [], r"net: points has shape \(1, 2\); expected \(n, 3\)"),
        ([[0.0, 0, 0], [1, 0, 0]], [[0, 2]], "net.pairs: row 0 names particle 2, but there are 2"),
        ([[0.0, 0, 0], [1, 0, 0]], [[1, 1]], "spring 0 of 'net' joins particle 1 to itself"),
        ([[0.0, 0, 0], [1, 0, 0]], [[0, 1, 0]], r"net.pairs has shape \(1, 3\)"),
        ([[0.0, 0, 0], [1, 0, 0]], [[0.0, 1.0]], "net.pairs holds float64; expected whole numbers"),
    ],
)
def test_wrong_geometry_is_named_and_leaves_the_scene_as_it_was(points, pairs, message):
    made = scene()
    with pytest.raises(ValueError, match=message):
        made.add_springs("net", points, pairs, ke=1.0)
    assert list(made.build().state0) == ["cloth"]
