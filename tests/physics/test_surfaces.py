"""What can be drawn, and where its corners are."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph
from nablasim.physics.geometry.rotation import rotation_matrix
from nablasim.physics.model.surfaces import Surface


@pytest.fixture(scope="module")
def model():
    scene = ph.Scene()
    scene.add_soft("block", ph.TetMesh.box((1, 1, 1), (1, 1, 1)), density=1.0, material=ph.NeoHookean(E=1e3, nu=0.3))
    scene.add_springs("net", [[0, 0, 0], [1, 0, 0]], [[0, 1]], ke=10.0)
    return scene.build(real="float64")


def test_a_solid_is_drawn_by_its_outer_faces(model):
    assert list(model.surfaces) == ["block"]
    np.testing.assert_array_equal(model.surfaces["block"].faces, ph.TetMesh.box((1, 1, 1), (1, 1, 1)).surface.faces)
    trajectory = ph.rollout(model, dt=1e-3, steps=4, every=2)
    assert torch.equal(trajectory.vertices("block"), trajectory["block"].x)
    with pytest.raises(KeyError, match="block"):
        trajectory.vertices("net")


def test_a_batch_of_a_model_runs_as_the_model_does(model):
    batch = model.batched(3).replace({"block.density": np.array([1.0, 2.0, 3.0])})
    several = ph.rollout(batch, dt=1e-3, steps=20, every=10)
    assert several.vertices("block").shape[0] == 3
    for density, x in zip((1.0, 2.0, 3.0), several.vertices("block")):
        alone = ph.rollout(model.replace({"block.density": density}), dt=1e-3, steps=20, every=10)
        assert torch.equal(alone.vertices("block"), x)
    with pytest.raises(ValueError, match="already"):
        batch.batched(2)


def test_corners_of_a_body_are_turned_and_moved():
    rng = np.random.default_rng(0)
    points, x, rot = rng.normal(size=(5, 3)), rng.normal(size=(2, 3)), rng.normal(size=(2, 4))
    rot /= np.linalg.norm(rot, axis=-1, keepdims=True)
    surface = Surface(np.zeros((0, 3), np.int32), points)
    wanted = np.stack([points @ rotation_matrix(q).T + p for p, q in zip(x, rot)])
    np.testing.assert_allclose(surface.vertices(x, rot), wanted, atol=1e-14)
    np.testing.assert_allclose(surface.vertices(torch.tensor(x), torch.tensor(rot)).numpy(), wanted, atol=1e-14)


def test_a_rigid_body_is_drawn_by_the_surface_of_its_shape():
    scene = ph.Scene().add_rigid(
        "can", ph.Cylinder(0.5, 1.0), mass=1.0, rot=ph.quat((1, 0, 0), np.pi / 2), omega=(0, 0, 1)
    )
    trajectory = ph.rollout(scene.build("float64"), dt=1e-2, steps=10)
    corners = trajectory.vertices("can").numpy()
    assert corners.shape == (11, len(ph.Cylinder(0.5, 1.0).mesh().vertices), 3)
    np.testing.assert_allclose(np.abs(corners[0, :, 2]).max(), 0.5)  # it lies along z
