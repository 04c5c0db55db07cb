"""From a clip to a number without a scene file: intervals hold the truth, and what cannot be told is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import filmed
import numpy as np
import pytest
from typer.testing import CliRunner

from nablasim import render, sysid
from nablasim.sysid.cli import app
from nablasim.sysid.tracks import Answer, CannotTell, Known, ask
from nablasim.sysid.tracks.flight import silhouette
from nablasim.sysid.tracks.least_squares import fit

PER_METRE = 150.0
"""Pixels, in clips drawn from far away: a ball of 18 pixels is 12 cm."""


@pytest.fixture(scope="module")
def bounce(tmp_path_factory: pytest.TempPathFactory) -> sysid.Look:
    way, _ = filmed.bouncing(30, 40, 40, 200, 9.81 * PER_METRE, 0.7)
    return sysid.look(filmed.Film(way, 100).write(tmp_path_factory.mktemp("bounce") / "bounce.mp4"), fps=60)


@pytest.fixture(scope="module")
def swing(tmp_path_factory: pytest.TempPathFactory) -> sysid.Look:
    """0.8 m long, 50 degrees wide: its period is 5 % longer than that of small swings."""
    square, h = 9.81 / 0.8, 1 / 6000
    angles, phi, rate = [], np.radians(50), 0.0
    for _ in range(13000):
        angles.append(phi)
        rate -= h * square * np.sin(phi)
        phi += h * rate

    def way(t: float) -> tuple[float, float]:
        a = angles[max(0, min(round(t / h), len(angles) - 1))]
        return 100 + 120 * np.sin(a), 60 + 120 * np.cos(a)

    return sysid.look(filmed.Film(way, 125, radius=7).write(tmp_path_factory.mktemp("swing") / "swing.mp4"), fps=60)


def one(look: sysid.Look, kind: str, name: str, **known: object) -> Answer:
    return ask(look, kind, [name], Known(**known)).answers[0]


def test_restitution_needs_no_ruler(bounce: sysid.Look) -> None:
    found = one(bounce, "bounce", "restitution")
    assert found.name == "floor.restitution" and found.certified and found.low < 0.7 < found.high
    assert found.high - found.low < 0.1


def test_gravity_by_the_diameter_and_by_a_line(bounce: sysid.Look) -> None:
    by_ball = one(bounce, "bounce", "gravity", diameter=18 / PER_METRE)
    by_line = one(bounce, "bounce", "gravity", length=(10, 10, 10, 10 + PER_METRE, 1.0))
    for found in (by_ball, by_line):
        assert found.certified and found.low < 9.81 < found.high and found.high - found.low < 2


def test_gravity_as_the_ruler_gives_the_diameter(bounce: sysid.Look) -> None:
    found = one(bounce, "bounce", "ball.diameter")
    assert found.certified and found.low < 18 / PER_METRE < found.high


@pytest.mark.parametrize("known", [{"diameter": 0.2}, {"diameter": 0.06}, {"length": (10, 10, 10, 90, 1.0)}])
def test_a_wrong_ruler_is_not_certified(bounce: sysid.Look, known: dict[str, object]) -> None:
    found = one(bounce, "bounce", "gravity", **known)
    assert not found.certified and "the frame rate or the ruler is probably wrong" in str(found)


def test_a_wrong_frame_rate_is_not_certified_and_leaves_restitution(bounce: sysid.Look) -> None:
    wrong = sysid.look(bounce.path, fps=30)
    assert not one(wrong, "bounce", "gravity", diameter=18 / PER_METRE).certified
    # Gravity is the ruler, and says nothing of time: but no camera takes fewer frames than its file has.
    assert "slow motion has at least 1.5 times as many" in str(one(wrong, "bounce", "diameter"))
    assert not one(sysid.look(bounce.path, fps=75), "bounce", "diameter").certified
    right = one(wrong, "bounce", "restitution")
    assert right.low < 0.7 < right.high


def test_what_gravity_alone_tells_needs_two_words_for_the_frame_rate(bounce: sysid.Look, tmp_path: Path) -> None:
    """The user's and the file's: what the file alone says holds for what would be nothing of this world otherwise."""
    silent, slow = sysid.look(bounce.path), sysid.look(bounce.path, fps=120)
    alone, wrong = one(silent, "bounce", "diameter"), one(slow, "bounce", "diameter")
    assert alone.certified and alone.low < 18 / PER_METRE < alone.high
    assert any("it is no slow motion, in which it would be 0.007" in said for said in alone.assumed)
    assert not wrong.certified and "with 120 frames per second, where the file says 60" in str(wrong)
    # A ball of 1.9 m may be one of 12 cm in a file that shows 240 frames per second as 60.
    way = filmed.thrown(40, 200, 15, -97.5, 9.81 * PER_METRE / 16)
    huge = one(sysid.look(filmed.Film(way, 128).write(tmp_path / "throw.mp4")), "throw", "diameter")
    assert not huge.certified and huge.low < 16 * 18 / PER_METRE < huge.high
    assert "if throw.mp4 was filmed with 60 frames per second, as only the file says" in str(huge)
    assert "say so: --fps 60, or give a length in the picture" in str(huge)
    # A ruler beside gravity shows what is wrong, and what is right.
    line = (10, 10, 10, 10 + PER_METRE, 1.0)
    assert one(silent, "bounce", "diameter", length=line).certified
    assert "the frame rate, the length or gravity is wrong" in str(one(slow, "bounce", "diameter", length=line))
    assert one(silent, "bounce", "gravity", diameter=18 / PER_METRE).certified
    assert one(silent, "bounce", "restitution").certified


def test_a_phone_s_note_is_a_second_word(bounce: sysid.Look, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = render.video_times(bounce.path)
    noted = replace(render.video_times(bounce.path, fps=240), captured=240.0)
    monkeypatch.setattr(render, "video_times", lambda path, fps=None: noted if fps == 240 else clock)
    assert sysid.look(bounce.path, fps=240).vouched and not sysid.look(bounce.path).vouched
    # Whoever shows the file as it is, against its note, has nobody's word.
    monkeypatch.setattr(render, "video_times", lambda path, fps=None: replace(clock, captured=240.0))
    assert not one(sysid.look(bounce.path), "bounce", "diameter").certified


def test_pictures_in_a_folder_have_the_user_s_word_only(tmp_path: Path) -> None:
    film = filmed.Film(filmed.thrown(40, 200, 60, -390, 9.81 * PER_METRE), 32)
    for k in range(film.frames):
        render.write_image(tmp_path / f"{k:03d}.png", np.clip(film.picture(k / 60) ** (1 / 2.2), 0, 1))
    assert one(sysid.look(tmp_path, fps=60), "throw", "diameter").certified
    assert not one(sysid.look(tmp_path), "throw", "diameter").certified


def test_what_nothing_tells_has_no_small_deviation() -> None:
    """A slope, an offset, and a number that the model ignores or can barely see."""
    t = np.linspace(0, 1, 30)
    for seen in (0.0, 1e-12):

        def model(u: np.ndarray, seen: float = seen) -> np.ndarray:
            return np.asarray(u[:, :1] + u[:, 1:2] * t + seen * u[:, 2:3] * t**2)

        observed = 1 + 2 * t + 0.01 * np.random.default_rng(0).normal(size=30)
        free = np.full(3, np.inf)
        found = fit(model, observed, np.zeros(30, np.int64), np.zeros(3), np.zeros(3), free, (0.01,))
        assert found.std(0) < 0.02 and found.std(1) < 0.03 and found.std(2) > 1e4


@pytest.mark.parametrize("center", [(2.0, -1.5, 3.0), (0.1, 0.2, 4.0), (-3.0, 0.0, 4.0)])
def test_a_ball_is_seen_as_the_ellipse_that_its_rays_touch(center: tuple[float, float, float]) -> None:
    """Against rays that touch a ball of diameter 1: away from the middle its picture is longer, and shifted."""
    away = float(np.linalg.norm(center))
    axis, half = np.array(center) / away, np.arcsin(0.5 / away)
    one_side = np.cross(axis, [0, 1, 0.3])
    one_side /= np.linalg.norm(one_side)
    turn = np.linspace(0, 2 * np.pi, 4000)[:, None]
    ring = np.cos(turn) * one_side + np.sin(turn) * np.cross(axis, one_side)
    rays = np.cos(half) * axis + np.sin(half) * ring
    seen = rays[:, :2] / rays[:, 2:]
    for angle in (0.0, 0.4, 1.3):
        aside = np.array([[np.cos(angle), np.sin(angle)]])
        x, y, size = (v[0, 0] for v in silhouette(np.array([[center]]), aside))
        assert np.allclose([x, y], (seen.max(axis=0) + seen.min(axis=0)) / 2, atol=1e-5)
        assert size == pytest.approx(np.ptp(seen @ aside[0]), rel=1e-5)


def test_what_is_not_round_is_no_ball(tmp_path: Path) -> None:
    way = filmed.thrown(40, 200, 0.4 * PER_METRE, -2.6 * PER_METRE, 9.81 * PER_METRE)
    ball, box = (sysid.look(filmed.Film(way, 32, **shape).write(tmp_path / f"{len(shape)}.mp4"), fps=60)
                 for shape in ({}, {"box": (13.0, 8.0)}))  # fmt: skip
    assert one(ball, "throw", "diameter").certified and one(ball, "throw", "gravity", diameter=0.12).certified
    for name, known in (("diameter", {}), ("gravity", {"diameter": 0.12})):
        assert "it is no ball" in str(one(box, "throw", name, **known))


def test_the_length_of_a_pendulum_that_swings_wide(swing: sysid.Look) -> None:
    found = one(swing, "swing", "bob.length")
    assert found.certified and found.low < 0.8 < found.high and found.high - found.low < 0.06


def test_gravity_of_a_swing_by_a_line_from_the_pivot_to_the_bob(swing: sysid.Look) -> None:
    found = one(swing, "swing", "gravity", length=(100, 60, 100, 180, 0.8))
    assert found.certified and found.low < 9.81 < found.high
    assert not one(swing, "swing", "gravity", length=(100, 60, 100, 180, 1.2)).certified


def test_a_string_that_swings_with_its_bob_tells_no_gravity(swing: sysid.Look) -> None:
    """Masks that reach to the pivot: the period is right, and the circle of their middle is not the bob's."""
    string = replace(swing, masks=[np.zeros(swing.size, np.float32) for _ in swing.times])
    for k, (x, y) in zip(string.track.frame, swing.steady):
        for part in np.linspace(0, 1, 160):
            row, column = round(60 + part * (y - 60)), round(100 + part * (x - 100))
            string.masks[int(k)][row - 1 : row + 2, column - 1 : column + 2] = 1
    known = {"length": (100, 60, 100, 180, 0.8)}
    assert "the string was followed with the bob" in str(one(string, "swing", "gravity", **known))
    assert one(string, "swing", "bob.length").certified


def test_friction_of_a_block_that_slides_to_rest(tmp_path: Path) -> None:
    pull = 0.3 * 9.81 * PER_METRE

    def way(t: float) -> tuple[float, float]:
        s = min(t, 280 / pull)
        return 20 + 280 * s - 0.5 * pull * s**2, 150.0

    look = sysid.look(filmed.Film(way, 80, box=(14, 10)).write(tmp_path / "slide.mp4"), fps=60)
    found = one(look, "slide", "friction", diameter=28 / PER_METRE)
    assert found.certified and found.low < 0.3 < found.high and found.high - found.low < 0.1


def test_gravity_of_a_ball_that_rolls_down_a_slope(tmp_path: Path) -> None:
    slope = np.radians(12)
    pull = 5 / 7 * 9.81 * np.sin(slope) * PER_METRE
    way = lambda t: (20 + 0.5 * pull * t**2 * np.cos(slope), 60 + 0.5 * pull * t**2 * np.sin(slope))  # noqa: E731
    look = sysid.look(filmed.Film(way, 62).write(tmp_path / "roll.mp4"))
    found = one(look, "roll", "gravity", diameter=18 / PER_METRE, angle=slope)
    assert found.certified and found.low < 9.81 < found.high


@pytest.mark.parametrize(
    ("kind", "name", "help"),
    [
        ("throw", "gravity", "give the ball's diameter .*or a length in the picture"),
        ("slide", "floor.friction", "give the block's width"),
        ("roll", "ball.diameter", "give --angle"),
        ("swing", "gravity", "from the pivot to the bob"),
        ("throw", "ball.mass", "heavy and light things move alike"),
        ("throw", "floor.restitution", "--as bounce does"),
        ("hop", "gravity", "unknown motion 'hop'"),
    ],
)
def test_what_a_clip_cannot_tell_is_refused_before_it_is_looked_at(kind: str, name: str, help: str) -> None:
    with pytest.raises(CannotTell, match=help):
        ask(None, kind, [name], Known())  # type: ignore[arg-type]


def test_the_command_answers_without_a_scene_file(bounce: sysid.Look, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["identify", str(bounce.path), "--as", "bounce", "--diameter", "12 cm", "--estimate",
                                   "gravity,floor.restitution", "--report", str(tmp_path)])  # fmt: skip
    assert ran.exit_code == 0, ran.output
    assert "gravity = " in ran.output and "90% in [" in ran.output and "from the track" in ran.output
    page = (tmp_path / "report.html").read_text()
    assert "<script" not in page and "floor.restitution" in page and "assumed" in page


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--as throw, bounce, slide, roll or swing"),
        (["--as", "bounce"], "give the ball's diameter"),
        (["--as", "bounce", "--diameter", "4 kg"], "kg"),
        (["--as", "bounce", "--length", "1,2,3"], "--length is x,y,x,y,length"),
        (["--scene", "s.yaml", "--diameter", "4 cm"], "belong to --as"),
    ],
)
def test_the_command_says_what_is_missing(options: list[str], said: str, tmp_path: Path) -> None:
    ran = CliRunner().invoke(
        app, ["identify", "none.mp4", "--estimate", "gravity", "--report", str(tmp_path), *options]
    )
    assert ran.exit_code == 2 and said in ran.output
