"""What cannot be drawn says why, and what to do."""

import numpy as np
import pytest
import torch
from scenes import camera_of

import kernelc as kc
from nablasim import render

VERTICES = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]])
FACES = np.array([[0, 1, 2], [1, 3, 2]])


def draw(vertices=VERTICES, faces=FACES, renderer=None, **named):
    return (renderer or render.Renderer(camera_of(), size=(8, 8)))(vertices, faces, **named)


def with_nan():
    v = VERTICES.copy()
    v[2, 1] = np.nan
    return v


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vertices": VERTICES[:, :2]}, r"vertices has shape \(4, 2\), but must have \(n, 3\)"),
        ({"vertices": VERTICES[0]}, r"vertices has shape \(3,\)"),
        ({"vertices": np.zeros((0, 3)), "faces": np.zeros((0, 3), int)}, "no vertices"),
        ({"vertices": with_nan()}, r"vertices\[2, 1\] is nan: every number must be finite"),
        ({"faces": np.array([[0, 1, 4]])}, r"faces\[0, 2\] is 4, but there are 4 vertices, from 0 to 3"),
        ({"faces": np.array([[0, -1, 2]])}, r"faces\[0, 1\] is -1"),
        ({"faces": np.array([[0, 1]])}, r"\(m, 3\) whole numbers"),
        ({"faces": FACES.astype(float)}, "whole numbers, not float64"),
        ({"colors": np.ones((3, 3))}, r"colors has shape \(3, 3\).*one colour per vertex"),
        ({"face_colors": np.ones((4, 3))}, r"face_colors has shape \(4, 3\).*one colour per face"),
        ({"normals": np.ones((2, 3))}, "one normal per vertex"),
        ({"texture": np.ones((4, 4, 3))}, "a texture needs uvs"),
        ({"texture": np.ones((4, 4)), "uvs": np.zeros((4, 2))}, r"a texture is \(height, width, 3\)"),
        ({"texture": np.ones((4, 4, 3)), "uvs": np.zeros((5, 2))}, "there are 5 uvs for 4 vertices"),
        ({"texture": np.ones((4, 4, 3)), "uvs": np.zeros((5, 2)), "uv_faces": FACES[:1]}, "uv_faces has 1 faces"),
        ({"texture": np.ones((4, 4, 3)), "uvs": np.zeros((2, 2)), "uv_faces": FACES}, r"there are 2 uvs, from 0 to 1"),
        ({"size": (0, 8)}, "both above zero"),
        ({"output": "colour"}, "choose one of 'rgba'"),
        ({"output": "flow"}, "flow needs the vertices of the other state"),
        ({"output": "flow", "moved": VERTICES[:2]}, "moved has 2 vertices, but there are 4"),
        ({"output": "object", "objects": [1, 2, 3]}, r"objects has shape \(3,\)"),
    ],
)
def test_meshes_that_cannot_be_drawn(arguments, message):
    with pytest.raises(ValueError, match=message):
        draw(**arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "raytrace"}, "choose one of 'softras', 'dibr', 'hard'"),
        ({"size": (0, 4)}, "both above zero"),
        ({"size": (4.5, 4)}, "whole pixels"),
        ({"sigma": 0.0}, "sigma must be above zero"),
        ({"gamma": -1.0}, "gamma must be above zero"),
        ({"sigma_pixels": 0}, "sigma_pixels must be above zero"),
        ({"near": 0.0}, "near must be above zero and below far"),
        ({"near": 5.0, "far": 4.0}, "below far"),
        ({"shading": "phong"}, "needs lights"),
        ({"shading": "toon"}, "choose one of 'color'"),
        ({"sampling": 0}, "sampling is a whole number"),
        ({"wrap": "mirror"}, "choose one of 'clamp', 'wrap'"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        render.Renderer(camera_of(), **settings)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ({"texture": np.ones((2, 2, 3))}, "a texture needs uvs"),
        ({"faces": np.array([[0, 1, 9]])}, "there are 4 vertices"),
        ({"vertices": with_nan()}, "must be finite"),
        ({"objects": [1]}, "one number per face"),
    ],
)
def test_meshes_say_it_when_they_are_made(mesh, message):
    with pytest.raises(ValueError, match=message):
        render.Mesh(**{"vertices": VERTICES, "faces": FACES, **mesh})


def test_kinds_that_cannot_be():
    with pytest.raises(TypeError, match=r"render\.Camera"):
        render.Renderer("camera")
    with pytest.raises(TypeError, match=r"render\.Ambient"):
        draw(renderer=render.Renderer(camera_of(), ["sun"], size=(8, 8)))
    with pytest.raises(TypeError, match="float32 or float64"):
        draw(torch.zeros(3, 3, dtype=torch.float16), FACES[:1])
    with pytest.raises(TypeError, match="give vertices and faces"):
        render.Renderer(camera_of())(VERTICES)
    with pytest.raises(TypeError, match="cannot be mixed"):
        draw(torch.tensor(VERTICES), colors=kc.array(VERTICES))
    with pytest.raises(ValueError, match="to_light of a light has shape"):
        draw(renderer=render.Renderer(camera_of(), [render.Directional((1, 2))], size=(8, 8)))


def test_meshes_that_cannot_be_joined():
    textured = render.Mesh(VERTICES, FACES, uvs=VERTICES[:, :2], texture=np.ones((2, 2, 3)))
    with pytest.raises(ValueError, match="one texture"):
        render.Mesh.join([textured, render.Mesh.box()])
    with pytest.raises(ValueError, match="no meshes"):
        render.Mesh.join([])
    assert len(render.Mesh.join([textured, textured.moved(by=(1, 0, 0))]).uvs) == 8


def test_cameras_that_cannot_be():
    with pytest.raises(ValueError, match=r"K has shape \(2, 2\)"):
        render.Camera.opencv(np.eye(2), np.eye(3), np.zeros(3), (8, 8))
    with pytest.raises(ValueError, match="both above zero"):
        render.Camera.opencv(np.eye(3), np.eye(3), np.zeros(3), (0, 8))
    with pytest.raises(ValueError, match="equal ratios"):
        list(render.anneal(0.0, 1.0, 5))


def test_annealing_goes_in_equal_ratios():
    values = list(render.anneal(16.0, 1.0, 5, hold=2))
    np.testing.assert_allclose(values, [16, 8, 4, 2, 1, 1, 1])
