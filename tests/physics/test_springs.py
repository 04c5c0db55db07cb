"""Laws of the mass-spring system, through whole rollouts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import kernelc as kc
from nablasim import physics as ph

G = np.array([0.0, -9.81, 0.0])
CLOTH = ph.spring_grid((1.0, 0.5), (3, 2))
seeds = st.integers(0, 2**32 - 1)


def cloth(**changes):
    points, pairs = CLOTH
    settings = {"mass": 0.05, "ke": 30.0, "kd": 0.1, "real": "float64"}
    return ph.build_springs(points, pairs, **{**settings, **changes})


def shaken(seed, amount=0.1):
    """A cloth out of shape and in motion, without gravity."""
    rng, points = np.random.default_rng(seed), CLOTH[0]
    model, state = cloth(gravity=(0, 0, 0), mass=rng.uniform(0.02, 0.1, len(points)))
    state.x.assign(points + amount * rng.normal(size=points.shape))
    state.v.assign(rng.normal(size=points.shape))
    return model, state


def vectors(array):
    return array.numpy().reshape(-1, 3)


def masses(model):
    return model.mass.numpy()[:, None]


def rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def elastic_energy(model, state):
    x, pairs = vectors(state.x), model.pairs.numpy()
    stretch = np.linalg.norm(x[pairs[:, 1]] - x[pairs[:, 0]], axis=1) - model.rest.numpy()
    return 0.5 * (model.ke.numpy() * stretch**2).sum()


def energy(model, state):
    return elastic_energy(model, state) + 0.5 * (masses(model) * vectors(state.v) ** 2).sum()


@pytest.mark.parametrize(("real", "tolerance"), [("float32", 2e-5), ("float64", 1e-13)])
def test_free_fall_is_that_of_semi_implicit_euler(real, tolerance):
    # x0 + n dt v0 + g dt² n (n + 1) / 2: a cloth at rest in itself falls as one, whatever its masses.
    points = CLOTH[0]
    v0, dt, n = np.array([1.0, 2.0, 3.0]), 0.01, 50
    model, state = cloth(vel=v0, mass=np.linspace(0.01, 0.1, len(points)), real=real)
    last = ph.rollout_springs(model, state, dt=dt, steps=n)[-1]
    expected = points + n * dt * v0 + G * dt**2 * n * (n + 1) / 2
    np.testing.assert_allclose(vectors(last.x), expected, rtol=0, atol=tolerance * 10)
    np.testing.assert_allclose(vectors(last.v), np.broadcast_to(v0 + n * dt * G, points.shape), rtol=tolerance)


@given(seeds)
def test_momentum_and_angular_momentum_are_kept(seed):
    model, state = shaken(seed)
    first, *_, last = ph.rollout_springs(model, state, dt=1e-3, steps=100)

    def momenta(s):
        p = masses(model) * vectors(s.v)
        return np.concatenate([p.sum(axis=0), np.cross(vectors(s.x), p).sum(axis=0)])

    np.testing.assert_allclose(momenta(last), momenta(first), rtol=0, atol=1e-12)


@given(seeds)
def test_forces_turn_with_the_cloth_and_ignore_its_uniform_motion(seed):
    rng = np.random.default_rng(seed)
    model, state = shaken(seed)
    R, shift, wind = rotation(rng), rng.normal(size=3), rng.normal(size=3)
    moved = ph.State(
        x=kc.array(vectors(state.x) @ R.T + shift, dtype=kc.float3),
        v=kc.array(vectors(state.v) @ R.T + wind, dtype=kc.float3),
    )
    expected = vectors(ph.sum_spring_forces(model, state)) @ R.T
    np.testing.assert_allclose(vectors(ph.sum_spring_forces(model, moved)), expected, rtol=0, atol=1e-11)


@given(seeds)
def test_damping_does_not_brake_a_spinning_cloth(seed):
    # Rigid motion changes no length: at rest length there is no force, however fast it turns.
    rng = np.random.default_rng(seed)
    model, state = cloth(kd=50.0)
    one = lambda: kc.array(rng.normal(size=(1, 3)), dtype=kc.float3)  # noqa: E731
    spinning = ph.move_rigidly(state.x, centre=one(), vel=one(), spin=one())
    np.testing.assert_allclose(vectors(ph.sum_spring_forces(model, spinning)), 0.0, atol=1e-12)


@given(seeds)
def test_forces_are_minus_the_slope_of_the_energy(seed):
    model, state = shaken(seed)
    model = model.replace(kd=kc.zeros_like(model.kd))
    force, x, h = vectors(ph.sum_spring_forces(model, state)), vectors(state.x).copy(), 1e-6
    way = np.random.default_rng(seed + 1).normal(size=x.shape)

    def at(x):
        return elastic_energy(model, ph.State(x=kc.array(x, dtype=kc.float3), v=state.v))

    slope = (at(x + h * way) - at(x - h * way)) / (2 * h)
    assert -slope == pytest.approx((force * way).sum(), rel=1e-6, abs=1e-7)


def test_an_undamped_spring_swings_with_its_period():
    # Two masses m on a spring: omega² = 2 ke / m. After one period both are back.
    ke, m, stretch, n = 8.0, 0.5, 0.1, 20_000
    period = 2 * np.pi / np.sqrt(2 * ke / m)
    points = [[0.0, 0, 0], [1.0 + stretch, 0, 0]]
    model, state = ph.build_springs(points, [[0, 1]], mass=m, ke=ke, rest=1.0, gravity=(0, 0, 0), real="float64")
    x = vectors(ph.rollout_springs(model, state, dt=period / n, steps=n)[-1].x)
    np.testing.assert_allclose(x, points, atol=1e-4 * stretch)


@given(seeds)
def test_energy_stays_bounded_below_the_stable_step(seed):
    model, state = shaken(seed, amount=0.02)
    model = model.replace(kd=kc.zeros_like(model.kd))
    dt = 0.25 * ph.stable_dt(model)
    energies = [energy(model, s) for s in ph.rollout_springs(model, state, dt=dt, steps=400)]
    assert max(energies) < 1.5 * energies[0]


def test_stable_dt_is_the_edge_for_one_spring():
    # Two equal masses on a spring: the bound 4 m = (2 k) dt² is exact.
    model, state = ph.build_springs(
        [[0.0, 0, 0], [1.01, 0, 0]], [[0, 1]], mass=0.5, ke=100.0, rest=1.0, gravity=(0, 0, 0), real="float64"
    )
    dt = ph.stable_dt(model)
    assert dt == pytest.approx(np.sqrt(4 * 0.5 / 200.0))

    def largest_stretch(factor):
        states = ph.rollout_springs(model, state, dt=factor * dt, steps=60)
        return max(abs(np.linalg.norm(vectors(s.x)[1] - vectors(s.x)[0]) - 1.0) for s in states)

    assert largest_stretch(0.99) < 0.2
    assert largest_stretch(1.01) > 1.0


def test_fixed_particles_stay():
    model, state = cloth(fixed=[0, 3], vel=(1.0, 1.0, 1.0))
    last = ph.rollout_springs(model, state, dt=1e-3, steps=50)[-1]
    x, points = vectors(last.x), CLOTH[0]
    np.testing.assert_array_equal(x[[0, 3]], points[[0, 3]])
    assert np.linalg.norm(x[5] - points[5]) > 0.01


@given(arrays(np.float64, (4, 3), elements=st.floats(-1, 1)), seeds)
def test_the_rollouts_gradient_is_that_of_central_differences(noise, seed):
    """Of a random weighting of the last state, by everything that can be optimised."""
    rng = np.random.default_rng(seed)
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) + 0.2 * noise
    pairs = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [2, 3], [3, 1]], dtype=np.int32)
    weights = rng.normal(size=(2, 4, 3))
    leaves = {
        "x": points, "v": rng.normal(size=(4, 3)), "mass": rng.uniform(0.5, 2, 4), "rest": rng.uniform(0.5, 1.5, 6),
        "ke": rng.uniform(5, 20, 6), "kd": rng.uniform(0, 1, 6), "gravity": rng.normal(size=(1, 3)),
    }  # fmt: skip

    def run(values, requires_grad=False):
        made = {}
        for name, value in values.items():
            dtype = kc.float3 if value.ndim == 2 else float
            made[name] = kc.array(np.array(value), dtype=dtype, requires_grad=requires_grad)
        model, _ = ph.build_springs(points, pairs, mass=1.0, ke=1.0, fixed=[3], real="float64")
        model = model.replace(**{name: made[name] for name in ("mass", "rest", "ke", "kd", "gravity")})
        with kc.Tape() as tape:
            last = ph.rollout_springs(model, ph.State(x=made["x"], v=made["v"]), dt=0.02, steps=8)[-1]
        return made, tape, last

    def loss(values):
        _, _, last = run(values)
        return (weights[0] * vectors(last.x)).sum() + (weights[1] * vectors(last.v)).sum()

    made, tape, last = run(leaves, requires_grad=True)
    tape.backward(grads={last.x: weights[0], last.v: weights[1]})
    h = 1e-6
    for name, value in leaves.items():
        way = rng.normal(size=value.shape)
        differences = [loss({**leaves, name: value + s * h * way}) for s in (1, -1)]
        slope = (differences[0] - differences[1]) / (2 * h)
        found = (made[name].grad.numpy().reshape(value.shape) * way).sum()
        assert found == pytest.approx(slope, rel=1e-6, abs=1e-7), name


def test_a_recorded_rollout_replays_with_what_the_arrays_hold_now():
    model, state = cloth()
    with kc.Tape() as tape:
        last = ph.rollout_springs(model, state, dt=1e-3, steps=20)[-1]
    state.v.assign(np.ones(CLOTH[0].shape))
    tape.replay()
    fresh_model, fresh = cloth(vel=(1.0, 1.0, 1.0))
    expected = ph.rollout_springs(fresh_model, fresh, dt=1e-3, steps=20)[-1]
    np.testing.assert_array_equal(vectors(last.x), vectors(expected.x))


def test_the_callers_arrays_are_not_shared():
    points = CLOTH[0].copy()
    _, state = ph.build_springs(points, CLOTH[1], mass=0.05, ke=1.0, real="float64")
    points[:] = 7.0
    np.testing.assert_array_equal(vectors(state.x), CLOTH[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": 0.0}, "mass must be positive, and is 0.0 at 0"),
        ({"mass": [1.0, 2.0]}, r"mass has shape \(2,\); expected one value, or shape \(12,\)"),
        ({"ke": float("nan")}, "ke has an entry that is not finite"),
        ({"fixed": [12]}, "fixed names particle 12 of 12"),
        ({"fixed": [-1]}, "fixed names particle -1 of 12"),
        ({"real": "float16"}, 'real is "float32" or "float64"'),
    ],
)
def test_wrong_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        cloth(**changes)


@pytest.mark.parametrize(
    ("points", "pairs", "message"),
    [
        ([[0.0, 0.0]], [], r"points has shape \(1, 2\); expected \(n, 3\)"),
        ([[0.0, 0, 0], [1, 0, 0]], [[0, 2]], "pairs names particle 2 of 2"),
        ([[0.0, 0, 0], [1, 0, 0]], [[1, 1]], "spring 0 joins a particle to itself"),
        ([[0.0, 0, 0], [1, 0, 0]], [[0, 1, 0]], r"pairs has shape \(1, 3\)"),
    ],
)
def test_wrong_geometry_is_named(points, pairs, message):
    with pytest.raises(ValueError, match=message):
        ph.build_springs(points, pairs, mass=1.0, ke=1.0)


def test_particles_without_springs_fall():
    model, state = ph.build_springs([[0.0, 0, 0]], [], mass=1.0, ke=[], real="float64")
    last = ph.rollout_springs(model, state, dt=0.1, steps=1)[-1]
    np.testing.assert_allclose(vectors(last.x), [G * 0.01])
    assert ph.stable_dt(model) == np.inf


def test_a_rollout_of_no_steps_is_its_start_and_bad_steps_are_refused():
    model, state = cloth()
    assert ph.rollout_springs(model, state, dt=0.1, steps=0) == [state]
    for arguments in ({"dt": 0.0, "steps": 1}, {"dt": 0.1, "steps": -1}):
        with pytest.raises(ValueError, match="dt must be positive and steps not negative"):
            ph.rollout_springs(model, state, **arguments)
