"""Batches, threads, repeated and nested calls: the same bits; lists that are too short: the same picture."""

import copy

import numpy as np
import pytest
import torch
from scenes import camera_of, scene

import kernelc as kc
from nablasim import render

SIZE = (26, 34)


@pytest.fixture(autouse=True)
def restore_threads():
    threads = kc.config.threads
    yield
    kc.config.threads = threads


def frames(count, real=torch.float32):
    vertices, faces = scene("sphere")
    rng = np.random.default_rng(0)
    moved = np.stack([vertices * rng.uniform(0.5, 1.1) + rng.normal(size=3) * 0.2 for _ in range(count)])
    return torch.tensor(moved, dtype=real), torch.tensor(np.asarray(faces))


def with_gradient(renderer, vertices, faces, **named):
    x = vertices.clone().requires_grad_()
    image = renderer(x, faces, **named)
    weights = torch.linspace(0.1, 1, image.shape[-3] * image.shape[-2] * image.shape[-1]).reshape(image.shape[-3:])
    (image * weights.to(image)).sum().backward()
    return image.detach(), x.grad


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_a_batch_of_frames_has_the_bits_of_each_alone(mode):
    vertices, faces = frames(5)
    lights = [render.Ambient(0.3), render.Point((1, 2, 3))]
    renderer = render.Renderer(camera_of(), lights, mode=mode, size=SIZE, background=0.2)
    image, gradient = with_gradient(renderer, vertices, faces)
    assert image.shape == (5, *SIZE, 4)
    for b in range(5):
        alone, alone_gradient = with_gradient(renderer, vertices[b], faces)
        assert torch.equal(image[b], alone)
        assert torch.equal(gradient[b], alone_gradient)


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_a_batch_of_cameras_has_the_bits_of_each_alone(mode):
    vertices, faces = frames(1)
    azimuth = np.array([0.0, 50.0, 190.0])
    batch = render.Camera.orbit(2.6, 20.0, azimuth, fov=50)
    image = render.Renderer(batch, mode=mode, size=SIZE)(vertices[0], faces)
    assert image.shape == (3, *SIZE, 4)
    for b, a in enumerate(azimuth):
        camera = render.Camera.orbit(2.6, 20.0, a, fov=50)
        assert torch.equal(image[b], render.Renderer(camera, mode=mode, size=SIZE)(vertices[0], faces))


@pytest.mark.parametrize("kind", ["fov", "scale", "K"])
def test_cameras_of_a_batch_may_have_lenses_of_their_own(kind):
    vertices, faces = frames(1, torch.float64)

    def camera(k):
        """One, or a batch where the numbers are."""
        if kind != "K":
            return render.Camera.look_at((0.4, 0.5, 2.6), (0, 0, 0), **{kind: k * 30})
        K = torch.stack([30 * k, 0 * k, 16 + k, 0 * k, 25 * k, 12 + k, 0 * k, 0 * k, 1 + 0 * k], -1)
        return render.Camera.opencv(K.reshape(*k.shape, 3, 3), np.diag([1.0, -1, -1]), (0.1, 0.2, 2.7), SIZE)

    renderer = render.Renderer(camera(torch.tensor(1.0)), size=SIZE)
    several = torch.tensor([0.9, 1.3, 2.0], dtype=torch.float64, requires_grad=True)
    image = renderer(vertices[0], faces, camera=camera(several))
    assert image.shape == (3, *SIZE, 4)
    image.square().sum().backward()
    pixels, depth = camera(several.detach()).to_pixels(vertices[0], SIZE)
    assert pixels.shape == (3, len(vertices[0]), 2) and depth.shape == pixels.shape[:2]
    for b, value in enumerate(several.detach()):
        one = value.clone().requires_grad_()
        alone = renderer(vertices[0], faces, camera=camera(one))
        alone.square().sum().backward()
        assert torch.equal(image[b], alone)
        assert several.grad[b] == pytest.approx(float(one.grad), rel=1e-12)
        assert torch.allclose(pixels[b], camera(value).to_pixels(vertices[0], SIZE)[0], rtol=1e-14)


def test_frames_and_cameras_together():
    vertices, faces = frames(3)
    cameras = render.Camera.orbit(2.6, np.array([10.0, 20, 30]), np.array([0.0, 50.0, 190.0]), fov=50)
    image = render.Renderer(cameras, size=SIZE)(vertices, faces)
    one = render.Camera.orbit(2.6, 20.0, 50.0, fov=50)
    assert torch.equal(image[1], render.Renderer(one, size=SIZE)(vertices[1], faces))
    with pytest.raises(ValueError, match="vertices has a batch of 2, but pose one of 3"):
        render.Renderer(cameras, size=SIZE)(vertices[:2], faces)


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_threads_and_repetition_change_no_bit(mode):
    mesh = render.Mesh.sphere(3)
    vertices, faces = torch.tensor(mesh.vertices, dtype=torch.float32), mesh.faces
    renderer = render.Renderer(camera_of(), mode=mode, size=(96, 96))
    results = []
    for kc.config.threads in (1, 2, 3, 1):
        results.append(with_gradient(renderer, vertices, faces))
    for image, gradient in results[1:]:
        assert torch.equal(image, results[0][0]) and torch.equal(gradient, results[0][1])


def test_calls_that_are_open_at_the_same_time_do_not_disturb_each_other():
    vertices, faces = frames(3, torch.float64)
    silhouette = render.Silhouette(camera_of(), size=SIZE)
    alone = []
    for v in vertices:
        x = v.clone().requires_grad_()
        silhouette(x, faces).square().sum().backward()
        alone.append(x.grad)
    leaves = [v.clone().requires_grad_() for v in vertices]
    images = [silhouette(x, faces) for x in leaves]
    for k in (1, 0, 2):  # in any order
        images[k].square().sum().backward(retain_graph=True)
    for x, wanted in zip(leaves, alone):
        assert torch.equal(x.grad, wanted)
    images[1].square().sum().backward()  # and again
    assert torch.equal(leaves[1].grad, 2 * alone[1])


def test_gradients_of_some_inputs_only_and_none_at_all():
    vertices, faces = frames(1, torch.float64)
    renderer = render.Renderer(camera_of(), size=SIZE)
    colors = torch.rand(vertices.shape[1:], dtype=torch.float64, requires_grad=True)
    image = renderer(vertices[0], faces, colors=colors)
    image.sum().backward()
    assert colors.grad.abs().sum() > 0 and vertices.grad is None
    with torch.no_grad():
        assert not renderer(vertices[0], faces, colors=colors).requires_grad
    assert not renderer(vertices[0], faces).requires_grad
    x = vertices[0].clone().requires_grad_()
    pictures = renderer(x, faces, output=["rgba", "face"])
    assert pictures["rgba"].requires_grad and not pictures["face"].requires_grad


def test_settings_may_change_between_calls():
    vertices, faces = frames(1, torch.float64)
    renderer = render.Renderer(camera_of(), size=SIZE)
    for settings in ({"sigma": 1e-2}, {"sigma": 1e-4}, {"gamma": 1e-1}, {"near": 2.2}, {"eps": 0.1}, {"far": 7.0}):
        vars(renderer).update(settings)
        fresh = render.Renderer(camera_of(), size=SIZE, **{
            n: getattr(renderer, n) for n in ("sigma", "gamma", "near", "eps", "far")
        })  # fmt: skip
        assert torch.equal(renderer(vertices[0], faces), fresh(vertices[0], faces)), settings


def test_a_shape_that_grows_out_of_its_lists_is_still_right():
    # The recording has room for the lists of the small one; the large one covers many more tiles.
    mesh = render.Mesh.sphere(3)
    small, large = (torch.tensor(mesh.vertices * r, dtype=torch.float64) for r in (0.02, 0.9))
    silhouette = render.Silhouette(camera_of(), size=(128, 128), sigma=1e-5)
    silhouette(small, mesh.faces)
    found, fresh = silhouette(large, mesh.faces), render.Silhouette(camera_of(), size=(128, 128), sigma=1e-5)
    assert torch.equal(found, fresh(large, mesh.faces))
    # On a tape there is nobody to record again.
    x = kc.array(small.numpy(), dtype=kc.float3, requires_grad=True)
    with kc.Tape() as tape:
        image = fresh(x, mesh.faces)
    x.assign(large.numpy())
    tape.replay()
    np.testing.assert_allclose(image.numpy(), found.numpy(), atol=1e-12)


def test_a_copied_module_draws_the_same():
    vertices, faces = frames(1)
    renderer = render.Renderer(camera_of(), size=SIZE)
    before = renderer(vertices[0], faces)
    assert torch.equal(copy.deepcopy(renderer)(vertices[0], faces), before)
    assert torch.equal(torch.nn.Sequential(renderer)[0](vertices[0], faces), before)


def test_second_derivatives_are_refused():
    vertices, faces = frames(1)
    x = vertices[0].clone().requires_grad_()
    image = render.Silhouette(camera_of(), size=SIZE)(x, faces)
    (g,) = torch.autograd.grad(image.sum(), x, create_graph=True)
    with pytest.raises(TypeError, match="pictures have a first derivative only"):
        g.sum().backward()


def test_recordings_are_used_again_and_not_hoarded():
    from nablasim.render import recordings

    vertices, faces = frames(1)
    renderer = render.Renderer(camera_of(), size=SIZE)
    for _ in range(3):
        x = vertices[0].clone().requires_grad_()
        renderer(x, faces).sum().backward()
    assert len(recordings.pool_of(renderer).idle) == 1
    for n in range(1, 20):
        renderer(vertices[0], faces[:n])
    assert len(recordings.pool_of(renderer).idle) == recordings.MOST_IDLE
