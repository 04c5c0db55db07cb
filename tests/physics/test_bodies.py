"""Laws of rigid bodies in free flight: Newton's and Euler's equations, mass from shape, forces at points."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nablasim import physics as ph

G = np.array([0.0, -9.81, 0.0])
CONE = ph.Cone(0.3, 0.8)
seeds = st.integers(0, 2**32 - 1)


def scene(gravity=(0, 0, 0), shape=CONE, **changes):
    settings = {"density": 200.0, **changes}
    return ph.Scene(gravity=gravity).add_rigid("top", shape, **settings)


# Compiled once: the values of a model are replaced, its structure stays. The origin of a cone is not its centre.
MODEL = scene(inertia=(1, 2, 3)).build("float64")


def rotation(q):
    x, y, z, w = np.moveaxis(np.asarray(q), -1, 0)
    return np.stack([
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
        np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1),
        np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1),
    ], -2)  # fmt: skip


def momenta(body, mass, com, inertia):
    """Momentum and angular momentum about the world's origin, of frames of a body."""
    R = rotation(body.rot)
    arm = R @ com
    p = mass * (body.v + np.cross(body.omega, arm))
    spin = np.einsum("...ij,jk,...lk,...l->...i", R, inertia, R, body.omega)
    return p, spin + np.cross(body.x + arm, p)


def frames(model, name="top", **settings):
    return ph.rollout(model, **settings).numpy()[name]


def tensor(rng):
    """The inertia of some body: positive definite, and no principal moment above the sum of the others."""
    points = rng.normal(size=(6, 3))
    C = points.T @ points
    return np.trace(C) * np.eye(3) - C


def anything(seed):
    rng = np.random.default_rng(seed)
    inertia = tensor(rng)
    values = {"top.inertia": inertia, "top.rot": rng.normal(size=4), "top.omega": 3 * rng.normal(size=3),
              "top.v": rng.normal(size=3), "top.x": rng.normal(size=3)}  # fmt: skip
    values["top.rot"] /= np.linalg.norm(values["top.rot"])
    return MODEL.replace(values), inertia


@pytest.mark.parametrize(("real", "tolerance"), [("float32", 2e-6), ("float64", 1e-13)])
def test_free_fall_is_that_of_semi_implicit_euler(real, tolerance):
    x0, v0, dt, n = np.array([0.5, 2.0, 0.0]), np.array([1.0, 2.0, 3.0]), 0.01, 50
    top = frames(scene(G, pos=x0, vel=v0, density=1.0).build(real), dt=dt, steps=n)
    k = np.arange(n + 1)[:, None]
    np.testing.assert_allclose(top.x, x0 + k * dt * v0 + G * dt**2 * k * (k + 1) / 2, rtol=0, atol=10 * tolerance)
    np.testing.assert_allclose(top.v, v0 + k * dt * G, rtol=0, atol=10 * tolerance)
    np.testing.assert_array_equal(top.rot, np.broadcast_to([0, 0, 0, 1], (n + 1, 4)))


def test_the_centre_of_mass_of_a_spinning_body_falls_straight():
    x0, dt, n = np.array([0.0, 2.0, 0.0]), 1e-3, 400
    top = frames(scene(G, pos=x0, omega=(7, 2, 5)).build("float64"), dt=dt, steps=n)
    centre = top.x + rotation(top.rot) @ CONE.com
    k, v0 = np.arange(n + 1)[:, None], np.cross((7, 2, 5), CONE.com)
    expected = x0 + CONE.com + k * dt * v0 + G * dt**2 * k * (k + 1) / 2
    np.testing.assert_allclose(centre, expected, rtol=0, atol=1e-12)
    assert np.abs(top.x - (x0 + k * dt * v0)).max() > 0.1  # the origin does not


@given(seeds)
def test_momentum_and_angular_momentum_are_kept(seed):
    model, inertia = anything(seed)
    top = frames(model, dt=0.01, steps=200, every=20)
    mass = 200 * CONE.volume
    for found in momenta(top, mass, CONE.com, inertia):
        np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(top.rot, axis=1), 1.0, rtol=0, atol=1e-14)


@given(seeds)
def test_a_free_body_keeps_its_energy(seed):
    model, _ = anything(seed)
    dt = 0.02 / np.linalg.norm(model["top.omega"])  # radians per step
    trajectory = ph.rollout(model, dt=dt, steps=1000, every=100)
    energies = [ph.energy(model, trajectory.state(k))["total"] for k in range(len(trajectory))]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-7)


@pytest.mark.parametrize(("dt", "tolerance"), [(1 / 100, 1e-2), (1 / 1000, 1e-4)])
def test_spin_about_the_middle_axis_flips_with_its_period(dt, tolerance):
    # I = 1, 2, 3 and w = (0.01, 5, 0): four quarter periods of Jacobi's elliptic functions are 10.5321 s.
    model = MODEL.replace({"top.omega": np.array([0.01, 5.0, 0.0])})
    n = round(30 / dt)
    top = frames(model, dt=dt, steps=n)
    w = np.einsum("...ji,...j->...i", rotation(top.rot), top.omega)[:, 1]  # in the body's frame
    at = np.flatnonzero(w[1:] * w[:-1] < 0)
    crossings = (at + w[at] / (w[at] - w[at + 1])) * dt
    np.testing.assert_allclose(crossings[2:] - crossings[:-2], 10.5321, rtol=0, atol=tolerance)
    assert len(crossings) == 6


def test_a_symmetric_top_precesses():
    # About the angular momentum, at the rate L / I of the axes across: exact for I = (2, 1, 2).
    omega, n, dt = np.array([1.0, 4.0, 0.0]), 500, 2e-3
    top = frames(MODEL.replace({"top.inertia": np.diag([2.0, 1, 2]), "top.omega": omega}), dt=dt, steps=n)
    L = np.array([2.0, 4.0, 0.0])
    rate = np.linalg.norm(L) / 2
    axis = rotation(top.rot)[:, :, 1]
    turned = ph.geometry.rotation_matrix(ph.quat(L, rate * n * dt)) @ axis[0]
    np.testing.assert_allclose(axis[-1], turned, rtol=0, atol=1e-9)


@given(seeds)
def test_motion_turns_with_the_frame_and_ignores_uniform_motion(seed):
    rng = np.random.default_rng(seed)
    model, _ = anything(seed)
    q, shift, wind = rng.normal(size=4), rng.normal(size=3), rng.normal(size=3)
    q /= np.linalg.norm(q)
    R, force, torque = rotation(q), rng.normal(size=3), rng.normal(size=3)
    at = rng.normal(size=3)
    pushed = scene(inertia=(1, 2, 3)).add_force("top", (0, 0, 0), at=(0, 0, 0)).add_torque("top", (0, 0, 0))
    pushed = _PUSHED.setdefault("model", pushed.build("float64"))
    values = {name: model[f"top.{name}"] for name in ("inertia", "rot", "omega", "v", "x")}
    one = {**values, "force": force, "force_at": at, "torque": torque}
    two = {**one, "rot": quat_product(q, values["rot"]), "omega": R @ values["omega"], "force": R @ force,
           "v": R @ values["v"] + wind, "x": R @ values["x"] + shift, "torque": R @ torque}  # fmt: skip
    first, second = (
        frames(pushed.replace({f"top.{k}": v for k, v in given.items()}), dt=0.01, steps=50) for given in (one, two)
    )
    t = np.arange(51)[:, None] * 0.01
    np.testing.assert_allclose(second.x, first.x @ R.T + shift + wind * t, rtol=0, atol=1e-11)
    np.testing.assert_allclose(second.omega, first.omega @ R.T, rtol=0, atol=1e-11)


_PUSHED = {}


def quat_product(a, b):
    return np.array([*(a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])), a[3] * b[3] - a[:3] @ b[:3]])


# ---------------------------------------------------------------------------------------------------- loads
def test_an_impulse_at_a_point_changes_both_momenta():
    box, J, at = ph.Box(1, 2, 3), np.array([4.0, 2.0, 1.0]), np.array([0.5, 1.0, 1.5])
    made = scene(shape=box, density=5.0, pos=(0, 2, 0), rot=ph.quat((0, 0, 1), 0.5))
    top = frames(made.add_impulse("top", J, at=at).build("float64"), dt=1e-3, steps=10)
    R, inertia = rotation(top.rot[0]), box.mass_properties(5.0).inertia
    np.testing.assert_allclose(top.v[-1], J / 30.0, rtol=1e-12)
    np.testing.assert_allclose(top.omega[1], R @ np.linalg.solve(inertia, R.T @ np.cross(R @ at, J)), rtol=1e-3)
    _, spin = momenta(top, 30.0, np.zeros(3), inertia)
    expected = np.cross(top.x[0] + R @ at, J)
    np.testing.assert_allclose(spin[1:], np.broadcast_to(expected, (10, 3)), rtol=0, atol=1e-11)


def test_the_arm_of_a_force_is_from_the_centre_of_mass():
    # At the centre of mass, given or by default, nothing turns; at the origin of the cone something does.
    push = {"t": (0.0, 0.05)}
    for at, turns in ((None, False), (CONE.com, False), ((0, 0, 0), True)):
        model = scene().add_force("top", (10.0, 0, 0), at=at, **push).build("float64")
        top = frames(model, dt=1e-3, steps=100)
        assert (np.abs(top.omega).max() > 1e-3) == turns
        centre = top.v + np.cross(top.omega, rotation(top.rot) @ CONE.com)
        np.testing.assert_allclose(centre[-1], [10.0 * 0.05 / (200 * CONE.volume), 0, 0], rtol=0, atol=1e-12)


def test_a_torque_speeds_up_the_turn():
    top = frames(scene(shape=ph.Box(1, 1, 2), mass=6.0, density=None).add_torque("top", (0, 0, 3.0)).build("float64"),
                 dt=0.01, steps=100)  # fmt: skip
    np.testing.assert_allclose(top.omega[-1], [0, 0, 3.0 / (6 * 2 / 12)], rtol=1e-12)
    np.testing.assert_allclose(top.v, 0.0, atol=1e-14)


def test_forces_on_bodies_vary_in_time_by_control():
    model = scene(shape=ph.Sphere(0.5), mass=2.0, density=None).add_force("top", (0, 0, 0)).build("float64")
    push = torch.zeros(100, 3, dtype=torch.float64)
    push[:50, 2] = 4.0
    push.requires_grad_()
    v = ph.rollout(model, dt=0.01, steps=100, every=100, control={"top.force": push})["top"].v[-1]
    np.testing.assert_allclose(v.detach(), [0, 0, 1.0], rtol=1e-12)
    v[2].backward()
    np.testing.assert_allclose(push.grad[:, 2], 0.01 / 2, rtol=1e-12)


# ----------------------------------------------------------------------------------------------------- mass
def test_density_mass_and_inertia_belong_together():
    # The same body by density or by mass, as a shape or as its surface: the same motion.
    box = ph.Box(1, 2, 3)
    made = [
        scene(shape=box, density=5.0),
        scene(shape=box, density=None, mass=30.0),
        scene(shape=box.mesh(), density=5.0),
        scene(shape=ph.Box(0.5, 1, 1.5), scale=2.0, density=5.0),
    ]
    ends = []
    for one in made:
        model = one.add_impulse("top", (3, 1, 2), at=(0.5, 1, 1.5)).build("float64")
        ends.append(frames(model, dt=0.01, steps=50))
        heavier = {"top.density": 10.0} if "top.density" in model else {"top.mass": 60.0}
        half = frames(model.replace(heavier), dt=0.01, steps=50)
        np.testing.assert_allclose(half.omega[1], ends[-1].omega[1] / 2, rtol=2e-2)
        np.testing.assert_allclose(half.v[-1], ends[-1].v[-1] / 2, rtol=1e-12)
    for end in ends[1:]:
        np.testing.assert_allclose(end.rot, ends[0].rot, rtol=0, atol=1e-12)
        np.testing.assert_allclose(end.x, ends[0].x, rtol=0, atol=1e-12)


def test_mass_replaces_density_and_inertia_replaces_that_of_the_shape():
    model = scene(shape=ph.Sphere(0.5)).build("float64")
    assert "top.density" in model and "top.mass" not in model and "top.inertia" not in model
    other = model.replace({"top.mass": 3.0, "top.inertia": np.diag([1.0, 1, 1])})
    assert "top.density" not in other and "top.inertia" in other
    turned = scene(shape=ph.Sphere(0.5)).add_torque("top", (0, 0, 2.0)).build("float64")
    top = frames(turned.replace({"top.inertia": 4 * np.eye(3)}), dt=0.01, steps=100)
    np.testing.assert_allclose(top.omega[-1], [0, 0, 0.5], rtol=1e-12)


def test_a_rotation_of_any_length_is_the_rotation():
    model = scene(omega=(1, 2, 3)).build("float64")
    q = ph.quat((1, 2, 3), 0.7)
    one, two = (frames(model.replace({"top.rot": s * q}), dt=0.01, steps=20) for s in (1.0, 3.0))
    np.testing.assert_allclose(two.x, one.x, rtol=0, atol=1e-14)
    np.testing.assert_allclose(two.rot[1:], one.rot[1:], rtol=0, atol=1e-14)


def test_a_body_that_is_held_stays():
    model = scene(G, vel=(1, 2, 3), omega=(1, 2, 3)).fix("top").build("float64")
    top = frames(model, dt=0.01, steps=20)
    assert (top.x == top.x[0]).all() and (top.rot == top.rot[0]).all() and (top.v[1:] == 0).all()


def test_a_state_can_be_the_start_of_another_rollout():
    model = scene(G, vel=(1, 2, 3), omega=(1, 2, 3)).build("float64")
    whole = ph.rollout(model, dt=0.01, steps=20)
    rest = ph.rollout(model.at(whole.state(10)), dt=0.01, steps=10)
    for quantity in ("x", "rot", "v", "omega"):
        expected = getattr(whole["top"], quantity)[10:].numpy()
        np.testing.assert_allclose(getattr(rest["top"], quantity).numpy(), expected, rtol=0, atol=1e-14)
    assert whole.state(3)["top"].x.shape == (3,)


def test_a_batch_has_the_bits_of_its_copies():
    made = scene(G, omega=(1, 2, 3)).add_ground("floor", height=-0.3)
    v = np.random.default_rng(0).normal(size=(3, 3))
    batch = ph.rollout(made.build(batch=3).replace({"top.v": v}), dt=1e-3, steps=100, every=10)["top"]
    assert batch.x.shape == (3, 11, 3) and batch.rot.shape == (3, 11, 4)
    for k in range(3):
        alone = ph.rollout(made.build().replace({"top.v": v[k]}), dt=1e-3, steps=100, every=10)["top"]
        assert torch.equal(batch.x[k], alone.x) and torch.equal(batch.omega[k], alone.omega)


# ---------------------------------------------------------------------------------------------------- errors
OPEN = ph.TriMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2]])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"density": None}, ValueError, "top: give either density"),
        ({"mass": 1.0}, ValueError, "top: give either density"),
        ({"density": -1.0}, ValueError, "top.density must be positive, and is -1"),
        ({"rot": (0, 0, 0, 0)}, ValueError, "top: rot is a quaternion"),
        ({"pos": (0, 0)}, ValueError, r"top: pos has shape \(2,\); expected \(3\)"),
        ({"omega": (0, 0, np.nan)}, ValueError, "top: omega has an entry that is not finite"),
        ({"scale": (1, 2, 1)}, ValueError, "Cone can only be scaled by one number"),
        ({"shape": OPEN}, ph.MeshError, "closed"),
        ({"shape": "cube.obj"}, TypeError, "top: a body is a shape such as ph.Box"),
        ({"inertia": (1, 2)}, ValueError, r"top.inertia has shape \(2,\)"),
        ({"mu": -0.5}, ValueError, "top.mu must not be negative"),
    ],
)
def test_wrong_bodies_are_named_and_leave_the_scene_as_it_was(changes, error, message):
    settings = {"shape": CONE, "density": 1.0, **changes}
    made = ph.Scene().add_particles("dust", [[0.0, 0, 0]], mass=1.0)
    with pytest.raises(error, match=message):
        made.add_rigid("top", settings.pop("shape"), **settings)
    assert list(made.build().state0) == ["dust"]


def test_masses_and_inertias_that_cannot_be_are_refused():
    for values in ({"top.density": -1.0}, {"top.inertia": -np.eye(3)}, {"top.inertia": np.ones((3, 3))},
                   {"top.inertia": np.zeros((3, 3))}, {"top.mass": 0.0}):  # fmt: skip
        with pytest.raises(ValueError, match="all must be positive"):
            ph.rollout(MODEL.replace(values), dt=1e-3, steps=1)
    slippery = scene(mu=0.1).build().replace({"top.mu": -0.1})
    with pytest.raises(ValueError, match=r"top\.mu must not be negative, and is -0\.1"):
        ph.rollout(slippery, dt=1e-3, steps=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.add_force("top", (1, 0, 0), where=[0]), "`where` chooses particles"),
        (lambda s: s.add_force("dust", (1, 0, 0), at=(0, 0, 0)), "'dust' is not a rigid body"),
        (lambda s: s.add_torque("dust", (1, 0, 0)), "'dust' is not a rigid body"),
        (lambda s: s.add_impulse("top", (1, 0), at=(0, 0, 0)), r"top.impulse has shape \(2,\)"),
        (lambda s: s.add_impulse("top", (1, 0, 0), t=-1.0), "acts from -1.0 s"),
    ],
)
def test_wrong_loads_are_named(call, message):
    made = scene().add_particles("dust", [[0.0, 0, 0]], mass=1.0)
    with pytest.raises(ValueError, match=message):
        call(made)
