"""Videos go into files and come back; sheets and overlays have everything in its place."""

import numpy as np
import pytest
import torch
from PIL import Image

from nablasim.render import video


def moving_square(count=12, size=(30, 40), alpha=False):
    frames = np.full((count, *size, 4 if alpha else 3), 0.2)
    frames[..., 3:] = 0
    for t in range(count):
        frames[t, 10:20, 2 * t : 2 * t + 8] = [1.0, 0.5, 0.0, 1.0][: frames.shape[-1]]
    return frames


@pytest.mark.parametrize("size", [(30, 40), (31, 39)])
def test_an_mp4_comes_back(tmp_path, size):
    frames = moving_square(size=size)
    read = video.read_video(video.write_video(tmp_path / "a.mp4", frames, fps=25))
    assert len(read) == len(frames) and read.fps == pytest.approx(25)
    back = read.frames[:, : size[0], : size[1]]
    assert np.abs(back - frames).mean() < 0.05  # colours are coarser than pixels in H.264
    assert np.abs(back[:, 15, :].mean(-1).argmax(-1) - np.arange(0, 24, 2)).max() <= 8


def test_a_gif_comes_back(tmp_path):
    frames = torch.tensor(moving_square())
    read = video.read_video(video.write_video(tmp_path / "a.gif", frames, fps=20))
    assert read.fps == pytest.approx(20) and np.abs(read.frames - frames.numpy()).max() < 0.02


def test_a_folder_of_pictures_comes_in_the_order_of_its_numbers(tmp_path):
    for k in (1, 2, 10, 9):
        video.write_image(tmp_path / f"frame{k}.png", np.full((4, 6), k / 20))
    (tmp_path / "notes.txt").write_text("not a picture")
    read = video.read_video(tmp_path, fps=10, most=3)
    np.testing.assert_allclose(read.frames[:, 0, 0, 0], [1 / 20, 2 / 20, 9 / 20], atol=3e-3)
    np.testing.assert_allclose(read.times, [0, 0.1, 0.2])


def test_frames_are_scaled_by_averaging(tmp_path):
    picture = np.zeros((8, 8), np.uint8)
    picture[:4, :4] = 200
    Image.fromarray(picture).save(tmp_path / "0.png")
    Image.fromarray(np.zeros((6, 6), np.uint8)).save(tmp_path / "1.png")
    with pytest.raises(ValueError, match="different sizes"):
        video.read_video(tmp_path)
    read = video.read_video(tmp_path, size=(2, 2))
    np.testing.assert_allclose(read.frames[0, :, :, 0], [[200 / 255, 0], [0, 0]], atol=1e-3)


def test_silhouettes_and_rgba_are_frames_too(tmp_path):
    assert video.to_bytes(np.ones((2, 4, 6))).shape == (2, 4, 6, 3)
    assert video.to_bytes([torch.zeros(4, 6, 4)] * 3).shape == (3, 4, 6, 3)
    video.write_image(tmp_path / "a.png", moving_square(alpha=True)[0])
    assert Image.open(tmp_path / "a.png").mode == "RGBA"


def test_a_contact_sheet():
    frames = np.stack([np.full((4, 6, 3), k / 10) for k in range(5)])
    sheet = video.contact_sheet(frames, columns=2, gap=1)
    assert sheet.shape == (3 * 5 + 1, 2 * 7 + 1, 3)
    for k in range(5):
        assert (sheet[1 + k // 2 * 5 : 5 + k // 2 * 5, 1 + k % 2 * 7 : 7 + k % 2 * 7] == round(25.5 * k)).all()
    assert (sheet[11:15, 8:14] == 255).all()  # the place of a sixth frame
    assert video.contact_sheet(frames).ndim == 3


def test_captions_stand_above_their_frames():
    frames = np.full((3, 20, 60, 3), 0.5)
    plain, said = (
        video.contact_sheet(frames, columns=2),
        video.contact_sheet(frames, columns=2, captions=["one", "two"]),
    )
    assert said.shape == (plain.shape[0] + 2 * video.CAPTION, *plain.shape[1:])
    strip = video.CAPTION + 2
    for row, column in ((0, 0), (0, 1), (1, 0)):
        i, j = row * (20 + strip), 2 + column * 62
        assert (said[i + strip : i + strip + 20, j : j + 60] == 128).all()  # the frame is whole
        assert (said[i : i + strip, j : j + 60] < 100).any() == (row == 0)  # ink, where there is a caption
    with pytest.raises(ValueError, match="4 captions for 3 frames"):
        video.contact_sheet(frames, captions=["a"] * 4)


@pytest.mark.parametrize("alpha", [True, False])
def test_an_overlay_shows_the_whole_motion(alpha):
    picture = video.overlay(moving_square(30, (30, 80), alpha), count=3) / 255
    still, square = [0.2, 0.2, 0.2], np.array([1.0, 0.5, 0.0])
    np.testing.assert_allclose(picture[0, 0], still, atol=0.01)
    np.testing.assert_allclose(picture[15, 2 * 29 + 4], square, atol=0.01)  # the last one, full
    first = picture[15, 4]
    assert (np.abs(first - still) > 0.05).any() and (np.abs(first - square) > 0.05).any()  # the first one, faint


def test_what_cannot_be_read_or_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="no video"):
        video.read_video(tmp_path / "nothing.mp4")
    with pytest.raises(ValueError, match="no pictures"):
        video.read_video(tmp_path)
    (tmp_path / "bad.mp4").write_bytes(b"not a video")
    with pytest.raises(ValueError, match="cannot be read as a video"):
        video.read_video(tmp_path / "bad.mp4")
    with pytest.raises(ValueError, match=r"as \.mp4 or \.gif"):
        video.write_video(tmp_path / "a.avi", moving_square())
    with pytest.raises(ValueError, match="1, 3 or 4 channels"):
        video.write_video(tmp_path / "a.mp4", np.zeros((4, 5)))
    with pytest.raises(ValueError, match="not finite"):
        video.write_video(tmp_path / "a.mp4", np.full((2, 4, 4), np.nan))
    with pytest.raises(ValueError, match="fps"):
        video.write_video(tmp_path / "a.mp4", moving_square(), fps=0)


def test_grey_values_of_16_bits_keep_their_brightness(tmp_path):
    grey = np.linspace(0, 65535, 64 * 48).reshape(48, 64)
    Image.fromarray(grey.astype(np.uint16)).save(tmp_path / "0.png")
    frames = video.read_video(tmp_path).frames
    assert np.allclose(frames[0], grey[..., None] / 65535, atol=0.51 / 255)


@pytest.mark.parametrize("kind", [np.float32, np.int32])
def test_pictures_that_do_not_say_what_is_white_are_refused(tmp_path, kind):
    Image.fromarray(np.ones((8, 8), kind)).save(tmp_path / "0.tif")
    with pytest.raises(ValueError, match=r"0\.tif cannot be read as a picture: .* do not say what is white"):
        video.read_video(tmp_path)


@pytest.mark.parametrize("kind", [np.uint16, np.int64, np.complex128, object])
def test_frames_are_bytes_or_real_numbers(tmp_path, kind):
    """Larger integers would all be white."""
    frames = np.full((2, 8, 8, 3), 100, kind)
    for use in (video.contact_sheet, lambda f: video.write_image(tmp_path / "0.png", f[0])):
        with pytest.raises(ValueError, match=r"bytes .* or of real numbers"):
            use(frames)


def test_pictures_have_one_three_or_four_channels(tmp_path):
    for channels in (2, 5):
        with pytest.raises(ValueError, match="not of shape"):
            video.write_image(tmp_path / "0.png", np.zeros((8, 8, channels)))
