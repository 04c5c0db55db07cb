"""Friction of bodies: taken at the end of the step, it holds, brakes and never drives, whatever kf and the step."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from nablasim import physics as ph

G = 9.81
DT = 1e-3


def box_on_a_slope(angle, *, size=(0.4, 0.1, 0.4), real="float64", vel=(0.0, 0.0, 0.0), turn=0.0, **plane):
    """A box of 1 kg that lies on a slope, which falls off along x."""
    normal = np.array([np.sin(angle), np.cos(angle), 0.0])
    down = np.array([np.cos(angle), -np.sin(angle), 0.0])
    sunk = 0.0 if plane.get("hard") else G * np.cos(angle) / (4 * plane["ke"])
    scene = ph.Scene().add_rigid("box", ph.Box(*size), mass=1.0, rot=ph.quat((0, 0, -1), angle), vel=vel,
                                 pos=(0.5 * size[1] - sunk) * normal, omega=turn * normal)  # fmt: skip
    return scene.add_plane("hill", normal=normal, **plane).build(real), down


def stiff(kf, mu, **more):
    return {"ke": 1e4, "kd": 1e2, "kf": kf, "mu": mu, **more}


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("kf", [1e2, 1e4, 1e6, 1e9])
def test_a_box_on_a_slope_creeps_with_the_rate_of_the_law_and_does_not_buzz(kf, real):
    angle = np.radians(17)
    model, down = box_on_a_slope(angle, real=real, **stiff(kf, 0.5))
    v = ph.rollout(model, dt=DT, steps=1500).numpy()["box"].v[1000:].astype(float)
    creep = G * np.sin(angle) / (4 * kf)  # four corners share the weight
    assert (v @ down).mean() == pytest.approx(creep, rel=0.02, abs=1e-6)
    assert np.abs(v - v.mean(axis=0)).max() < (1e-4 if real == "float32" else 1e-5) + 0.02 * creep


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("height", [0.1, 0.2, 0.4, 0.5])
@pytest.mark.parametrize("mu", [0.35, 0.6, 1.0, 3.0])
def test_a_box_on_hard_ground_holds_below_the_angle_of_friction(mu, height, real):
    model, down = box_on_a_slope(np.radians(17), size=(0.4, height, 0.4), mu=mu, hard=True, real=real)
    box = ph.rollout(model, dt=DT, steps=3000).numpy()["box"]
    assert np.abs((box.x[-1] - box.x[2000]).astype(float) @ down) / (1000 * DT) < 1e-6
    assert np.abs(box.v[2000:]).max() < (2e-4 if real == "float32" else 1e-6)


@pytest.mark.parametrize("ground", [{"hard": True}, stiff(1e5, 0.0)], ids=["hard", "compliant"])
@pytest.mark.parametrize("mu", [0.0, 0.2, 0.28])
def test_above_the_angle_of_friction_it_slides_as_coulomb_says(mu, ground):
    angle = np.radians(17)  # tan is 0.306
    model, down = box_on_a_slope(angle, **{**ground, "mu": mu})
    v = ph.rollout(model, dt=DT, steps=1000).numpy()["box"].v @ down
    assert (v[-1] - v[200]) / (800 * DT) == pytest.approx(G * (np.sin(angle) - mu * np.cos(angle)), rel=0.01)


@pytest.mark.parametrize("kf", [1e2, 1e4, 1e7])
@pytest.mark.parametrize("way", [0.0, 0.9, 2.5])
def test_a_box_stops_after_v_squared_over_2_mu_g(kf, way):
    v, mu = 1.5, 0.4
    model, _ = box_on_a_slope(0.0, vel=(v * np.cos(way), 0.0, v * np.sin(way)), **stiff(kf, mu))
    x = ph.rollout(model, dt=DT, steps=1000).numpy()["box"].x
    # At the end it creeps out with the rate 4 kf, and comes farther by m mu g / 4 kf times its last speed.
    assert np.linalg.norm(x[-1] - x[0]) == pytest.approx(v * v / (2 * mu * G), rel=0.01 + 1 / kf)


def energies(model, **how):
    trajectory = ph.rollout(model, **how).numpy()
    return np.array([ph.energy(model, trajectory.state(k))["total"] for k in range(len(trajectory))])


@pytest.mark.parametrize("seed", range(6))
def test_friction_on_planes_never_adds_energy(seed):
    """Without gravity, pressed against nothing: what is there can only be taken."""
    rng = np.random.default_rng(seed)
    angle, kf, mu = rng.uniform(0, 0.2), 10 ** rng.uniform(2, 8), rng.uniform(0.1, 2.0)
    size, spin = rng.uniform(0.1, 0.6, 3), rng.uniform(-20, 20)
    vel = rng.normal(size=3) * [2, 0, 2]
    model, _ = box_on_a_slope(angle, size=size, vel=vel, turn=spin, **stiff(kf, mu))
    found = energies(model, dt=DT, steps=800, every=4)
    without, _ = box_on_a_slope(angle, size=size, vel=vel, turn=spin, **stiff(kf, 0.0))
    most = energies(without, dt=DT, steps=800, every=4).max()
    assert found.max() <= most + 1e-3 * abs(most)
    late = found[100:]
    assert (np.diff(late) < 2e-3 * np.ptp(found)).all()


def test_it_comes_to_the_law_as_steps_become_short():
    """At the end of the step or at its start: the same to first order."""
    angle = np.radians(10)
    paths = []
    for n in (1, 2, 4):
        model, _ = box_on_a_slope(angle, vel=(0.6, -0.1, 0.4), turn=3.0, **stiff(50.0, 0.4, smoothing=1e-3))
        paths.append(ph.rollout(model, dt=DT / n, steps=300 * n, every=300 * n).numpy()["box"].x[-1])
    first, second = (np.linalg.norm(a - b) for a, b in pairwise(paths))
    assert second < 0.6 * first and second < 1e-3


@pytest.mark.parametrize("kf", [50.0, 1e5])
@pytest.mark.parametrize("hard", [False, True])
def test_gradients_through_sliding_turning_and_sticking(kf, hard):
    ground = {"hard": True, "mu": 0.3} if hard else stiff(kf, 0.3, smoothing=1e-3)
    model, _ = box_on_a_slope(0.2, vel=(0.3, 0.0, 0.2), turn=2.0, **ground)
    weights = torch.Generator().manual_seed(0)
    draw = torch.randn((5, 3), generator=weights, dtype=torch.float64)

    def loss(values):
        box = ph.rollout(model.replace(values), dt=DT, steps=200, every=50)["box"]
        return (box.x * draw).sum() + 0.1 * (box.v * draw).sum() + 0.05 * (box.omega * draw).sum()

    names = [n for n in model.names() if n in ("box.v", "box.omega", "box.mass", "hill.mu", "hill.kf", "gravity",
                                               "hill.normal", "box.size", "box.x")]  # fmt: skip
    values = {n: torch.tensor(np.array(model[n]), requires_grad=True) for n in names}
    loss(values).backward()
    fixed, rng = {n: v.detach() for n, v in values.items()}, np.random.default_rng(0)
    for name, value in values.items():
        way = torch.tensor(rng.normal(size=value.shape))
        h = 1e-7 * max(0.1, float(value.detach().abs().max()))
        two = [float(loss({**fixed, name: fixed[name] + s * h * way})) for s in (1, -1)]
        slope = (two[0] - two[1]) / (2 * h)
        assert float((value.grad * way).sum()) == pytest.approx(slope, rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize("kf", [1e2, 1e4, 1e7])
@pytest.mark.parametrize("shape", [ph.Box(0.2, 0.1, 0.2), ph.Cylinder(0.1, 0.1), ph.Sphere(0.1)],
                         ids=lambda s: type(s).__name__)  # fmt: skip
def test_bodies_that_rub_each_other_do_not_buzz(shape, kf):
    """On an obstacle: friction brakes, and is then at rest; a cylinder needs longer to rock to a stop on its rims."""
    scene = ph.Scene().add_obstacle("table", ph.Box(4, 0.2, 4), pos=(0, -0.1, 0), ke=1e4, kd=1e2, kf=kf, mu=0.4)
    round = isinstance(shape, ph.Sphere)
    scene.add_rigid("body", shape, mass=1.0, pos=(0, 0.1 if round else 0.05, 0), vel=(1.0, 0, 0))
    model = scene.build("float64")
    still = 2500 if isinstance(shape, ph.Cylinder) else 1500
    body = ph.rollout(model, dt=DT, steps=still + 500).numpy()["body"]
    # The slip; the ball touches half-way between its surface and the table's, into which it sinks by m g / ke.
    late = body.v[still:, 0] + (body.omega[still:, 2] * (0.1 - 0.5 * G / 1e4) if round else 0)
    assert np.abs(late).max() < 1e-4
    assert body.v[:, 0].max() <= 1.0 and body.v[:, 0].min() > -0.02  # braked, never driven; it may rock a little


def test_two_free_bodies_that_rub_lose_energy_and_keep_their_momentum():
    scene = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=1e4, kd=50.0, kf=1e7, mu=0.5)
    scene.add_rigid("low", ph.Box(0.4, 0.1, 0.4), mass=2.0, pos=(0, 0, 0), omega=(0, 3.0, 0))
    scene.add_rigid("high", ph.Box(0.2, 0.1, 0.2), mass=0.5, pos=(0, 0.099, 0), vel=(0.5, -0.3, 0.2),
                    omega=(0, -5.0, 0))  # fmt: skip
    model = scene.build("float64")
    found = energies(model, dt=DT, steps=200)
    assert (np.diff(found) < 1e-3 * found[0]).all() and found[-1] < 0.98 * found[0]
    end = ph.rollout(model, dt=DT, steps=200).numpy()
    np.testing.assert_allclose(2.0 * end["low"].v[-1] + 0.5 * end["high"].v[-1], [0.25, -0.15, 0.1], atol=1e-12)
