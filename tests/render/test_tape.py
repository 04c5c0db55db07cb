"""The renderer between launches on a tape of kernelc: one reverse sweep goes from the pixels to the parameters."""

import numpy as np
import pytest
import torch
from scenes import camera_of, scene

import kernelc as kc
from nablasim import render

SIZE = (18, 22)


@kc.kernel
def grow(x: kc.Array[kc.float3], scale: kc.Array[float], shift: kc.Array[kc.float3], out: kc.Array[kc.float3]):
    i = kc.tid()
    out[i] = x[i] * scale[0] + shift[0]


@kc.kernel
def squared_error(image: kc.Array[float, 2], seen: kc.Array[float, 2], loss: kc.Array[float]):
    i, j = kc.tid()
    d = image[i, j] - seen[i, j]
    kc.atomic_add(loss, 0, d * d)


def record(scale, shift, seen, silhouette, rest, faces):
    x, loss = kc.zeros(len(rest), dtype=kc.float3, real=kc.float64), kc.zeros(1, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(grow, len(rest), [kc.array(rest, dtype=kc.float3), scale, shift], [x])
        image = silhouette(x, faces)
        loss.zero_()
        kc.launch(squared_error, SIZE, [image, seen], [loss])
    return tape, loss


def test_parameters_from_pixels_by_one_sweep():
    rest, faces = scene("sphere")
    silhouette = render.Silhouette(camera_of(), size=SIZE, sigma=3e-3)
    seen = silhouette(rest * 0.7 + [0.1, -0.1, 0.2], faces).numpy()
    scale = kc.array(np.array([1.0]), requires_grad=True)
    shift = kc.array(np.zeros((1, 3)), dtype=kc.float3, requires_grad=True)
    tape, loss = record(scale, shift, seen, silhouette, rest, faces)

    def run(values):
        scale.assign(values[:1])
        shift.assign(values[1:].reshape(1, 3))
        tape.replay()
        return float(loss.numpy()[0])

    at = np.array([0.8, 0.05, 0.0, -0.1])
    run(at)
    tape.zero()
    tape.backward(loss)
    found = np.concatenate([scale.grad.numpy(), shift.grad.numpy().ravel()])
    expected = [(run(at + 1e-6 * e) - run(at - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_replay_may_bring_faces_through_the_near_plane():
    rest, faces = scene("sphere")
    silhouette = render.Silhouette(camera_of(), size=SIZE, sigma=3e-3)
    scale = kc.array(np.array([0.5]), requires_grad=True)
    shift = kc.array(np.zeros((1, 3)), dtype=kc.float3, requires_grad=True)
    tape, loss = record(scale, shift, np.zeros(SIZE), silhouette, rest, faces)
    moved = np.array([[0.3, 0.3, 1.6]])
    shift.assign(moved)
    tape.replay()
    expected = (silhouette(rest * 0.5 + moved, faces) ** 2).sum()
    assert loss.numpy()[0] == pytest.approx(float(expected), rel=1e-9)


def test_every_kind_of_picture_is_that_of_torch():
    rest, faces = scene("objects")
    x = kc.array(rest, dtype=kc.float3, requires_grad=True)
    colors = np.random.default_rng(0).uniform(size=rest.shape)
    outputs = ["rgba", "silhouette", "depth", "normals", "face", "flow"]
    for mode in ("softras", "dibr", "hard"):
        renderer = render.Renderer(camera_of(), [render.Ambient(0.3), render.Point((1, 2, 3))], mode=mode, size=SIZE)
        expected = renderer(rest, faces, colors=colors, output=outputs, moved=rest + 0.1)
        with kc.Tape() as tape:
            found = renderer(x, faces, colors=colors, output=outputs, moved=rest + 0.1)
        for name in outputs:
            np.testing.assert_allclose(found[name].numpy(), expected[name].numpy(), atol=1e-12, err_msg=name)
        tape.zero()
        tape.backward(grads={found["rgba"]: np.ones((*SIZE, 4))})
        leaf = torch.tensor(rest, requires_grad=True)
        renderer(leaf, faces, colors=colors).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), leaf.grad.numpy(), atol=1e-9)


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("mode", ["softras", "hard"])
def test_what_is_painted_may_be_arrays_with_gradients(mode, typed):
    rest, faces = scene("sphere")
    rng, lights = np.random.default_rng(0), [render.Ambient(0.3), render.Point((1, 2, 3))]
    renderer = render.Renderer(camera_of(), lights, mode=mode, size=SIZE)
    kinds = {"colors": kc.float3, "texture": kc.float3, "uvs": kc.float2, "normals": kc.float3}
    paint = {"colors": rng.uniform(size=rest.shape), "normals": rng.normal(size=rest.shape)}
    picture = {"texture": rng.uniform(size=(4, 5, 3)), "uvs": rng.uniform(size=(len(rest), 2))}
    for values in (paint, picture):
        arrays = {
            n: kc.array(v, requires_grad=True, **({"dtype": kinds[n]} if typed else {})) for n, v in values.items()
        }
        with kc.Tape() as tape:
            image = renderer(kc.array(rest, dtype=kc.float3), faces, **arrays)
        tape.backward(grads={image: np.ones((*SIZE, 4))})
        leaves = {n: torch.tensor(v, requires_grad=True) for n, v in values.items()}
        renderer(torch.tensor(rest), faces, **leaves).sum().backward()
        for n, leaf in leaves.items():
            assert leaf.grad.abs().max() > 0
            np.testing.assert_allclose(arrays[n].grad.numpy(), leaf.grad.numpy(), atol=1e-12, err_msg=n)


def test_states_of_a_rollout_become_a_batch():
    rest, faces = scene("sphere")
    states = [kc.array(rest * r, dtype=kc.float3, requires_grad=True) for r in (0.5, 0.8, 1.0)]
    silhouette = render.Silhouette(camera_of(), size=SIZE)
    with kc.Tape() as tape:
        video = silhouette(states, faces)
    assert video.shape == (3, *SIZE)
    np.testing.assert_array_equal(video.numpy()[1], silhouette(rest * 0.8, faces).numpy())
    tape.backward(grads={video: np.ones((3, *SIZE))})
    assert all(np.abs(s.grad.numpy()).max() > 0 for s in states)


def test_nothing_is_kept_of_the_loops_over_faces():
    mesh = render.Mesh.sphere(2)
    x = kc.array(mesh.vertices.astype(np.float32), dtype=kc.float3, requires_grad=True)
    for mode in ("softras", "dibr", "hard"):
        renderer = render.Renderer(camera_of(), [render.Ambient(0.3), render.Point((1, 2, 3))], mode=mode, size=SIZE)
        with kc.Tape() as tape:
            renderer(x, mesh.faces, output=["rgba", "silhouette"])
        assert tape.memory() == 0  # test_costs.py counts what is kept of pixels
