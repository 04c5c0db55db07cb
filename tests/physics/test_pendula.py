"""Laws of the pendula: against an adaptive solver of high order, energy, gradients of every quantity, batches."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.model.standalone import Frames

SIMPLE = {"length": 0.7, "mass": 1.3, "angle": 2.5, "rate": -0.4, "gravity": 9.81, "damping": 0.05}
DOUBLE = {
    "length": (0.9, 0.6), "mass": (1.2, 0.7), "angle": (1.9, -0.8), "rate": (0.5, 1.0), "gravity": 9.81,
    "damping": (0.03, 0.02),
}  # fmt: skip


def simple_ode(length, mass, gravity, damping):
    return lambda t, y: [y[1], -gravity / length * np.sin(y[0]) - damping / (mass * length**2) * y[1]]


def double_ode(length, mass, gravity, damping):
    """From the Lagrangian in Cartesian form: J^T m J θ'' = J^T (m g - m J' θ') + joint torques, with J by hand."""
    (l1, l2), (m1, m2), (c1, c2) = length, mass, damping

    def rates(t, y):
        a, b, u, w = y
        J = np.array([
            [l1 * np.cos(a), 0], [l1 * np.sin(a), 0],
            [l1 * np.cos(a), l2 * np.cos(b)], [l1 * np.sin(a), l2 * np.sin(b)],
        ])  # fmt: skip
        dJ = np.array([
            [-l1 * np.sin(a) * u, 0], [l1 * np.cos(a) * u, 0],
            [-l1 * np.sin(a) * u, -l2 * np.sin(b) * w], [l1 * np.cos(a) * u, l2 * np.cos(b) * w],
        ])  # fmt: skip
        m = np.array([m1, m1, m2, m2])
        force = m * np.array([0, -gravity, 0, -gravity]) - m * (dJ @ [u, w])
        torque = np.array([-c1 * u - c2 * (u - w), -c2 * (w - u)])
        return [u, w, *np.linalg.solve(J.T @ (m[:, None] * J), J.T @ force + torque)]

    return rates


def solved(ode, start, times):
    return solve_ivp(ode, (0, times[-1]), start, t_eval=times, method="DOP853", rtol=1e-12, atol=1e-13).y.T


def physics_of(case):
    return {name: case[name] for name in ("length", "mass", "gravity", "damping")}


@given(
    length=st.floats(0.3, 2), mass=st.floats(0.1, 5), angle=st.floats(-3, 3), rate=st.floats(-5, 5),
    damping=st.floats(0, 0.5),
)  # fmt: skip
def test_a_simple_pendulum_moves_as_a_solver_of_high_order_says(length, mass, angle, rate, damping):
    frames = ph.Pendulum(length, mass, angle, rate, damping=damping).rollout(dt=1 / 120, steps=240, every=60)
    wanted = solved(simple_ode(length, mass, 9.81, damping), [angle, rate], frames.times)
    assert np.allclose(frames.angle, wanted[:, 0], atol=1e-8) and np.allclose(frames.rate, wanted[:, 1], atol=1e-7)


@given(
    length=st.tuples(*[st.floats(0.5, 1.5)] * 2), mass=st.tuples(*[st.floats(0.3, 3)] * 2),
    angle=st.tuples(*[st.floats(-2, 2)] * 2), rate=st.tuples(*[st.floats(-1, 1)] * 2),
    damping=st.tuples(*[st.floats(0, 0.3)] * 2),
)  # fmt: skip
def test_a_double_pendulum_moves_as_a_solver_of_high_order_says(length, mass, angle, rate, damping):
    # One second: later, chaos makes every error of rounding visible.
    frames = ph.DoublePendulum(length, mass, angle, rate, damping=damping).rollout(dt=1 / 240, steps=240, every=60)
    wanted = solved(double_ode(length, mass, 9.81, damping), [*angle, *rate], frames.times)
    assert np.allclose(np.hstack([frames.angle, frames.rate]), wanted, atol=1e-7)


@pytest.mark.parametrize("kind", ["simple", "double"])
def test_the_method_has_order_eight(kind):
    case = SIMPLE if kind == "simple" else DOUBLE
    model = (ph.Pendulum if kind == "simple" else ph.DoublePendulum)(**case)
    exact = model.rollout(dt=1 / 640, steps=640, every=640).angle[-1]
    steps = np.array([10, 20, 40]) if kind == "simple" else np.array([20, 40, 80])
    errors = [float((model.rollout(dt=1 / n, steps=int(n), every=int(n)).angle[-1] - exact).abs().max()) for n in steps]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert -9.5 < slope < -7.2, (slope, errors)


@pytest.mark.parametrize(("model", "dt"), [(ph.Pendulum(**{**SIMPLE, "damping": 0.0}), 1 / 120),
                                           (ph.DoublePendulum(**{**DOUBLE, "damping": 0.0}), 1 / 480)])  # fmt: skip
def test_energy_is_kept_without_damping(model, dt):
    frames = model.rollout(dt=dt, steps=round(10 / dt), every=round(1 / dt))
    energy = model.energy(frames.angle, frames.rate)
    assert np.abs(energy / energy[0] - 1).max() < 1e-9


@pytest.mark.parametrize("model", [ph.Pendulum(**SIMPLE), ph.DoublePendulum(**DOUBLE)])
def test_damping_takes_energy_all_the_time(model):
    frames = model.rollout(dt=1 / 240, steps=480, every=4)
    assert (np.diff(model.energy(frames.angle, frames.rate)) < 0).all()


def test_small_swings_have_the_period_of_the_textbook():
    model = ph.Pendulum(length=0.5, angle=1e-4)
    period = 2 * np.pi * np.sqrt(0.5 / 9.81)
    assert np.isclose(model.rollout(dt=period / 100, steps=100).angle[-1], 1e-4, rtol=1e-6)


def test_a_double_pendulum_with_nothing_below_is_a_simple_one():
    simple = ph.Pendulum(0.8, 1.0, 1.2, 0.3).rollout(dt=1 / 240, steps=240)
    double = ph.DoublePendulum((0.8, 0.5), (1.0, 1e-8), (1.2, 0.1), (0.3, 0.0)).rollout(dt=1 / 240, steps=240)
    assert np.allclose(double.angle[:, 0], simple.angle, atol=1e-6)


def test_masses_are_where_the_angles_say():
    frames = ph.DoublePendulum(**DOUBLE).rollout(dt=0.01, steps=20)
    a, b = np.asarray(frames.angle).T
    elbow = 0.9 * np.stack([np.sin(a), -np.cos(a), 0 * a], axis=1)
    assert np.allclose(frames.x[:, 0], elbow)
    assert np.allclose(frames.x[:, 1], elbow + 0.6 * np.stack([np.sin(b), -np.cos(b), 0 * b], axis=1))
    assert np.allclose(ph.Pendulum(length=2.0, angle=np.pi / 2).rollout(dt=0.1, steps=0).x, [[2, 0, 0]], atol=1e-15)


# --------------------------------------------------------------------------------------------------------- gradients
def leaves_of(case):
    """All at once, so that the adjoint is compiled once."""
    return {name: torch.tensor(v, dtype=torch.float64, requires_grad=True) for name, v in case.items()}


@pytest.mark.parametrize("kind", ["simple", "double"])
def test_gradients_of_every_quantity_are_right(kind):
    make, case = (ph.Pendulum, SIMPLE) if kind == "simple" else (ph.DoublePendulum, DOUBLE)
    w = torch.from_numpy(np.random.default_rng(3).normal(size=(4, 2)))

    def loss(values):
        frames = make(**values).rollout(dt=1 / 50, steps=60, every=20)
        angle = frames.angle.reshape(4, -1)
        return (angle * w[:, : angle.shape[1]]).sum() + 0.1 * frames.rate.sum() + frames.x.pow(3).sum()

    leaves = leaves_of(case)
    loss(leaves).backward()
    h = 1e-6
    for name, value in case.items():
        base = np.atleast_1d(np.array(value, float))
        for k in range(len(base)):
            e = np.zeros_like(base)
            e[k] = h
            ends = [float(loss({**case, name: (base + s * e).reshape(np.shape(value))})) for s in (1, -1)]
            slope = (ends[0] - ends[1]) / (2 * h)
            assert np.isclose(leaves[name].grad.reshape(-1)[k], slope, rtol=1e-6, atol=1e-7), name


def test_one_number_for_both_rods_has_the_sum_of_the_gradients():
    def slope(length):
        leaves = leaves_of({**DOUBLE, "length": length})
        ph.DoublePendulum(**leaves).rollout(dt=0.02, steps=30).x[-1].sum().backward()
        return leaves["length"].grad

    assert torch.isclose(slope(0.8), slope([0.8, 0.8]).sum())


def test_length_and_damping_are_found_from_a_recording():
    seen = ph.Pendulum(length=0.62, angle=0.9, damping=0.04).rollout(dt=1 / 100, steps=200, every=4).angle
    guess = torch.tensor([0.5, 0.01], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([guess], line_search_fn="strong_wolfe", max_iter=60)

    def loss():
        optimiser.zero_grad()
        model = ph.Pendulum(angle=0.9).replace({"length": guess[0], "damping": guess[1].abs()})
        error = ((model.rollout(dt=1 / 100, steps=200, every=4).angle - seen) ** 2).sum()
        error.backward()
        return error

    optimiser.step(loss)
    assert np.allclose(guess.detach(), [0.62, 0.04], atol=1e-5)


def test_a_rollout_runs_on_a_tape():
    length = kc.array(np.array([0.7]), requires_grad=True)
    model = ph.Pendulum(**SIMPLE).replace(length=length)
    with kc.Tape() as tape:
        frames = model.rollout(dt=0.02, steps=50)
    seed = np.zeros(51)
    seed[-1] = 1.0
    tape.backward(grads={frames.angle: seed})
    value = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    ph.Pendulum(**{**SIMPLE, "length": value}).rollout(dt=0.02, steps=50).angle[-1].backward()
    assert np.isclose(length.grad.numpy()[0], float(value.grad))


# ----------------------------------------------------------------------------------------------------- batch, errors
@pytest.mark.parametrize("lanes", [2, 4])
def test_a_batch_is_many_pendula(lanes, monkeypatch):
    """One alone runs thread by thread, five of them fill groups of lanes."""
    monkeypatch.setattr(kc.config, "lanes", lanes)
    angles = np.linspace(-2, 2, 5)
    frames = ph.Pendulum(**{**SIMPLE, "angle": angles}).rollout(dt=0.02, steps=40, every=10)
    assert tuple(frames.angle.shape) == (5, 5) and tuple(frames.x.shape) == (5, 5, 3)
    for k, angle in enumerate(angles):
        alone = ph.Pendulum(**{**SIMPLE, "angle": angle}).rollout(dt=0.02, steps=40, every=10)
        assert np.array_equal(frames.angle[k], alone.angle)
    two = ph.DoublePendulum(**{**DOUBLE, "gravity": np.array([9.81, 1.62, 3.7])}).rollout(dt=0.02, steps=10)
    assert tuple(two.angle.shape) == (3, 11, 2) and tuple(two.x.shape) == (3, 11, 2, 3)


def test_single_precision_is_there():
    frames = ph.Pendulum(**SIMPLE, real="float32").rollout(dt=0.01, steps=100)
    assert frames.angle.dtype == torch.float32
    assert np.allclose(frames.angle, ph.Pendulum(**SIMPLE).rollout(dt=0.01, steps=100).angle, atol=1e-4)


def test_one_function_runs_all_models():
    a, b = ph.rollout(ph.Pendulum(**SIMPLE), dt=0.01, steps=10), ph.Pendulum(**SIMPLE).rollout(dt=0.01, steps=10)
    assert np.array_equal(a.angle, b.angle) and np.array_equal(a["angle"], b.angle)


def test_parameters_have_names_units_and_bounds():
    model = ph.DoublePendulum(**DOUBLE)
    assert [p.name for p in model.parameters()] == list(DOUBLE) == list(model)
    assert {p.name: p.unit for p in model.parameters()}["gravity"] == "m/s²"
    assert all(p.shape == ((2,) if p.name != "gravity" else ()) for p in model.parameters())
    assert np.array_equal(model.replace(mass=(3, 4))["mass"], [3, 4]) and np.array_equal(model["mass"], DOUBLE["mass"])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ph.Pendulum(length=0.0), ValueError, "length must not be below"),
        (lambda: ph.Pendulum(mass=np.nan), ValueError, "mass has an entry that is not finite"),
        (lambda: ph.Pendulum(damping=-1), ValueError, "damping must not be below 0"),
        (lambda: ph.DoublePendulum(mass=(1, 2, 3)), ValueError, "mass has shape"),
        (lambda: ph.Pendulum(angle=np.zeros(3), rate=np.zeros(4)), ValueError, "how many pendula are there"),
        (lambda: ph.Pendulum().replace(lenght=1.0), KeyError, "there is no parameter 'lenght'"),
        (lambda: ph.Pendulum().rollout(dt=0.0, steps=1), ValueError, "dt must be positive"),
        (lambda: ph.Pendulum().rollout(dt=0.1, steps=10, every=3), ValueError, "not a multiple of every"),
        (lambda: ph.Pendulum().rollout(dt=0.1, steps=1, integrator="rk4"), TypeError, "a pendulum has no integrator"),
        (lambda: ph.Pendulum(real="float16"), ValueError, 'real is "float32" or "float64"'),
        (lambda: Frames(np.zeros(1), {"a": 1}).b, AttributeError, "they hold a"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
