"""Laws of soft solids: rest shapes, invariance, small-strain moduli, activation, damping, beams."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablasim import physics as ph

seeds = st.integers(0, 2**32 - 1)
MESH = ph.TetMesh.box((0.3, 0.2, 0.1), cells=(3, 2, 1))


def build(mesh=MESH, material=None, gravity=(0, 0, 0), **settings):
    settings = {"density": 1e3, "damping": 0.0, "activation": True, **settings}
    scene = ph.Scene(gravity=gravity)
    return scene.add_soft("body", mesh, material=material or ph.NeoHookean(E=2e4, nu=0.3), **settings).build("float64")


MODEL = build()


def shaken(seed, amount=0.01, **values):
    rng = np.random.default_rng(seed)
    shape = MESH.vertices.shape
    return MODEL.replace({
        "body.x": MESH.vertices + amount * rng.normal(size=shape), "body.v": rng.normal(size=shape),
        "body.mu": rng.uniform(5e3, 1e4, len(MESH.tets)), "body.lam": rng.uniform(5e3, 1e4, len(MESH.tets)), **values,
    })  # fmt: skip


def rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def force(model, state=None):
    return ph.forces(model, state)["body"].f


@given(seeds)
def test_the_rest_shape_is_free_of_force_wherever_it_lies(seed):
    rng = np.random.default_rng(seed)
    moved = MESH.vertices @ rotation(rng).T + rng.normal(size=3)
    np.testing.assert_allclose(force(MODEL.replace({"body.x": moved})), 0.0, atol=1e-10)


@given(seeds)
def test_forces_turn_with_the_body_and_ignore_its_uniform_motion(seed):
    rng = np.random.default_rng(seed)
    model = shaken(seed, **{"body.damping": 30.0, "body.activation": 0.1})
    R = rotation(rng)
    moved = model.state0.replace({
        "body.x": model["body.x"] @ R.T + rng.normal(size=3), "body.v": model["body.v"] @ R.T + rng.normal(size=3),
    })  # fmt: skip
    np.testing.assert_allclose(force(model, moved), force(model) @ R.T, rtol=0, atol=1e-9)


@given(seeds)
def test_damping_brakes_neither_translation_nor_spin(seed):
    # A deformed body in rigid motion: only its elastic force is there, however large the damping.
    rng = np.random.default_rng(seed)
    x = MESH.vertices + 0.01 * rng.normal(size=MESH.vertices.shape)
    rigid = rng.normal(size=3) + np.cross(rng.normal(size=3), x)
    moving = MODEL.replace({"body.x": x, "body.v": rigid})
    np.testing.assert_allclose(force(moving.replace({"body.damping": 1e3})), force(moving), rtol=0, atol=1e-9)


@given(seeds)
def test_damping_takes_energy_out(seed):
    model = shaken(seed)
    power = ((force(model.replace({"body.damping": 5.0})) - force(model)) * model["body.v"]).sum()
    assert power < 0


@given(seeds)
def test_momentum_and_angular_momentum_are_kept(seed):
    model = shaken(seed, amount=0.003, **{"body.damping": 5.0, "body.activation": 0.05})
    end = ph.rollout(model, dt=5e-4, steps=100, every=100).state()["body"]
    mass = ph.vertex_masses(MESH, 1e3)[:, None]

    def momenta(x, v):
        return np.concatenate([(mass * v).sum(axis=0), np.cross(x, mass * v).sum(axis=0)])

    np.testing.assert_allclose(momenta(end.x, end.v), momenta(model["body.x"], model["body.v"]), rtol=0, atol=1e-12)


@given(seeds)
def test_forces_are_minus_the_slope_of_the_energy(seed):
    model, h = shaken(seed, **{"body.activation": 0.1}), 1e-7
    way = np.random.default_rng(seed + 1).normal(size=MESH.vertices.shape)

    def at(s):
        return ph.energy(model, model.state0.replace({"body.x": model["body.x"] + s * h * way}))["tets"]

    slope = (at(1) - at(-1)) / (2 * h)
    assert -slope == pytest.approx((force(model) * way).sum(), rel=1e-5, abs=1e-5)


def test_energy_drift_is_bounded():
    model = shaken(3, amount=0.002, **{"body.v": 0.1 * np.random.default_rng(0).normal(size=MESH.vertices.shape)})
    trajectory = ph.rollout(model, dt=0.25 * ph.stable_dt(model), steps=4000, every=100)
    energies = np.array([ph.energy(model, trajectory.state(k))["total"] for k in range(len(trajectory))])
    assert np.abs(energies / energies[0] - 1).max() < 0.05


@pytest.mark.parametrize(("E", "nu"), [(1e4, 0.0), (1e4, 0.3), (5e5, 0.45)])
def test_moduli_are_those_of_small_strain(E, nu):
    # Uniaxial stress: stretch by e along x, contract by nu e beside. The energy is V E e² / 2.
    model, e = build(material=ph.NeoHookean(E=E, nu=nu)), 1e-4
    x = MESH.vertices * [1 + e, 1 - nu * e, 1 - nu * e]
    energy = ph.energy(model, model.state0.replace({"body.x": x}))["tets"]
    assert energy == pytest.approx(0.5 * E * e**2 * 0.3 * 0.2 * 0.1, rel=1e-3)


def test_the_papers_constants_and_engineering_values_agree():
    paper = ph.NeoHookean.paper(mu=1000, lam=1000)
    assert (float(paper.E), float(paper.nu)) == pytest.approx((1750, 1 / 6))
    same = ph.NeoHookean(E=1750, nu=1 / 6)
    assert (float(same.mu), float(same.lam)) == pytest.approx((1000, 1000))
    model = build(material=paper)
    x = {"body.x": MESH.vertices * [1.2, 0.9, 1.0]}
    by_moduli = model.replace({"body.E": 1750.0, "body.nu": 1 / 6, **x})
    assert "body.E" in by_moduli.names() and "body.mu" not in by_moduli.names()
    np.testing.assert_allclose(force(by_moduli), force(model.replace(x)), rtol=1e-12, atol=1e-12)


def test_activation_contracts():
    model = build(damping=50.0)
    x = ph.rollout(model.replace({"body.activation": 0.2}), dt=2e-3, steps=1500, every=1500).state()["body"].x

    def volume(points):
        return np.linalg.det(points[MESH.tets[:, 1:]] - points[MESH.tets[:, :1]]).sum() / 6

    # All tets alike, F = s 1: mu (1 - 1 / (3 s² + 1)) s + lam (s³ - alpha) s² = 0.
    mu, lam = float(model["body.mu"]), float(model["body.lam"])
    alpha = 1 + 0.75 * mu / lam - 0.2
    roots = np.roots([3 * lam, 0, lam, -3 * lam * alpha, 3 * mu, -lam * alpha])
    s = next(r.real for r in roots if abs(r.imag) < 1e-9 and 0.5 < r.real < 1.0)
    assert volume(x) / volume(MESH.vertices) == pytest.approx(s**3, rel=1e-4)


def test_mass_follows_density_and_can_be_given_instead():
    by_density, masses = build(), ph.vertex_masses(MESH, 1e3)
    total = ph.energy(by_density.replace({"body.v": (1.0, 0, 0)}))["particles"]
    assert 2 * total == pytest.approx(1e3 * 0.3 * 0.2 * 0.1)
    by_mass = by_density.replace({"body.mass": masses})
    assert "body.mass" in by_mass.names() and "body.density" not in by_mass.names()
    assert ph.energy(by_mass.replace({"body.v": (1.0, 0, 0)}))["particles"] == pytest.approx(total)
    with pytest.raises(ValueError, match="exclude each other: give the mass once"):
        by_density.replace({"body.mass": masses, "body.density": 1.0})
    with pytest.raises(KeyError, match=r"'body.density' is not in force: 'body.mass' stand"):
        by_mass["body.density"]


@pytest.mark.slow
def test_a_cantilever_converges_to_the_beam_formula():
    # A slender bar bends under its weight: w = rho g A L^4 / (8 E I), small deflection, nu = 0. Constant-strain
    # tetrahedra are too stiff in bending; the error falls with the square of the cell's size.
    L, a, E, rho, g = 1.0, 0.2, 2e5, 100.0, 1.0
    exact = rho * g * a**2 * L**4 / (8 * E * a**4 / 12)
    errors = []
    for n in (2, 3):
        mesh = ph.TetMesh.box((L, a, a), cells=(5 * n, n, n))
        scene = ph.Scene(gravity=(0, -g, 0))
        scene.add_soft("beam", mesh, density=rho, material=ph.NeoHookean(E=E, nu=0.0), damping=600.0)
        scene.fix("beam", where=lambda x: x[:, 0] < 1e-9)
        model = scene.build("float64")
        period = 2 * np.pi / (3.516 / L**2 * np.sqrt(E * a**2 / 12 / rho))
        dt = 1.4 * ph.stable_dt(model)
        steps = int(3 * period / dt)
        end = ph.rollout(model, dt=dt, steps=steps, every=steps).state()["beam"].x
        tip = mesh.vertices[:, 0] > L - 1e-9
        errors.append(1 - (mesh.vertices[tip, 1] - end[tip, 1]).mean() / exact)
    assert 0 < errors[1] < 0.3
    assert errors[0] / errors[1] > 1.7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"density": None}, "give either density .* or mass"),
        ({"density": 0.0}, "body.density must be positive"),
        ({"damping": -1.0}, "body.damping must not be negative"),
        ({"density": [1.0, 2.0]}, r"body.density has shape \(2,\); expected one value, or shape \(36,\)"),
        ({"rot": (0, 0, 0, 0)}, "a rotation is a quaternion"),
    ],
)
def test_wrong_input_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        build(**settings)


@pytest.mark.parametrize(
    ("E", "nu", "message"), [(-1, 0.3, "E must be positive"), (1, 0.5, "nu is at least 0 and below")]
)
def test_wrong_materials_are_named(E, nu, message):
    with pytest.raises(ValueError, match=message):
        ph.NeoHookean(E=E, nu=nu)
