"""Losses of shapes: known values, gradients against differences, and what is refused."""

import time

import numpy as np
import pytest
import torch
import trimesh
from test_gradients import check, weights

from nablasim import render
from nablasim.render import losses


def rough(level=1, seed=0):
    mesh = render.Mesh.sphere(level)
    x = torch.tensor(mesh.vertices)
    return x + 0.1 * weights(*x.shape, seed=seed), torch.tensor(mesh.faces)


def test_iou_of_squares():
    a, b = torch.zeros(8, 8), torch.zeros(8, 8)
    a[:4, :4], b[2:6, :4] = 1, 1
    assert losses.iou(a, a) == 0
    assert losses.iou(a, b) == pytest.approx(1 - 8 / 24)
    assert losses.iou(a, torch.zeros(8, 8)) == 1
    assert losses.iou(torch.stack([a, a]), torch.stack([a, b])) == pytest.approx((1 - 8 / 24) / 2)


def test_two_empty_silhouettes_are_alike_and_have_a_finite_gradient():
    a = torch.zeros(3, 3, requires_grad=True)
    loss = losses.iou(a, torch.zeros(3, 3))
    loss.backward()
    assert loss == 0 and a.grad.isfinite().all()


def test_iou_by_silhouettes_and_through_a_picture():
    a, b = (torch.sigmoid(weights(2, 6, 7, seed=s)) for s in (1, 2))
    check(losses.iou, a, b)
    camera = render.Camera.look_at((0, 0, 3), (0, 0, 0), fov=50)
    x, faces = rough()
    silhouette = render.Silhouette(camera, size=(16, 16), sigma=1e-2)
    seen = silhouette(0.7 * x, faces)
    check(lambda v: losses.iou(silhouette(v, faces), seen), x)


def brute(a, b):
    d = ((a[:, None] - b[None]) ** 2).sum(-1)
    return d.min(1).mean() + d.min(0).mean()


@pytest.mark.parametrize("dimension", [2, 3])
def test_chamfer_of_points(dimension):
    a, b = np.random.default_rng(0).normal(size=(2, 40, dimension))
    b = b[:25]
    assert losses.chamfer(a, b) == pytest.approx(brute(a, b), rel=1e-12)
    assert losses.chamfer(a, a) == 0
    batch = losses.chamfer(np.stack([a, a]), np.stack([b, b + 1]))
    assert batch == pytest.approx((brute(a, b) + brute(a, b + 1)) / 2, rel=1e-12)
    check(losses.chamfer, torch.tensor(a), torch.tensor(b))


def test_chamfer_of_surfaces():
    """Two spheres whose radii differ by a tenth are a tenth apart; a set of points may stand for one."""
    small, large = render.Mesh.sphere(4), render.Mesh.sphere(4, radius=1.1)
    found = losses.chamfer(small, large, samples=20_000)
    assert found == pytest.approx(2 * 0.1**2, rel=0.05)
    x, faces = rough()
    check(lambda v: losses.chamfer(render.Mesh(v, faces), render.Mesh.sphere(2), samples=200), x)


def test_chamfer_scales():
    a, b = np.random.default_rng(0).normal(size=(2, 100_000, 3))
    a = torch.tensor(a, requires_grad=True)
    began = time.process_time()
    losses.chamfer(a, b).backward()
    assert time.process_time() - began < 10  # 10¹⁰ distances would take minutes, and 80 GB


def test_laplacian_is_that_of_the_neighbours():
    x, faces = rough()
    mesh = trimesh.Trimesh(x.numpy(), faces.numpy(), process=False)
    means = np.array([x.numpy()[list(n)].mean(0) for n in mesh.vertex_neighbors])
    assert losses.laplacian(x, faces) == pytest.approx(((means - x.numpy()) ** 2).sum(-1).mean(), rel=1e-12)
    batch = torch.stack([x, 2 * x])
    assert losses.laplacian(batch, faces) == pytest.approx(2.5 * float(losses.laplacian(x, faces)), rel=1e-12)
    check(lambda v: losses.laplacian(v, faces), x)
    check(lambda v: losses.laplacian(v, faces), batch)


def test_edge_lengths():
    x, faces = rough()
    mesh = trimesh.Trimesh(x.numpy(), faces.numpy(), process=False)
    lengths = mesh.edges_unique_length
    assert losses.edge_length(x, faces) == pytest.approx((lengths**2).mean(), rel=1e-12)
    assert losses.edge_length(x, faces, target=0.3) == pytest.approx(((lengths - 0.3) ** 2).mean(), rel=1e-12)
    for target in (0.0, 0.3):
        check(lambda v, t=target: losses.edge_length(v, faces, target=t), x)


def test_consistency_of_normals_is_that_of_the_angles_between_faces():
    x, faces = rough()
    mesh = trimesh.Trimesh(x.numpy(), faces.numpy(), process=False)
    wanted = (1 - np.cos(mesh.face_adjacency_angles)).mean()
    assert losses.normal_consistency(x, faces) == pytest.approx(wanted, rel=1e-9)
    assert losses.normal_consistency(render.Mesh.plane(cells=3)) == pytest.approx(0.0, abs=1e-15)
    assert losses.normal_consistency(render.Mesh.box()) == pytest.approx(12 / 18, rel=1e-12)  # 12 of 18 edges at 90°
    check(lambda v: losses.normal_consistency(v, faces), x)


def test_edges_of_three_faces_count_in_pairs():
    x = torch.tensor([[0.0, 0, 0], [0, 0, 1], [1, 0, 0], [-1, 0, 0], [0, 1, 0]]).double()
    faces = np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]])
    n = render.Mesh(x, faces)
    normals = np.array([[0.0, 1, 0], [0, 1, 0], [-1, 0, 0]])
    wanted = np.mean([1 - normals[i] @ normals[j] for i, j in ((0, 1), (1, 2), (0, 2))])
    assert losses.normal_consistency(n) == pytest.approx(wanted)


@pytest.mark.parametrize("loss", [losses.laplacian, losses.edge_length, losses.normal_consistency])
def test_degenerate_meshes_are_finite(loss):
    for faces in ([[0, 0, 1], [0, 1, 2]], [[0, 1, 2], [2, 1, 3]], np.zeros((0, 3), int)):
        x = torch.zeros(5, 3, dtype=torch.float64, requires_grad=True)
        value = loss(x, np.asarray(faces))
        value.backward()
        assert value.isfinite() and x.grad.isfinite().all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.iou(np.zeros((4, 4)), np.zeros((4, 5))), r"of one shape.*\(4, 4\) and \(4, 5\)"),
        (lambda: losses.iou(np.full((2, 2), np.nan), np.zeros((2, 2))), r"image\[0, 0\] is nan"),
        (lambda: losses.chamfer(np.zeros((4, 3)), np.zeros((4, 2))), "a and b are points"),
        (lambda: losses.chamfer(np.zeros((0, 3)), np.zeros((4, 3))), "no points"),
        (lambda: losses.chamfer(render.Mesh(np.zeros((3, 3)), [[0, 1, 2]]), np.zeros((4, 3))), "without area"),
        (lambda: losses.laplacian(np.zeros((3, 3)), [[0, 1, 3]]), r"faces\[0, 2\] is 3"),
        (lambda: losses.edge_length(render.Mesh.box(), target=np.inf), "target must be a finite number"),
    ],
)
def test_what_cannot_be_compared_says_why(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_meshes_have_faces():
    with pytest.raises(TypeError, match="give vertices and faces"):
        losses.laplacian(np.zeros((3, 3)))
