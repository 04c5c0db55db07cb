"""Quantities with units."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablasim.sysid.scenes.units import NAMED, parse_unit, to_number


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("0.5 m", "m", 0.5),
        ("50cm", "m", 0.5),
        (" -3.5e2 mm ", "m", -0.35),
        ("12 kg/m^3", "kg/m^3", 12),
        ("12 kg/m³", "kg/m^3", 12),
        ("12 kg m⁻³", "kg/m^3", 12),
        ("1.2 g/cm^3", "kg/m^3", 1200),
        ("30 fps", "Hz", 30),
        ("1/960 s", "s", 1 / 960),
        ("4 ms", "s", 0.004),
        ("10 N s/m", "N s/m", 10),
        ("10 N*s/m", "kg/s", 10),
        ("3 N/mm", "N/m", 3000),
        ("90 deg", "rad", math.pi / 2),
        ("90°", "rad", math.pi / 2),
        ("45 deg", "deg", 45),
        ("9.81 m/s^2", "m/s^2", 9.81),
        ("9.81 m/s**2", "m/s^2", 9.81),
        ("2 1/s", "Hz", 2),
        ("20 kPa", "Pa", 2e4),
        ("6 kg/m s", "Pa s", 6),
        ("40 %", "", 0.4),
        (7, "m", 7.0),
        ("7", "m", 7.0),
    ],
)
def test_quantities_are_numbers_of_the_unit_that_is_wanted(text, unit, value):
    assert to_number(text, unit) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("5 meters", "m", "did you mean 'm'"),
        ("5 KG", "kg", "did you mean 'kg'"),
        ("5 kgs", "kg", "did you mean 'kg'"),
        ("5 Mpa", "Pa", "did you mean 'MPa'"),
        ("5 fpz", "Hz", "did you mean 'fps'"),
        ("5 kg", "m", "of another kind: expected a quantity in m"),
        ("5 m", "", "expected a plain number"),
        ("fast", "m/s", "such as '0.5 m/s'"),
        ("1/0 s", "s", "divides by zero"),
        ("5 m^x", "m", "is not a unit"),
        (True, "m", "is not a quantity"),
        (None, "m", "is not a quantity"),
    ],
)
def test_what_is_not_one_is_refused_with_what_was_meant(text, unit, says):
    with pytest.raises(ValueError, match=says.replace("^", r"\^")):
        to_number(text, unit)


@given(st.sampled_from(sorted(NAMED)), st.sampled_from(sorted(NAMED)), st.integers(1, 3), st.floats(0.01, 100))
def test_a_quotient_times_its_divisor_is_the_dividend(a, b, n, value):
    quotient = parse_unit(f"{a}/{b}^{n}") * parse_unit(b) ** n
    assert quotient.powers == parse_unit(a).powers and quotient.factor == pytest.approx(parse_unit(a).factor)
    assert to_number(f"{value!r} {a}/{b}", f"{a}/{b}") == pytest.approx(value)
