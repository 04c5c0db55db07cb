"""Laws of rigid bodies in contact with planes: restitution, friction, rolling, rest, and the stable step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablasim import physics as ph

G = 9.81
angles = st.floats(0, 2 * np.pi)


def scene(shape, gravity=(0, -G, 0), floor=None, **body):
    made = ph.Scene(gravity=gravity).add_rigid("body", shape, **{"mass": 2.0, **body})
    return made.add_ground("floor", **{"ke": 1e4, "kd": 0.0, "kf": 0.0, "mu": 0.0, **(floor or {})})


def frames(model, **settings):
    return ph.rollout(model, **settings).numpy()["body"]


# ----------------------------------------------------------------------------------------------------------- normal
@pytest.mark.parametrize("zeta", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("shape", [ph.Sphere(0.1), ph.Box(0.2, 0.2, 0.2)])
def test_restitution_and_contact_time_of_the_linear_law(zeta, shape):
    # A ball touches with one point, a box that falls flat with four.
    m, points = 2.0, 1 if isinstance(shape, ph.Sphere) else 4
    ke = 1e4
    kd = 2 * zeta * np.sqrt(ke * points * m) / points
    model = scene(shape, gravity=(0, 0, 0), pos=(0, 0.1001, 0), vel=(0, -1, 0),
                  floor={"ke": ke, "kd": kd, "damping": "linear"}).build("float64")  # fmt: skip
    dt = 1e-5
    body = frames(model, dt=dt, steps=8000)
    assert body.v[-1, 1] == pytest.approx(np.exp(-zeta * np.arccos(zeta) / np.sqrt(1 - zeta**2)), rel=2e-3)
    assert np.abs(body.omega).max() < 1e-9
    if zeta == 0:
        inside = np.count_nonzero(body.x[:, 1] < 0.1) * dt
        assert inside == pytest.approx(np.pi * np.sqrt(m / (points * ke)), rel=2e-3)


@pytest.mark.parametrize(
    ("shape", "height", "points"),
    [(ph.Box(1, 1, 1), 0.5, 4), (ph.Box(1, 1, 1).mesh(cells=2), 0.5, 9), (ph.Sphere(0.5), 0.5, 1),
     (ph.Cylinder(0.3, 0.8), 0.4, 9), (ph.Cone(0.3, 0.8), 0.4, 9), (ph.Capsule(0.2, 0.6), 0.5, 1)],
)  # fmt: skip
def test_at_rest_the_points_carry_the_weight(shape, height, points):
    depth = 2.0 * G / (points * 1e4)
    model = scene(shape, pos=(0, height - depth, 0), floor={"kd": 50.0, "kf": 10.0, "mu": 0.5}).build("float64")
    found = ph.forces(model)["body"]
    np.testing.assert_allclose(found.f, [0, 2.0 * G, 0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.torque, 0, rtol=0, atol=1e-9)
    body = frames(model, dt=1e-3, steps=100)
    np.testing.assert_allclose(body.x, np.broadcast_to(body.x[0], body.x.shape), rtol=0, atol=1e-9)


def test_a_cube_tumbles_and_comes_to_rest():
    made = ph.Scene().add_rigid("body", ph.Box(1, 1, 1), density=5.0, pos=(0, 2, 0), rot=ph.quat((1, 2, 3), 0.7),
                                vel=(1, 0, 0), omega=(3, -2, 1))  # fmt: skip
    model = made.add_ground("floor", ke=2e3, kd=20.0, kf=100.0, mu=0.5).build()
    trajectory = ph.rollout(model, dt=1 / 960, steps=960 * 6, every=96)
    body = trajectory.numpy()["body"]
    energies = np.array([ph.energy(model, trajectory.state(k))["total"] for k in range(len(trajectory))])
    assert (np.diff(energies) < 1e-3).all()
    assert np.abs(body.v[-1]).max() < 1e-3 and np.abs(body.omega[-1]).max() < 1e-3
    assert body.x[-1, 1] == pytest.approx(0.5 - 5 * G / (4 * 2e3), abs=1e-4)
    up = np.abs(ph.geometry.rotation_matrix(body.rot[-1])[1])
    np.testing.assert_allclose(np.sort(up), [0, 0, 1], atol=1e-3)  # it lies on a side


# --------------------------------------------------------------------------------------------------------- friction
@given(angles)
def test_a_block_slides_v_squared_over_2_mu_g_in_any_direction(angle):
    # Pushed flat along the ground, in any direction against its own sides; on its own spring it is in balance.
    mu, speed, ke = 0.4, 1.5, 2e5
    way = np.array([np.cos(angle), 0, np.sin(angle)])
    model = _KEPT.setdefault("block", scene(
        ph.Box(0.4, 0.02, 0.4), pos=(0, 0.01 - 2.0 * G / (4 * ke), 0),
        floor={"ke": ke, "kd": 100.0, "kf": 1e3, "mu": mu},
    ).build("float64"))  # fmt: skip
    body = frames(model.replace({"body.v": speed * way}), dt=1e-4, steps=8000, every=8000)
    np.testing.assert_allclose(body.x[-1] - body.x[0], way * speed**2 / (2 * mu * G), rtol=0, atol=4e-3)
    np.testing.assert_allclose(body.v[-1], 0, rtol=0, atol=1e-3)


_KEPT = {}


@pytest.mark.parametrize(("shape", "part", "rot"), [
    (ph.Sphere(0.1), 0.4, (0, 0, 0, 1)),
    (ph.Cylinder(0.1, 0.3), 0.5, ph.quat((1, 0, 0), np.pi / 2)),
    (ph.Capsule(0.1, 0.3), None, ph.quat((1, 0, 0), np.pi / 2)),
])  # fmt: skip
def test_what_slides_begins_to_roll(shape, part, rot):
    # Angular momentum about the line of contact is kept: v_end = v0 / (1 + I / (m r²)), whatever the friction.
    inertia = shape.mass_properties(1.0)
    part = inertia.inertia[1, 1] / inertia.mass / 0.01 if part is None else part
    ke = 1e6
    rest = 2.0 * G / ((1 if isinstance(shape, ph.Sphere) else 2) * ke)
    model = scene(shape, pos=(0, 0.1 - rest, 0), rot=rot, vel=(2, 0, 0),
                  floor={"ke": ke, "kd": 200.0, "kf": 1e3, "mu": 0.5}).build("float64")  # fmt: skip
    body = frames(model, dt=1e-4, steps=6000, every=1000)
    assert body.v[-1, 0] == pytest.approx(2 / (1 + part), rel=2e-3)
    assert body.omega[-1, 2] == pytest.approx(-body.v[-1, 0] / 0.1, rel=1e-3)
    assert np.abs(body.x[:, 1] - body.x[0, 1]).max() < 1e-5  # no bumps


def test_a_can_that_spins_on_its_end_is_braked_and_one_that_leans_falls_back():
    floor = {"ke": 1e5, "kd": 100.0, "kf": 50.0, "mu": 0.3}
    spinning = scene(ph.Cylinder(0.1, 0.2), pos=(0, 0.1, 0), omega=(0, 5, 0), floor=floor).build("float64")
    assert abs(frames(spinning, dt=2e-4, steps=3000, every=3000).omega[-1, 1]) < 0.1
    leaning = scene(ph.Cylinder(0.1, 0.2), pos=(0, 0.13, 0), rot=ph.quat((0.3, 0, 1), 0.3), floor=floor)
    end = frames(leaning.build("float64"), dt=2e-4, steps=10_000, every=10_000)
    assert ph.geometry.rotation_matrix(end.rot[-1])[1, 1] > 1 - 1e-4


def test_a_slope_holds_below_the_angle_of_friction_and_not_above():
    for slope, stays in ((0.3, True), (0.45, False)):  # tan = 0.31 and 0.48
        normal = np.array([np.sin(slope), np.cos(slope), 0])
        made = ph.Scene().add_rigid("body", ph.Box(0.2, 0.1, 0.2), mass=1.0, rot=ph.quat((0, 0, -1), slope),
                                    pos=0.05 * normal)  # fmt: skip
        made.add_plane("hill", normal=normal, ke=1e4, kd=50.0, kf=1e3, mu=0.4)
        body = frames(made.build("float64"), dt=5e-4, steps=2000)
        down = (body.x[-1] - body.x[0]) @ [np.cos(slope), -np.sin(slope), 0]
        fallen = 0.5 * G * (np.sin(slope) - 0.4 * np.cos(slope))  # in one second
        assert down < 0.03 if stays else down == pytest.approx(fallen, rel=0.1)


@given(st.integers(0, 2**32 - 1))
def test_contact_turns_with_the_world(seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    R, rot = ph.geometry.rotation_matrix(q), rng.normal(size=4)
    model = _KEPT.setdefault(
        "cone", scene(ph.Cone(0.2, 0.5), floor={"kd": 50.0, "kf": 20.0, "mu": 0.4}).build("float64")
    )
    one = {"body.x": np.array([0.1, 0.2, 0.3]), "body.rot": rot / np.linalg.norm(rot), "body.v": rng.normal(size=3),
           "body.omega": rng.normal(size=3)}  # fmt: skip
    x, y, z, w = q
    left = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])
    two = {"body.x": R @ one["body.x"], "body.rot": left @ one["body.rot"], "body.v": R @ one["body.v"],
           "body.omega": R @ one["body.omega"], "floor.normal": R[:, 1], "gravity": R @ [0, -G, 0]}  # fmt: skip
    first, second = (frames(model.replace(values), dt=5e-4, steps=300, every=100) for values in (one, two))
    np.testing.assert_allclose(second.x, first.x @ R.T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(second.omega, first.omega @ R.T, rtol=0, atol=1e-7)


# --------------------------------------------------------------------------------------------- whose contact numbers
def test_numbers_of_both_sides_combine():
    depth = 1e-3
    floor = {"ke": 1e4, "kd": 30.0, "kf": 20.0, "mu": 0.9, "damping": "linear"}
    cases = [
        ({}, 1e4, 30.0, 20.0, 0.9),
        ({"ke": 3e4}, 7.5e3, 30.0, 20.0, 0.9),  # springs in series: 1 / (1 / 1e4 + 1 / 3e4)
        ({"kd": 30.0, "kf": 20.0, "mu": 0.4}, 1e4, 15.0, 10.0, 0.6),
        ({"ke": 0.0, "mu": 0.0}, 0.0, 30.0, 20.0, 0.0),
    ]
    for own, ke, kd, kf, mu in cases:
        made = scene(ph.Sphere(0.1), pos=(0, 0.1 - depth, 0), floor=floor, **own)
        down, slow, fast = (
            ph.forces(made.build("float64").replace({"body.v": np.array(v)}))["body"].f
            for v in ((0, -0.5, 0), (1e-3, 0, 0), (50.0, 0, 0))
        )
        assert down[1] == pytest.approx(ke * depth + 0.5 * kd)
        assert slow[0] == pytest.approx(-min(1e-3 * kf, mu * ke * depth))
        assert fast[0] == pytest.approx(-mu * ke * depth)


# ------------------------------------------------------------------------------------------------------- stable step
@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("cells", [None, 4])
def test_at_the_limit_of_the_step_nothing_explodes(mass, cells):
    shape = ph.Box(0.2, 0.1, 0.2) if cells is None else ph.Box(0.2, 0.1, 0.2).mesh(cells=cells)
    model = scene(shape, mass=mass, pos=(0, 0.06, 0), rot=ph.quat((1, 2, 3), 0.05), vel=(0.3, 0, 0.1),
                  floor={"ke": 1e4 * mass, "kd": 10 * mass, "kf": 20 * mass, "mu": 0.5}).build("float64")  # fmt: skip
    limit = ph.stable_dt(model)
    trajectory = ph.rollout(model, dt=0.999 * limit, steps=2000, every=20)
    energies = [ph.energy(model, trajectory.state(k))["total"] for k in range(len(trajectory))]
    assert max(energies) < 1.5 * energies[0]
    with pytest.raises(ph.StepTooLarge, match=r"is too large for 'body'.* its contact \(ke\) .* allow about"):
        ph.rollout(model, dt=2.1 * limit, steps=1)


@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shape", [ph.Sphere(0.06), ph.Box(0.2, 0.1, 0.2), ph.Box(0.2, 0.1, 0.2).mesh(cells=4)])
def test_strong_dampers_do_not_limit_the_step(mass, shape):
    # A thousand times the dampers of the test above: the springs alone say how long a step may be.
    floor = {"ke": 1e4 * mass, "kd": 1e4 * mass, "kf": 2e4 * mass, "mu": 0.5}
    made = scene(shape, mass=mass, pos=(0, 0.08, 0), rot=ph.quat((1, 2, 3), 0.3), vel=(0.3, 0, 0.1), floor=floor)
    made.add_rigid("lid", ph.Box(0.1, 0.05, 0.1), mass=mass, pos=(0, 0.22, 0), rot=ph.quat((3, 2, 1), 0.2))
    made.set_contact(ke=5e3 * mass, kd=5e3 * mass, kf=1e4 * mass, mu=0.5)
    model = made.build("float64")
    calm = model.replace({"floor.kd": 0.0, "contact.kd": 0.0})
    assert ph.stable_dt(model) == ph.stable_dt(calm)
    frames = ph.rollout(model, dt=ph.stable_dt(model), steps=2000, every=20)
    energies = [ph.energy(model, frames.state(k))["total"] for k in range(len(frames))]
    assert np.isfinite(energies).all() and max(energies) < 1.02 * energies[0] and energies[-1] < 0.9 * energies[0]


def test_bounded_dampers_are_the_law_for_short_steps():
    model = scene(ph.Box(0.2, 0.1, 0.2), pos=(0, 0.049, 0), vel=(0.1, -0.3, 0), omega=(0.2, 0.1, 0),
                  floor={"ke": 1e3, "kd": 50.0, "kf": 40.0, "mu": 0.5}).build("float64")  # fmt: skip
    law = ph.forces(model)["body"].f
    errors = []
    for dt in (1e-4, 5e-5):
        body = ph.rollout(model, dt=dt, steps=1).numpy()["body"]
        errors.append(np.abs(2.0 * (body.v[1] - body.v[0]) / dt - 2.0 * np.array([0, -9.81, 0]) - law).max())
    # They differ by the square of the step: nothing else here depends on it.
    assert errors[0] < 1e-2 * np.abs(law).max() and errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize(("shape", "stiffest"), [(ph.Sphere(0.1), 1), (ph.Box(0.2, 0.2, 0.2), 6)])
def test_the_limit_of_the_step_is_that_of_the_fastest_mode(shape, stiffest):
    # A ball bounces: ke dt² < 4 m. A cube on four corners rocks: 4 ke (a / 2)² about I = m a² / 6, so 6 ke dt² < 4 m.
    # Pressed down hard, so that it does not leave the ground, and disturbed a little.
    edge, depth = np.sqrt(4 * 2.0 / (stiffest * 1e4)), 1e-3
    points = 1 if stiffest == 1 else 4
    model = scene(shape, gravity=(0, -points * 1e4 * depth / 2.0, 0), pos=(0, 0.1 - depth, 0), vel=(0, 1e-8, 0),
                  omega=(0, 0, 1e-8)).build("float64")  # fmt: skip
    assert ph.stable_dt(model) == pytest.approx(0.5 * edge)
    for factor, calm in ((0.98, True), (1.03, False)):
        body = frames(model, dt=factor * edge, steps=60, check=False)
        moves = np.abs(body.v if stiffest == 1 else body.omega).max()
        assert moves < 1e-6 if calm else moves > 1e-4
