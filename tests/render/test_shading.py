"""Colours, textures, normals and lights against the reference."""

import numpy as np
import pytest
import reference
from scenes import camera_of, for_reference, scene

from nablasim import render

SIZE = (22, 30)
BACKGROUND = (0.1, 0.25, 0.3)
MODES = {"softras": {"sigma": 2e-3, "gamma": 3e-3}, "dibr": {"sigmainv": 300.0}, "hard": {}}
MATERIAL = {"ka": 0.6, "kd": 0.8, "ks": 0.5, "shininess": 7.0}


def agree(found, wanted, renderer, *arguments, **paint):
    """To 1e-9; and to 1e-4 in float32, where in hard pictures an edge may fall on the other side of a pixel centre."""
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    single = {name: x if np.asarray(x).dtype.kind == "i" else np.float32(x) for name, x in paint.items()}
    off = np.abs(renderer(np.float32(arguments[0]), arguments[1], **single).numpy() - wanted).max(-1)
    assert (off > 1e-4).sum() <= (0 if renderer.mode == "softras" else 2)


def expected(mode, vertices, faces, camera, surface):
    view = for_reference(camera, SIZE)
    return getattr(reference, mode)(vertices, faces, view, SIZE, surface, background=BACKGROUND, **MODES[mode])


def drawn(mode, camera, lights=None, **settings):
    return render.Renderer(camera, lights, mode=mode, size=SIZE, background=BACKGROUND, **MODES[mode], **settings)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrap", ["clamp", "wrap"])
@pytest.mark.parametrize("name", ["sphere", "clipped"])
def test_textures(name, wrap, mode):
    vertices, faces = scene(name)
    rng = np.random.default_rng(0)
    texture, uvs = rng.uniform(size=(5, 4, 3)), rng.uniform(-0.5, 1.5, (30, 2))
    uv_faces = rng.integers(0, 30, faces.shape)
    surface = reference.textured(texture, uvs, uv_faces, wrap=wrap == "wrap")
    renderer, paint = drawn(mode, camera_of(), wrap=wrap), {"texture": texture, "uvs": uvs, "uv_faces": uv_faces}
    found = renderer(vertices, faces, **paint).numpy()
    agree(found, expected(mode, vertices, faces, camera_of(), surface), renderer, vertices, faces, **paint)


def test_where_a_texture_lies():
    # A square that fills the picture: u right, v up, row 0 of the texture on top.
    texture = np.arange(4 * 4 * 3, dtype=float).reshape(4, 4, 3) / 48
    vertices = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    uvs, faces = (vertices[:, :2] + 1) / 2, np.array([[0, 1, 2], [0, 2, 3]])
    camera = render.Camera.look_at((0, 0, 3), (0, 0, 0), scale=1.0)
    image = render.Renderer(camera, mode="hard", size=(4, 4))(vertices, faces, texture=texture, uvs=uvs).numpy()
    np.testing.assert_allclose(image[..., :3], texture, atol=1e-12)
    np.testing.assert_allclose(image[..., 3], 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("name", ["sphere", "objects", "clipped"])
def test_phong(name, smooth, mode):
    vertices, faces = scene(name)
    camera, paint = camera_of(), np.random.default_rng(1).uniform(size=(len(vertices), 3))
    lights = [
        render.Ambient((0.3, 0.2, 0.4)),
        render.Directional((0.3, 2.0, 0.6), color=(0.9, 0.5, 0.3)),
        render.Point((0.5, 1.0, 1.5), color=0.7, specular=(0.2, 1.0, 0.5)),
    ]
    plain = [
        {"kind": "ambient", "colour": (0.3, 0.2, 0.4)},
        {"kind": "directional", "vector": (0.3, 2.0, 0.6), "colour": (0.9, 0.5, 0.3), "specular": (0.9, 0.5, 0.3)},
        {"kind": "point", "vector": (0.5, 1.0, 1.5), "colour": (0.7,) * 3, "specular": (0.2, 1.0, 0.5)},
    ]
    albedo = reference.vertex_colours(paint, faces)
    surface = reference.lit(albedo, vertices, faces, np.asarray(camera.eye), plain, smooth=smooth, **MATERIAL)
    renderer = drawn(mode, camera, lights, shading="phong", material=render.Material(**MATERIAL), smooth=smooth)
    found = renderer(vertices, faces, colors=paint).numpy()
    agree(found, expected(mode, vertices, faces, camera, surface), renderer, vertices, faces, colors=paint)


def test_lambert_has_no_highlights_and_color_no_light():
    vertices, faces = scene("sphere")
    camera, paint = camera_of(), np.random.default_rng(1).uniform(size=(len(faces), 3))
    lights = [render.Ambient(0.2), render.Directional((1, 1, 1), color=0.8)]
    plain = [
        {"kind": "ambient", "colour": (0.2,) * 3},
        {"kind": "directional", "vector": (1, 1, 1), "colour": (0.8,) * 3, "specular": (0.8,) * 3},
    ]
    albedo = reference.face_colours(paint)
    eye = np.asarray(camera.eye)
    surface = reference.lit(albedo, vertices, faces, eye, plain, ka=1, kd=1, ks=0, shininess=1, smooth=True)
    found = drawn("hard", camera, lights)(vertices, faces, face_colors=paint).numpy()
    np.testing.assert_allclose(found, expected("hard", vertices, faces, camera, surface), atol=1e-9)
    found = drawn("hard", camera, lights, shading="color")(vertices, faces, face_colors=paint).numpy()
    np.testing.assert_allclose(found, expected("hard", vertices, faces, camera, albedo), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_spherical_harmonics_and_given_normals(mode):
    vertices, faces = scene("sphere")
    rng, camera = np.random.default_rng(3), camera_of()
    normals, coefficients = rng.normal(size=vertices.shape), rng.normal(size=(9, 3))
    white = reference.face_colours(np.ones((len(faces), 3)))
    lights = [{"kind": "harmonics", "coefficients": coefficients}]
    surface = reference.lit(
        white, vertices, faces, np.asarray(camera.eye), lights, ka=1, kd=0.7, ks=0, shininess=1, normals=normals
    )
    material = render.Material(kd=0.7)
    renderer = drawn(mode, camera, [render.SphericalHarmonics(coefficients)], material=material)
    found = renderer(vertices, faces, normals=normals).numpy()
    agree(found, expected(mode, vertices, faces, camera, surface), renderer, vertices, faces, normals=normals)


@pytest.mark.parametrize("mode", MODES)
def test_flat_shading_takes_no_normals_that_are_given(mode):
    vertices, faces = scene("sphere")
    given = np.random.default_rng(3).normal(size=vertices.shape)
    lights = [render.Ambient(0.2), render.Directional((1, 1, 1), color=0.8)]
    flat = render.Renderer(camera_of(), lights, mode=mode, size=SIZE, smooth=False)
    named = {"output": ["rgba", "normals"]}
    wanted, found = flat(vertices, faces, **named), flat(vertices, faces, normals=given, **named)
    smooth = render.Renderer(camera_of(), lights, mode=mode, size=SIZE)(vertices, faces, normals=given, **named)
    for name in wanted:
        assert np.array_equal(found[name].numpy(), wanted[name].numpy())
        assert not np.allclose(found[name].numpy(), smooth[name].numpy())


@pytest.mark.parametrize("smooth", [True, False])
def test_normals(smooth):
    vertices, faces = scene("objects")
    camera = camera_of()
    face, weights, _ = reference.visible(vertices, faces, for_reference(camera, SIZE), SIZE)
    corner = reference.vertex_normals(vertices, faces)[faces] if smooth else None
    found = render.Renderer(camera, mode="hard", size=SIZE, smooth=smooth)(vertices, faces, output="normals").numpy()
    for i, j in np.ndindex(*SIZE):
        wanted = np.zeros(3)
        if face[i, j] >= 0 and smooth:
            wanted = reference.unit(weights[i, j] @ corner[face[i, j]])
        elif face[i, j] >= 0:
            wanted = reference.face_normals(vertices, faces)[face[i, j]]
        np.testing.assert_allclose(found[i, j], wanted, atol=1e-9)


def test_objects_and_the_number_of_the_object_that_is_seen():
    front = render.Mesh.box().moved(by=(0, 0, 1)).painted((1, 0, 0))
    back = render.Mesh.box().moved(by=(0.4, 0, -1)).painted((0, 1, 0))
    mesh = render.Mesh.join([back, front, render.Mesh.plane(6, height=-0.6).painted((0, 0, 1))])
    camera = render.Camera.look_at((0, 0.5, 5), (0, 0, 0), fov=40)
    renderer = render.Renderer(camera, mode="hard", size=(32, 32))
    pictures = renderer(mesh, output=["rgba", "object", "face"])
    number, colour = pictures["object"].numpy(), pictures["rgba"].numpy()
    assert set(np.unique(number)) == {-1, 0, 1, 2}
    for k, wanted in enumerate([(0, 1, 0), (1, 0, 0), (0, 0, 1)]):
        np.testing.assert_allclose(colour[number == k][:, :3] - wanted, 0, atol=1e-12)
    assert (number[number >= 0] == np.asarray(mesh.objects)[pictures["face"].numpy()[number >= 0]]).all()
    assert number[16, 16] == 1  # the red one hides the green one


def test_flow_of_a_moved_object_and_of_a_moved_camera():
    vertices, faces = scene("sphere")
    camera = render.Camera.look_at((0, 0, 3), (0, 0, 0), scale=1.0)
    renderer = render.Renderer(camera, mode="hard", size=(40, 60))
    flow = renderer(vertices, faces, output="flow", moved=vertices + [0.1, 0.05, 0]).numpy()
    seen = renderer(vertices, faces, output="face").numpy() >= 0
    # Half the picture is 1 high, so 20 pixels to a unit; right, and down.
    np.testing.assert_allclose(flow[seen], np.broadcast_to([2.0, -1.0], flow[seen].shape), atol=1e-12)
    assert (flow[~seen] == 0).all()
    other = render.Camera.look_at((0.3, 0, 3), (0.3, 0, 0), scale=1.0)
    flow = renderer(vertices, faces, output="flow", moved=vertices, moved_camera=other).numpy()
    np.testing.assert_allclose(flow[seen], np.broadcast_to([-6.0, 0.0], flow[seen].shape), atol=1e-12)


@pytest.mark.parametrize("name", ["objects", "clipped"])
def test_flow_is_where_the_point_that_is_seen_goes(name):
    vertices, faces = scene(name)
    moved = vertices + 0.1 * np.random.default_rng(0).normal(size=vertices.shape)
    camera, other = camera_of(), render.Camera.look_at((0.6, 0.4, 2.8), (0, 0.1, 0), fov=55)
    face, weights, _ = reference.visible(vertices, faces, for_reference(camera, SIZE), SIZE)
    point = np.einsum("ijk,ijkc->ijc", weights, moved[faces[face]])
    pixels, depth = other.to_pixels(point, SIZE)
    here = np.stack(np.meshgrid(*map(np.arange, SIZE), indexing="ij"), -1)
    wanted = np.where(((face >= 0) & (depth >= reference.CLOSEST))[..., None], (pixels - here)[..., ::-1], 0.0)
    renderer = render.Renderer(camera, mode="hard", size=SIZE)
    found = renderer(vertices, faces, output="flow", moved=moved, moved_camera=other).numpy()
    assert np.abs(wanted).max() > 1
    np.testing.assert_allclose(found, wanted, atol=1e-9)
