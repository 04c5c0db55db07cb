"""What a picture costs: memory for the way back, and work by what is covered."""

import tracemalloc

import pytest
import torch

from nablasim import render

CAMERA = render.Camera.look_at((0, 0, 2.7), (0, 0, 0), fov=60)
LIT = {"lights": [render.Ambient(0.3), render.Directional((1, 2, 3))]}


def kept(size, settings):
    """Bytes that a call holds until its way back is done; the picture itself is the caller's."""
    renderer = render.Renderer(CAMERA, size=(size, size), **settings)
    mesh = render.Mesh.sphere(3)
    x = torch.tensor(mesh.vertices, dtype=torch.float32, requires_grad=True)
    tracemalloc.start()
    try:
        image = renderer(x, mesh.faces)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert image.requires_grad
    return held - image.numel() * image.element_size()


@pytest.mark.parametrize("settings", [{}, LIT, {"mode": "dibr"}, {"mode": "hard"}], ids=["soft", "lit", "dibr", "hard"])
def test_at_most_64_bytes_per_pixel_are_kept_for_the_way_back(settings):
    small, large = 256, 512
    for size in (small, large):
        kept(size, settings)  # compiles
    per_pixel = (kept(large, settings) - kept(small, settings)) / (large**2 - small**2)
    assert 16 < per_pixel <= 64  # beside what belongs to vertices and faces


def pairs(renderer, mesh):
    """How often a face is looked at by a tile of 16 samples: what the loops of the kernels run through."""
    from nablasim.render.recordings import pool_of

    renderer(mesh.vertices, mesh.faces)
    (_, recording) = pool_of(renderer).idle[-1]
    return sum(int(starts.numpy()[:, -1].sum()) for starts, _ in recording.lists)


def test_work_grows_with_what_is_covered_not_with_pixels_times_faces():
    mesh = render.Mesh.sphere(2)

    def work(size, scale=1.0, half_height=1.3):
        flat = render.Camera.look_at((0, 0, 3), (0, 0, 0), scale=half_height)
        # Softness in pixels: the soft border is as wide in every picture.
        return pairs(render.Renderer(flat, size=(size, size), sigma_pixels=0.5), mesh.moved(scale=scale))

    whole = work(128)
    assert whole < 0.05 * (128 * 128 / 16) * len(mesh.faces)
    # Four times as many pixels around the same thing: nothing more to do, but for where tiles begin.
    assert work(256, half_height=2.6) == pytest.approx(whole, rel=0.02)
    # Half the size is a quarter of the pixels; small faces still touch a tile or more each.
    assert work(512, 0.5) < 0.4 * work(512)
    # Four times the pixels on it are at most four times the work.
    assert work(256) < 4 * whole
