"""Gradients of every input of every kind of picture against central differences, in double precision."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scenes import camera_of, scene

from nablasim import render

SIZE = (14, 18)
SOFT = {"sigma": 3e-3, "gamma": 5e-3, "background": (0.1, 0.25, 0.3)}
LIGHTS = {"ambient": (0.2, 0.3, 0.1), "to_light": (0.3, 0.8, 0.6), "point": (0.5, 1.0, 1.5)}


def check(loss, *inputs, step=1e-6, rtol=2e-5, entries=12):
    """The gradient of a number by tensors: some entries of each, and all of them at once in a random direction."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    loss(*inputs).backward()
    rng = np.random.default_rng(7)
    for n, x in enumerate(inputs):
        found = x.grad.numpy()
        assert np.isfinite(found).all()
        largest = np.argsort(-np.abs(found.ravel()))[: entries // 2]
        chosen = np.union1d(largest, rng.permutation(x.numel())[: entries // 2])
        directions = [np.eye(1, x.numel(), k).reshape(x.shape) for k in chosen] + [rng.normal(size=x.shape)]
        slopes = [float((found * d).sum()) for d in directions]
        expected = [slope(loss, inputs, n, torch.tensor(d), step) for d in directions]
        scale = max(np.abs(expected).max(), 1e-3)
        np.testing.assert_allclose(slopes, expected, atol=rtol * scale, rtol=rtol, err_msg=f"input {n}")
        assert np.abs(expected).max() > 1e-6, f"nothing depends on input {n}"


def slope(loss, inputs, n, direction, step):
    """The central difference by input n along a direction."""
    sides = []
    with torch.no_grad():
        for sign in (1, -1):
            moved = [x.detach() for x in inputs]
            moved[n] = moved[n] + sign * step * direction
            sides.append(float(loss(*moved)))
    return (sides[0] - sides[1]) / (2 * step)


def weights(*shape, seed=5):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape))


def tensors(name, seed=0):
    vertices, faces = scene(name, seed)
    return torch.tensor(vertices), torch.tensor(np.asarray(faces))


def colours(count, seed=1):
    return torch.tensor(np.random.default_rng(seed).uniform(size=(count, 3)))


@pytest.mark.parametrize("perspective", [True, False])
@pytest.mark.parametrize("name", ["soup", "clipped", "objects"])
def test_silhouettes_by_vertices(name, perspective):
    vertices, faces = tensors(name)
    silhouette, w = render.Silhouette(camera_of(perspective), size=SIZE, sigma=3e-3), weights(*SIZE)
    check(lambda x: (silhouette(x, faces) * w).sum(), vertices)


@pytest.mark.parametrize("composite", [False, True])
@pytest.mark.parametrize("perspective", [True, False])
@pytest.mark.parametrize("name", ["soup", "clipped"])
def test_softras_by_vertices_and_colours(name, perspective, composite):
    vertices, faces = tensors(name)
    renderer, w = render.Renderer(camera_of(perspective), size=SIZE, composite=composite, **SOFT), weights(*SIZE, 4)
    check(lambda x, c: (renderer(x, faces, colors=c) * w).sum(), vertices, colours(len(vertices)))


@pytest.mark.parametrize("mode", ["dibr", "hard"])
@pytest.mark.parametrize("name", ["soup", "clipped"])
def test_dibr_and_hard_by_vertices_and_colours(name, mode):
    vertices, faces = tensors(name)
    renderer = render.Renderer(camera_of(), mode=mode, size=SIZE, sigmainv=300.0, background=0.3)
    w = weights(*SIZE, 4)
    check(lambda x, c: (renderer(x, faces, colors=c) * w).sum(), vertices, colours(len(vertices)))


def test_by_colours_of_faces_and_of_the_background():
    vertices, faces = tensors("sphere")
    w = weights(*SIZE, 4)
    for mode in ("softras", "dibr", "hard"):

        def loss(c, background, mode=mode):
            renderer = render.Renderer(camera_of(), mode=mode, size=SIZE, gamma=1e-2, background=background)
            return (renderer(vertices, faces, face_colors=c) * w).sum()

        check(loss, colours(len(faces))[::7].repeat(8, 1)[: len(faces)], torch.tensor([0.2, 0.3, 0.4]).double())


@pytest.mark.parametrize(
    ("mode", "wrap"), [("softras", "clamp"), ("softras", "wrap"), ("dibr", "clamp"), ("hard", "wrap")]
)
def test_by_textures_and_uvs(mode, wrap):
    vertices, faces = tensors("soup")
    rng = np.random.default_rng(2)
    texture, uvs = torch.tensor(rng.uniform(size=(3, 5, 3))), torch.tensor(rng.uniform(-0.4, 1.4, (len(vertices), 2)))
    renderer = render.Renderer(camera_of(), mode=mode, size=SIZE, wrap=wrap, gamma=1e-2, sigma=3e-3)
    w = weights(*SIZE, 4)
    check(lambda t, u, x: (renderer(x, faces, texture=t, uvs=u) * w).sum(), texture, uvs, vertices, rtol=1e-4)


@pytest.mark.parametrize("mode", ["softras", "dibr"])
@pytest.mark.parametrize("smooth", [True, False])
def test_by_lights_material_and_vertices(mode, smooth):
    vertices, faces = tensors("sphere")
    paint, w = colours(len(vertices)), weights(*SIZE, 4)

    def loss(x, ambient, to_light, position, numbers):
        lights = [
            render.Ambient(ambient),
            render.Directional(to_light, color=numbers[4:7]),
            render.Point(position, color=0.7, specular=numbers[7:10]),
        ]
        material = render.Material(numbers[0], numbers[1], numbers[2], numbers[3])
        renderer = render.Renderer(
            camera_of(), lights, mode=mode, size=SIZE, shading="phong", material=material, smooth=smooth,
            sigmainv=300.0,
            **SOFT,
        )  # fmt: skip
        return (renderer(x, faces, colors=paint) * w).sum()

    numbers = torch.tensor([0.6, 0.8, 0.5, 5.0, 0.9, 0.7, 0.5, 0.3, 0.9, 0.6]).double()
    values = [torch.tensor(LIGHTS[n]).double() for n in ("ambient", "to_light", "point")]
    check(loss, vertices, *values, numbers, rtol=1e-4)


def test_by_normals_and_harmonics():
    vertices, faces = tensors("sphere")
    rng, w = np.random.default_rng(4), weights(*SIZE, 4)
    for mode in ("softras", "hard"):

        def loss(normals, coefficients, mode=mode):
            lights = [render.SphericalHarmonics(coefficients)]
            renderer = render.Renderer(camera_of(), lights, mode=mode, size=SIZE, gamma=1e-2)
            return (renderer(vertices, faces, normals=normals) * w).sum()

        coefficients = torch.tensor(rng.normal(size=(9, 3)) + np.array([[4.0]] + [[0.0]] * 8))
        check(loss, vertices + 0.1 * torch.tensor(rng.normal(size=vertices.shape)), coefficients, rtol=1e-4)


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_by_the_pose_of_the_camera(mode):
    vertices, faces = tensors("soup")
    paint, w = colours(len(vertices)), weights(*SIZE, 4)

    def loss(eye, target, up):
        camera = render.Camera.look_at(eye, target, up, fov=50)
        renderer = render.Renderer(camera, mode=mode, size=SIZE, sigma=3e-3, gamma=5e-3, sigmainv=300.0)
        return (renderer(vertices, faces, colors=paint) * w).sum()

    check(loss, *(torch.tensor(v).double() for v in ([0.4, 0.5, 2.6], [0.05, 0.0, 0.1], [0.1, 1.0, 0.2])))


def test_by_the_pose_of_the_camera_in_highlights():
    vertices, faces = tensors("sphere")
    lights, w = [render.Ambient(0.2), render.Point((0.5, 1.0, 1.5))], weights(*SIZE, 4)

    def loss(eye, target):
        camera = render.Camera.look_at(eye, target, fov=50)
        material = render.Material(ks=0.8, shininess=5.0)
        renderer = render.Renderer(camera, lights, mode="dibr", shading="phong", material=material, size=SIZE)
        return (renderer(vertices, faces) * w).sum()

    check(loss, *(torch.tensor(v).double() for v in ([0.4, 0.5, 2.6], [0.05, 0.0, 0.1])))


def test_by_fields_of_view_and_intrinsics():
    vertices, faces = tensors("soup")
    paint, w = colours(len(vertices)), weights(*SIZE, 4)

    def draw(camera, mode="softras"):
        renderer = render.Renderer(camera, mode=mode, size=SIZE, sigmainv=300.0, **SOFT)
        return (renderer(vertices, faces, colors=paint) * w).sum()

    eye, target = (0.4, 0.5, 2.6), (0.05, 0.0, 0.1)
    check(lambda fov: draw(render.Camera.look_at(eye, target, fov=fov)), torch.tensor(50.0).double())
    check(lambda scale: draw(render.Camera.look_at(eye, target, scale=scale)), torch.tensor(1.2).double())
    check(lambda v: draw(render.Camera.orbit(v[0], v[1], v[2], fov=50)), torch.tensor([2.5, 20.0, 40.0]).double())
    K = torch.tensor([[15.0, 0.4, 8.6], [0.0, 14.0, 7.3], [0.0, 0.0, 1.0]]).double()
    R, t = torch.diag(torch.tensor([1.0, -1.0, -1.0])).double(), torch.tensor([0.1, 0.2, 2.7]).double()

    def opencv(K, R, t, mode):
        used = torch.tensor([[1.0, 1, 1], [0, 1, 1], [0, 0, 1]]).double()
        return draw(render.Camera.opencv(K * used, R, t, SIZE), mode)

    with pytest.raises(AssertionError, match="nothing depends"):
        check(lambda a: draw(render.Camera.look_at(eye, target, fov=50)) + 0 * a, torch.tensor(1.0).double())
    free = torch.zeros(3, 3).double()
    free[0, 0], free[1, 1], free[0, 2], free[1, 2], free[0, 1] = 1, 1, 1, 1, 1
    for mode in ("softras", "dibr", "hard"):
        check(lambda k, r, p, mode=mode: opencv(K + free * (k - K), r, p, mode), K, R, t)


def test_depth_normals_and_flow():
    vertices, faces = tensors("sphere")
    renderer = render.Renderer(camera_of(), mode="hard", size=SIZE)
    w, w2, w3 = weights(*SIZE), weights(*SIZE, 2), weights(*SIZE, 3)
    moved = vertices + 0.05 * weights(*vertices.shape)
    check(lambda x: (renderer(x, faces, output="depth") * w).sum(), vertices)
    check(lambda x: (renderer(x, faces, output="normals") * w3).sum(), vertices, rtol=1e-4)
    check(lambda x, y: (renderer(x, faces, output="flow", moved=y) * w2).sum(), vertices, moved, rtol=1e-4)


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_faces_that_both_planes_cut(mode):
    vertices, faces = tensors("objects")
    style = SOFT if mode == "softras" else {"sigmainv": 300.0} if mode == "dibr" else {}
    renderer = render.Renderer(camera_of(), mode=mode, size=SIZE, near=2.2, far=2.7, **style)
    w = weights(*SIZE, 4)
    check(lambda x, c: (renderer(x, faces, colors=c) * w).sum(), vertices, colours(len(vertices)), step=1e-7, rtol=1e-4)
    if mode == "softras":
        check(lambda x: (renderer(x, faces, output="silhouette") * w[..., 0]).sum(), vertices, step=1e-7, rtol=1e-4)


def test_supersampled_pictures():
    vertices, faces = tensors("soup")
    renderer, w = render.Renderer(camera_of(), size=(7, 9), sampling=2, **SOFT), weights(7, 9, 4)
    check(lambda x, c: (renderer(x, faces, colors=c) * w).sum(), vertices, colours(len(vertices)))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1e-2]), st.sampled_from([1e-3, 1e-1]), st.booleans())
@example(41083, 1e-3, 1e-3, False)  # meets a jump within 1e-6
def test_softras_of_random_scenes_in_a_random_direction(seed, sigma, gamma, composite):
    """⟨gradient, direction⟩ is the slope along the direction."""
    vertices, faces = tensors("soup", seed)
    paint, w = colours(len(vertices), seed), weights(*SIZE, 4, seed=seed)
    renderer = render.Renderer(camera_of(), size=SIZE, sigma=sigma, gamma=gamma, composite=composite)
    x, c = vertices.clone().requires_grad_(), paint.clone().requires_grad_()
    (renderer(x, faces, colors=c) * w).sum().backward()
    dx, dc = weights(*vertices.shape, seed=seed + 1), weights(*paint.shape, seed=seed + 2)
    scale = float(x.grad.abs().max())

    def difference(h):
        with torch.no_grad():
            sides = [(renderer(vertices + s * h * dx, faces, colors=paint + s * h * dc) * w).sum() for s in (1, -1)]
        return float(sides[0] - sides[1]) / (2 * h)

    # A picture jumps a little where a face comes within the cutoff: take a step that is too small to meet a jump.
    steps = [difference(h) for h in (1e-6, 4e-7, 1.5e-7, 6e-8)]
    calm = [b for a, b in pairwise(steps) if abs(a - b) < 2e-5 * (abs(b) + scale)]
    assume(calm)
    expected = calm[-1]
    found = float((x.grad * dx).sum() + (c.grad * dc).sum())
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4 * scale)


@pytest.mark.parametrize("real", [torch.float32, torch.float64])
@pytest.mark.parametrize("sigma", [1e-45, 1e-9, 1e-6, 1e-4, 1e-2, 10.0, 1e45])
@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_finite_at_every_softness(mode, sigma, real):
    """On triangles without area, from the edge, behind the camera and through the near plane."""
    for name in ("flat", "clipped", "soup"):
        vertices, faces = tensors(name)
        x, c = vertices.to(real).requires_grad_(), colours(len(vertices)).to(real).requires_grad_()
        for composite, gamma in ((False, 1e-4), (True, 1e-4), (False, 1e-12), (True, 1e6)):
            renderer = render.Renderer(
                camera_of(), mode=mode, size=SIZE, sigma=sigma, sigmainv=1 / sigma, gamma=gamma, composite=composite
            )
            image = renderer(x, faces, colors=c)
            image.square().sum().backward()
            assert image.isfinite().all() and x.grad.isfinite().all() and c.grad.isfinite().all()
