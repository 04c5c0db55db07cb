"""Laws of contact between bodies, with particles and with obstacles: Newton's third law, and what rests where."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.geometry.rotation import rotation_matrix
from nablasim.physics.geometry.shapes_kernels import shape_contact
from nablasim.physics.laws.limits import CONTACT_SAFETY

G = 9.81
seeds = st.integers(0, 2**32 - 1)
SHAPES = {
    "ball": ph.Sphere(0.2), "box": ph.Box(0.3, 0.4, 0.5), "pill": ph.Capsule(0.15, 0.3), "can": ph.Cylinder(0.2, 0.4),
    "cone": ph.Cone(0.25, 0.5), "mesh": ph.TriMesh.icosphere(0.25, subdivisions=1),
}  # fmt: skip
NAMES = list(SHAPES)


def crowd():
    """One of each, without gravity, and some dust."""
    scene = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=1e3, kd=5.0, kf=5.0, mu=0.4)
    for k, (name, shape) in enumerate(SHAPES.items()):
        scene.add_rigid(name, shape, mass=1.0 + 0.2 * k, pos=(2 * k, 0, 0))
    return scene.add_particles("dust", np.zeros((4, 3)), mass=0.3).build("float64")


CROWD = crowd()


def thrown(seed, model=CROWD):
    """Everything in a heap, and moving."""
    rng = np.random.default_rng(seed)
    values = {"dust.x": 0.12 * rng.normal(size=(4, 3)), "dust.v": rng.normal(size=(4, 3))}
    for name in NAMES:
        q = rng.normal(size=4)
        values |= {f"{name}.x": 0.12 * rng.normal(size=3), f"{name}.rot": q / np.linalg.norm(q),
                   f"{name}.v": rng.normal(size=3), f"{name}.omega": rng.normal(size=3)}  # fmt: skip
    return model.replace(values)


def centres(state):
    found = [state[n].x + rotation_matrix(state[n].rot) @ getattr(SHAPES[n], "com", np.zeros(3)) for n in NAMES]
    return np.array(found)


# -------------------------------------------------------------------------------------------------- action, reaction
@given(seeds)
def test_forces_and_torques_add_up_to_nothing(seed):
    model = thrown(seed)
    forces, state = ph.forces(model), model.state0
    f = np.array([forces[n].f for n in NAMES])
    torque = np.array([forces[n].torque for n in NAMES])
    dust = forces["dust"].f
    np.testing.assert_allclose(f.sum(axis=0) + dust.sum(axis=0), 0, atol=1e-9)
    about = torque + np.cross(centres(state), f)
    np.testing.assert_allclose(about.sum(axis=0) + np.cross(state["dust"].x, dust).sum(axis=0), 0, atol=1e-9)
    assert np.abs(f).max() > 1 and np.abs(torque).max() > 0.1


@given(seeds)
def test_momentum_is_kept_in_collisions(seed):
    model = thrown(seed)
    trajectory = ph.rollout(model, dt=2e-4, steps=300, every=100).numpy()
    total = 0.3 * trajectory["dust"].v.sum(axis=1)
    for k, name in enumerate(NAMES):
        one = trajectory[name]
        com = getattr(SHAPES[name], "com", np.zeros(3))
        arm = np.array([rotation_matrix(q) @ com for q in one.rot])
        total = total + (1.0 + 0.2 * k) * (one.v + np.cross(one.omega, arm))
    np.testing.assert_allclose(total, np.broadcast_to(total[0], total.shape), rtol=0, atol=1e-11)


@given(seeds)
def test_contact_turns_with_the_world_and_ignores_uniform_motion(seed):
    rng = np.random.default_rng(seed + 1)
    q, shift, wind = rng.normal(size=4), rng.normal(size=3), rng.normal(size=3)
    q /= np.linalg.norm(q)
    R, (x, y, z, w) = rotation_matrix(q), q
    left = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])
    model = thrown(seed)
    state = model.state0
    moved = {"dust.x": state["dust"].x @ R.T + shift, "dust.v": state["dust"].v @ R.T + wind}
    for n in NAMES:
        one = state[n]
        moved |= {f"{n}.x": R @ one.x + shift, f"{n}.rot": left @ one.rot, f"{n}.v": R @ one.v + wind,
                  f"{n}.omega": R @ one.omega}  # fmt: skip
    here, there = ph.forces(model), ph.forces(model, state.replace(moved))
    for n in NAMES:
        np.testing.assert_allclose(there[n].f, R @ here[n].f, rtol=0, atol=1e-8)
        np.testing.assert_allclose(there[n].torque, R @ here[n].torque, rtol=0, atol=1e-8)
    np.testing.assert_allclose(there["dust"].f, here["dust"].f @ R.T, rtol=0, atol=1e-8)


@given(seeds)
def test_springs_of_contacts_are_minus_the_slope_of_their_energy(seed):
    model = thrown(seed).replace({"contact.kd": 0.0, "contact.kf": 0.0})
    rng, h = np.random.default_rng(seed), 1e-8  # smaller than the way to the next kink
    way = {f"{n}.x": rng.normal(size=3) for n in NAMES} | {"dust.x": rng.normal(size=(4, 3))}
    state = model.state0

    def at(s):
        found = ph.energy(model, state.replace({k: state[k[:-2]].x + s * h * d for k, d in way.items()}))
        return found["shape_pairs"] + found["mesh_pairs"] + found["shape_hits"] + found["mesh_hits"]

    power = sum((ph.forces(model)[k[:-2]].f * d).sum() for k, d in way.items())
    assert (at(1) - at(-1)) / (2 * h) == pytest.approx(-power, rel=1e-4, abs=1e-2)


# --------------------------------------------------------------------------------------------------------- collisions
def test_two_balls_collide_with_their_reduced_mass():
    # Without damping: elastic, and apart again after pi sqrt(m / ke), m = m1 m2 / (m1 + m2).
    m1, m2, ke, dt = 1.0, 3.0, 1e4, 1e-5
    scene = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=ke, kd=0.0, kf=0.0, mu=0.0)
    scene.add_rigid("one", ph.Sphere(0.1), mass=m1, pos=(-0.1001, 0, 0), vel=(1, 0, 0))
    scene.add_rigid("two", ph.Sphere(0.1), mass=m2, pos=(0.1, 0, 0))
    found = ph.rollout(scene.build("float64"), dt=dt, steps=5000).numpy()
    assert found["one"].v[-1, 0] == pytest.approx((m1 - m2) / (m1 + m2), rel=1e-3)
    assert found["two"].v[-1, 0] == pytest.approx(2 * m1 / (m1 + m2), rel=1e-3)
    touching = np.count_nonzero(found["two"].x[:, 0] - found["one"].x[:, 0] < 0.2) * dt
    assert touching == pytest.approx(np.pi * np.sqrt(m1 * m2 / (m1 + m2) / ke), rel=2e-3)


def test_it_does_not_matter_which_ball_was_added_first():
    def end(names):
        scene = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=1e4, kd=10.0, kf=20.0, mu=0.4)
        given = {"one": ((0, 0, 0), (1, 0, 0), (0, 0, 3)), "two": ((0.19, 0.05, 0), (0, 0, 0), (1, 2, 0))}
        for name in names:
            pos, vel, omega = given[name]
            scene.add_rigid(name, ph.Sphere(0.1), mass=1.0, pos=pos, vel=vel, omega=omega)
        return ph.rollout(scene.build("float64"), dt=1e-4, steps=500).state()

    first, second = end(["one", "two"]), end(["two", "one"])
    for name in ("one", "two"):
        np.testing.assert_allclose(first[name].v, second[name].v, rtol=0, atol=1e-12)
        np.testing.assert_allclose(first[name].omega, second[name].omega, rtol=0, atol=1e-11)


# --------------------------------------------------------------------------------------------------------------- rest
@pytest.mark.parametrize("name", ["ball", "box", "can", "cone"])
def test_a_shape_lies_on_a_large_box_as_on_the_ground(name):
    depth, height = 1e-3, {"ball": 0.2, "box": 0.2, "can": 0.2, "cone": 0.25}[name]
    forces = []
    for on in ("ground", "table"):
        scene = ph.Scene().add_rigid("body", SHAPES[name], mass=1.0, pos=(0, height - depth, 0))
        if on == "ground":
            scene.add_ground("floor", ke=1e4, kd=0.0, damping="linear")
        else:
            scene.add_obstacle("table", ph.Box(3, 1, 3), pos=(0.5, -0.5, 0.5), ke=1e4, kd=0.0, damping="linear")
        forces.append(ph.forces(scene.build("float64"))["body"].f)
    np.testing.assert_allclose(forces[1], forces[0], rtol=1e-12)


def test_a_stack_of_boxes_stands():
    scene = ph.Scene().set_contact(ke=2e4, kd=100.0, kf=100.0, mu=0.5, touch=2e-4)
    for k in range(3):
        scene.add_rigid(f"box{k}", ph.Box(0.2, 0.2, 0.2), density=500.0, pos=(0, 0.1 + 0.201 * k, 0))
    scene.add_ground("floor", ke=2e4, kd=100.0, kf=100.0, mu=0.5, touch=2e-4)
    end = ph.rollout(scene.build("float64"), dt=5e-4, steps=4000, every=4000).state()
    for k in range(3):
        np.testing.assert_allclose(end[f"box{k}"].x, [0, 0.1 + 0.2 * k, 0], atol=4e-3)
        np.testing.assert_allclose(end[f"box{k}"].v, 0, atol=1e-4)


def test_crossed_beams_hold_each_other():
    # No corner of either lies in the other: the points on their sides do it.
    scene = ph.Scene().set_contact(ke=5e3, kd=50.0, kf=50.0, mu=0.5)
    scene.add_rigid("low", ph.Box(1.0, 0.1, 0.1), mass=1.0, pos=(0, 0.05, 0))
    scene.add_rigid("top", ph.Box(0.1, 0.1, 1.0), mass=1.0, pos=(0, 0.151, 0))
    scene.add_ground("floor", ke=5e3, kd=50.0, kf=50.0, mu=0.5)
    end = ph.rollout(scene.build("float64"), dt=2e-4, steps=5000, every=5000).state()
    np.testing.assert_allclose(end["top"].x, [0, 0.15, 0], atol=3e-3)


def test_a_soft_block_lies_on_a_body_and_the_body_feels_its_weight():
    scene = ph.Scene()
    scene.add_soft("block", ph.TetMesh.box((0.2, 0.1, 0.2), cells=(2, 1, 2)), density=500.0, damping=20.0,
                   material=ph.NeoHookean(E=2e4, nu=0.3), pos=(-0.1, 0.2005, -0.1))  # fmt: skip
    scene.add_rigid("table", ph.Box(0.6, 0.2, 0.6), mass=10.0, pos=(0, 0.1, 0))
    scene.add_ground("floor", ke=1e4, kd=40.0, touch=1e-4).set_contact(ke=2e3, kd=10.0, touch=1e-4)
    model = scene.build("float64")
    end = ph.rollout(model, dt=2e-4, steps=10_000, every=10_000).state()
    assert np.abs(end["block"].v).max() < 1e-3
    assert end["block"].x[:, 1].min() == pytest.approx(end["table"].x[1] + 0.1, abs=3e-3)
    weight = 500 * 0.2 * 0.1 * 0.2 * G
    assert end["table"].x[1] == pytest.approx(0.1 - (10 * G + weight) / (4 * 1e4), abs=1e-5)


def test_a_conveyor_takes_a_box_along():
    scene = ph.Scene().add_obstacle("belt", ph.Box(4, 0.2, 1), pos=(1.5, -0.1, 0), vel=(0.5, 0, 0), mu=0.4, kf=1e3)
    scene.add_rigid("box", ph.Box(0.2, 0.2, 0.2), mass=1.0, pos=(0, 0.1, 0))
    found = ph.rollout(scene.build("float64"), dt=5e-4, steps=3000, every=100).numpy()["box"]
    assert found.v[-1, 0] == pytest.approx(0.5, abs=1e-3)
    assert found.x[-1, 0] == pytest.approx(0.5 * 1.5 - 0.5**2 / (2 * 0.4 * G), abs=1e-2)


# ----------------------------------------------------------------------------------------------------------- surfaces
def test_shapes_know_their_distance_and_normal_at_once():
    @kc.kernel
    def ask(kind: kc.Array[int], size: kc.Array[kc.float3], p: kc.Array[kc.float3], d: kc.Array[float],
            n: kc.Array[kc.float3]):  # fmt: skip
        i = kc.tid()
        gap, normal = shape_contact(kind[i], size[i], p[i])
        d[i] = gap
        n[i] = normal

    for shape in (s for s in SHAPES.values() if isinstance(s, ph.Shape)):
        p = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 3))
        d, n = np.zeros(len(p)), np.zeros((len(p), 3))
        kc.launch(ask, len(p), [np.full(len(p), shape.kind, np.int32), np.tile(shape.size, (len(p), 1)), p], [d, n])
        np.testing.assert_allclose(d, shape.distance(p), rtol=0, atol=1e-14)
        np.testing.assert_allclose(n, shape.normal(p), rtol=0, atol=1e-9)
        given = [np.full(40, shape.kind, np.int32), kc.array(np.tile(shape.size, (40, 1)), dtype=kc.float3,
                 requires_grad=True), kc.array(p[:40], dtype=kc.float3, requires_grad=True)]  # fmt: skip
        out = [kc.zeros(40, real=kc.float64), kc.zeros(40, dtype=kc.float3, real=kc.float64)]
        kc.testing.gradcheck(ask, 40, given, out)


def push(obstacle, points, **settings):
    """Forces on particles from an obstacle: of unit stiffness, they are the penetration along the normal."""
    scene = ph.Scene().add_particles("dust", points, mass=1.0)
    scene.add_obstacle("rock", obstacle, ke=1.0, kd=0.0, damping="linear", **settings)
    return ph.forces(scene.build("float64"))["dust"].f


def hollow():
    """A box with a pit in its top: a mesh that is not convex."""
    block = ph.TetMesh.box((1, 1, 1), cells=4)
    centre = block.vertices[block.tets].mean(axis=1)
    pit = (np.abs(centre[:, 0] - 0.5) < 0.25) & (np.abs(centre[:, 2] - 0.5) < 0.25) & (centre[:, 1] > 0.5)
    used, tets = np.unique(block.tets[~pit], return_inverse=True)
    return ph.TetMesh(block.vertices[used], tets.reshape(-1, 4)).surface.compact()


@pytest.mark.parametrize(
    "mesh", [ph.Box(0.6, 0.4, 0.5).mesh(cells=2), ph.TriMesh.icosphere(0.4, subdivisions=2), hollow()]
)
def test_a_mesh_pushes_out_along_the_shortest_way(mesh):
    rng = np.random.default_rng(0)
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    p = rng.uniform(low - 0.1, high + 0.1, (400, 3))
    a, b, c = (mesh.vertices[mesh.faces[:, k]][None] - p[:, None] for k in range(3))
    # Inside is where the solid angles of the faces add up to all of the sphere (van Oosterom and Strackee).
    la, lb, lc = (np.linalg.norm(v, axis=-1) for v in (a, b, c))
    dot = lambda u, v: (u * v).sum(axis=-1)  # noqa: E731
    angle = 2 * np.arctan2(dot(a, np.cross(b, c)), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb)
    inside = angle.sum(axis=1) > 2 * np.pi
    found = push(mesh, p)
    depth = np.linalg.norm(found, axis=1)
    np.testing.assert_array_equal(depth > 1e-12, inside)
    # Pushed so far, the point is on the surface; pushed less far, in any direction, it is still inside.
    fine = np.einsum("fvi,wv->fwi", mesh.vertices[mesh.faces], _barycentric(12)).reshape(-1, 3)
    nearest = np.array([np.linalg.norm(fine - q, axis=1).min() for q in p[inside]])
    np.testing.assert_allclose(depth[inside], nearest, rtol=0, atol=0.03)
    assert (depth[inside] <= nearest + 1e-12).all()


def _barycentric(n):
    return np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)]) / n


def test_a_grid_of_distances_is_the_shape_it_was_sampled_from():
    cone = ph.Sphere(0.5)
    grid = ph.SignedDistance.sample(cone.distance, (-0.8, -0.8, -0.8), (0.8, 0.8, 0.8), cells=24)
    p = np.random.default_rng(0).normal(size=(300, 3))
    p *= np.random.default_rng(1).uniform(0.3, 0.55, (300, 1)) / np.linalg.norm(p, axis=1, keepdims=True)
    rot = ph.quat((1, 2, 3), 0.8)
    expected = push(cone, p, rot=rot)
    assert np.count_nonzero(expected.any(axis=1)) > 100
    np.testing.assert_allclose(push(grid, p, rot=rot), expected, rtol=0, atol=2e-3)
    np.testing.assert_allclose(push(grid, 2 * p, scale=2.0), 2 * push(grid, p), rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", ["shape", "mesh", "grid"])
def test_a_ball_rolls_down_into_a_bowl_and_stays(family):
    # A bowl is a block without a ball: as a mesh and as a grid it is not convex. As a shape it is a flat table.
    def distance(p):
        block = ph.Box(1.6, 0.8, 1.6).distance(p)
        return np.maximum(block, 0.7 - np.linalg.norm(p - [0, 0.5, 0], axis=1))

    bowl = {
        "shape": ph.Box(1.6, 0.4, 1.6),
        "grid": ph.SignedDistance.sample(distance, (-1, -0.6, -1), (1, 0.6, 1), cells=(40, 24, 40)),
        "mesh": hollow().moved(pos=(-0.5, -0.8, -0.5)),
    }[family]
    scene = ph.Scene().add_obstacle("bowl", bowl, ke=1e4, kd=50.0, kf=20.0, mu=0.3)
    start = {"shape": 0.3, "grid": 0.2, "mesh": 0.0}[family]
    scene.add_rigid("ball", ph.Sphere(0.1), mass=0.5, pos=(0.05, start, 0.02))
    end = ph.rollout(scene.build("float64"), dt=5e-4, steps=8000, every=8000).state()["ball"]
    lowest = {"shape": 0.3, "grid": -0.1, "mesh": -0.2}[family]
    assert end.x[1] == pytest.approx(lowest, abs=0.02)
    assert np.abs(end.v).max() < (0.3 if family == "grid" else 1e-3)


# ------------------------------------------------------------------------------------------------------------ numbers
def test_the_scenes_numbers_hold_where_bodies_have_none():
    scene = ph.Scene(gravity=(0, 0, 0)).set_contact(ke=4e3, kd=0.0, mu=0.0)
    scene.add_rigid("a", ph.Sphere(0.1), mass=1.0).add_rigid("b", ph.Sphere(0.1), mass=1.0, pos=(0.199, 0, 0), ke=1e3)
    scene.add_rigid("c", ph.Sphere(0.1), mass=1.0, pos=(0, 0.199, 0), ke=3e3)
    scene.add_particles("dust", [[-0.099, 0, 0]], mass=1.0)
    model = scene.build("float64")
    forces = ph.forces(model)
    # a and b: b's own; a and c: c's own; a and dust: the scene's.
    np.testing.assert_allclose(forces["a"].f, [-1.0 + 4.0, -3.0, 0], rtol=1e-9)
    assert {"contact.ke", "contact.mu", "b.ke"} <= set(model.names())
    both = ph.forces(model.replace({"c.x": np.array([0.199, 0.199, 0])}))
    np.testing.assert_allclose(both["c"].f[1], 1e-3 * 1e3 * 3e3 / (1e3 + 3e3), rtol=1e-9)  # in series


def test_what_cannot_meet_has_no_numbers():
    alone = ph.Scene().add_rigid("a", ph.Sphere(0.1), mass=1.0).add_obstacle("rock", ph.Box(1, 1, 1)).build()
    assert not [n for n in alone.names() if n.startswith("contact.")]
    assert {"rock.ke", "rock.mu", "rock.x", "rock.a"} <= set(alone.names())
    fixed = ph.Scene().add_rigid("a", ph.Sphere(0.1), mass=1.0).add_rigid("b", ph.Sphere(0.1), mass=1.0)
    assert fixed.fix("a").fix("b").build().layout.count.get("shape_pairs", 0) == 0


def test_the_limit_of_the_step_counts_both_masses():
    for masses in ((1.0, 3.0), (2.0, 2.0), (1e-3, 1e3)):
        scene = ph.Scene().set_contact(ke=1e4, kd=0.0)
        for k, mass in enumerate(masses):
            scene.add_rigid(f"ball{k}", ph.Sphere(0.1), mass=mass, pos=(k, 0, 0))
        reduced = masses[0] * masses[1] / sum(masses)
        assert ph.stable_dt(scene.build("float64")) == pytest.approx(CONTACT_SAFETY * np.sqrt(4 * reduced / 1e4))


def test_a_batch_has_the_bits_of_its_copies():
    start = [thrown(seed) for seed in range(3)]
    batch = ph.rollout(ph.batch(start), dt=2e-4, steps=100, every=50)
    for k, model in enumerate(start):
        alone = ph.rollout(model, dt=2e-4, steps=100, every=50)
        for name in ("cone", "mesh", "dust"):
            assert torch.equal(batch[name].x[k], alone[name].x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: ph.SignedDistance(np.ones((3, 4, 4)), (0, 0, 0), (1, 1, 1)),
            ValueError,
            r"expected at least \(4, 4, 4\)",
        ),
        (lambda: ph.SignedDistance(np.ones((4, 4, 4)), (0, 0, 0), (1, 1, 1)), ValueError, "negative ones inside"),
        (lambda: ph.SignedDistance(np.full((4, 4, 4), np.nan), (0, 0, 0), (1, 1, 1)), ValueError, "not finite"),
        (lambda: ph.Scene().set_contact(ke=-1.0), ValueError, "contact.ke must not be negative"),
        (lambda: ph.Scene().set_contact(damping="hard"), ValueError, 'damping is "smooth" or "linear"'),
        (
            lambda: ph.Scene().add_obstacle("rock", ph.Box(1, 1, 1), touch=0.0),
            ValueError,
            "rock.touch must be positive",
        ),
        (
            lambda: ph.Scene().add_rigid("contact", ph.Box(1, 1, 1), mass=1.0),
            ValueError,
            "there is an object 'contact'",
        ),
        (lambda: ph.Scene().add_rigid("a", BALL, mass=1.0), TypeError, "signed distances have no mass"),
        (lambda: ph.Scene().add_obstacle("a", BALL, scale=(1, 2, 1)), ValueError, "scaled by one positive number"),
    ],
)
def test_what_is_wrong_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


BALL = ph.SignedDistance.sample(ph.Sphere(0.5).distance, (-1, -1, -1), (1, 1, 1), cells=8)
