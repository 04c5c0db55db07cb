"""Looking at clips: the thing that moves freely is found, its release and impacts, and the hand is not."""

from __future__ import annotations

import csv
from pathlib import Path

import filmed
import numpy as np
import pytest
from typer.testing import CliRunner

from nablasim import render, sysid
from nablasim.sysid.cli import app
from nablasim.sysid.look import CannotLook


def off(look: sysid.Look, film: filmed.Film) -> np.ndarray:
    """Pixels between the track and the truth."""
    truth = film.places()[look.track.frame]
    return np.hypot(look.track.x - truth[:, 0], look.track.y - truth[:, 1])


@pytest.fixture(scope="module")
def drop(tmp_path_factory: pytest.TempPathFactory) -> tuple[filmed.Film, sysid.Look]:
    """A ball that a hand lets go at frame 18; the hand stays, then leaves."""
    let_go = 18 / 60

    def hand(t: float) -> tuple[float, float]:
        after = max(0.0, t - let_go)
        return 78.0 - 60 * min(after, 0.5), 52.0 + 20 * np.sin(6 * t) * (after > 0)

    film = filmed.Film(filmed.dropped(let_go), 46, arm=hand, shadow=(30, 6), noise=0.012)
    return film, sysid.look(film.write(tmp_path_factory.mktemp("drop") / "drop.mp4"))


def test_the_ball_is_picked_and_never_the_hand(drop: tuple[filmed.Film, sysid.Look]) -> None:
    film, look = drop
    assert (off(look, film) < 3).all()
    free = [k for k in range(19, film.frames) if film.places()[k][1] < film.size[0] - 12]
    assert np.isin(free, look.track.frame).mean() >= 0.95


def test_the_release_is_the_frame_in_which_it_is_let_go(drop: tuple[filmed.Film, sysid.Look]) -> None:
    assert abs(drop[1].release - 18) <= 2 and drop[1].impacts == ()


def test_impacts_are_found_to_a_fraction_of_a_frame(tmp_path) -> None:
    way, hits = filmed.bouncing(30, 40, 40, 200, 2400, 0.75)
    film = filmed.Film(way, 110, shadow=(0, 12))
    look = sysid.look(film.write(tmp_path / "bounce.mp4"))
    seen = [t for t in hits if t < 100 / 60][:3]
    assert len(look.contacts) >= 3
    assert np.abs(np.subtract(look.contacts[:3], seen)).max() < 0.35 / 60
    assert look.impacts[:3] == tuple(round(60 * t) for t in look.contacts[:3])
    assert np.median(off(look, film)) < 1.0 and look.kind == "bounce"


def test_flicker_and_a_camera_that_shakes_are_taken_out_and_said(tmp_path) -> None:
    film = filmed.Film(filmed.thrown(30, 200, 90, -420, 600), 70, flicker=0.1, shake=4.0)
    look = sysid.look(film.write(tmp_path / "throw.mp4"))
    assert (off(look, film) < 2.5).mean() > 0.95
    said = " ".join(look.warnings)
    assert "the camera moves" in said and "the light changes" in said
    # As a camera that stands sees it, the way is a parabola.
    t = np.asarray(look.track.time)
    for c in range(2):
        left = look.steady[:, c] - np.polyval(np.polyfit(t, look.steady[:, c], 2), t)
        assert np.std(left) < 0.6


def test_a_swing_is_told_from_a_flight(tmp_path) -> None:
    def angle(t: float) -> float:
        return 0.4 * np.cos(2 * np.pi * 1.1 * t)

    film = filmed.Film(lambda t: (100 + 120 * np.sin(angle(t)), 40 + 120 * np.cos(angle(t))), 110)
    look = sysid.look(film.write(tmp_path / "swing.mp4"))
    assert look.swings and look.kind == "swing" and look.impacts == ()
    assert np.median(off(look, film)) < 1.0


def test_what_rests_at_the_end_does_not_hide_the_background(tmp_path) -> None:
    def way(t: float) -> tuple[float, float]:
        s = min(t, 0.6)
        return 20 + 260 * s - 0.5 * 433 * s**2, 150.0

    film = filmed.Film(way, 120, box=(14, 10), shadow=(3, 8))
    look = sysid.look(film.write(tmp_path / "slide.mp4"))
    moving = np.asarray(look.track.frame) < 36
    assert moving.sum() >= 30 and np.median(off(look, film)[moving]) < 1.5
    assert look.kind == "slide"


def test_object_and_region_choose_between_two(tmp_path) -> None:
    one, other = filmed.thrown(30, 190, 20, -420, 600), filmed.thrown(160, 190, 5, -380, 600)
    a, b = (filmed.Film(w, 60, seed=k) for k, w in enumerate((one, other)))
    frames = []
    for k in range(60):
        pa, pb = a.picture(k / 60), b.picture(k / 60)
        frames.append(np.where(np.abs(pb - b.picture(99.0)) > 0.02, pb, pa) ** (1 / 2.2))
    file = render.write_video(tmp_path / "two.mp4", np.array(frames), fps=60)
    left = sysid.look(file, object=(31, 170))
    right = sysid.look(file, region=(120, 0, 80, 240))
    assert np.median(off(left, a)) < 1 and np.median(off(right, b)) < 1
    assert any("something else moves freely too" in w for w in sysid.look(file).warnings)


def test_slow_motion_is_told_by_fps(tmp_path) -> None:
    film = filmed.Film(filmed.thrown(30, 200, 90, -420, 600), 60)
    look = sysid.look(film.write(tmp_path / "throw.mp4"), fps=240)
    assert look.told and np.allclose(np.diff(look.times), 1 / 240)


def test_masks_are_soft_and_sum_to_the_area(drop: tuple[filmed.Film, sysid.Look]) -> None:
    film, look = drop
    assert look.masks.shape == (film.frames, *film.size) and look.masks.noise > 0
    middle = int(look.track.frame[len(look.track) // 2])
    mask = look.masks[middle]
    assert mask.shape == film.size and 0 < mask.max() <= 1
    assert abs(mask.sum() / (np.pi * 9**2) - 1) < 0.25
    assert look.masks[0].sum() == 0


def test_a_clip_without_motion_says_so(tmp_path) -> None:
    film = filmed.Film(lambda t: (90.0, 90.0), 12)
    with pytest.raises(CannotLook, match="nothing"):
        sysid.look(film.write(tmp_path / "still.mp4"))


def test_a_region_outside_of_the_picture_says_what_a_region_is(drop: tuple[filmed.Film, sysid.Look]) -> None:
    with pytest.raises(CannotLook, match=r"200 × 240.*x,y,width,height"):
        sysid.look(drop[1].path, region=(500, 0, 10, 10))


def test_the_command_prints_and_writes(drop: tuple[filmed.Film, sysid.Look], tmp_path) -> None:
    _, look = drop
    ran = CliRunner().invoke(app, ["look", str(look.path), "--out", str(tmp_path / "look")])
    assert ran.exit_code == 0, ran.output
    assert f"release: frame {look.release}" in ran.output and "impacts: none" in ran.output
    page = (tmp_path / "look/index.html").read_text()
    assert "<script" not in page and page.count("data:image/jpeg") > 5 and "http" not in page.split("</style>")[1]
    with (tmp_path / "look/track.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["frame", "time", "x", "y", "width", "height"] and len(rows) == len(look.track)
    assert len(list((tmp_path / "look/masks").glob("*.png"))) == 46


def test_a_wrong_place_is_refused_with_an_example() -> None:
    ran = CliRunner().invoke(app, ["look", "x.mp4", "--object", "12"])
    assert ran.exit_code == 2 and "--object is x,y" in ran.output


def test_the_draft_is_a_scene_that_can_be_read(drop: tuple[filmed.Film, sysid.Look]) -> None:
    from nablasim.sysid.look.draft import KINDS
    from nablasim.sysid.scenes import parse_scene

    _, look = drop
    for kind in KINDS:
        entries = parse_scene(look.draft(kind)).entries
        assert entries.video.start == pytest.approx(look.track.time[0], abs=1e-5)
        assert next(iter(entries.objects)) == {"slide": "block", "swing": "bob"}.get(kind, "ball")
        assert (entries.floor is None) == (kind in ("throw", "swing"))
    with pytest.raises(ValueError, match="did you mean 'bounce'"):
        look.draft("bounse")


def test_a_draft_certifies_nothing_that_is_a_guess(drop: tuple[filmed.Film, sysid.Look], tmp_path) -> None:
    """Gravity is the ruler of a throw, and cannot be asked for; a guessed width makes the interval of friction wide."""
    from nablasim.sysid.scenes import BadScene, parse_scene
    from nablasim.sysid.tracks import story_of

    _, look = drop
    with pytest.raises(BadScene, match="gravity in m/s² needs a length"):
        story_of(parse_scene(look.draft("throw")), ["gravity"])
    slide = story_of(parse_scene(look.draft("slide")), ["friction"])
    roll = story_of(parse_scene(look.draft("roll")), ["diameter"])
    assert slide is not None and slide.known.diameter_unsure > 0.3
    assert roll is not None and roll.known.angle_unsure > np.radians(5)


@pytest.mark.slow
def test_the_draft_runs_as_it_is(tmp_path) -> None:
    way, _ = filmed.bouncing(30, 40, 60, 200, 1400, 0.75)
    file = filmed.Film(way, 50).write(tmp_path / "bounce.mp4")
    runner = CliRunner()
    assert runner.invoke(app, ["look", str(file), "--out", str(tmp_path / "look")]).exit_code == 0
    scene, masks = str(tmp_path / "look/scene.yaml"), str(tmp_path / "look/masks")
    for source in (str(file), masks):
        options = ["--estimate", "restitution", "--report", str(tmp_path / Path(source).stem)]
        ran = runner.invoke(app, ["identify", source, "--scene", scene, *options])
        assert ran.exit_code == 0, ran.output
        assert "floor.restitution = 0.7" in ran.output
    # What the track does not tell alone is searched for by the pixels, from what the track says.
    case = sysid.prepare(masks, scene, ["ball.velocity"])
    assert case.problem.names[:3] == ["ball.velocity.x", "ball.velocity.y", "ball.velocity.z"]
    assert case.problem.names[3:] == ["ball.position_off[0]", "ball.position_off[1]"]
    assert case.problem.space.first() is not None and "by its track, ball begins at" in case.warnings[2]
