"""Tangents of pictures: `Renderer.jvp`, and torch's forward mode, against the reverse sweep."""

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad as forward_ad

import kernelc as kc
from nablasim import render

CAMERA = render.Camera.look_at(eye=(0, 1, 4), target=(0, 0, 0), fov=45)
BALL = render.Mesh.sphere(level=1, radius=0.8)


def draw(dtype=torch.float64):
    rng = np.random.default_rng(0)
    vertices = torch.tensor(np.asarray(BALL.vertices), dtype=dtype)
    colors = torch.as_tensor(rng.random((len(vertices), 3))).to(dtype)
    ways = {"vertices": torch.as_tensor(rng.normal(size=(3, *vertices.shape))).to(dtype),
            "colors": torch.as_tensor(rng.normal(size=(3, *colors.shape))).to(dtype)}  # fmt: skip
    return vertices, colors, ways


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
@pytest.mark.parametrize("output", ["rgba", "silhouette", "depth", "normals"])
def test_tangents_are_the_transposed_of_the_reverse_sweep(mode, output):
    vertices, colors, ways = draw()
    renderer = render.Renderer(CAMERA, [render.Ambient(0.4), render.Directional((1, 1, 1))], mode=mode, size=(32, 32))
    picture, moved = renderer.jvp(vertices, BALL.faces, tangents=ways, colors=colors, output=output)
    v, c = vertices.clone().requires_grad_(), colors.clone().requires_grad_()
    drawn = renderer(v, BALL.faces, colors=c, output=output)
    assert torch.equal(picture, drawn.detach()) and moved.shape == (3, *picture.shape)
    weights = torch.as_tensor(np.random.default_rng(1).normal(size=drawn.shape))
    by_v, by_c = torch.autograd.grad((weights * drawn).sum(), (v, c), allow_unused=True)
    for k in range(3):
        pulled = (by_v * ways["vertices"][k]).sum() + (0 if by_c is None else (by_c * ways["colors"][k]).sum())
        pushed = (weights * moved[k]).sum()
        assert torch.isclose(pushed, pulled, rtol=0, atol=1e-12 * float((weights * moved[k]).abs().sum() + 1))
    with forward_ad.dual_level():
        dual = renderer(forward_ad.make_dual(vertices, ways["vertices"][0]), BALL.faces, output=output,
                        colors=forward_ad.make_dual(colors, ways["colors"][0]))  # fmt: skip
        assert torch.equal(forward_ad.unpack_dual(dual).tangent, moved[0])


def test_the_camera_moves_in_forward_mode():
    vertices, _, _ = draw()
    eye, way = torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64), torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)

    def seen(eye):
        camera = render.Camera.look_at(eye=eye, target=(0, 0, 0), fov=45)
        return render.Silhouette(camera, size=(24, 24))(vertices, BALL.faces)

    with forward_ad.dual_level():
        moved = forward_ad.unpack_dual(seen(forward_ad.make_dual(eye, way))).tangent
    slope = (seen(eye + 1e-6 * way) - seen(eye - 1e-6 * way)) / 2e-6
    assert torch.allclose(moved, slope, atol=1e-6)


def test_frames_of_a_batch_move_each_by_itself():
    vertices, _, ways = draw(torch.float32)
    silhouette = render.Silhouette(CAMERA, size=(32, 32))
    batch = torch.stack([vertices, vertices + 0.1])
    way = torch.stack([ways["vertices"], 2 * ways["vertices"]], dim=1)
    _, moved = silhouette.jvp(batch, BALL.faces, tangents={"vertices": way})
    _, alone = silhouette.jvp(vertices + 0.1, BALL.faces, tangents={"vertices": 2 * ways["vertices"]})
    assert moved.shape == (3, 2, 32, 32) and torch.allclose(moved[:, 1], alone, rtol=1e-4, atol=1e-5)


def test_what_cannot_move_is_refused():
    vertices, _, ways = draw()
    renderer = render.Renderer(CAMERA, size=(8, 8))
    with pytest.raises(ValueError, match="no input 'vertex'"):
        renderer.jvp(vertices, BALL.faces, tangents={"vertex": ways["vertices"]})
    with pytest.raises(ValueError, match=r"expected \(k, "):
        renderer.jvp(vertices, BALL.faces, tangents={"vertices": ways["vertices"][:, :2]})
    with pytest.raises(ValueError, match="axis in front"):
        renderer.jvp(vertices, BALL.faces, tangents={})
    with pytest.raises(TypeError, match="vmap goes over faces"):
        torch.func.vmap(lambda f: renderer(vertices, f))(torch.tensor(np.stack([BALL.faces, BALL.faces])))


def seen(vertices, colors, eye, mode="softras", output="rgba"):
    camera = render.Camera.look_at(eye=eye, target=(0, 0, 0), fov=45)
    lights = [render.Ambient(0.4), render.Directional((1, 1, 1))]
    renderer = render.Renderer(camera, lights, mode=mode, size=(12, 12))
    return renderer(vertices, BALL.faces, colors=colors, output=output)


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_transforms_of_torch_go_through_pictures(mode):
    vertices, colors, ways = draw()
    given = (vertices, colors, torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64))
    moving = (ways["vertices"][0], ways["colors"][0], torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64))
    picture, moved = torch.func.jvp(lambda *x: seen(*x, mode), given, moving)
    assert torch.equal(picture, seen(*given, mode))
    with forward_ad.dual_level():
        dual = seen(*map(forward_ad.make_dual, given, moving), mode)
        assert torch.equal(forward_ad.unpack_dual(dual).tangent, moved)
    weights = torch.as_tensor(np.random.default_rng(1).normal(size=picture.shape))
    pulled = sum((g * w).sum() for g, w in zip(torch.func.vjp(lambda *x: seen(*x, mode), *given)[1](weights), moving))
    assert torch.isclose((weights * moved).sum(), pulled, rtol=0, atol=1e-12 * float((weights * moved).abs().sum()))
    by, along = (jacobian(lambda eye: seen(vertices, colors, eye, mode))(given[2])
                 for jacobian in (torch.func.jacrev, torch.func.jacfwd))  # fmt: skip
    assert by.shape == (*picture.shape, 3) and torch.allclose(by, along, rtol=1e-10, atol=1e-11) and by.abs().max() > 0


def test_vmap_draws_one_after_the_other():
    vertices, colors, _ = draw()
    eye = torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64)
    batch = torch.stack([vertices, 1.2 * vertices])
    pictures = torch.func.vmap(lambda v: seen(v, colors, eye))(batch)
    assert torch.equal(pictures[1], seen(batch[1], colors, eye))
    slopes = torch.func.vmap(torch.func.grad(lambda v: seen(v, colors, eye).square().sum()))(batch)
    one = torch.func.grad(lambda v: seen(v, colors, eye).square().sum())(batch[1])
    assert torch.allclose(slopes[1], one, rtol=1e-12, atol=1e-14 * float(one.abs().max()))
    faces, slope = torch.func.jvp(lambda v: seen(v, colors, eye, output="face"), (vertices,), (vertices,))
    assert faces.dtype == torch.int32 and not slope.any()
    with pytest.raises(ValueError, match="finite"):
        torch.func.vmap(lambda v: seen(v, colors, eye))(torch.stack([vertices, vertices * torch.nan]))
    # The second of them is cut by the near plane, and the first is not.
    near = torch.func.vmap(lambda e: seen(vertices, colors, e))(torch.stack([eye, 0.21 * eye]))
    assert torch.allclose(near[1], seen(vertices, colors, 0.21 * eye), rtol=1e-12, atol=1e-12)


def test_second_derivatives_are_refused_and_never_constant():
    with pytest.raises(TypeError, match="pictures have a first derivative only"):
        torch.func.hessian(lambda v: seen(v, *draw()[1:2], torch.tensor([0.0, 1.0, 4.0])).sum())(draw()[0])
    vertices, colors, _ = draw()
    vertices.requires_grad_()
    picture = render.Renderer(CAMERA, size=(8, 8))(vertices, BALL.faces, colors=colors)
    plain = torch.autograd.grad(picture.sum(), vertices, retain_graph=True)[0]
    slope = torch.autograd.grad(picture.sum(), vertices, create_graph=True)[0]
    assert torch.equal(slope, plain)
    with pytest.raises(TypeError, match="pictures have a first derivative only"):
        (slope.square().sum() + vertices.square().sum()).backward()


def test_second_derivatives_of_pictures_on_a_tape_are_refused():
    """Their rules are right to first order only: nothing may come of them that looks like a Hessian."""
    silhouette = render.Silhouette(CAMERA, size=(8, 8))
    vertices = kc.array(np.asarray(BALL.vertices, np.float64), dtype=kc.float3, requires_grad=True)
    with kc.Tape() as tape:
        picture = silhouette(vertices, BALL.faces)
    with pytest.raises(kc.NotDifferentiable, match="first derivative only"):
        tape.hvp(grads={picture: np.ones(picture.shape)}, tangents={vertices: np.ones(vertices.numpy().shape)})
