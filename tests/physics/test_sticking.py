"""Contact that a step solves for: friction that sticks, stacks that stand with the defaults, hard pairs, and slopes."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

MU, G = 0.5, 9.81
ANGLE = np.arctan(MU)
KINDS = ["plane", "obstacle", "body"]


def tilted(kind, angle, real="float64", hard=False, **numbers):
    """A box of 8 kg on a slope: a plane, an obstacle, or a body that is held; and the way down."""
    up, q = np.array([np.sin(angle), np.cos(angle), 0]), ph.quat((0, 0, 1), -angle)
    scene = ph.Scene().add_rigid("box", ph.Box(0.2, 0.2, 0.2), density=1000.0, rot=q, pos=up * 0.0999)
    slab = {"pos": -0.5 * up, "rot": q, "mu": MU, "friction": "stick", "hard": hard, **numbers}
    if kind == "plane":
        scene.add_plane("slope", normal=up, mu=MU, friction="stick", hard=hard, **numbers)
    elif kind == "obstacle":
        scene.add_obstacle("slope", ph.Box(20, 1, 2), **slab)
    else:
        scene.add_rigid("slope", ph.Box(20, 1, 2), density=1000.0, **slab).fix("slope")
    return scene.build(real), np.array([up[1], -up[0], 0])


def speeds(model, way, seconds=2.0):
    """How fast the box moves down, from quarter to quarter of a second: softer springs come to rest in the second."""
    frames = ph.rollout(model, dt=2e-3, steps=int(seconds / 2e-3), every=125)
    return np.diff(frames["box"].x.numpy() @ way) / 0.25


@pytest.mark.parametrize(("kind", "hard"), [(kind, False) for kind in KINDS] + [("body", True), ("obstacle", True)])
def test_a_box_below_the_angle_of_friction_does_not_creep(kind, hard):
    for part in (0.7, 0.99):
        assert abs(speeds(*tilted(kind, part * ANGLE, hard=hard))[-1]) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_springs_of_the_user_hold_what_sticks_as_well(kind):
    model, way = tilted(kind, 0.99 * ANGLE, ke=1e5, kd=1e3)
    assert abs(speeds(model, way)[-1]) < 1e-6


def test_in_single_precision_it_does_not_creep_either():
    # Places are rounded by 1e-8 m, which stiff contact feels as a tremble: it goes nowhere on the long run.
    assert abs(speeds(*tilted("plane", 0.99 * ANGLE, "float32"), seconds=4.0)[-8:].mean()) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_box_above_it_slides_as_it_should(kind):
    angle = 1.01 * ANGLE
    found = speeds(*tilted(kind, angle, hard=kind == "body"))
    assert (found[-1] - found[-2]) / 0.25 == pytest.approx(G * (np.sin(angle) - MU * np.cos(angle)), rel=1e-3)


@pytest.mark.parametrize("obstacle", [False, True])
def test_particles_stick(obstacle):
    up, q = np.array([np.sin(0.45), np.cos(0.45), 0]), ph.quat((0, 0, 1), -0.45)
    scene = ph.Scene().add_particles("box", [[0.0, 0.0, 0.0]], mass=0.1)
    if obstacle:
        scene.add_obstacle("slope", ph.Box(20, 1, 2), pos=-0.5 * up, rot=q, mu=MU, friction="stick")
    else:
        scene.add_plane("slope", normal=up, mu=MU, friction="stick")
    frames = ph.rollout(scene.build("float64"), dt=2e-3, steps=1000, every=250)["box"].x.numpy()[:, 0]
    assert abs(frames[-1] - frames[-2]).max() < 1e-9


def test_friction_is_one_of_two_and_stick_has_no_kf():
    with pytest.raises(ValueError, match='friction is "relaxed" or "stick", not \'glue\''):
        ph.Scene().add_ground(friction="glue")
    with pytest.raises(ValueError, match="leave out kf"):
        ph.Scene().add_rigid("box", ph.Box(1, 1, 1), density=1.0, kf=3.0, friction="stick")
    assert "slope.kf" not in tilted("plane", 0.1)[0].names()
    cloth = ph.Scene().add_cloth("flag", ph.TriMesh.grid((1, 1), cells=(2, 2)), mass=0.1, stretch=1e2)
    with pytest.raises(ValueError, match='use friction="relaxed" with a larger kf'):
        cloth.add_self_contact("flag", friction="stick")


# -- stacks
def boxes(places):
    scene = ph.Scene()
    for k, place in enumerate(places):
        scene.add_rigid(f"b{k}", ph.Box(0.2, 0.2, 0.2), density=1000.0, pos=place)
    return scene.add_ground("floor")


def tower(count):
    off = np.random.default_rng(0).uniform(-0.02, 0.02, (count, 2))
    return boxes([(x, 0.2 * (k + 0.5), z) for k, (x, z) in enumerate(off)])


def pyramid(rows):
    return boxes([(0.2 * (j - 0.5 * (rows - r - 1)), 0.2 * (r + 0.5), 0) for r in range(rows) for j in range(rows - r)])


def stands(scene, seconds, creep):
    model = scene.build()
    frames = ph.rollout(model, dt=2e-3, steps=int(seconds / 2e-3), every=125)
    x = np.stack([frames[name].x.numpy() for name in model.state0], axis=1)
    assert np.linalg.norm(x - x[0], axis=2).max() < 2e-3
    assert np.linalg.norm(x[-1] - x[-2], axis=1).max() / 0.25 < creep


def test_ten_boxes_stand_with_the_defaults():
    stands(tower(10), 0.5, 3e-4)


@pytest.mark.nightly
@pytest.mark.parametrize(("scene", "creep"), [(tower(10), 3e-4), (pyramid(10), 5e-6)], ids=["tower", "pyramid"])
def test_stacks_stand_for_twenty_seconds(scene, creep):
    # MuJoCo's boxes creep that fast on the same scenes.
    stands(scene, 20.0, creep)


# -- momentum and energy
def test_bodies_that_rub_keep_momentum_and_angular_momentum():
    scene = ph.Scene(gravity=(0, 0, 0)).set_contact(mu=0.4)
    scene.add_rigid("a", ph.Box(0.2, 0.3, 0.25), density=500.0, vel=(1.0, 0.1, 0), omega=(1, 2, 3))
    scene.add_rigid("b", ph.Box(0.2, 0.2, 0.2), density=900.0, pos=(0.26, 0.05, 0.03), rot=ph.quat((1, 2, 3), 0.7))
    model = scene.build("float64")
    frames = ph.rollout(model, dt=1e-3, steps=200, every=20).numpy()
    momenta = []
    for f in range(11):
        p, L = np.zeros(3), np.zeros(3)
        for name, size, rho in (("a", (0.2, 0.3, 0.25), 500.0), ("b", (0.2, 0.2, 0.2), 900.0)):
            m, body = rho * np.prod(size), frames[name]
            x, y, z, w = body.rot[f]
            R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                          [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                          [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])  # fmt: skip
            inertia = m / 12 * np.diag([sum(s * s for k, s in enumerate(size) if k != axis) for axis in range(3)])
            p += m * body.v[f]
            L += m * np.cross(body.x[f], body.v[f]) + R @ inertia @ R.T @ body.omega[f]
        momenta.append(np.concatenate([p, L]))
    assert abs(frames["b"].v[-1]).max() > 0.1  # They have met.
    scale = np.abs(momenta[0]).max()
    np.testing.assert_allclose(momenta, np.broadcast_to(momenta[0], (11, 6)), atol=1e-12 * scale)


@pytest.mark.parametrize("vel", [0.5, 3.0])
def test_a_ball_begins_to_roll_at_five_sevenths_of_its_speed(vel):
    scene = ph.Scene().add_rigid("ball", ph.Sphere(0.1), density=1000.0, pos=(0, 0.1, 0), vel=(vel, 0, 0))
    model = scene.add_ground("floor", mu=0.3, friction="stick").build("float64")
    end = ph.rollout(model, dt=1e-3, steps=600, every=600).numpy()["ball"]
    assert end.v[-1, 0] == pytest.approx(5 / 7 * vel, rel=2e-3)
    assert -end.omega[-1, 2] * 0.1 == pytest.approx(end.v[-1, 0], rel=1e-3)


# -- slopes
def sliding_pair(real="float64"):
    scene = ph.Scene().set_contact(mu=0.3)
    scene.add_rigid("a", ph.Box(0.2, 0.2, 0.2), density=1000.0, pos=(0, 0.0999, 0), vel=(0.02, 0, 0.01))
    scene.add_rigid("b", ph.Box(0.2, 0.2, 0.2), density=1000.0, pos=(0.013, 0.2997, 0.017), vel=(0.3, 0, 0),
                    omega=(0, 0.5, 0))  # fmt: skip
    return scene.add_ground("floor", mu=0.4).build(real)


def test_slopes_through_the_solution_are_those_of_differences_and_of_tangents():
    model, weights = sliding_pair(), np.array([0.3, 0.9, -0.2])
    names = {"b.v": 1e-7, "a.x": 1e-9, "b.omega": 1e-7, "contact.mu": 1e-7, "contact.body_rate": 1e-3}

    def end(values):
        frames = ph.rollout(model.replace(values), dt=2e-3, steps=1, every=1)
        return sum(((frames[n].v[-1] + 0.2 * frames[n].omega[-1]) * torch.tensor(weights)).sum() for n in "ab")

    leaves = {n: torch.tensor(np.asarray(model[n]), dtype=torch.float64, requires_grad=True) for n in names}
    end(leaves).backward()
    plain = {n: v.detach() for n, v in leaves.items()}
    for name, h in names.items():
        way = torch.tensor([0.3, 0.8, -0.5], dtype=torch.float64) if plain[name].ndim else torch.tensor(1.0)
        there, back = (float(end({**plain, name: plain[name] + s * h * way})) for s in (1, -1))
        slope = float((leaves[name].grad * way).sum())
        assert slope == pytest.approx((there - back) / (2 * h), rel=1e-5), name
        moved = ph.jvp(model, {name: way.numpy()}, dt=2e-3, steps=1)
        tangent = sum(((moved[n].v[0, -1] + 0.2 * moved[n].omega[0, -1]) * weights).sum() for n in "ab")
        assert slope == pytest.approx(tangent, rel=1e-9), name


def test_copies_in_a_batch_have_the_bits_of_each_alone():
    model = sliding_pair("float32")
    speeds = np.array([[0.3, 0, 0], [0.1, 0.2, 0.3], [-0.5, 0, 0.1]])
    many = ph.rollout(model.batched(3).replace({"b.v": speeds}), dt=2e-3, steps=40, every=40)["b"].x.numpy()
    for k, v in enumerate(speeds):
        alone = ph.rollout(model.replace({"b.v": v}), dt=2e-3, steps=40, every=40)["b"].x.numpy()
        np.testing.assert_array_equal(many[k] if many.shape[0] == 3 else many[:, k], alone)


def test_contact_that_was_not_solved_is_said(monkeypatch):
    monkeypatch.setattr("nablasim.physics.laws.contact.rubbing.ENOUGH", 1e-30)
    with pytest.raises(ph.NotConverged, match=r"of 'box' was not solved in step \d+: .* Use a shorter dt"):
        speeds(*tilted("plane", 0.99 * ANGLE))
