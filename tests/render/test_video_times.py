"""Frames have the times of their container, stand upright, keep their shape, and ffmpeg keeps quiet."""

import subprocess
import sys

import numpy as np
import pytest
from imageio_ffmpeg import get_ffmpeg_exe
from PIL import Image

from nablasim.render import video
from nablasim.render.clock import beat_of, told

DROPPED = [3, 4, 5, 11, 12]
KEPT = [k for k in range(30) if k not in DROPPED]


def encode(path, frames, *options, fps=30):
    """Frames (time, height, width, 3) of bytes, by ffmpeg with options of its own."""
    height, width = frames.shape[1:3]
    command = [get_ffmpeg_exe(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s",
               f"{width}x{height}", "-r", str(fps), "-i", "-", *options, str(path)]  # fmt: skip
    subprocess.run(command, input=frames.tobytes(), check=True, capture_output=True)
    return path


def numbered(count=30, size=(32, 48)):
    """Frame k is as bright as 40 + 5 k."""
    return np.broadcast_to(40 + 5 * np.arange(count)[:, None, None, None], (count, *size, 3)).astype(np.uint8)


def numbers(read):
    return np.rint((255 * read.frames.mean(axis=(1, 2, 3)) - 40) / 5).astype(int).tolist()


def without(*options):
    drop = "+".join(f"eq(n,{k})" for k in DROPPED)
    return ("-vf", f"select='not({drop})'", "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", *options)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.mov"])
def test_frames_that_were_dropped_leave_a_gap(tmp_path, name):
    file = encode(tmp_path / name, numbered(), *without())
    read = video.read_video(file)
    assert numbers(read) == KEPT
    np.testing.assert_allclose(read.times, np.array(KEPT) / 30, atol=1e-9)
    assert read.rate == pytest.approx(30) and not read.notes
    clock = video.video_times(file)
    np.testing.assert_array_equal(clock.times, read.times)
    assert clock.size == (32, 48) and clock.rate == read.rate
    some = video.read_video(file, most=6)
    assert numbers(some) == KEPT[:6]
    np.testing.assert_allclose(some.times, np.array(KEPT[:6]) / 30, atol=1e-9)


def test_slow_motion_keeps_its_gaps(tmp_path):
    read = video.read_video(encode(tmp_path / "a.mp4", numbered(), *without()), fps=120)
    np.testing.assert_allclose(read.times, np.array(KEPT) / 120, atol=1e-12)
    assert read.rate == 120


def test_frames_that_come_as_they_like_have_the_times_of_the_file(tmp_path):
    # 1, 2, 3 ... tens of a millisecond longer each time: no rate at all.
    options = ("-vf", r"settb=1/10000,setpts=N*300+5*N*N", "-fps_mode", "passthrough", "-pix_fmt", "yuv420p",
               "-video_track_timescale", "10000")  # fmt: skip
    k = np.arange(20)
    read = video.read_video(encode(tmp_path / "a.mp4", numbered(20), *options))
    np.testing.assert_allclose(read.times, (300 * k + 5 * k * k) / 1e4, atol=1e-9)
    assert numbers(read) == k.tolist()


@pytest.mark.parametrize("fps", ["30000/1001", "24", "59.94", "240"])
def test_stamps_that_were_rounded_are_an_even_rate(tmp_path, fps):
    """A .mkv has milliseconds: 240 frames per second are 4, 8, 13, 17 ms."""
    rate = 30000 / 1001 if "/" in fps else float(fps)
    read = video.read_video(encode(tmp_path / "a.mkv", numbered(40), "-pix_fmt", "yuv420p", fps=fps))
    np.testing.assert_allclose(read.times, np.arange(40) / rate, atol=1e-3)
    assert np.ptp(np.diff(read.times)) < 1e-9


def test_a_clock_that_shakes_a_little_is_even_when_its_rate_is_told():
    rng = np.random.default_rng(0)
    counts = np.array(KEPT)
    times = counts / 30 + 1e-4 * rng.random(len(counts)) * (counts > 0)
    np.testing.assert_allclose(told(times, 120), counts / 120)
    assert beat_of(times, 1e-6) is None


def test_a_gif_shows_each_frame_as_long_as_it_says(tmp_path):
    pictures = [Image.fromarray(frame) for frame in numbered(5)]
    pictures[0].save(tmp_path / "a.gif", save_all=True, append_images=pictures[1:], duration=[50, 100, 50, 200, 50])
    read = video.read_video(tmp_path / "a.gif")
    np.testing.assert_allclose(read.times, [0, 0.05, 0.15, 0.2, 0.4], atol=1e-9)
    pictures[0].save(tmp_path / "b.gif", save_all=True, append_images=pictures[1:])
    with pytest.raises(ValueError, match=r"b\.gif does not say when its frames are shown: give fps"):
        video.read_video(tmp_path / "b.gif")
    np.testing.assert_allclose(video.read_video(tmp_path / "b.gif", fps=10).times, np.arange(5) / 10)


def test_a_phone_that_was_held_upright(tmp_path):
    lying = np.zeros((6, 32, 64, 3), np.uint8)
    lying[:, :, :16] = 220
    encode(tmp_path / "lying.mp4", lying, "-pix_fmt", "yuv420p")
    turn = [get_ffmpeg_exe(), "-y", "-loglevel", "error", "-display_rotation", "-90", "-i", str(tmp_path / "lying.mp4"),
            "-c", "copy", str(tmp_path / "upright.mp4")]  # fmt: skip
    subprocess.run(turn, check=True, capture_output=True)
    read = video.read_video(tmp_path / "upright.mp4")
    assert read.frames.shape == (6, 64, 32, 3) and video.video_times(tmp_path / "upright.mp4").size == (64, 32)
    assert read.frames[:, :12].mean() > 0.8 and read.frames[:, 20:].mean() < 0.1
    picture = Image.fromarray(lying[0])
    exif = picture.getexif()
    exif[0x0112] = 6  # "turn by 90 degrees to show it"
    (tmp_path / "photos").mkdir()
    picture.save(tmp_path / "photos" / "0.jpg", exif=exif)
    assert video.read_video(tmp_path / "photos").frames.shape == (1, 64, 32, 3)


def test_pixels_that_are_not_square_are_made_so(tmp_path):
    file = encode(tmp_path / "a.mp4", numbered(4, (32, 48)), "-vf", "setsar=4/3", "-pix_fmt", "yuv420p")
    assert video.read_video(file).frames.shape == (4, 32, 64, 3) and video.video_times(file).size == (32, 64)


def disc(height, width, radius):
    i, j = np.mgrid[:height, :width]
    inside = (i - (height - 1) / 2) ** 2 + (j - (width - 1) / 2) ** 2 < radius**2
    return np.where(inside, 255, 0).astype(np.uint8)


@pytest.mark.parametrize(("shape", "size"), [((240, 320), (60, 60)), ((320, 240), (60, 60)), ((1716, 172), (64, 8)),
                                             ((171, 301), (40, 71)), ((480, 160), (48, 21))])  # fmt: skip
def test_nothing_is_stretched(tmp_path, shape, size):
    Image.fromarray(disc(*shape, 60)).save(tmp_path / "0.png")
    frame = video.read_video(tmp_path, size=size).frames[0, :, :, 0]
    assert frame.shape == size
    rows, columns = frame.sum(axis=1).max(), frame.sum(axis=0).max()
    wanted = 120 * size[0] / shape[0]
    assert rows == pytest.approx(wanted, abs=0.4) and columns == pytest.approx(wanted, abs=0.4)
    # The middle stays in the middle.
    total = frame.sum()
    assert (frame.sum(axis=0) @ np.arange(size[1])) / total == pytest.approx((size[1] - 1) / 2, abs=0.02)


def test_what_is_cut_off_is_said(tmp_path):
    video.write_image(tmp_path / "0.png", np.zeros((72, 128)))
    (said,) = video.read_video(tmp_path, size=(36, 36)).notes
    assert "128 × 72" in said and "the sides are cut off" in said and "size=(36, 64)" in said
    assert not video.read_video(tmp_path, size=(36, 64)).notes
    with pytest.raises(ValueError, match="less than a pixel wide"):
        video.write_image(tmp_path / "0.png", np.zeros((720, 8)))
        video.read_video(tmp_path, size=(36, 36))


def test_a_damaged_file_is_read_as_far_as_it_goes_and_says_so(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (30, 64, 64, 3)).astype(np.uint8)
    whole = encode(tmp_path / "a.mp4", noise, "-pix_fmt", "yuv420p", "-movflags", "faststart")
    (tmp_path / "half.mp4").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    read = video.read_video(tmp_path / "half.mp4")
    assert 3 < len(read) < 30 and any("ffmpeg says about half.mp4" in note for note in read.notes)


def test_what_is_no_video(tmp_path):
    (tmp_path / "notes.txt").write_text("some lines\n" * 100)
    with pytest.raises(ValueError, match=r"notes\.txt cannot be read as a video: it is text"):
        video.read_video(tmp_path / "notes.txt")
    sound = [get_ffmpeg_exe(), "-y", "-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=0.2",
             str(tmp_path / "a.wav")]  # fmt: skip
    subprocess.run(sound, check=True, capture_output=True)
    with pytest.raises(ValueError, match="it has no pictures"):
        video.read_video(tmp_path / "a.wav")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "0.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"0\.png cannot be read as a picture"):
        video.read_video(tmp_path / "broken")
    (tmp_path / "a.gif").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"a\.gif cannot be read as a video"):
        video.read_video(tmp_path / "a.gif")
    with pytest.raises(ValueError, match="more than 0 frames per second, and not -3"):
        video.read_video(tmp_path / "a.gif", fps=-3)


def test_ffmpeg_keeps_quiet(tmp_path):
    """Neither a video of a phone (full range: "deprecated pixel format") nor a folder that is not there."""
    encode(tmp_path / "a.mp4", numbered(4), "-pix_fmt", "yuvj420p")
    script = f"""
from nablasim.render import video
read = video.read_video({str(tmp_path / "a.mp4")!r})
video.write_video({str(tmp_path / "b.mp4")!r}, read.frames)
try:
    video.write_video({str(tmp_path / "none" / "b.mp4")!r}, read.frames)
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "" and "b.mp4 cannot be written: No such file or directory" in done.stdout
