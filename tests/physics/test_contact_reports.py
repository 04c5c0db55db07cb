"""`trajectory.contacts(frame)`: who touches whom, where and how hard, in agreement with `ph.forces`."""

import numpy as np
import pytest

from nablasim import physics as ph

G = 9.81


def still_life():
    scene = ph.Scene().set_contact(ratio=1.0)
    scene.add_rigid("box", ph.Box(0.2, 0.2, 0.2), mass=2.0, pos=(0, 0.1, 0))
    scene.add_rigid("top", ph.Box(0.1, 0.1, 0.1), mass=0.5, pos=(0.02, 0.25, 0))
    scene.add_obstacle("table", ph.Box(1, 0.1, 1), pos=(3, 0.05, 0))
    scene.add_rigid("plank", ph.Box(0.1, 0.02, 1.4).mesh(), mass=0.5, pos=(3, 0.11, 0))
    scene.add_rigid("ball", ph.Sphere(0.02), mass=0.02, pos=(6.1, 0.03, 0.12))
    scene.add_particles("dust", [[2, 0, 0], [3.3, 0.1, 0]], mass=0.1)
    sheet = ph.TriMesh.grid((0.4, 0.4), cells=(2, 2)).moved(rot=ph.quat((1, 0, 0), -np.pi / 2), pos=(6, 0.001, 0.2))
    scene.add_cloth("sheet", sheet, mass=0.1, stretch=200.0, shear=100.0, damping=0.5)
    scene.fix("sheet")
    return scene.add_ground("floor").build("float64")


@pytest.fixture(scope="module")
def seen():
    model = still_life()
    return model, ph.rollout(model, dt=5e-4, steps=3000, every=1500)


def test_the_ground_carries_the_weight_of_what_lies_on_it(seen):
    _, trajectory = seen
    found = trajectory.contacts()
    onto = found.of("box")
    assert set(onto.b) == {"floor", "top"}
    np.testing.assert_allclose(onto.force[onto.b == "floor"].sum(axis=0), [0, 2.5 * G, 0], atol=0.02)
    np.testing.assert_allclose(onto.force[onto.b == "top"].sum(axis=0), [0, -0.5 * G, 0], atol=0.02)
    corners = onto.point[onto.b == "floor"]
    np.testing.assert_allclose(np.sort(np.abs(corners[:, [0, 2]]).ravel()), 0.1, atol=1e-3)
    np.testing.assert_allclose(onto.normal[onto.b == "floor"], [[0, 1, 0]] * 4, atol=1e-12)
    assert (found.gap < 0).all()
    np.testing.assert_allclose(found.of("plank").force.sum(axis=0), [0, 0.5 * G, 0], atol=0.02)
    dust = found.of("dust")
    assert sorted(dust.b) == ["floor", "table"]
    np.testing.assert_allclose(dust.force, [[0, 0.1 * G, 0]] * 2, atol=1e-3)
    ball = found.of("ball")
    assert set(ball.b) == {"sheet"}
    np.testing.assert_allclose(ball.force.sum(axis=0), [0, 0.02 * G, 0], atol=1e-3)


@pytest.mark.parametrize("frame", [0, 1])
def test_forces_are_those_of_the_state(seen, frame):
    model, trajectory = seen
    found, forces = trajectory.contacts(frame), ph.forces(model, trajectory.state(frame))
    for name in ("box", "top", "plank", "ball"):
        np.testing.assert_allclose(found.of(name).force.sum(axis=0), forces[name].f, atol=1e-9)
    np.testing.assert_allclose(found.of("dust").force.sum(axis=0), forces["dust"].f.sum(axis=0), atol=1e-9)


def test_normals_look_from_b_to_a_and_forces_push_along_them(seen):
    _, trajectory = seen
    found = trajectory.contacts()
    assert (np.einsum("ni,ni->n", found.normal, found.force) > 0).all()
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1, atol=1e-12)
    text = repr(found)
    assert text.startswith(f"<{len(found)} contacts>") and "box" in text and "on floor" in text and " N " in text


def test_sliding_things_are_rubbed_and_hard_ground_holds():
    scene = ph.Scene().add_rigid("box", ph.Box(0.2, 0.2, 0.2), mass=2.0, pos=(0, 0.0995, 0), vel=(1, 0, 0))
    scene.add_particles("grain", [[2.0, 0.0, 0.0]], mass=0.1).add_ground("floor", mu=0.3)
    found = ph.rollout(scene.build("float64"), dt=1e-3, steps=0).contacts(0).of("box")
    np.testing.assert_allclose(found.force[:, 0], -0.3 * found.force[:, 1], rtol=1e-9)
    scene = ph.Scene().add_rigid("box", ph.Box(0.2, 0.2, 0.2), mass=2.0, pos=(0, 0.1, 0))
    scene.add_particles("grain", [[2.0, 0.0, 0.0]], mass=0.1).add_ground("floor", hard=True)
    end = ph.rollout(scene.build("float64"), dt=1e-3, steps=200).contacts()
    np.testing.assert_allclose(end.of("box").force.sum(axis=0), [0, 2 * G, 0], rtol=0.02, atol=0.5)
    np.testing.assert_allclose(end.of("grain").force.sum(axis=0), [0, 0.1 * G, 0], rtol=1e-6, atol=1e-9)


def test_links_of_robots_have_their_names():
    robot = ph.Robot()
    robot.add_link("upper", ph.Capsule(0.05, 0.4), mass=1.0)
    robot.add_joint("root", "free", parent="world", child="upper", pos=(0, 0.2495, 0))
    scene = ph.Scene().add_robot("arm", robot).add_ground("floor")
    trajectory = ph.rollout(scene.build("float64"), dt=1e-3, steps=1)
    found = trajectory.contacts(0)
    assert list(found.a) == ["arm.upper"] and list(found.b) == ["floor"]
    assert found.gap[0] == pytest.approx(-5e-4) and found.force[0, 1] > 0


def test_a_batch_shows_the_contacts_of_each_scene():
    scene = ph.Scene().add_rigid("box", ph.Box(0.2, 0.2, 0.2), mass=2.0, pos=(0, 0.0995, 0)).add_ground("floor")
    alone = ph.rollout(scene.build("float64"), dt=1e-3, steps=20)
    batch = ph.rollout(scene.build("float64", batch=3), dt=1e-3, steps=20)
    with pytest.raises(TypeError, match=r"batch of 3: use trajectory.scenes\[k\].contacts"):
        batch.contacts()
    for one in batch.scenes:
        np.testing.assert_array_equal(one.contacts().force, alone.contacts().force)
    other = ph.Scene().add_particles("dust", [[0, -1e-3, 0]], mass=0.1).add_ground("floor").build("float64")
    mixed = ph.rollout(ph.batch([scene.build("float64"), other]), dt=1e-3, steps=20)
    assert list(mixed.scenes[1].contacts(0).a) == ["dust"] and len(mixed.scenes[0].contacts(0)) == 4
