"""Clips of MuJoCo and PyBullet: what is true of them, how answers are judged, and that some of them are answered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nablasim.sysid.experiments.foreign import FOREIGN, Shot, Told, engines, pictures
from nablasim.sysid.experiments.foreign.worlds import KINDS, TWISTS, drawn
from nablasim.sysid.experiments.reproduce import run_item

pytest.importorskip("mujoco")
pytest.importorskip("pybullet")


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_engines_agree_with_what_is_known(engine: str) -> None:
    rng = np.random.default_rng(0)
    thrown = drawn("throw", rng)
    states = engines.simulate(engine, replace(thrown, seconds=0.5))
    ball, t = thrown.bodies[0], states.times[-1]
    fallen = np.array(ball.place) + t * np.array(ball.velocity) - [0, 0, 0.5 * 9.81 * t**2]
    assert np.allclose(states.places[-1, 0], fallen, atol=3e-3)
    sliding = replace(drawn("slide", rng), seconds=0.4)
    assert engines.friction(engines.simulate(engine, sliding), sliding) == pytest.approx(sliding.friction, rel=0.05)
    swing = drawn("pendulum", rng)
    assert swing.string is not None
    small = replace(swing, string=replace(swing.string, angle=0.05), seconds=0.6)
    x = engines.simulate(engine, small).places[:, 0, 0]
    at = small.string.length * np.sin(0.05) * np.cos(np.sqrt(9.81 / small.string.length) * 0.6)  # type: ignore[union-attr]
    assert abs(x[-1] - np.sign(x[0]) * at) < 0.03 * np.abs(x).max()


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_a_bounce_is_measured_as_its_heights_say(engine: str) -> None:
    """What an engine is told is not what it does: speeds and heights of the same bounce must agree."""
    world = drawn("bounce", np.random.default_rng(1))
    states = engines.simulate(engine, world)
    above = states.places[:, 0, 2] - world.bodies[0].size[2]
    hit = int(np.argmax(above < 1e-3))
    rebound = above[hit:][: int(np.argmax(np.diff(np.sign(states.speeds[hit + 200 :, 0, 2])) < 0)) + 400].max()
    assert engines.restitution(states) == pytest.approx(np.sqrt(rebound / above[0]), abs=0.02)


def test_the_camera_holds_all_of_the_motion() -> None:
    rng = np.random.default_rng(2)
    for kind in KINDS:
        world = drawn(kind, rng)
        states = engines.simulate("pybullet", world)
        camera = pictures.camera_of(pictures.shooting(rng), world, states, 200)
        seen = camera.see(states.places[:, 0])[:, :2]
        assert (seen > 0).all() and (seen < np.array(camera.size[::-1])).all(), kind


def told(**more: object) -> Told:
    return Told(
        **{
            "clip": "throw",
            "engine": "mujoco",
            "drawn": "MuJoCo",
            "name": "ball.diameter",
            "truth": 1.0,
            "value": 1.0,
            "low": 0.9,
            "high": 1.1,
            **more,
        }
    )  # type: ignore[arg-type]


def test_intervals_are_judged_in_widths_and_gravity_cannot_hide() -> None:
    assert told().holds and told().off == 0 and told().counts
    assert told(low=1.2, high=1.4).off == pytest.approx(1.0)
    hidden = told(name="gravity", low=1.2, high=1.4, why="this is not 9.81 m/s² (the Earth's): ...")
    assert hidden.counts and not hidden.certified and not told(why="this is no free flight").counts
    goals = {g.what: g for g in FOREIGN.chapter("ci", [], [(told(), hidden)]).goals}
    assert goals["questions without an answer, share"].measured == 0.5
    assert goals["intervals that miss, share"].measured == 0.5
    twisted = told(twist="much drag", low=1.2, high=1.4)
    goals = {g.what: g for g in FOREIGN.chapter("ci", [], [(told(), twisted)]).goals}
    assert not goals["wrong on purpose, certified and missed"].reached


def test_sizes_have_the_counts_that_are_asked_for() -> None:
    desk = FOREIGN.items("desk")
    straight = [shot for shot in desk if not shot.twist]
    assert len(straight) >= 40 and len({shot.kind for shot in straight}) >= 8
    assert {shot.twist for shot in desk if shot.twist} == set(TWISTS)
    assert len(FOREIGN.items("ci")) < 6


@pytest.mark.parametrize(("kind", "engine"), [("slide", "pybullet"), ("pendulum", "pybullet")])
def test_a_clip_of_another_engine_is_answered(kind: str, engine: str, tmp_path: Path) -> None:
    """A block in perspective, of which one end is seen more and more; a bob on a string that is seen."""
    for answer in run_item(Shot(kind, engine, 1, rows=224)):
        assert answer.holds or answer.off < 0.5, answer
        assert abs(answer.value / answer.truth - 1) < 0.15


@pytest.mark.nightly
def test_coverage_on_foreign_clips() -> None:
    results = [run_item(shot) for shot in FOREIGN.items("desk")]
    chapter = FOREIGN.chapter("desk", FOREIGN.items("desk"), results)
    assert all(goal.reached for goal in chapter.goals), str(chapter)
