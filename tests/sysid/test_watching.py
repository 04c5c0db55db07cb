"""What becomes of a video before it is compared: its times, its shape; and what is said when a search fails."""

import numpy as np
import pytest
import thrown
from imageio_ffmpeg import write_frames
from PIL import Image
from typer.testing import CliRunner

from nablasim import render, sysid
from nablasim.sysid.cli import app
from nablasim.sysid.fit import FitFailed
from nablasim.sysid.identify import Case, prepare
from nablasim.sysid.search import windows
from nablasim.sysid.search.windows import follow

KEPT = [k for k in range(25) if k not in (6, 7, 13)]
FALL = """\
video: {height: 64, background: "#dcdcdc"}
camera: {eye: [0, 1, 6], target: [0, 1, 0], fov: 45 deg}
objects:
  ball: {shape: {sphere: 10 cm}, density: 500, position: [0, 2.2, 0]}
"""


def film(path, frames, stamps):
    """An .mkv whose frames (n, height, width, 3) are shown at these milliseconds."""
    shown = "+".join(f"eq(N,{k})*{ms}" for k, ms in enumerate(stamps))
    options = ["-vf", f"settb=1/1000,setpts='{shown}'", "-fps_mode", "passthrough"]
    size = frames.shape[2], frames.shape[1]
    made = write_frames(str(path), size, fps=30, macro_block_size=1, output_params=options, ffmpeg_log_level="error")
    made.send(None)
    for frame in frames:
        made.send(np.ascontiguousarray(frame))
    made.close()
    return path


@pytest.fixture
def scene(tmp_path):
    file = tmp_path / "scene.yaml"
    file.write_text(thrown.SCENE, encoding="utf-8")
    return file


def test_frames_that_were_dropped_leave_a_gap(tmp_path, scene):
    file = film(tmp_path / "a.mkv", thrown.frames()[KEPT], [round(1000 * k / 30) for k in KEPT])
    case = prepare(file, scene, ["density"])
    np.testing.assert_allclose(case.video.times, np.array(KEPT) / 30, atol=1e-9)
    assert case.problem.simulation.steps.tolist() == [16 * k for k in KEPT]
    assert "3 of 25 frames are not in the file" in case.warnings[0]
    slow = prepare(file, scene_with(scene, "0.8 s", "0.2 s"), ["density"], fps=120)
    np.testing.assert_allclose(slow.video.times, np.array(KEPT) / 120, atol=1e-9)


def scene_with(scene, old, new):
    file = scene.with_name("other.yaml")
    file.write_text(thrown.SCENE.replace(old, new).replace("time_step: 1/480 s\n", ""), encoding="utf-8")
    return file


def test_uneven_frames_come_at_the_nearest_step(tmp_path, scene):
    stamps = [33 * k + 7 * (k % 3) for k in range(25)]
    file = film(tmp_path / "a.mkv", thrown.frames(), stamps)
    case = prepare(file, scene_with(scene, "  fps: 30 fps\n", ""), ["density"])
    assert np.abs(case.video.times - np.array(stamps) / 1000)[: len(case.video)].max() < 0.5e-3
    assert "frames are 19 to 40 ms apart" in case.warnings[0]
    coarse = scene.with_name("coarse.yaml")
    coarse.write_text(thrown.SCENE.replace("  fps: 30 fps\n", "").replace("1/480 s", "1/100 s"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"coarse.yaml, line \d+: time_step: frames are not evenly apart"):
        prepare(file, coarse, ["density"])


def test_frames_of_python_can_be_brought_to_steps():
    times = np.array([0, 0.033, 0.071, 0.1])
    video = sysid.Video(np.zeros((4, 8, 8)), times)
    assert np.abs(video.on_steps(1 / 960).times - times).max() <= 0.5 / 960
    with pytest.raises(ValueError, match="frames 0 and 1 fall on the same step"):
        video.on_steps(0.2)


def test_a_narrow_video_keeps_its_shape(tmp_path):
    folder = tmp_path / "narrow"
    folder.mkdir()
    i, j = np.mgrid[:1716, :172]
    for k in range(4):
        disc = (i - 300 - 60 * k) ** 2 + (j - 85.5) ** 2 < 60**2
        Image.fromarray(np.where(disc, 30, 220).astype(np.uint8)).save(folder / f"{k}.png")
    (tmp_path / "fall.yaml").write_text(FALL, encoding="utf-8")
    case = prepare(folder, tmp_path / "fall.yaml", ["gravity"], fps=30)
    height, width = case.video.size
    assert width / height == pytest.approx(172 / 1716, rel=0.005) and (height, width) == (80, 8)
    rows, columns = case.video.frames[2].sum(axis=1).max(), case.video.frames[2].sum(axis=0).max()
    assert rows == pytest.approx(columns, rel=0.03)
    assert "64 rows would be 6 columns, so 80 rows are compared" in case.warnings[0]


def test_masks_of_a_film_of_another_shape_are_not_stretched(tmp_path):
    i, j = np.mgrid[:60, :120]
    for k in range(8):
        render.write_image(tmp_path / f"{k}.png", ((i - 30) ** 2 + (j - 10 - 14 * k) ** 2 < 81).astype(float))
    with pytest.warns(UserWarning, match="the sides are cut off"):
        seen = sysid.load_video(tmp_path, size=(30, 30), mask=True).frames[4]
    assert seen.sum(axis=0).max() == pytest.approx(seen.sum(axis=1).max(), abs=0.6)


# -- searches that fail
def test_the_true_reason_is_said(tmp_path, scene, monkeypatch):
    thrown.write(tmp_path)
    problem = prepare(tmp_path / "throw.mp4", scene, ["density"]).problem
    start = windows.Start(problem.space.draw(np.random.default_rng(0)), problem.space.draw(np.random.default_rng(0)))
    start.frames, start.loss = problem.frames, 1e-3  # of the window before
    monkeypatch.setattr(type(problem), "slopes", lambda self, u, frames=None, *a, **k: None)
    monkeypatch.setattr(type(problem.simulation), "explain", lambda self, values, frames: "dt is too large")
    follow(problem, start, tolerance=1e-3, steps=3)
    assert start.message == "the simulation fails within 25 frames: dt is too large" and start.loss == np.inf
    with pytest.raises(FitFailed, match=r"no start came to an end:\n  start 1: .*dt is too large"):
        problem.fit(starts=1)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("writes", [False, True])
def test_exit_codes_say_whether_something_was_written(tmp_path, scene, monkeypatch, writes, again):
    thrown.write(tmp_path)
    kept = tmp_path / "out" / "fit.json"
    kept.parent.mkdir()
    kept.write_text("before")

    def fail(self, save, **options):
        if writes:
            save.write_text("begun")
        raise FitFailed("dt is too large")

    monkeypatch.setattr(Case, "fit", fail)
    asked = ["identify", str(tmp_path / "throw.mp4"), "--scene", str(scene), "--estimate", "density"]
    done = CliRunner().invoke(app, [*asked, "--report", str(kept.parent), *(["--again"] if again else [])])
    assert done.exit_code == (1 if writes else 2) and "dt is too large" in done.stderr
    assert kept.read_text() == ("begun" if writes else "before")
    assert [f.name for f in kept.parent.iterdir()] == ["fit.json"]
