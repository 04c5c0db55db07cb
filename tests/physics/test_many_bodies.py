"""Scenes of many bodies: pairs are listed by arrays, row by row as a loop over pairs would."""

import numpy as np

from nablasim import physics as ph


def listed(model: ph.Model, family: str) -> list[tuple[int, int]]:
    one, other = (model.layout.indices[f"{family}_pairs.{side}"].tolist() for side in ("one", "other"))
    return list(zip(one, other))


def test_balls_meet_everything_by_their_centres_and_boxes_meet_by_the_corners_of_both():
    scene = ph.Scene()
    scene.add_rigid("box", ph.Box(1, 1, 1), mass=1.0)
    scene.add_rigid("ball", ph.Sphere(0.5), mass=1.0, pos=(2, 0, 0))
    scene.add_obstacle("wall", ph.Box(1, 1, 1), pos=(4, 0, 0))
    scene.add_rigid("rod", ph.Capsule(0.2, 1.0), mass=1.0, pos=(6, 0, 0))
    scene.add_obstacle("post", ph.Sphere(0.5), pos=(8, 0, 0))
    pairs = listed(scene.build(), "shape")
    box, ball, wall, rod, post = range(5)
    assert pairs == [(ball, box), (box, wall), (wall, box), (rod, box), (post, box), (ball, wall), (ball, rod),
                     (ball, post), (rod, wall), (post, rod)]  # fmt: skip


def test_every_pair_has_the_numbers_and_the_law_of_its_own_two():
    scene = ph.Scene().set_contact(mu=0.3)
    scene.add_rigid("a", ph.Sphere(0.5), mass=1.0, ke=100.0)
    scene.add_obstacle("soft", ph.Box(1, 1, 1), pos=(3, 0, 0), ke=300.0, mu=0.9, damping="linear", touch=0.02)
    scene.add_rigid("b", ph.Sphere(0.5), mass=1.0, pos=(6, 0, 0))
    scene.add_rigid("c", ph.Sphere(0.5), mass=1.0, pos=(9, 0, 0), mu=0.4)
    model = scene.build(real="float64")
    law, touch = model.layout.indices["shape_pairs.law"], model.columns["shape_pairs.touch"].ravel()
    soft = [1 in pair for pair in listed(model, "shape")]
    assert np.array_equal(law == 0, soft) and np.array_equal(touch == 0.02, soft)
    mu = dict(zip(listed(model, "shape"), model.columns["shape_pairs.mu"].ravel()))
    # Where one of the two has a mu of its own, the scene's is not asked for.
    assert mu[0, 2] == 0.3 and mu[0, 3] < 0 and mu[0, 1] < 0
    assert model.replace({"contact.mu": 0.7}).columns["shape_pairs.mu"].ravel()[1] == 0.7


def test_equal_balls_are_one_block_of_rows():
    scene = ph.Scene()
    for i in range(60):
        scene.add_rigid(f"ball{i}", ph.Sphere(0.1), mass=1.0, pos=(0.3 * i, 0, 0))
    model = scene.build()
    assert model.layout.count["shape_pairs"] == 60 * 59 // 2
    assert len(model.layout.parameters["contact.mu"].places) == 1
