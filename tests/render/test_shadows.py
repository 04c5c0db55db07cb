"""Shadows of directional lights: where they fall, how they fade, and that they move with what casts them."""

import mitsuba_scene
import numpy as np
import pytest
import reference
import torch
from scenes import camera_of
from test_gradients import SOFT, check, tensors, weights

from nablasim import render

SIZE = (14, 18)


def pane(height=1.0, half=0.5):
    return render.Mesh.plane(2 * half, height=height, cells=2)


def on_ground(to_light, size=(64, 64), casts=(), **settings):
    """What the sun leaves of white ground, seen through what casts the shadow: 1 where it is lit, 0 in the shadow."""
    ground = render.Mesh.plane(8.0, cells=2)
    lights = [render.Directional(to_light)]
    below = render.Camera.look_at((0, -8, 0), (0, 0, 0), up=(0, 0, -1), scale=2.0)
    renderer = render.Renderer(below, lights, mode="hard", size=size, shadows=True, two_sided=False, smooth=False,
                               **settings)  # fmt: skip
    full = render.Renderer(below, lights, mode="hard", size=size, smooth=False)(flipped(ground)).numpy()[..., 0]
    image = renderer(render.Mesh.join([flipped(ground), *casts])).numpy()[..., 0]
    return image / full


def flipped(mesh):
    return mesh.replace(faces=np.flip(np.asarray(mesh.faces), 1).copy())


def seen_from_below(x, size):
    """Row and column of ground points (x, z) in `on_ground`'s picture."""
    below = render.Camera.look_at((0, -8, 0), (0, 0, 0), up=(0, 0, -1), scale=2.0)
    return below.to_pixels(np.asarray(x, float), size)[0]


def test_a_shadow_falls_where_the_light_says():
    """Light from below, so that the camera below sees the ground lit: the shadow of a square is the square, moved by
    its distance along the light."""
    to_light = np.array([0.5, -1.0, 0.25])
    square = pane(height=-1.0)
    lit = on_ground(to_light, casts=[square])
    moved = [-0.5, 0.0, -0.25]
    inside = np.array([[x, 0, z] for x in (-0.45, 0, 0.45) for z in (-0.45, 0, 0.45)]) + moved
    outside = np.array([[x, 0, z] for x in (-0.56, 0.56) for z in (-0.56, 0, 0.56)]) + moved
    for points, expected in ((inside, 0.0), (outside, 1.0)):
        hidden = points + 0.0
        rows, columns = np.rint(seen_from_below(hidden, (64, 64))).astype(int).T
        covered = np.abs(hidden[:, [0, 2]]).max(1) < 0.52  # seen through the square itself
        assert (~covered).sum() >= 3
        np.testing.assert_allclose(lit[rows, columns][~covered], expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["softras", "dibr"])
def test_soft_edges_fade_over_the_width(mode):
    """Π (1 - exp(-d² / width²)) over the triangles of a pane high above, d being the distance from each, 0 inside."""
    width, lights = 0.2, [render.Directional((0, 1, 0))]
    camera = render.Camera.look_at((6, 2.0, 1), (0, 0, 0), scale=1.5)
    renderer = render.Renderer(camera, lights, mode=mode, size=(48, 48), shadows=True, shadow_width=width, sigma=1e-7)
    ground, high = render.Mesh.plane(8.0), pane(10.0)
    image = renderer(render.Mesh.join([ground, high]))[..., 0].numpy()
    # Where on the ground each pixel looks: a colour that is the place.
    plain = render.Renderer(camera, mode="hard", size=(48, 48), far=50.0)
    place = plain(ground.replace(colors=(np.asarray(ground.vertices) + 4) / 8))[..., :3].numpy() * 8 - 4
    wanted = np.ones((48, 48))
    for a, b, c in np.asarray(high.vertices)[np.asarray(high.faces)][..., [0, 2]]:
        triangle = np.array([a, b, c])
        d2, _ = reference.squared_distance(place[..., [0, 2]], triangle)
        wanted *= 1 - np.where(reference.is_covered(place[..., [0, 2]], triangle), 1.0, np.exp(-d2 / width**2))
    number = plain(render.Mesh.join([ground, high]), output="object").numpy()
    image, wanted = image[number == 0], wanted[number == 0]
    assert len(image) > 1000
    np.testing.assert_allclose(image, wanted, atol=3e-4)  # it ends where it is below 1e-4
    assert image.min() < 1e-3 and ((image > 0.1) & (image < 0.9)).mean() > 0.02


def test_inside_of_a_shadow_there_are_no_seams():
    lights = [render.Directional((0, 1, 0))]
    scene = render.Mesh.join([render.Mesh.plane(8.0), render.Mesh.plane(2.0, height=1.0, cells=7)])
    side = render.Camera.look_at((0, 0.4, 4), (0, 0, 0), fov=40)
    image = render.Renderer(side, lights, mode="dibr", size=(64, 64), shadows=True, shadow_width=0.05)(scene).numpy()
    x = np.random.default_rng(0).uniform(-0.9, 0.9, (200, 3)) * [0.6, 0, 1]
    rows, columns = np.rint(side.to_pixels(x, (64, 64))[0]).astype(int).T
    inside = (rows < 64) & (columns >= 0) & (columns < 64)
    assert inside.sum() > 100 and image[rows[inside], columns[inside], 0].max() < 1e-4


@pytest.mark.parametrize("mode", ["softras", "dibr"])
@pytest.mark.parametrize("name", ["objects", "sphere"])
def test_by_what_casts_shadows_and_by_the_light(name, mode):
    vertices, faces = tensors(name)
    style = SOFT if mode == "softras" else {"sigmainv": 300.0, "background": 0.3}
    ground = render.Mesh.plane(4.0, height=-1.2)
    w = weights(*SIZE, 4)

    def loss(x, to_light, color):
        lights = [render.Ambient(0.2), render.Directional(to_light, color=color), render.Directional((-1, 1, 0.3))]
        renderer = render.Renderer(camera_of(), lights, mode=mode, size=SIZE, shadows=True, shadow_width=0.2, **style)
        return (renderer(render.Mesh.join([render.Mesh(x, faces), ground])) * w).sum()

    values = torch.tensor([0.3, 1.0, 0.5]).double(), torch.tensor([0.5, 0.6, 0.7]).double()
    check(loss, vertices, *values, step=1e-7, rtol=5e-4)


def test_only_what_casts_it_moves_the_soft_edge_and_nothing_the_hard_one():
    """A pane that the camera does not see pulls its shadow; with width 0 there is no pull."""
    ground = render.Mesh.plane(8.0, cells=2)
    camera = render.Camera.look_at((0, 0.8, 4), (0, 0, 0), fov=30)
    lights = [render.Directional((0, 1, 0))]
    found = {}
    for width in (0.0, 0.2):
        x = torch.tensor(pane(2.0).vertices, requires_grad=True)
        renderer = render.Renderer(camera, lights, mode="hard", size=(32, 32), shadows=True, shadow_width=width)
        image = renderer(render.Mesh.join([ground, render.Mesh(x, pane().faces)]))
        assert image[..., 0].min() < 1e-3
        image.sum().backward()
        found[width] = x.grad.abs().max()
    assert found[0.0] == 0 and found[0.2] > 0.1


def test_frames_of_a_batch_have_the_shadows_of_each_alone():
    vertices, faces = (np.asarray(v) for v in tensors("objects"))
    frames = np.stack([vertices, vertices * 1.7 + [0, 0.1, 0], vertices[:, [2, 1, 0]]])
    lights = [render.Ambient(0.2), render.Point((1, 2, 3)), render.Directional((0.3, 1, 0.5))]
    renderer = render.Renderer(camera_of(), lights, size=SIZE, shadows=True)
    together = renderer(frames, faces).numpy()
    for k in range(3):
        np.testing.assert_array_equal(together[k], renderer(frames[k], faces).numpy())


def test_replays_on_a_tape_follow_what_moves():
    import kernelc as kc

    vertices, faces = (np.asarray(v) for v in tensors("objects"))
    lights = [render.Ambient(0.2), render.Directional((0.3, 1, 0.5))]
    renderer = render.Renderer(camera_of(), lights, mode="hard", size=SIZE, shadows=True)
    x = kc.array(vertices, dtype=kc.float3, requires_grad=True)
    with kc.Tape() as tape:
        image = renderer(x, faces)
    moved = vertices * [3.0, 1.0, 2.0] + [0.5, 0, 0]
    x.assign(moved)
    tape.replay()
    np.testing.assert_allclose(image.numpy(), renderer(moved, faces).numpy(), atol=1e-12)


@pytest.mark.nightly
def test_shadows_lie_where_mitsuba_sees_them():
    pytest.importorskip("mitsuba")
    mesh = render.Mesh.join([
        render.Mesh.box((0.8, 0.8, 0.8)).moved(by=(0.5, 0.4, 0)),
        render.Mesh.sphere(3, radius=0.5).moved(by=(-0.6, 0.9, 0.2)),
        render.Mesh.plane(6.0, cells=2),
    ])  # fmt: skip
    camera = render.Camera.look_at((1.5, 2.5, 4.5), (0, 0.4, 0), fov=40)
    to_light = np.array([0.6, 1.5, 0.8])
    wanted = mitsuba_scene.direct_light(mesh, camera, to_light, (96, 96))
    lights = [render.Directional(to_light)]
    renderer = render.Renderer(camera, lights, mode="hard", size=(96, 96), shadows=True, smooth=False, sampling=4)
    off = np.abs(renderer(mesh)[..., 0].numpy() - wanted)
    assert (wanted == 0).mean() > 0.05
    # Along edges both count samples, 16 each, and a shadow begins a hundredth beside what casts it.
    assert off.mean() < 0.01 and (off > 0.3).mean() < 0.005


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lights": [render.Ambient(0.3)], "shadows": True}, "shadows are those of a directional light"),
        ({"shadow_width": -1.0}, "shadow_width is a length"),
        ({"shadow_bias": 0.0}, "shadow_bias must be a finite number above zero"),
    ],
)
def test_shadows_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        render.Renderer(camera_of(), **settings)
