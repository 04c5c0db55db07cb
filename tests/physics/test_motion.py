"""What can be looked at of a motion: where things are, where they touch and how hard, and that files keep it."""

import numpy as np
import pytest

from nablasim import physics as ph
from nablasim.physics.time.touching import contacts

WEIGHT = 2.0 * 9.81


def resting(hard: bool = False) -> tuple[ph.Model, ph.Trajectory]:
    """A cube of 2 kg that has come to rest on the ground."""
    scene = ph.Scene()
    scene.add_rigid("cube", ph.Box(1, 1, 1), mass=2.0, pos=(0.2, 0.5 if hard else 0.499, -0.1))
    scene.add_ground("floor", hard=hard)
    model = scene.build(real="float64")
    return model, ph.rollout(model, dt=1e-3, steps=1500, every=750)


@pytest.mark.parametrize("hard", [False, True])
def test_the_ground_carries_a_cube_at_its_corners(hard):
    model, ran = resting(hard)
    found = contacts(model, ran.state(-1))
    assert len(found) == 4
    np.testing.assert_allclose(found.forces, np.tile([0, WEIGHT / 4, 0], (4, 1)), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(sorted(map(tuple, found.points[:, [0, 2]].round(6))),
                               [(-0.3, -0.6), (-0.3, 0.4), (0.7, -0.6), (0.7, 0.4)])  # fmt: skip
    assert np.abs(found.points[:, 1]).max() < 1e-3
    flying = contacts(model, ran.state(0).replace({"cube.x": (0, 3, 0)}))
    assert len(flying) == 0


def test_what_bodies_carry_goes_through_where_they_touch():
    scene = ph.Scene()
    scene.add_obstacle("table", ph.Box(4, 1, 4), pos=(0, -0.5, 0))
    scene.add_rigid("ball", ph.Sphere(0.5), mass=2.0, pos=(0.3, 0.4981, 0.2))
    model = scene.build(real="float64")
    ran = ph.rollout(model, dt=1e-3, steps=3000, every=3000)
    found = contacts(model, ran.state(-1))
    # The ball is pushed up, the table down, in the same place: the third law.
    np.testing.assert_allclose(sorted(found.forces[:, 1]), [-WEIGHT, WEIGHT], rtol=1e-4)
    np.testing.assert_allclose(found.points, [[0.3, 0, 0.2]] * 2, atol=5e-3)


def test_files_keep_what_is_seen(tmp_path):
    _, ran = resting()
    motion = ph.Motion.of(ran)
    np.testing.assert_allclose(motion.things["cube"].corners(2), ran.vertices("cube")[2], atol=1e-6)
    video = np.linspace(0, 1, 3 * 4 * 5).reshape(3, 4, 5)
    file = ph.save_motions(tmp_path / "motion.npz", {"found": motion.beside(video), "guess": motion})
    read = ph.load_motions(file)
    assert list(read) == ["found", "guess"] and [f.name for f in tmp_path.iterdir()] == ["motion.npz"]
    again = read["found"]
    np.testing.assert_array_equal(again.times, ran.times)
    for frame in range(3):
        np.testing.assert_array_equal(again.things["cube"].corners(frame), motion.things["cube"].corners(frame))
        np.testing.assert_array_equal(again.contacts[frame].forces, motion.contacts[frame].forces)
    np.testing.assert_array_equal(again.planes["floor"], [0, 1, 0, 0])
    assert again.pictures.shape == (3, 4, 5, 3) and again.pictures.max() == 255 and read["guess"].pictures is None
    assert list(ph.load_motions(ran.save(tmp_path / "other.npz"))) == ["motion"]


def test_springs_and_sheets_are_drawn_where_they_are():
    scene = ph.Scene()
    scene.add_particles("first", [[5.0, 0, 0]], mass=1.0)
    scene.add_springs("rope", [[0.0, 0, 0], [0.3, 0, 0], [0.6, 0, 0]], [[0, 1], [1, 2]], mass=0.1, ke=2.0)
    things = ph.Motion.of(ph.rollout(scene.build(), dt=1e-3, steps=2, every=2)).things
    np.testing.assert_array_equal(things["rope"].edges, [[0, 1], [1, 2]])
    assert things["rope"].x.shape == (2, 3, 3) and things["first"].edges is None


def test_what_cannot_be_shown_is_said(tmp_path):
    model, ran = resting()
    broken = tmp_path / "broken.npz"
    broken.write_bytes(ran.save(tmp_path / "whole.npz").read_bytes()[:300])
    with pytest.raises(ph.InputError, match=r"broken.npz: .*not a file of motions.*trajectory.save"):
        ph.load_motions(broken)
    np.savez(tmp_path / "numbers.npz", x=np.zeros(3))
    with pytest.raises(ph.InputError, match="not a file of motions"):
        ph.load_motions(tmp_path / "numbers.npz")
    with pytest.raises(ValueError, match=r"batch.*trajectory.scenes"):
        ph.Motion.of(ph.rollout(model.batched(2), dt=1e-3, steps=1))
    with pytest.raises(TypeError, match="trajectory of a scene"):
        ph.Motion.of(ph.rollout(ph.Pendulum(), dt=1e-3, steps=1))
    with pytest.raises(ValueError, match=r"3, height, width, 3.*\(2, 4, 4\)|\(2, 4, 4, 3\)"):
        ph.Motion.of(ran).beside(np.zeros((2, 4, 4)))
