"""`nablasim identify` on videos that another renderer made and ffmpeg compressed; and on what cannot be used."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import thrown
from typer.testing import CliRunner

from nablasim import render
from nablasim.sysid.cli import app
from nablasim.sysid.identify import prepare

COMMAND = [sys.executable, "-c", "from nablasim.sysid.cli import app; app()"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return thrown.write(tmp_path_factory.mktemp("thrown"))


def run(*arguments: object):
    return CliRunner().invoke(app, ["identify", *map(str, arguments)])


def found(text: str) -> dict[str, float]:
    """The numbers of the printed table."""
    return {name: float(value) for name, value in re.findall(r"^([a-z]+\.[a-z]+)\s+(\S+)", text, re.MULTILINE)}


def test_a_compressed_video_of_another_renderer_tells_density_and_restitution(folder, tmp_path):
    out = tmp_path / "new" / "out"
    done = run(folder / "throw.mp4", "--scene", folder / "scene.yaml", "--estimate", "density,restitution",
               "--report", out)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    numbers = found(done.stdout)
    assert numbers["block.density"] == pytest.approx(7.0, rel=0.02)
    assert numbers["floor.restitution"] == pytest.approx(thrown.restitution(), abs=0.02)
    assert sorted(f.name for f in out.iterdir()) == ["fit.json", "motion.npz", "report.html"]
    assert "25 frames of 50 × 40 pixels" in done.stderr and "warning" not in done.stderr
    assert "block.density" in (out / "report.html").read_text(encoding="utf-8")
    # Once more, the result is there already; another question is not answered with it.
    before = (out / "fit.json").read_bytes(), (out / "report.html").read_bytes()
    again = run(folder / "throw.mp4", "--scene", folder / "scene.yaml", "--estimate", "restitution", "--report", out)
    assert again.exit_code == 2 and "keeps a fit of another problem" in again.stderr and "--again" in again.stderr
    assert ((out / "fit.json").read_bytes(), (out / "report.html").read_bytes()) == before


def test_a_folder_of_pictures_tells_the_same_and_a_kill_loses_nothing(folder, tmp_path):
    pictures = tmp_path / "frames"
    pictures.mkdir()
    for k, frame in enumerate(thrown.frames()):
        render.write_image(pictures / f"frame{k}.png", frame)
    out = tmp_path / "out"
    command = [*COMMAND, "identify", str(pictures), "--scene", str(folder / "scene.yaml"), "--estimate", "density",
               "--report", str(out), "--starts", "2"]  # fmt: skip
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    kept, deadline = out / "fit.json", time.monotonic() + 120
    while running.poll() is None and time.monotonic() < deadline:
        if kept.exists() and sum(len(s["path"]) for s in json.loads(kept.read_text())["starts"]) >= 2:
            break
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    before = json.loads(kept.read_text())["starts"]
    assert not (out / "report.html").exists(), "killed too late to be a test"
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    after = json.loads(kept.read_text())["starts"]
    for old, new in zip(before, after):
        assert new["path"][: len(old["path"])] == old["path"], "finished windows ran again"
    assert "going on with" in done.stderr
    # Damping is that of the file here, twice the true one: the flight alone tells the density.
    assert found(done.stdout)["block.density"] == pytest.approx(7.0, rel=0.1)


BAD = {
    "an unreadable video": ({"video": "text.mp4"}, "text.mp4 cannot be read as a video: Invalid data found"),
    "an empty video": ({"video": "empty.mp4"}, "empty.mp4 is empty"),
    "no video": ({"video": "missing.mp4"}, "there is no video at .*missing.mp4"),
    "a folder without pictures": ({"video": "nothing"}, "nothing has no pictures: files that end with .png"),
    "a short video": (
        {"change": ("0.8 s", "3 s")},
        r"line 3: video.duration: the scene lasts 3 s, which is 91 frames, and .* has 25 frames \(0.8 s\): shorten",
    ),
    "another frame rate": (
        {"change": ("30 fps", "25 fps")},
        "line 2: video.fps: the scene is about 25 frames per second, and .* has 30: correct one of them, or pass --fps",
    ),
    "steps that do not fit": (
        {"change": ("1/480 s", "0.7 ms")},
        "line 23: time_step: a frame of 30 fps lasts 0.0333333 s.*write `time_step: 1/1440 s`, 48 steps",
    ),
    "an unknown key": ({"change": ("friction:", "frction:")}, "line 22: floor: unknown key 'frction'.*'friction'"),
    "an unknown unit": ({"change": ("5 kg/m^3", "5 kg/metre^3")}, "line 12: .*unknown unit 'metre': did you mean 'm'"),
    "a parameter that is not there": ({"estimate": "densty"}, "has a 'densty': did you mean 'density'?"),
    "nothing to find": ({"estimate": " , "}, "there is nothing to find"),
    "a guess outside of the bounds": (
        {"change": ("50 kg/m^3]}", "50 kg/m^3], guess: 80 kg/m^3}")},
        r"line 25: parameters.density.guess: the guess 80.0 is outside of the bounds \(1, 50\)",
    ),
    "a shape without an extent": (
        {"change": ("80 cm", "0 cm")},
        "line 11: objects.block.shape: Box: .*must be positive",
    ),
    "a mesh that is none": (
        {"change": ("{box: [80 cm, 60 cm, 1 m]}", "{mesh: text.obj}"), "beside": ("text.obj", "this is no mesh")},
        "line 11: objects.block.shape: .*text.obj",
    ),
    "half of a range": ({"change": (", 50 kg/m^3]}", "]}")}, "line 25: parameters.density.range: number 2 is missing"),
    "the same twice": ({"estimate": "mass,density"}, "'block.mass' and 'block.density' both decide 'block.density'"),
    "a frame rate without an end": ({"options": ("--fps", "inf")}, "more than 0 frames per second, and not inf"),
    "a report below a file": ({"report": "scene.yaml/out"}, "scene.yaml is a file, and --report needs a folder"),
    "a video in which nothing moves": ({"video": "still"}, "still: nothing moves in this video"),
}


@pytest.fixture(scope="module")
def bad(folder) -> Path:
    (folder / "text.mp4").write_text("this is no video")
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "nothing").mkdir()
    (folder / "still").mkdir()
    for k in range(25):
        render.write_image(folder / "still" / f"{k}.png", np.full((40, 50, 3), 128, np.uint8))
    return folder


def refused(bad: Path, case: dict, tmp_path: Path) -> tuple[list[str], Path]:
    """The arguments of a command that cannot work, and a folder with an old report."""
    text = thrown.SCENE.replace(*case["change"]) if "change" in case else thrown.SCENE
    assert ("change" in case) == (text != thrown.SCENE)
    (tmp_path / "scene.yaml").write_text(text, encoding="utf-8")
    if "beside" in case:
        (tmp_path / case["beside"][0]).write_text(case["beside"][1])
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("an old report")
    video = bad / case.get("video", "throw.mp4")
    return [str(video), "--scene", str(tmp_path / "scene.yaml"), "--estimate", case.get("estimate", "density"),
            "--report", str(tmp_path / case.get("report", "out")), *case.get("options", ())], out  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_a_message_and_nothing_is_overwritten(name, bad, tmp_path):
    case, says = BAD[name]
    arguments, out = refused(bad, case, tmp_path)
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert re.search(says, done.stderr), done.stderr
    assert done.stderr.startswith("error: ") and "Traceback" not in done.output and len(done.stderr) < 400
    assert [f.name for f in out.iterdir()] == ["report.html"]
    assert (out / "report.html").read_text() == "an old report"


def test_bad_input_of_the_real_command(bad, tmp_path):
    case, says = BAD["an unreadable video"]
    arguments, out = refused(bad, case, tmp_path)
    done = subprocess.run([*COMMAND, "identify", *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and re.search(says, done.stderr) and not done.stdout
    assert [f.name for f in out.iterdir()] == ["report.html"]


SOFT = """\
video: {fps: 30, height: 24}
camera: {eye: [0.5, 0.3, 2.5], target: [0.5, -0.1, 0], fov: 45 deg}
objects:
  beam: {kind: soft, box: [1, 0.3, 0.3], cells: [3, 1, 1], density: 100, young: 20 kPa, fixed: {axis: x, below: 0}}
time_step: 1/480 s
parameters:
  young: {range: [10 GPa, 100 GPa]}
"""


def test_a_fit_that_diverges_says_so(folder, tmp_path):
    (tmp_path / "scene.yaml").write_text(SOFT, encoding="utf-8")
    out = tmp_path / "out"
    done = run(folder / "throw.mp4", "--scene", tmp_path / "scene.yaml", "--estimate", "young", "--report", out)
    assert done.exit_code == 2
    assert "no start came to an end" in done.stderr and "dt" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not out.exists()


def test_a_scene_that_is_not_in_the_video_is_warned_about(folder, tmp_path):
    text = thrown.SCENE.replace("position: [-1.2, 1.2, 0]", "position: [1.2, 2.2, 0]").replace("0.8 s", "0.1 s")
    (tmp_path / "scene.yaml").write_text(text, encoding="utf-8")
    case = prepare(folder / "throw.mp4", tmp_path / "scene.yaml", ["density"])
    assert "of the silhouette in common: check the camera" in case.warnings[-1]


def test_colours_tell_it_as_well(folder, tmp_path):
    text = thrown.SCENE.replace("  height: 40", "  height: 40\n  compare: colour")
    text = text.replace("    density: 5", "    color: '#cc4026'\n    density: 5")
    text += "light: {ambient: 0.35, sun: 0.65, direction: [0.4, 0.8, 0.5], background: [0.72, 0.73, 0.74]}\n"
    (tmp_path / "scene.yaml").write_text(text, encoding="utf-8")
    problem = prepare(folder / "throw.mp4", tmp_path / "scene.yaml", ["density"]).problem
    assert problem.bound.target.shape == (25, 40 * 50 * 3)
    losses = [problem.loss({"block.density": density}) for density in (4.0, 6.0, 7.0, 8.5, 12.0)]
    assert min(losses) == losses[2]


@pytest.mark.nightly
def test_certified_intervals_of_compressed_videos_hold_the_truth_nine_times_in_ten(tmp_path):
    inside, certified, rng = 0, 0, np.random.default_rng(100)
    for k in range(25):
        density, damping = np.exp(rng.uniform(np.log([3, 6]), np.log([15, 40])))
        truth = {"block.density": density, "floor.kd": damping}
        thrown.write(tmp_path, truth=tuple(truth.items()), seed=k)
        fit = prepare(tmp_path / "throw.mp4", tmp_path / "scene.yaml", ["density", "restitution"]).fit(seed=k)
        for name, value in (("block.density", density), ("floor.restitution", thrown.restitution(truth))):
            certified += fit[name].certified
            inside += fit[name].certified and fit[name].low <= value <= fit[name].high
    assert certified >= 30
    assert 0.80 <= inside / certified <= 0.98, f"{inside} of {certified}"
