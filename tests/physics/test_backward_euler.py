"""Backward Euler: Newton's method finds the end of the step, and the implicit function theorem its gradient."""

import numpy as np
import pytest
import torch
from touching import MODEL, central, leaves, loss, scene

import kernelc as kc
from nablasim import physics as ph

EXACT = ph.BackwardEuler(tol=1e-12)
SETTINGS = {"dt": 5e-3, "steps": 12, "every": 3, "integrator": EXACT}


def beam(E, cells=(8, 1, 1), real="float64", **soft):
    made = ph.Scene()
    mesh = ph.TetMesh.box((1.0, 0.1, 0.1), cells=cells)
    made.add_soft("beam", mesh, density=1000.0, material=ph.NeoHookean(E=E, nu=0.3), **soft)
    return made.fix("beam", where=lambda x: x[:, 0] < 1e-6).build(real)


def folded(**cloth):
    """A strip of cloth that is folded over itself and falls on the ground, in the wind."""
    made = ph.Scene()
    mesh = ph.TriMesh.grid((0.4, 0.2), cells=(8, 4))
    x = mesh.vertices[:, 0].copy()
    there = mesh.vertices.copy()
    there[:, 0] = np.where(x > 0.2, 0.41 - x, x)
    there[:, 2] = np.where(x > 0.2, 0.012, 0.0) + 0.002 * np.sin(40 * x)
    there = there[:, [0, 2, 1]]
    made.add_cloth("strip", mesh, pos=(0, 0, 0), mass=0.02, stretch=200.0, shear=100.0, bend=1e-3, lift=0.1, drag=0.2,
                   damping=0.01, **cloth)  # fmt: skip
    made.add_self_contact("strip", thickness=0.015, ke=20.0, kd=0.02, kf=0.005, mu=0.4)
    made.add_wind((0.5, 0.2, 0.3))
    made.add_ground("floor", ke=50.0, kd=0.1, kf=0.1, mu=0.5)
    return made.build("float64").replace({"strip.x": there})


# -- gradients
def compared(model, names, rel, **settings):
    settings = {**SETTINGS, **settings}
    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}
    loss(values, model, **settings).backward()
    rng = np.random.default_rng(1)
    for name, value in values.items():
        way = torch.tensor(rng.normal(size=value.shape))
        found = float((value.grad * way).sum())
        h = 1e-6 * max(0.01, float(value.detach().abs().max()))
        expected = central(values, name, way, h, model=model, **settings)
        assert found == pytest.approx(expected, rel=rel, abs=1e-6), name
        assert found != 0.0, f"{name} has no effect"


def test_every_parameter_against_central_differences_through_contact():
    compared(MODEL, MODEL.names(), 2e-5)


@pytest.mark.parametrize("ground", [{"smoothing": 0.002}, {"damping": "linear"}])
def test_other_laws_of_contact(ground):
    names = [
        "block.x",
        "block.density",
        "block.mu",
        "net.v",
        "gravity",
        *(f"floor.{q}" for q in ("ke", "kd", "kf", "normal")),
    ]
    compared(scene(**ground).build("float64"), names, 2e-5)


def test_every_parameter_of_cloth_that_touches_itself():
    model = folded()
    compared(model, model.names(), 1e-4, dt=4e-3, steps=3, every=1)


def test_an_obstacle_that_is_driven_through_a_net():
    points, pairs = ph.spring_grid((0.4, 0.4), (4, 4))
    made = ph.Scene().add_springs("net", points[:, [0, 2, 1]], pairs, ke=200.0, kd=0.2, mass=0.01)
    made.add_obstacle(
        "ball", ph.Sphere(0.1), pos=(0.2, -0.08, 0.2), vel=(0.0, 0.5, 0.1), ke=500.0, kd=0.5, kf=0.5, mu=0.5
    )
    model = made.build("float64")
    compared(model, ["net.x", "net.ke", "ball.x", "ball.v", "ball.ke", "ball.kf"], 2e-5, dt=2e-3)


def test_control_in_time():
    control = torch.tensor(0.1 * np.sin(np.arange(12)), requires_grad=True)
    loss({}, control={"block.activation": control}, **SETTINGS).backward()
    way, h = torch.tensor(np.random.default_rng(2).normal(size=12)), 1e-6
    two = [loss({}, control={"block.activation": control.detach() + s * h * way}, **SETTINGS) for s in (1, -1)]
    assert float((control.grad * way).sum()) == pytest.approx(float(two[0] - two[1]) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("checkpoint", ["sqrt", 3])
def test_checkpoints_do_not_change_a_bit(checkpoint):
    found = []
    for kept in ("all", checkpoint):
        values = leaves(["block.mu", "floor.mu", "net.x", "gravity"])
        loss(values, checkpoint=kept, **SETTINGS).backward()
        found.append([v.grad for v in values.values()])
    for one, other in zip(*found):
        assert torch.equal(one, other)


def test_on_a_tape_of_kernelc():
    ke = kc.array(np.full(1, 60.0), requires_grad=True)
    with kc.Tape() as tape:
        x = ph.rollout(MODEL.replace({"net.ke": ke}), **SETTINGS)["net"].x
    weights = np.random.default_rng(0).normal(size=x.numpy().shape)
    for value in (60.0, 70.0):
        ke.assign(np.full(1, value))
        tape.replay()
        tape.zero()
        tape.backward(grads={x: weights})
        k = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        frames = ph.rollout(MODEL.replace({"net.ke": k}), **SETTINGS)["net"].x
        (frames * torch.tensor(weights)).sum().backward()
        np.testing.assert_array_equal(x.numpy(), frames.detach().numpy())
        np.testing.assert_array_equal(ke.grad.numpy()[0], k.grad.numpy())


def test_the_residuals_of_both_solves_are_reported():
    values = leaves(["net.ke"])
    trajectory = ph.rollout(MODEL.replace(values), **SETTINGS)
    solves = trajectory.solves
    assert (solves.newton <= 1e-12).all() and (1 <= solves.iterations).all() and (solves.iterations <= 12).all()
    assert np.isnan(solves.adjoint).all()
    trajectory["net"].x[-1].sum().backward()
    assert (solves.adjoint <= 1e-12).all()
    assert "12 steps" in repr(solves)


# -- laws
def test_free_fall():
    dt, n, v0 = 0.1, 20, np.array([1.0, 2.0, -3.0])
    model = ph.Scene().add_particles("p", [[0.0, 5.0, 0.0]], mass=2.0, vel=v0).build("float64")
    x = ph.rollout(model, dt=dt, steps=n, integrator="backward_euler")["p"].x[-1, 0].numpy()
    expected = np.array([0.0, 5.0, 0.0]) + n * dt * v0 + np.array([0.0, -9.81, 0.0]) * dt**2 * n * (n + 1) / 2
    np.testing.assert_allclose(x, expected, rtol=1e-13)


def test_an_oscillator_follows_the_recursion_of_backward_euler():
    """(x, v) -> (x + h v, v - h ω² x) / (1 + ω² h²): the amplitude falls by 1 / sqrt(1 + ω² h²) in each step."""
    h, k, m = 0.3, 100.0, 2.0
    made = ph.Scene(gravity=(0, 0, 0)).add_springs(
        "s", [[0, 0, 0], [1.1, 0, 0]], [[0, 1]], ke=k, kd=0.0, mass=m, rest=1.0
    )
    model = made.fix("s", where=lambda x: x[:, 0] < 0.5).build("float64")
    w2, state = k / m, np.array([0.1, 0.0])
    frames = ph.rollout(model, dt=h, steps=8, integrator=EXACT)["s"]
    for step in range(1, 9):
        state = np.array([state[0] + h * state[1], state[1] - h * w2 * state[0]]) / (1 + w2 * h * h)
        assert frames.x[step, 1, 0].item() - 1 == pytest.approx(state[0], abs=1e-13)
        assert frames.v[step, 1, 0].item() == pytest.approx(state[1], abs=1e-13)


def test_first_order_towards_short_explicit_steps():
    fine = ph.rollout(MODEL, dt=1e-5, steps=4000, every=4000)
    errors = []
    for steps in (20, 40, 80):
        coarse = ph.rollout(MODEL, dt=0.04 / steps, steps=steps, every=steps, integrator="backward_euler")
        errors.append(max(float((coarse[n].x[-1] - fine[n].x[-1]).abs().max()) for n in fine))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (rates > 0.8).all() and (rates < 1.3).all(), (errors, rates)


def test_momentum_is_kept_without_forces_from_outside():
    made = ph.Scene(gravity=(0, 0, 0))
    made.add_soft("jelly", ph.TetMesh.box((0.3, 0.2, 0.2), cells=(3, 2, 2)), density=1000.0, damping=2.0,
                  material=ph.NeoHookean(E=1e4, nu=0.3))  # fmt: skip
    model = made.build("float64")
    rng = np.random.default_rng(0)
    v = torch.tensor(rng.normal(size=np.shape(model["jelly.x"])))
    frames = ph.rollout(model.replace({"jelly.v": v}), dt=1 / 30, steps=20, integrator=EXACT)["jelly"]
    mass = torch.tensor(ph.vertex_masses(ph.TetMesh.box((0.3, 0.2, 0.2), cells=(3, 2, 2)), 1000.0))
    momentum = (mass[:, None] * frames.v).sum(dim=1)
    assert float((momentum - momentum[0]).abs().max()) < 1e-11 * float((mass[:, None] * frames.v[0]).abs().sum())


def test_energy_only_falls():
    model = beam(1e5)
    frames = ph.rollout(model, dt=1 / 60, steps=60, integrator="backward_euler")
    energies = [ph.energy(model, frames.state(k))["total"] for k in range(len(frames))]
    assert (np.diff(energies) < 1e-9 * abs(energies[0])).all()


@pytest.mark.parametrize("E", [1e6, 1e9])
def test_a_stiff_beam_at_the_rate_of_a_video_comes_to_its_equilibrium(E):
    model = beam(E)
    with pytest.raises(ph.StepTooLarge):
        ph.rollout(model, dt=1 / 60, steps=1)
    frames = ph.rollout(model, dt=1 / 2, steps=60, every=60, integrator="backward_euler")
    weight = 9.81 * 1000.0 * 0.01
    mass = ph.vertex_masses(ph.TetMesh.box((1.0, 0.1, 0.1), cells=(8, 1, 1)), 1000.0)
    free = np.asarray(model["beam.x"])[:, 0] > 1e-6
    net = np.asarray(ph.forces(model, frames.state())["beam"].f) + mass[:, None] * [0, -9.81, 0]
    assert np.abs(net[free]).max() < 1e-5 * weight
    assert frames["beam"].x[-1, :, 1].min() < 0


def test_a_light_and_a_heavy_block_fall_and_rest():
    for mass, ke in ((1e-3, 10.0), (1e3, 1e7)):
        made, mesh = ph.Scene(), ph.TetMesh.box((0.1, 0.1, 0.1), cells=(2, 2, 2))
        made.add_soft("block", mesh, density=1e3 * mass, damping=0.01 * mass,
                      material=ph.NeoHookean(E=1e5 * mass, nu=0.3), pos=(0, 0.05, 0), vel=(0.5, 0, 0))  # fmt: skip
        made.add_ground("floor", ke=ke, kd=0.01 * ke, kf=0.01 * ke, mu=0.5)
        frames = ph.rollout(made.build(), dt=1 / 60, steps=120, integrator="backward_euler")["block"]
        assert float(frames.v[-1].abs().max()) < 1e-4 and float(frames.x[..., 1].min()) > -0.02


def test_float32_is_the_rounding_of_float64():
    settings = {**SETTINGS, "integrator": ph.BackwardEuler(), "steps": 6}
    two = [ph.rollout(scene().build(real), **settings)["block"].x.double() for real in ("float32", "float64")]
    assert float((two[0] - two[1]).abs().max()) < 1e-5


def test_copies_of_a_batch_move_as_alone():
    models = [MODEL.replace({"net.ke": ke}) for ke in (30.0, 60.0)]
    together = ph.rollout(ph.batch(models), **SETTINGS)["net"].x
    for copy, model in zip(together, models):
        assert float((copy - ph.rollout(model, **SETTINGS)["net"].x).abs().max()) < 1e-11


# -- refusals
def test_an_equation_that_is_not_solved_is_an_error():
    with pytest.raises(
        ph.NotConverged, match=r"did not converge in step 1 .* residual .* 'block'|'net'|'grain'"
    ) as caught:
        ph.rollout(MODEL, dt=5e-3, steps=3, integrator=ph.BackwardEuler(tol=1e-14, iterations=1))
    assert caught.value.step == 1 and caught.value.residual > 1e-14


@pytest.mark.parametrize("settings", [{"tol": 0.0}, {"tol": 2.0}, {"iterations": 0}])
def test_settings_are_checked(settings):
    with pytest.raises(ValueError, match="BackwardEuler"):
        ph.BackwardEuler(**settings)
