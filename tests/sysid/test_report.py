"""The report of a fit can be read by itself; videos are read from files and folders."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from small_scenes import beam, beam_problem, film, pendulum_problem

from nablasim import render, sysid


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    fit = beam_problem(film(beam()).rounded()).fit()
    return fit.report(tmp_path_factory.mktemp("out"), title="A beam").read_text(encoding="utf-8")


def test_the_page_needs_nothing_else(page):
    assert "A beam" in page and "beam.mu" in page and "90% interval" in page
    # Target, first guess and what was found: a strip and a blend of each, and a strip of target and found together.
    assert page.count("data:image/png;base64,") == 7 and page.count("data:image/svg+xml;base64,") == 5
    assert not re.search(r"<script|<link|https?://|src=\"(?!data:)", page)


def test_the_videos_run_side_by_side_without_a_script(page):
    (content,) = re.findall(r"data:image/webp;base64,([^\"]+)", page)
    animation = Image.open(io.BytesIO(base64.b64decode(content)))
    assert animation.n_frames == 13 and animation.info["loop"] == 0
    colours = []
    for k in (0, 12):
        animation.seek(k)
        colours.append(np.asarray(animation.convert("RGB"), float))
    height = colours[0].shape[0] // 2
    upper, lower = (np.abs(c[:height, :300] - d[:height, :300]).max() for c, d in (colours, colours[::-1]))
    assert upper > 50 and lower > 50, "the target moves"
    # At the end of the fit, target and found are the same: no orange and no blue, but grey and white.
    both = colours[1][height + 40 :, 330:]
    assert np.ptp(both, axis=-1).max() < 40 and both.min() < 130


def test_what_is_not_certified_is_said(tmp_path):
    fit = pendulum_problem(0.01).fit(starts=1)
    text = fit.report(tmp_path / "new" / "out").read_text(encoding="utf-8")
    assert "not certified" in text and "only one start" in text
    assert "data:image/png" not in text, "states have no pictures"
    assert [f.name for f in (tmp_path / "new" / "out").iterdir()] == ["report.html"]


def test_a_folder_and_a_file_are_read(tmp_path):
    video = film(beam(), size=32)
    folder = tmp_path / "frames"
    folder.mkdir()
    for k, frame in enumerate(video.rounded().frames):
        render.write_image(folder / f"frame{k}.png", frame)
    read = sysid.load_video(folder, fps=20)
    assert len(read) == len(video) and np.diff(read.times) == pytest.approx(0.05) and read.noise is not None
    np.testing.assert_allclose(read.frames.mean(-1), video.frames, atol=0.6 / 255)
    file = render.write_video(tmp_path / "beam.mp4", video.frames, fps=20)
    assert sysid.load_video(file, size=(16, 16)).size == (16, 16)
    with pytest.raises(FileNotFoundError, match="no video"):
        sysid.load_video(tmp_path / "missing.mp4")


def test_masks_are_what_moves_before_a_still_background(tmp_path):
    rng = np.random.default_rng(0)
    wall = 0.3 + 0.1 * rng.random((40, 40, 3))
    frames, wanted = np.repeat(wall[None], 9, axis=0), np.zeros((9, 40, 40))
    for k in range(9):
        frames[k, 10:20, 4 * k : 4 * k + 6] = [0.9, 0.2, 0.1]
        wanted[k, 10:20, 4 * k : 4 * k + 6] = 1
    video = sysid.Video(frames + 0.01 * rng.normal(size=frames.shape), fps=30)
    np.testing.assert_array_equal(sysid.masks(video).frames, wanted)
    with pytest.raises(ValueError, match="nothing moves"):
        sysid.masks(sysid.Video(np.repeat(wall[None], 5, axis=0), fps=30))


def test_frames_of_a_recording_are_shown_large_with_what_was_found():
    """The outline is where the silhouette ends, at the size of the picture that it is drawn on."""
    from nablasim.sysid.report.films import _large

    recording, found = np.full((4, 30, 40, 3), 0.5), np.zeros((4, 15, 20))
    found[:, 5:10, 5:15] = 1
    large = _large(recording, found, np.arange(4) / 30)
    assert [caption.split(" s")[0] for caption in large] == ["0.00", "0.07", "0.10"]
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(next(iter(large.values()))))), float)
    assert image.shape == (420, 560, 3)
    drawn = np.argwhere(image[..., 2] - image[..., 0] > 60)
    np.testing.assert_allclose([drawn.min(0), drawn.max(0)], [[140, 140], [280, 420]], atol=6)
