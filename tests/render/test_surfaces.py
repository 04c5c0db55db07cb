"""Textures of several kinds, opacity, smaller copies, materials, backgrounds, backs of faces: values and gradients."""

import numpy as np
import pytest
import reference
import torch
from scenes import camera_of, for_reference, scene
from test_gradients import SOFT, check, colours, tensors, weights

from nablasim import render

SIZE = (14, 18)
FRONT = render.Camera.look_at((0, 0, 3), (0, 0, 0), scale=1.0)
QUAD = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
QUAD_FACES = np.array([[0, 1, 2], [0, 2, 3]])
QUAD_UVS = (QUAD[:, :2] + 1) / 2


def quad(color=None, opacity=1.0, z=0.0, texture=None):
    if texture is None:
        texture = np.array([[[*color, opacity]]])
    return render.Mesh(QUAD + [0, 0, z], QUAD_FACES, uvs=QUAD_UVS, texture=texture)


# -- several textures
@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_meshes_with_different_textures_and_colours_are_one_scene(mode):
    """What a joined scene shows are the pictures of its parts, each where it is in front."""
    rng = np.random.default_rng(0)
    parts = [
        quad(texture=rng.uniform(size=(4, 5, 3))).moved(by=(-1.05, 0, 0)).replace(wrap="wrap"),
        quad(texture=rng.uniform(size=(3, 2, 3))).moved(by=(1.05, 0, 0)),
        render.Mesh(QUAD, QUAD_FACES, colors=rng.uniform(size=(4, 3))).moved(by=(0, -2.1, 0)),
        render.Mesh(QUAD, QUAD_FACES, colors=(0.2, 0.5, 0.9)).moved(by=(0, 2.1, 0)),
    ]
    camera = render.Camera.look_at((0, 0, 8), (0, 0, 0), fov=50)
    renderer = render.Renderer(camera, mode=mode, size=(48, 48), sigma=1e-6, background=(0.1, 0.2, 0.3), sigmainv=1e7)
    together = renderer(render.Mesh.join(parts), output=["rgba", "object"])
    for k, part in enumerate(parts):
        mine = together["object"].numpy() == k
        assert mine.sum() > 100
        np.testing.assert_allclose(together["rgba"].numpy()[mine], renderer(part).numpy()[mine], atol=1e-6)


def test_joining_joined_scenes_keeps_what_each_face_has():
    a, b = quad((1, 0, 0)), quad((0, 1, 0), z=0.5)
    once = render.Mesh.join([a, b, a])
    assert len(once.textures) == 2 and once.texture_index.tolist() == [0, 0, 1, 1, 0, 0]
    twice = render.Mesh.join([render.Mesh.box().painted((0, 0, 1)), once.moved(by=(3, 0, 0))])
    assert twice.texture_index.tolist() == [-1] * 12 + [0, 0, 1, 1, 0, 0]
    assert render.Mesh.join([a, a.replace(wrap="wrap")]).wrap == [None, "wrap"]


@pytest.mark.parametrize("mode", ["softras", "hard"])
def test_by_several_textures_and_colours(mode):
    vertices, faces = tensors("soup")
    rng = np.random.default_rng(2)
    uvs, index = rng.uniform(-0.4, 1.4, (len(vertices), 2)), np.arange(len(faces)) % 3 - 1
    style = SOFT if mode == "softras" else {}
    renderer, w = render.Renderer(camera_of(), mode=mode, size=SIZE, **style), weights(*SIZE, 4)

    def loss(first, second, paint, x):
        mesh = render.Mesh(x, faces, colors=paint, uvs=uvs, texture=[first, second], texture_index=index,
                           wrap=["wrap", "clamp"])  # fmt: skip
        return (renderer(mesh) * w).sum()

    textures = [torch.tensor(rng.uniform(size=s)) for s in ((3, 5, 3), (4, 2, 4))]
    check(loss, *textures, colours(len(vertices)), vertices, rtol=1e-4)


# -- opacity
def test_what_is_not_opaque_is_seen_through_in_order():
    """Three panes and a wall, drawn in any order: each is laid over what is behind it."""
    panes = [((1, 0, 0), 0.5, 0.4), ((0, 1, 0), 0.25, 0.2), ((0, 0, 1), 0.75, 0.0)]
    wall, background = np.array([0.9, 0.8, 0.1]), np.array([0.3, 0.3, 0.3])
    expected, clear = np.zeros(3), 1.0
    for color, opacity, _ in panes:
        expected, clear = expected + clear * opacity * np.array(color), clear * (1 - opacity)
    camera = render.Camera.look_at((0, 0, 3), (0, 0, 0), scale=0.5)
    for mode in ("hard", "dibr"):
        renderer = render.Renderer(camera, mode=mode, size=(6, 6), background=background)
        for order in ([0, 1, 2], [2, 0, 1]):
            meshes = [quad(*panes[k]) for k in order]
            image = renderer(render.Mesh.join(meshes)).numpy()
            np.testing.assert_allclose(image[2, 3], [*(expected + clear * background), 1 - clear], atol=1e-12)
            behind = render.Mesh.join([quad(wall, 1.0, -1.0), *meshes])
            np.testing.assert_allclose(renderer(behind).numpy()[2, 3], [*(expected + clear * wall), 1], atol=1e-12)


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_holes_of_a_texture_show_what_is_behind(mode):
    holes = np.ones((8, 8, 4))
    holes[:, :4] = [1.0, 0.0, 0.0, 0.0]  # red, but not there
    scene = render.Mesh.join([quad(texture=holes, z=0.5), quad((0, 0, 1), 1.0, -0.5)])
    renderer = render.Renderer(FRONT, mode=mode, size=(16, 16), sigma=1e-7, background=0.2)
    image = renderer(scene).numpy()
    np.testing.assert_allclose(image[8, 2], [0, 0, 1, 1], atol=1e-6)
    np.testing.assert_allclose(image[8, 13], [1, 1, 1, 1], atol=1e-6)
    alone = renderer(quad(texture=holes)).numpy()
    np.testing.assert_allclose(alone[8, 2], [0.2, 0.2, 0.2, 0.0], atol=1e-6)


@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_by_textures_that_are_not_opaque(mode):
    vertices, faces = tensors("soup")
    rng = np.random.default_rng(2)
    texture, uvs = torch.tensor(rng.uniform(0.2, 0.9, size=(3, 5, 4))), torch.tensor(rng.uniform(0, 1, (27, 2)))
    style = SOFT if mode == "softras" else {"sigmainv": 300.0}
    renderer, w = render.Renderer(camera_of(), mode=mode, size=SIZE, **style), weights(*SIZE, 4)
    check(lambda t, u, x: (renderer(x, faces, texture=t, uvs=u) * w).sum(), texture, uvs, vertices, rtol=1e-4)


# -- smaller copies
def test_far_away_a_fine_pattern_is_its_mean():
    board = np.indices((64, 64)).sum(0)[..., None] % 2 * np.ones(3)
    ground = render.Mesh.plane(40.0, repeat=20.0).replace(texture=board, wrap="wrap")
    camera = render.Camera.look_at((0, 1.5, 12), (0, 0, 0), fov=40)
    far = {}
    for mipmaps in (False, True):
        image = render.Renderer(camera, mode="hard", size=(64, 64), mipmaps=mipmaps)(ground).numpy()
        rows = np.flatnonzero((image[..., 3] == 1).all(1))[2:8]
        far[mipmaps] = image[rows, :, 0]
    assert far[False].std() > 0.1  # black and white at random
    np.testing.assert_allclose(far[True], 0.5, atol=0.02)


def test_what_is_as_large_as_its_pixels_is_shown_as_it_is():
    texture = np.random.default_rng(0).uniform(size=(16, 16, 3))
    plain = render.Renderer(FRONT, mode="hard", size=(16, 16))(quad(texture=texture)).numpy()
    copies = render.Renderer(FRONT, mode="hard", size=(16, 16), mipmaps=True)(quad(texture=texture)).numpy()
    np.testing.assert_allclose(copies, plain, atol=1e-12)
    # At half and at a quarter of the size it is the mean of 2 × 2 and 4 × 4 texels.
    for k in (2, 4):
        small = render.Renderer(FRONT, mode="hard", size=(16 // k, 16 // k), mipmaps=True)(quad(texture=texture))
        means = texture.reshape(16 // k, k, 16 // k, k, 3).mean((1, 3))
        np.testing.assert_allclose(small.numpy()[..., :3], means, atol=1e-12)


def test_copies_of_textures_whose_size_is_no_power_of_two_keep_the_mean():
    import kernelc as kc
    from nablasim.render.texels import lay_side_by_side

    texture = np.random.default_rng(0).uniform(size=(1, 7, 13, 3))
    found = lay_side_by_side([kc.array(texture)], [False], mipmaps=True, mixed=False)
    levels = found.table.levels.numpy()[0]
    texels = found.table.texels.numpy()[0]
    assert [tuple(r[1:3]) for r in levels] == [(7, 13), (3, 6), (1, 3), (1, 1)]
    for first, rows, columns, _ in levels:
        np.testing.assert_allclose(texels[first : first + rows * columns, :3].mean(0), texture[0].mean((0, 1)))


@pytest.mark.parametrize("mode", ["softras", "hard"])
@pytest.mark.parametrize("perspective", [True, False])
def test_by_textures_uvs_and_vertices_through_smaller_copies(mode, perspective):
    vertices, faces = tensors("soup")
    rng = np.random.default_rng(2)
    texture, uvs = torch.tensor(rng.uniform(size=(31, 22, 3))), torch.tensor(rng.uniform(-2, 3, (len(vertices), 2)))
    style = SOFT if mode == "softras" else {}
    renderer = render.Renderer(camera_of(perspective), mode=mode, size=SIZE, mipmaps=True, wrap="wrap", **style)
    w = weights(*SIZE, 4)
    check(lambda t, u, x: (renderer(x, faces, texture=t, uvs=u) * w).sum(), texture, uvs, vertices, step=1e-7,
          rtol=2e-4)  # fmt: skip


# -- materials
@pytest.mark.parametrize("mode", ["dibr", "hard"])
def test_each_face_has_its_material(mode):
    vertices, faces = scene("sphere")
    camera, lights = camera_of(), [render.Ambient(0.3), render.Directional((1, 1, 1), color=0.8)]
    dull, shiny = render.Material(ka=0.2, kd=0.5), render.Material(ka=0.9, kd=0.7, ks=0.6, shininess=5.0)
    renderer = render.Renderer(camera, lights, mode=mode, size=SIZE, shading="phong", material=dull)
    index = np.where(np.arange(len(faces)) % 2 == 0, 0, -1)
    mesh = render.Mesh(vertices, faces, material=shiny, material_index=index)
    both = renderer(mesh, output=["rgba", "face"])
    for k, material in ((0, shiny), (-1, dull)):
        alone = renderer(render.Mesh(vertices, faces, material=material)).numpy()
        mine = np.isin(both["face"].numpy(), np.flatnonzero(index == k))
        assert mine.sum() > 10
        np.testing.assert_allclose(both["rgba"].numpy()[mine], alone[mine], atol=1e-12)
    joined = render.Mesh.join([mesh, render.Mesh.box((0.1, 0.1, 0.1))])
    assert joined.material_index.tolist() == [*index, *[-1] * 12]


def test_by_materials():
    vertices, faces = tensors("sphere")
    lights, w = [render.Ambient(0.3), render.Point((0.5, 1.0, 1.5))], weights(*SIZE, 4)
    index = np.arange(len(faces)) % 2

    def loss(numbers):
        materials = [render.Material(*numbers[:4]), render.Material(*numbers[4:])]
        mesh = render.Mesh(vertices, faces, material=materials, material_index=index)
        return (render.Renderer(camera_of(), lights, mode="hard", size=SIZE, shading="phong")(mesh) * w).sum()

    check(loss, torch.tensor([0.6, 0.8, 0.5, 5.0, 0.9, 0.7, 0.5, 3.0]).double())


# -- backs of faces
@pytest.mark.parametrize("perspective", [True, False])
@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_backs_are_lit_as_fronts(mode, perspective):
    """A mesh inside out looks as the mesh does."""
    camera, lights = camera_of(perspective), [render.Ambient(0.2), render.Directional((1, 1, 2), color=0.8)]
    vertices, faces = scene("sphere")
    renderer = render.Renderer(camera, lights, mode=mode, size=SIZE, two_sided=True)
    wanted = renderer(vertices, faces).numpy()
    np.testing.assert_allclose(renderer(vertices, np.flip(faces, 1).copy()).numpy(), wanted, atol=1e-9)
    one_sided = render.Renderer(camera, lights, mode=mode, size=SIZE)
    if mode != "softras":  # which shows backs beyond outlines
        np.testing.assert_allclose(one_sided(vertices, faces).numpy(), wanted, atol=1e-9)
    assert not np.allclose(one_sided(vertices, np.flip(faces, 1).copy()).numpy(), wanted, atol=0.1)


def test_by_vertices_of_surfaces_with_two_sides():
    vertices, faces = tensors("soup")
    lights, w = [render.Ambient(0.2), render.Directional((1, 1, 2), color=0.8)], weights(*SIZE, 4)
    renderer = render.Renderer(camera_of(), lights, size=SIZE, two_sided=True, smooth=False, **SOFT)
    check(lambda x: (renderer(x, faces) * w).sum(), vertices, rtol=1e-4)


# -- backgrounds, and what differs from frame to frame
@pytest.mark.parametrize("mode", ["softras", "dibr", "hard"])
def test_pictures_behind_the_scene(mode):
    vertices, faces = scene("sphere")
    behind = np.random.default_rng(0).uniform(size=(*SIZE, 3))
    style = {"sigma": 1e-3, "gamma": 1e-2}
    image = render.Renderer(camera_of(), mode=mode, size=SIZE, background=behind, **style)(vertices, faces).numpy()
    for i, j in ((0, 0), (7, 9), (9, 4)):
        plain = render.Renderer(camera_of(), mode=mode, size=SIZE, background=behind[i, j], **style)
        np.testing.assert_allclose(image[i, j], plain(vertices, faces).numpy()[i, j], atol=1e-12)
    w = weights(*SIZE, 4)

    def loss(b, x=None):
        x = torch.tensor(vertices) if x is None else x
        renderer = render.Renderer(camera_of(), mode=mode, size=SIZE, background=b, composite=True, **SOFT_ALONE)
        return (renderer(x, torch.tensor(faces)) * w).sum()

    # A white ball of a hard picture is white, however it moves.
    check(loss, torch.tensor(behind), *([torch.tensor(vertices)] if mode != "hard" else []))


SOFT_ALONE = {name: value for name, value in SOFT.items() if name != "background"}


@pytest.mark.parametrize("mode", ["softras", "hard"])
def test_frames_have_lights_textures_and_backgrounds_of_their_own(mode):
    rng = np.random.default_rng(0)
    vertices, faces = scene("sphere")
    uvs = rng.uniform(size=(len(vertices), 2))
    textures, behind = rng.uniform(size=(3, 4, 5, 3)), rng.uniform(size=(3, *SIZE, 3))
    to_light, color, sky = rng.normal(size=(3, 3)) + [0, 0, 2], rng.uniform(size=(3, 3)), rng.uniform(size=(3, 3))

    def draw(k):
        lights = [render.Ambient(sky[k]), render.Directional(to_light[k], color=color[k]), render.Point((1, 1, 3))]
        renderer = render.Renderer(camera_of(), lights, mode=mode, size=SIZE, background=behind[k], mipmaps=True)
        return renderer(render.Mesh(vertices, faces, uvs=uvs, texture=textures[k])).numpy()

    together = draw(slice(None))
    assert together.shape == (3, *SIZE, 4)
    for k in range(3):
        np.testing.assert_array_equal(together[k], draw(k))


def test_by_lights_and_textures_of_frames():
    vertices, faces = tensors("sphere")
    rng = np.random.default_rng(1)
    uvs, w = rng.uniform(size=(len(vertices), 2)), weights(2, *SIZE, 4)

    def loss(textures, to_light, color):
        lights = [render.Ambient(color), render.Directional(to_light, color=0.7)]
        mesh = render.Mesh(vertices, faces, uvs=uvs, texture=textures)
        return (render.Renderer(camera_of(), lights, mode="dibr", size=SIZE)(mesh) * w).sum()

    values = rng.uniform(size=(2, 3, 4, 3)), rng.normal(size=(2, 3)) + [0, 0, 2], rng.uniform(size=(2, 3))
    check(loss, *(torch.tensor(v) for v in values))


# -- what cannot be
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"texture_index": [0, 3]}, r"texture_index\[1\] is 3, but there are 2"),
        ({"texture_index": [0]}, r"texture_index has shape \(1,\)"),
        ({"texture": np.ones((2, 2, 5))}, r"a texture is \(height, width, 3\), or 4 with opacity"),
        ({"wrap": "mirror"}, "choose one of 'clamp', 'wrap'"),
        ({"wrap": ["wrap"]}, "wrap is given for 1 textures, but there are 2"),
        ({"material_index": [0, 0]}, "there is no material"),
    ],
)
def test_surfaces_that_cannot_be(values, message):
    one = np.ones((2, 2, 3))
    with pytest.raises(ValueError, match=message):
        render.Mesh(QUAD, QUAD_FACES, uvs=QUAD_UVS, **{"texture": [one, one], **values})


def test_lights_of_frames_that_do_not_agree():
    lights = [render.Directional(np.ones((2, 3)), color=np.ones((3, 3)))]
    with pytest.raises(ValueError, match="lights are given for 2 frames and for 3"):
        render.Renderer(camera_of(), lights, size=(8, 8))(QUAD, QUAD_FACES)


def test_reference_agrees_on_a_texture_with_repeats_of_its_own():
    vertices, faces = scene("sphere")
    rng = np.random.default_rng(0)
    texture, uvs = rng.uniform(size=(5, 4, 3)), rng.uniform(-1.5, 2.5, (len(vertices), 2))
    surface = reference.textured(texture, uvs, faces, wrap=True)
    wanted = reference.hard(vertices, faces, for_reference(camera_of(), SIZE), SIZE, surface, background=(0, 0, 0))
    mesh = render.Mesh(vertices, faces, uvs=uvs, texture=texture, wrap="wrap")
    found = render.Renderer(camera_of(), mode="hard", size=SIZE)(mesh).numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-9)
