"""Scene files that are hostile or broken are refused at once, with the file and the line."""

import pytest
from thrown import SCENE

from nablasim.sysid.scenes import BadScene, parse_scene
from nablasim.sysid.scenes.units import to_number


def laughs(deep: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, deep)]
    return "\n".join(lines)


HOSTILE = {
    "nine laughs": (laughs(9), r"line \d+: this makes more than 20,000 entries"),
    "an entry in itself": ("camera: &a\n  eye: *a\n", r"line 2: \*a stands inside of &a: an entry cannot"),
    "a list in itself": ("camera: &a [*a]\n", r"line 1: \*a stands inside"),
    "five thousand brackets": ("camera:\n  " + "[" * 5000, "line 2: more than 40 lists or entries"),
    "brackets that close": ("camera: " + "[" * 5000 + "]" * 5000, "line 1: more than 40 lists or entries"),
    "a long number": (SCENE.replace("0.35", "9" * 5000), "line 22: '9+…' cannot be read as int: Exceeds the limit"),
    "a number without an end": (SCENE.replace("0.35", "9" * 400), "line 22: floor.friction: .*is not a finite number"),
    "a large exponent": (SCENE.replace("0.35", "1e400000"), "line 22: floor.friction: '1e400000' is not a finite"),
    "an exponent of YAML": (SCENE.replace("0.35", "1.0e+400000"), "line 22: floor.friction: inf is not a finite"),
    "not a number": (SCENE.replace("0.35", ".nan"), "line 22: floor.friction: nan is not a finite"),
    "an octal number": (SCENE.replace("0.35", "010"), "line 22: '010' may mean several numbers"),
    "minutes and seconds": (SCENE.replace("0.35", "1:30"), "line 22: '1:30' may mean several numbers"),
    "a real of minutes": (SCENE.replace("0.35", "1:30.5"), "line 22: '1:30.5' may mean several numbers"),
    "an underscore": (SCENE.replace("0.35", "1_5"), "line 22: '1_5' may mean several numbers"),
    "a hexadecimal": (SCENE.replace("0.35", "0x10"), "line 22: '0x10' may mean several numbers"),
    "gravity that pushes": (SCENE + "gravity: -9.81\n", r"line \d+: gravity: .*downwards"),
    "a large power": (SCENE.replace("5 kg/m^3", "5 kg/km^99999"), "line 12: .*is not a unit"),
    "a power that overflows": (SCENE.replace("5 kg/m^3", "5 kg/mm^99 GPa^99"), "line 12: objects.block.density: "),
    "a height without an end": (SCENE.replace("height: 40", "height: " + "9" * 4000), "line 4: video.height: "),
    "a day that is none": (SCENE.replace("0.35", "2001-99-99"), "line 22: '2001-99-99' cannot be read as timestamp"),
    "a tag that lies": (SCENE.replace("0.35", "!!int many"), "line 22: 'many' cannot be read as int"),
    "a character that is none": ("camera: \x00", "this is not YAML"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_goes_too_far_is_refused_with_its_line(name):
    text, says = HOSTILE[name]
    with pytest.raises(BadScene, match=f"^scene.yaml(, |: ){says}") as refused:
        parse_scene(text, name="scene.yaml")
    assert len(str(refused.value)) < 300


def test_aliases_for_what_is_said_twice_stay():
    twice = SCENE.replace("spin: [0.5, -1.0, 0.8]", "spin: &s [0.5, -1.0, 0.8]")
    twice = twice.replace("velocity: [1.2, 0.2, -0.3]", "")
    twice = twice.replace("    pushes:", "    velocity: *s\n    pushes:")
    assert parse_scene(twice).entries.objects["block"].velocity == (0.5, -1.0, 0.8)


def test_numbers_are_what_they_look_like():
    for written, means in (("0.5", 0.5), ("0", 0.0), ("+1.5", 1.5), ("5e-1", 0.5), ("'0.5'", 0.5)):
        assert parse_scene(SCENE.replace("0.35", written)).entries.floor.friction == means


def test_quantities_are_finite():
    for given in ("1e999 m", "1/1e-320 m", float("inf"), 10**400):
        with pytest.raises(ValueError, match="is not a finite number"):
            to_number(given, "m")
