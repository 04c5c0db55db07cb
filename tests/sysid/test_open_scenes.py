"""Scene files whose camera or beginning is not known: the track tells what it can, with ranges as what is known."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import filmed
import numpy as np
import pytest
from typer.testing import CliRunner

from nablasim import physics as ph
from nablasim import render, sysid
from nablasim.sysid.cli import app
from nablasim.sysid.scenes import BadScene, Stage, params, parse_scene
from nablasim.sysid.tracks import story_of

PER_METRE = 150.0
"""Pixels, in clips drawn from far away: a ball of 18 pixels is 12 cm."""
OPEN = "camera: {fov: [8 deg, 30 deg], distance: unknown, tilt: [-15 deg, 15 deg]}\n"
BALL = "objects: {marble: {shape: {sphere: 6 cm}, mass: 50 g, position: unknown, velocity: unknown, spin: unknown}}\n"
BOB = "objects: {bob: {kind: pendulum, length: unknown, angle: unknown, rate: unknown, radius: 4.67 cm}}\n"


@pytest.fixture(scope="module")
def bounce(tmp_path_factory: pytest.TempPathFactory) -> Path:
    way, _ = filmed.bouncing(30, 40, 40, 200, 9.81 * PER_METRE, 0.7)
    return filmed.Film(way, 100).write(tmp_path_factory.mktemp("open") / "bounce.mp4")


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clip is looked at once for all tests."""
    monkeypatch.setattr("nablasim.sysid.tracks.scenes.look", LOOKED)


LOOKED = cache(sysid.look)


def asked(clip: Path, text: str, *wanted: str) -> sysid.TrackFit:
    case = sysid.prepare(clip, parse_scene(text, folder=clip.parent), wanted)
    assert isinstance(case, sysid.TrackCase)
    return case.fit()


def test_a_bounce_by_a_camera_that_nobody_knows(bounce: Path) -> None:
    fit = asked(bounce, OPEN + BALL + "floor: {}\n", "restitution", "gravity")
    back, pull = fit["floor.restitution"], fit["gravity"]
    assert back.certified and back.low < 0.7 < back.high and back.high - back.low < 0.1
    assert pull.certified and pull.low < 9.81 < pull.high and pull.unit == "m/s²"
    assert str(fit.table()).count("[") == 2 and not fit.warnings


def test_answers_have_the_names_of_the_scene(bounce: Path) -> None:
    fit = asked(bounce, OPEN + BALL.replace("6 cm", "unknown") + "floor: {}\n", "marble.radius")
    (radius,) = fit.estimates
    assert radius.name == "marble.radius" and radius.low < 0.06 < radius.high
    with pytest.raises(KeyError, match=r"did you mean 'marble.radius'"):
        fit["marble.radios"]


def test_a_camera_that_is_known_leaves_the_beginning_to_the_track(bounce: Path) -> None:
    """Ten metres away, which the fov makes 150 pixels for each metre."""
    fov = float(np.degrees(2 * np.arctan(120 / PER_METRE / 10)))
    known = f"camera: {{eye: [0, 0, 10], target: [0, 0, 0], fov: {fov} deg}}\nplane: 2d\n"
    fit = asked(bounce, known + BALL + "floor: {}\n", "restitution", "gravity")
    assert all(e.certified for e in fit) and fit["gravity"].low < 9.81 < fit["gravity"].high
    far = asked(bounce, known.replace("10]", "20]") + BALL + "floor: {}\n", "gravity", "restitution")
    assert not far["gravity"].certified and far["restitution"].certified
    assert "its size and the distance contradict each other by a factor of 2.0" in far.warnings[0]


@pytest.mark.parametrize("camera", [
    "camera: {fov: 12 deg, distance: 5 m}\n",
    "camera: {fov: [8 deg, 30 deg], distance: unknown, length: [[10, 10], [10, 160], 1.4 m]}\n",
])  # fmt: skip
def test_rulers_that_contradict_each_other_certify_no_metres(bounce: Path, camera: str) -> None:
    fit = asked(bounce, camera + BALL + "floor: {}\n", "gravity", "restitution")
    assert not fit["gravity"].certified and "contradict each other" in fit.warnings[0]
    assert fit["restitution"].certified


def test_a_distance_is_a_ruler(bounce: Path) -> None:
    fov = float(np.degrees(2 * np.arctan(120 / PER_METRE / 10)))
    text = f"camera: {{fov: {fov} deg, distance: [9 m, 11 m]}}\n" + BALL.replace("6 cm", "unknown") + "floor: {}\n"
    pull = asked(bounce, text, "gravity")["gravity"]
    assert pull.certified and pull.low < 9.81 < pull.high and pull.high - pull.low > 1


def test_slow_motion_and_the_part_of_a_scene(bounce: Path) -> None:
    slow = "video: {fps: 240}\n" + OPEN + BALL + "floor: {}\n"
    case = sysid.prepare(bounce, parse_scene(slow), ["restitution", "gravity"])
    assert any("slow motion" in w for w in case.warnings)
    fit = case.fit()
    assert fit["restitution"].certified and not fit["gravity"].certified
    with pytest.raises(BadScene, match=r"line 1: video.fps: the scene is about 50 frames per second, and .* has 60"):
        sysid.prepare(bounce, parse_scene(slow.replace("240", "50")), ["restitution"])
    late = "video: {start: 9 s}\n" + OPEN + BALL + "floor: {}\n"
    with pytest.raises(BadScene, match=r"moves freely from 0 s to .* and the scene is about another time"):
        sysid.prepare(bounce, parse_scene(late), ["restitution"])
    first = asked(bounce, "video: {duration: 0.8 s}\n" + OPEN + BALL + "floor: {}\n", "restitution")
    assert first["restitution"].low < 0.7 < first["restitution"].high


def test_a_pendulum_of_a_scene_file(tmp_path: Path) -> None:
    def way(t: float) -> tuple[float, float]:
        a = np.radians(10) * np.cos(np.sqrt(9.81 / 0.8 / (1 + np.radians(10) ** 2 / 8)) * t)
        return 100 + 120 * np.sin(a), 60 + 120 * np.cos(a)

    clip = filmed.Film(way, 62, fps=30, radius=7).write(tmp_path / "swing.mp4")
    length = asked(clip, "video: {fps: 30}\n" + OPEN + BOB, "length")["bob.length"]
    assert length.certified and length.low < 0.8 < length.high and length.high - length.low < 0.06


@pytest.mark.parametrize(
    ("text", "wanted", "said"),
    [
        (OPEN + BALL, "density", "line 1: camera: it is not known, .* a track tells marble.diameter, gravity, and not"),
        (OPEN + BALL.replace("6 cm", "unknown"), "gravity", r"a length in the picture \(`camera: {length: "),
        ("camera: {fov: [8, 30], eye: [0, 0, 1]}\n" + BALL, "gravity", "target is missing: give eye and target"),
        ("camera: {fov: [8, 30]}\n" + BALL, "gravity", "such as `fov: .45 deg, 75 deg., distance: unknown`"),
        ("camera: {fov: [30, 8], distance: 1}\n" + BALL, "gravity", "line 1: camera.fov: a range is its lower end"),
        ("camera: {fov: 200, distance: 1}\n" + BALL, "gravity", "fov is between 0 and 180"),
        (OPEN + BOB + "floor: {}\n", "length", "pendula hang by themselves, and floor is there"),
        (OPEN + BOB.replace("bob: {", "bob: {of: rope, "), "length", "there is one pendulum in a scene"),
    ],
)
def test_what_cannot_be_told_is_refused_with_what_would_help(text: str, wanted: str, said: str) -> None:
    with pytest.raises(BadScene, match=said):
        story_of(parse_scene(text), [wanted])


def test_an_exposure_is_for_tracks_only(bounce: Path) -> None:
    blurred = "video: {exposure: unknown}\n" + OPEN + BALL + "floor: {}\n"
    assert asked(bounce, blurred, "restitution")["restitution"].certified
    known = "video: {exposure: 0.5}\ncamera: {eye: [0, 0, 5], target: [0, 0, 0]}\n" + BALL.replace(
        "unknown", "[0, 0, 0]"
    )
    with pytest.raises(BadScene, match=r"line 1: video.exposure: pixels take no notice of motion blur"):
        sysid.prepare(bounce, parse_scene(known), ["density"])
    with pytest.raises(BadScene, match="between 0 and 1"):
        parse_scene(known.replace("0.5", "5"))


def test_what_a_track_does_not_tell_is_left_to_the_pixels() -> None:
    known = "camera: {eye: [0, 0, 5], target: [0, 0, 0], fov: 40 deg}\n"
    assert story_of(parse_scene(known + BALL), ["density"]) is None
    assert story_of(parse_scene(known + BALL.replace("unknown", "[0, 0, 0]")), ["gravity"]) is None


def test_the_command_answers_by_the_track(bounce: Path, tmp_path: Path) -> None:
    (tmp_path / "scene.yaml").write_text(OPEN + BALL + "floor: {}\n")
    ran = CliRunner().invoke(app, ["identify", str(bounce), "--scene", str(tmp_path / "scene.yaml"), "--estimate",
                                   "restitution", "--report", str(tmp_path / "out")])  # fmt: skip
    assert ran.exit_code == 0, ran.output
    assert "floor.restitution = 0." in ran.output and "from the track" in ran.output
    assert "floor.restitution" in (tmp_path / "out" / "report.html").read_text()
    assert not json.dumps(ran.output).count("Traceback")


DOUBLE = """
video: {height: 48}
camera: {eye: [0.2, 0.3, 2.5], target: [0.2, 0.3, 0], fov: 45 deg}
objects:
  lower: {kind: pendulum, of: upper, length: [20 cm, 60 cm], angle: -17.2 deg, radius: 5 cm, mass: 0.2 kg}
  upper: {kind: pendulum, pivot: [0.2, 0.8, 0], length: 50 cm, angle: 34.4 deg, radius: 6 cm, mass: 0.3 kg}
"""


@pytest.mark.nightly
def test_a_double_pendulum_by_its_pixels(tmp_path: Path) -> None:
    """Drawn here by discs at what its own equation of motion says."""
    motion = ph.rollout(ph.DoublePendulum(length=(0.45, 0.35), mass=(0.3, 0.2), angle=np.radians((34.4, -17.2))),
                        dt=1 / 240, steps=8 * 12, every=8)  # fmt: skip
    x = np.asarray(motion["x"])[..., :2] + (0.2, 0.8)
    half, rows = np.tan(np.radians(22.5)), np.mgrid[0:192, 0:192]
    frames = np.full((len(x), 192, 192, 3), 0.75)
    for picture, bobs in zip(frames, x):
        for (a, b), radius in zip(bobs, (0.06, 0.05)):
            column, row = 96 * (1 + (a - 0.2) / 2.5 / half) - 0.5, 96 * (1 - (b - 0.3) / 2.5 / half) - 0.5
            away = np.hypot(rows[1] - column, rows[0] - row)
            picture[:] *= 1 - 0.8 * np.clip(radius / 2.5 / half * 96 - away + 0.5, 0, 1)[..., None]
    clip = render.write_video(tmp_path / "double.mp4", frames, fps=30)
    case = sysid.prepare(clip, parse_scene(DOUBLE), ["upper.length"])
    assert case.problem.names == ["upper.length", "lower.length"]
    fit = case.fit(start={"upper.length": 0.5, "lower.length": 0.33}, starts=1, progress=False)
    assert fit["upper.length"].value == pytest.approx(0.45, rel=0.01)
    assert fit["lower.length"].value == pytest.approx(0.35, rel=0.03)


def test_two_rods_are_two_numbers_of_one_parameter() -> None:
    stage = Stage(parse_scene(DOUBLE))
    found = {p.name: p for p in params(stage, ["upper.length", "lower.angle"])}
    into = found["upper.length"].into
    assert into is not None and np.allclose(into(np.array([0.4]), {"length": (0.5, 0.3)})["length"], [[0.4, 0.3]])
    assert np.allclose(stage.model["angle"], np.radians((34.4, -17.2))) and stage.observe().pivot == (0.2, 0.8, 0.0)
    with pytest.raises(KeyError, match=r"several objects have a length: say which, upper.length or lower.length"):
        params(stage, ["length"])
