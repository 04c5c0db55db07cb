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
        ({"vertices": np.ma.array(VERTICES, mask=VERTICES > 0)}, "elements of an array are masked"),
        ({"faces": np.ma.array(FACES, mask=FACES > 2)}, "elements of an array are masked"),
        ({"colors": np.ma.array(VERTICES, mask=VERTICES > 0)}, "elements of an array are masked"),
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
        ({"colors": np.full((4, 3), 255, np.uint8)}, r"colors are bytes.*colors / 255"),
        ({"texture": np.full((4, 4, 3), 255, np.uint8), "uvs": np.zeros((4, 2))}, "texture / 255"),
        ({"colors": with_nan()}, r"colors\[2, 1\] is nan"),
        ({"texture": np.ones((4, 4, 3)), "uvs": with_nan()[:, :2]}, r"uvs\[2, 1\] is nan"),
        ({"output": "colour"}, "choose one of 'rgba'"),
        ({"output": []}, "choose one of 'rgba'"),
        ({"output": "flow"}, "flow needs the vertices of the other state"),
        ({"output": "flow", "moved": VERTICES[:2]}, "moved has 2 vertices, but there are 4"),
        ({"output": "flow", "moved": with_nan()}, r"moved\[2, 1\] is nan"),
        ({"output": "object", "objects": [1, 2, 3]}, r"objects has shape \(3,\)"),
        ({"output": "object", "objects": [0.5, 1.0]}, "objects are whole numbers"),
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
        ({"size": 64}, r"size is \(height, width\).*not 64"),
        ({"size": None}, r"size is \(height, width\).*not None"),
        ({"sigma": 0.0}, "sigma must be a finite number above zero"),
        ({"gamma": -1.0}, "gamma must be a finite number above zero"),
        ({"sigma_pixels": 0}, "sigma_pixels must be a finite number above zero"),
        ({"sigma": "wide"}, "sigma must be a finite number above zero, not 'wide'"),
        ({"sigmainv": np.inf}, "sigmainv must be a finite number above zero"),
        ({"eps": np.nan}, "eps must be a finite number"),
        ({"far": np.inf}, "far must be a finite number"),
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
    with pytest.raises(TypeError, match="float32 or float64"):
        draw(torch.zeros(3, 3, dtype=torch.float16), FACES[:1])
    with pytest.raises(TypeError, match="give vertices and faces"):
        render.Renderer(camera_of())(VERTICES)
    with pytest.raises(TypeError, match="cannot be mixed"):
        draw(torch.tensor(VERTICES), colors=kc.array(VERTICES))
    with pytest.raises(TypeError, match=r"render\.Camera, not str"):
        draw(camera="front")
    with pytest.raises(TypeError, match="a Mesh brings its own colors"):
        render.Renderer(camera_of())(render.Mesh(VERTICES, FACES), colors=VERTICES)
    with pytest.raises(TypeError, match="on meta, but pictures are drawn on the CPU"):
        draw(torch.zeros(4, 3, device="meta"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lights": [render.Directional((1, 2))]}, r"to_light of a light must have shape \(3,\), not \(2,\)"),
        ({"lights": [render.Directional((0, 0, 0))]}, "which is no direction"),
        ({"lights": [render.Point((0, np.nan, 0))]}, r"position of a light\[1\] is nan"),
        ({"lights": [render.Ambient("red")]}, "color of a light must be numbers, not 'red'"),
        ({"lights": [render.SphericalHarmonics(np.ones(9))]}, r"coefficients of a light must have shape \(9, 3\)"),
        ({"material": render.Material(ka=(1, 2, 3))}, "ka of a material must be one number"),
        ({"background": np.nan}, "background is nan"),
        ({"background": (1, 1, 1, 1)}, r"background must have shape \(3,\), not \(4,\)"),
        ({"background": np.ones((8, 9, 3))}, r"background has shape \(8, 9, 3\): a picture behind one of 8 × 8"),
        ({"background": np.ones((8, 8, 3), np.uint8)}, "background are bytes"),
    ],
)
def test_lights_and_colours_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        draw(renderer=render.Renderer(camera_of(), size=(8, 8), **{"lights": [render.Ambient()], **settings}))


def test_what_is_no_light():
    with pytest.raises(TypeError, match=r"lights are a list.*\[render\.Ambient"):
        render.Renderer(camera_of(), render.Ambient())
    with pytest.raises(TypeError, match=r"a light is render\.Ambient"):
        render.Renderer(camera_of(), ["sun"])
    with pytest.raises(TypeError, match=r"render\.Material, not float"):
        render.Renderer(camera_of(), [render.Ambient()], material=0.5)


def test_meshes_that_cannot_be_joined():
    textured = render.Mesh(VERTICES, FACES, uvs=VERTICES[:, :2], texture=np.ones((2, 2, 3)))
    by_vertex, by_face = render.Mesh(VERTICES, FACES, colors=VERTICES), render.Mesh(VERTICES, FACES, face_colors=FACES)
    with pytest.raises(ValueError, match="colours by vertex and by face"):
        render.Mesh.join([by_vertex, by_face])
    with pytest.raises(ValueError, match="no meshes"):
        render.Mesh.join([])
    assert len(render.Mesh.join([textured, textured.moved(by=(1, 0, 0))]).uvs) == 8


K = np.diag([8.0, 8.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"K": np.eye(2)}, r"K has shape \(2, 2\), but must have \(3, 3\)"),
        ({"K": np.diag([8.0, 0.0, 1.0])}, "fx, fy above zero"),
        ({"K": np.diag([8.0, 8.0, 2.0])}, r"\(0, 0, 1\)"),
        ({"K": np.diag([8.0, np.nan, 1.0])}, r"K\[1, 1\] is nan"),
        ({"R": 2 * np.eye(3)}, "R must be a rotation: R Rᵀ is off the identity by 3"),
        ({"R": np.diag([1.0, -1, 1])}, "determinant is -1.0. A mirror image"),
        ({"t": np.zeros((3, 1))}, r"t has shape \(3, 1\)"),
        ({"size": (0, 8)}, "both above zero"),
        ({"K": np.stack([K, K]), "t": np.zeros((3, 3))}, "the cameras of a batch are as many"),
    ],
)
def test_calibrated_cameras_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        render.Camera.opencv(**{"K": K, "R": np.eye(3), "t": np.zeros(3), "size": (8, 8), **arguments})


def test_cameras_that_cannot_be():
    with pytest.raises(ValueError, match=r"rotation has shape \(4, 4\)"):
        render.Camera(np.eye(4), np.zeros(3))
    with pytest.raises(ValueError, match=r"eye\[1\] is nan"):
        render.Camera(np.eye(3), np.array([0, np.nan, 0]))
    with pytest.raises(ValueError, match="give the size"):
        render.Camera(np.eye(3), np.zeros(3), intrinsics=(8, 8, 4, 4, 0))
    with pytest.raises(ValueError, match="fov is a number, or"):
        render.Camera.orbit(3.0, 0.0, 0.0, fov=np.ones((2, 2)))


def test_schedules_that_cannot_be():
    with pytest.raises(ValueError, match="equal ratios"):
        list(render.anneal(0.0, 1.0, 5))
    with pytest.raises(ValueError, match="at least one step"):
        list(render.anneal(2.0, 1.0, 0))


def test_annealing_goes_in_equal_ratios():
    values = list(render.anneal(16.0, 1.0, 5, hold=2))
    np.testing.assert_allclose(values, [16, 8, 4, 2, 1, 1, 1])
