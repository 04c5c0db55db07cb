"""Scene files that do not know where an object begins: found from the track, then with the pixels."""

from __future__ import annotations

from pathlib import Path

import filmed
import numpy as np
import pytest

from nablasim import sysid
from nablasim.sysid.scenes import BadScene, Stage, parse_scene, settled, watch

PER_METRE, AWAY = 150.0, 4.0
SIZE = (240, 200)
FOV = float(np.degrees(2 * np.arctan(SIZE[0] / 2 / PER_METRE / AWAY)))
PLACE, SPEED = (-0.4, -0.3), (0.6, 2.4)
SCENE = f"""
video: {{height: 40, duration: 0.5 s}}
camera: {{eye: [0, 0, {AWAY}], target: [0, 0, 0], fov: {FOV} deg}}
objects:
  ball: {{shape: {{sphere: 6 cm}}, mass: 0.1 kg, position: unknown, velocity: unknown, spin: unknown}}
parameters:
  gravity: {{range: [4, 20]}}
"""
FLAT = SCENE + "plane: 2d\n"
FAR = FLAT.replace(f"fov: {FOV} deg", f"scale: {SIZE[0] / 2 / PER_METRE} m")
"""As if from far away."""


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ball of 12 cm that is thrown up, in the plane z = 0, four metres away."""
    middle = [(n - 1) / 2 for n in SIZE]
    way = filmed.thrown(middle[1] + PER_METRE * PLACE[0], middle[0] - PER_METRE * PLACE[1], PER_METRE * SPEED[0],
                        -PER_METRE * SPEED[1], PER_METRE * 9.81)  # fmt: skip
    return filmed.Film(way, 34, size=SIZE, exposure=0.1).write(tmp_path_factory.mktemp("unknown") / "throw.mp4")


@pytest.mark.parametrize(("scene", "free"), [(SCENE, 3), (FLAT, 2), (FAR, 2)])
def test_the_track_says_where_it_begins(clip: Path, scene: str, free: int) -> None:
    script, found, notes = settled(parse_scene(scene), clip, None, sysid.look)
    ball = script.entries.objects["ball"]
    assert np.allclose(ball.position[:2], PLACE, atol=0.02) and np.allclose(ball.velocity[:2], SPEED, atol=0.08)
    assert abs(ball.position[2]) < (0.25 if free == 3 else 1e-9)
    assert [p.name for p in found] == ["ball.position_off", "ball.velocity_off"]
    assert all(np.shape(p.start) == (free,) for p in found)
    assert any("nobody sees the spin" in note for note in notes)


def test_a_radius_that_is_unknown_is_what_this_camera_sees(clip: Path) -> None:
    script, _, notes = settled(parse_scene(FAR.replace("sphere: 6 cm", "sphere: unknown")), clip, None, sysid.look)
    ball = script.entries.objects["ball"]
    assert ball.shape.sphere == pytest.approx(0.06, rel=0.05) and "as it is seen by this camera" in notes[0]
    with pytest.raises(BadScene, match="the radius is unknown, and pixels need it"):
        settled(parse_scene(SCENE.replace("sphere: 6 cm", "sphere: unknown")), clip, None, sysid.look)


def test_a_spin_that_can_be_seen_is_searched_for(clip: Path) -> None:
    block = FLAT.replace("{sphere: 6 cm}", "{box: [12 cm, 12 cm, 12 cm]}")
    _, found, _ = settled(parse_scene(block), clip, None, sysid.look)
    spin = found[-1]
    assert spin.name == "ball.spin" and spin.into is not None
    assert np.allclose(spin.into(np.array([2.0]))["ball.omega"], [0, 0, 2.0])


def test_what_the_track_cannot_tell_is_refused_before_any_fit(clip: Path) -> None:
    far = SCENE.replace(f"fov: {FOV} deg", "scale: 0.8 m")
    with pytest.raises(BadScene, match="does not tell how far away it is: write `plane: 2d`"):
        settled(parse_scene(far), clip, None, sysid.look)
    with pytest.raises(BadScene, match=r"line 5: objects.ball.*flies freely in 0 frames from the start on"):
        settled(parse_scene(SCENE.replace("duration: 0.5 s", "start: 10 s")), clip, None, sysid.look)
    two = FLAT.replace("parameters:", "  other: {shape: {sphere: 1 cm}, mass: 1 g, velocity: unknown}\nparameters:")
    with pytest.raises(BadScene, match="ball and other are unknown: give those of all but one"):
        parse_scene(two)


def test_masks_and_a_region_say_where_objects_are(clip: Path, tmp_path: Path) -> None:
    look = sysid.look(clip)
    look.write(tmp_path / "look")
    known = FLAT.replace("unknown", "[0, 0, 0]").replace("height: 40", "height: 60, masks: look/masks")
    seen = watch(Stage(parse_scene(known, folder=tmp_path)), clip).seen.frames
    first = look.masks[0]
    assert abs(seen[0].sum() * (SIZE[0] / 60) ** 2 / first.sum() - 1) < 0.05
    half = known.replace("masks:", "region: [0, 0, 200, 150], masks:")
    cut = watch(Stage(parse_scene(half, folder=tmp_path)), clip).seen.frames
    row = int(150 / SIZE[0] * 60)
    assert cut[:, row + 1 :].max() == 0 and np.allclose(cut[:, : row - 1], seen[:, : row - 1])
    with pytest.raises(BadScene, match="masks: there is no folder"):
        watch(Stage(parse_scene(known, folder=tmp_path / "none")), clip)


def test_a_slope_pushes_along_its_normal() -> None:
    text = SCENE.replace("unknown", "[0, 1, 0]") + "floor: {angle: 9 deg, height: 10 cm}\n"
    model = Stage(parse_scene(text)).model
    normal = np.array([np.sin(np.radians(9)), np.cos(np.radians(9)), 0])
    assert np.allclose(model["floor.normal"], normal)
    assert np.isclose(float(model["floor.offset"]), normal @ [0, 0.1, 0])
    with pytest.raises(BadScene, match="give angle or normal"):
        parse_scene(text.replace("angle: 9 deg", "angle: 9 deg, normal: [0, 1, 0]"))
