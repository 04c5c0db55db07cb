"""Every kind of picture against the slow, obvious reference, in both precisions, on scenes with everything in them."""

import inspect
import warnings

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import camera_of, for_reference, scene

from nablasim import render

SIZE = (22, 30)
SCENES = ["soup", "sphere", "objects", "clipped", "flat"]
BACKGROUND = (0.1, 0.25, 0.3)
SOFT = {"sigma": 2e-3, "gamma": 3e-3}


def colours(count, seed=1):
    return np.random.default_rng(seed).uniform(size=(count, 3))


def draw(renderer, vertices, faces, real, **paint):
    values = {k: torch.tensor(v, dtype=real) for k, v in paint.items()}
    return renderer(torch.tensor(vertices, dtype=real), faces, **values).numpy().astype(np.float64)


def compare(renderer, vertices, faces, expected, **paint):
    np.testing.assert_allclose(draw(renderer, vertices, faces, torch.float64, **paint), expected, atol=1e-9)
    off = np.abs(draw(renderer, vertices, faces, torch.float32, **paint) - expected)
    return off


@pytest.mark.parametrize("perspective", [True, False])
@pytest.mark.parametrize("name", SCENES)
def test_silhouettes(name, perspective):
    vertices, faces = scene(name)
    camera = camera_of(perspective)
    expected = reference.silhouette(vertices, faces, for_reference(camera, SIZE), SIZE, sigma=2e-3)
    assert 0.05 < expected.mean() < 0.999
    off = compare(render.Silhouette(camera, size=SIZE, sigma=2e-3), vertices, faces, expected)
    assert off.max() < 1e-4


@pytest.mark.parametrize("composite", [False, True])
@pytest.mark.parametrize("perspective", [True, False])
@pytest.mark.parametrize("name", SCENES[:-1])
def test_softras(name, perspective, composite):
    vertices, faces = scene(name)
    camera, paint = camera_of(perspective), colours(len(vertices))
    surface = reference.vertex_colours(paint, faces)
    expected = reference.softras(
        vertices, faces, for_reference(camera, SIZE), SIZE, surface, background=BACKGROUND, composite=composite, **SOFT
    )
    renderer = render.Renderer(camera, size=SIZE, background=BACKGROUND, composite=composite, **SOFT)
    assert compare(renderer, vertices, faces, expected, colors=paint).max() < 1e-4


@pytest.mark.parametrize("composite", [False, True])
def test_softras_of_flat_triangles(composite):
    # On the screen two edges of a flat triangle lie on each other. Which of them is nearer is a matter of rounding, and
    # so is the colour; the coverage is not.
    vertices, faces = scene("flat")
    camera, paint = camera_of(), colours(len(vertices))
    surface, view = reference.vertex_colours(paint, faces), for_reference(camera, SIZE)
    expected = reference.softras(vertices, faces, view, SIZE, surface, background=BACKGROUND, **SOFT)
    renderer = render.Renderer(camera, size=SIZE, background=BACKGROUND, composite=composite, **SOFT)
    found = draw(renderer, vertices, faces, torch.float64, colors=paint)
    np.testing.assert_allclose(found[..., 3], expected[..., 3], atol=1e-9)
    assert (found >= 0).all() and (found <= 1).all()
    # One whose corners lie at the same place, or have the same colour, has no choice.
    same = np.ones((len(vertices), 3)) * 0.4
    surface = reference.vertex_colours(same, faces)
    expected = reference.softras(vertices[:12], faces[1:4], view, SIZE, surface, background=BACKGROUND, **SOFT)
    renderer = render.Renderer(camera, size=SIZE, background=BACKGROUND, **SOFT)
    found = draw(renderer, vertices[:12], faces[1:4], torch.float64, colors=same[:12])
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("mode", ["dibr", "hard"])
@pytest.mark.parametrize("perspective", [True, False])
@pytest.mark.parametrize("name", SCENES)
def test_dibr_and_hard(name, perspective, mode):
    vertices, faces = scene(name)
    camera, paint = camera_of(perspective), colours(len(faces))
    surface, view = reference.face_colours(paint), for_reference(camera, SIZE)
    settings = {"sigmainv": 300.0} if mode == "dibr" else {}
    expected = getattr(reference, mode)(vertices, faces, view, SIZE, surface, background=BACKGROUND, **settings)
    renderer = render.Renderer(camera, mode=mode, size=SIZE, background=BACKGROUND, **settings)
    off = compare(renderer, vertices, faces, expected, face_colors=paint)
    # In float32 an edge, or where two faces meet, may fall on the other side of a pixel centre: in a few pixels.
    assert (off.max(-1) > 1e-4).sum() <= 2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([3e-5, 3e-4, 1e-2]), st.sampled_from([1e-4, 1e-2]), st.booleans())
def test_softras_on_random_triangles(seed, sigma, gamma, perspective):
    vertices, faces = scene("soup", seed)
    camera, paint = camera_of(perspective), colours(len(vertices), seed)
    surface = reference.vertex_colours(paint, faces)
    expected = reference.softras(
        vertices, faces, for_reference(camera, SIZE), SIZE, surface, background=BACKGROUND, sigma=sigma, gamma=gamma
    )
    renderer = render.Renderer(camera, size=SIZE, background=BACKGROUND, sigma=sigma, gamma=gamma)
    np.testing.assert_allclose(draw(renderer, vertices, faces, torch.float64, colors=paint), expected, atol=1e-9)


def test_depth_and_faces():
    for name in SCENES:
        vertices, faces = scene(name)
        camera = camera_of()
        face, _, depth = reference.visible(vertices, faces, for_reference(camera, SIZE), SIZE)
        renderer = render.Renderer(camera, mode="hard", size=SIZE, far=50.0)
        found = renderer(vertices, faces, output=["face", "depth"])
        assert np.array_equal(found["face"].numpy(), face)
        np.testing.assert_allclose(found["depth"].numpy(), np.where(face >= 0, depth, 50.0), atol=1e-9)


FAR_AWAY = {"far": 2.7}  # cuts through all scenes


@pytest.mark.parametrize("perspective", [True, False])
@pytest.mark.parametrize("name", ["objects", "clipped"])
@pytest.mark.parametrize("near", [None, 1.7])
def test_far_and_near_cut_in_every_mode(name, perspective, near):
    vertices, faces = scene(name)
    camera, paint, planes = camera_of(perspective), colours(len(vertices)), {"near": near, **FAR_AWAY}
    surface, view = reference.vertex_colours(paint, faces), for_reference(camera, SIZE)
    for mode, style in (("softras", SOFT), ("dibr", {"sigmainv": 300.0}), ("hard", {})):
        named = {"background": BACKGROUND, **style, **planes}
        expected = getattr(reference, mode)(vertices, faces, view, SIZE, surface, **named)
        renderer = render.Renderer(camera, mode=mode, size=SIZE, **named)
        np.testing.assert_allclose(draw(renderer, vertices, faces, torch.float64, colors=paint), expected, atol=1e-9)
    expected = reference.silhouette(vertices, faces, view, SIZE, **planes)
    found = render.Silhouette(camera, size=SIZE, **planes)(vertices, faces).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-9)
    # And something was cut off.
    whole = reference.silhouette(vertices, faces, view, SIZE)
    assert np.abs(expected - whole).max() > 0.5


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_the_background_is_never_nearer_than_an_object(mode):
    camera = render.Camera.look_at((0, 0, 0), (0, 0, -1), fov=60)
    for at, seen in ((50.0, True), (99.0, True), (150.0, False), (1e4, False)):
        mesh = render.Mesh.box((20.0, 20.0, 1.0)).moved(by=(0, 0, -at))
        found = render.Renderer(camera, mode=mode, size=(9, 9))(mesh, output=["depth", "silhouette", "rgba", "face"])
        depth = found["depth"].numpy()
        assert depth.max() == 100.0 and (depth.min() < 100.0) == seen == (found["face"].max().item() >= 0)
        assert (found["silhouette"][4, 4].item() > 0.5) == (found["rgba"][4, 4, 3].item() > 0.5) == seen


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_what_is_near_is_drawn_without_being_asked_for(mode):
    camera = render.Camera.look_at((0, 0, 0), (0, 0, -1), fov=60)
    for perspective in (camera, render.Camera.look_at((0, 0, 0), (0, 0, -1), scale=0.5)):
        for at in (0.15, 0.3, 0.8, 3.0):
            mesh = render.Mesh.box((at / 4, at / 4, at / 4)).moved(by=(0, 0, -at))
            image = render.Renderer(perspective, mode=mode, size=(201, 201))(mesh)
            assert image[100, 100, 3].item() > 0.5, (mode, at)


def test_what_is_cut_off_by_default_is_said():
    camera = render.Camera.look_at((0, 0, 0), (0, 0, -1), fov=60)
    small, large = (render.Mesh.box((s, s, s)).moved(by=(0, 0, -2 * s)) for s in (0.002, 0.5))
    mesh = render.Mesh.join([large, small])
    text = r"12 faces are cut off \(the first is 12, of object 1\): .* than near=0.1. Renderer\(…, near=0.000"
    with pytest.warns(UserWarning, match=text):
        render.Renderer(camera, size=(9, 9))(mesh)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert render.Renderer(camera, size=(9, 9), near=0.0003)(small)[4, 4, 3].item() > 0.5
        render.Renderer(camera, size=(9, 9), near=0.1)(mesh)  # as asked
        ground = render.Mesh.plane(10.0, height=-0.5)  # from behind the camera to far in front
        assert render.Renderer(camera, size=(9, 9))(ground)[8, 4, 3].item() > 0.5


@pytest.mark.parametrize("size", [(1, 1), (2, 33), (19, 3), (13, 13)])
def test_pictures_of_any_size(size):
    vertices, faces = scene("objects")
    camera, paint = camera_of(), colours(len(vertices))
    surface, view = reference.vertex_colours(paint, faces), for_reference(camera, size)
    named = {"background": BACKGROUND}
    for mode, style in (("softras", SOFT), ("dibr", {"sigmainv": 300.0}), ("hard", {})):
        expected = getattr(reference, mode)(vertices, faces, view, size, surface, **named, **style)
        renderer = render.Renderer(camera, mode=mode, size=size, **named, **style)
        np.testing.assert_allclose(draw(renderer, vertices, faces, torch.float64, colors=paint), expected, atol=1e-9)


def test_settings_begin_as_in_the_papers():
    found = {name: p.default for name, p in inspect.signature(render.Renderer).parameters.items()}
    wanted = {"mode": "softras", "sigma": 1e-4, "gamma": 1e-4, "eps": 1e-3, "near": None, "far": 100.0}
    wanted |= {"sigmainv": 7000.0, "sigma_pixels": None, "composite": False, "sampling": 1, "wrap": "clamp"}
    assert {name: found[name] for name in wanted} == wanted
    # And the reference, which has the same defaults, agrees.
    vertices, faces = scene("soup")
    camera, paint = camera_of(), colours(len(vertices))
    surface, view = reference.vertex_colours(paint, faces), for_reference(camera, SIZE)
    for mode in ("softras", "dibr", "hard"):
        expected = getattr(reference, mode)(vertices, faces, view, SIZE, surface, background=0.0)
        renderer = render.Renderer(camera, mode=mode, size=SIZE)
        assert (compare(renderer, vertices, faces, expected, colors=paint).max(-1) > 1e-4).sum() <= 2


def test_distances_in_pixels():
    # In a picture that is not square a pixel is as wide as high, and NDC are not.
    vertices, faces = scene("soup")
    camera, units = camera_of(), (SIZE[1] / 2, SIZE[0] / 2)
    expected = reference.silhouette(vertices, faces, for_reference(camera, SIZE), SIZE, sigma=1.5**2, units=units)
    found = render.Silhouette(camera, size=SIZE, sigma_pixels=1.5)(vertices, faces)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-9)


def test_supersampling_is_the_mean_of_a_larger_picture():
    vertices, faces = scene("objects")
    camera, paint = camera_of(), colours(len(vertices))
    for mode in ("softras", "dibr", "hard"):
        fine = render.Renderer(camera, mode=mode, size=(33, 45))(vertices, faces, colors=paint).numpy()
        found = render.Renderer(camera, mode=mode, size=(11, 15), sampling=3)(vertices, faces, colors=paint).numpy()
        np.testing.assert_allclose(found, fine.reshape(11, 3, 15, 3, 4).mean((1, 3)), atol=1e-12)


def test_other_pictures_are_means_of_the_samples_that_see_something():
    vertices, faces = scene("objects")
    moved = vertices + [0.1, 0.05, 0.0]
    named = {"output": ["silhouette", "depth", "normals", "flow", "face"], "moved": moved}
    fine = render.Renderer(camera_of(), mode="hard", size=(33, 45))(vertices, faces, **named)
    found = render.Renderer(camera_of(), mode="hard", size=(11, 15), sampling=3)(vertices, faces, **named)
    samples = {n: x.numpy().reshape(11, 3, 15, 3, -1).swapaxes(1, 2).reshape(11, 15, 9, -1) for n, x in fine.items()}
    sees = samples["face"] >= 0
    some, count = sees.any(2)[..., 0], np.maximum(sees.sum(2), 1)
    for name in ("depth", "normals", "flow"):
        mean = (samples[name] * sees).sum(2) / count / (3 if name == "flow" else 1)  # flow counts pixels, larger ones
        np.testing.assert_allclose(found[name].numpy().reshape(mean.shape)[some], mean[some], atol=1e-12)
    assert (found["depth"].numpy()[~some] == 100.0).all() and (found["normals"].numpy()[~some] == 0).all()
    np.testing.assert_allclose(found["silhouette"].numpy(), samples["silhouette"].mean(2)[..., 0], atol=1e-12)
    assert np.array_equal(found["face"].numpy(), samples["face"][:, :, 4, 0])  # of the sample in the middle


def test_a_triangle_moved_by_a_pixel_is_the_picture_moved_by_a_pixel():
    camera = render.Camera.look_at((0, 0, 3), (0, 0, 0), scale=1.0)
    vertices, faces = np.array([[-0.5, -0.4, 0], [0.4, -0.3, 0], [0.1, 0.5, 0.0]]), np.array([[0, 1, 2]])
    renderer = render.Renderer(camera, size=(40, 40), sigma=1e-4)
    here = renderer(vertices, faces).numpy()
    right = renderer(vertices + [2 / 40, 0, 0], faces).numpy()
    up = renderer(vertices + [0, 2 / 40, 0], faces).numpy()
    np.testing.assert_allclose(right[:, 1:], here[:, :-1], atol=1e-12)
    np.testing.assert_allclose(up[:-1], here[1:], atol=1e-12)


def test_nothing_is_the_background():
    camera, faces = camera_of(), np.zeros((0, 3), np.int32)
    behind = np.array([[0.0, 0, 5], [1, 0, 5], [0, 1, 5]])
    for mode in ("softras", "dibr", "hard"):
        renderer = render.Renderer(camera, mode=mode, size=(9, 7), background=BACKGROUND)
        for vertices, f in ((np.zeros((3, 3)), faces), (behind, np.array([[0, 1, 2]]))):
            image = renderer(vertices, f).numpy()
            np.testing.assert_allclose(image, np.broadcast_to([*BACKGROUND, 0.0], (9, 7, 4)), atol=1e-12)
