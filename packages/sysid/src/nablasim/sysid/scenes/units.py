"""Quantities with units, such as "12 kg/m^3" or "1/960 s": from text to a number of SI units.

A unit is a product of named ones with powers: `kg/m^3`, `kg m⁻³`, `N*s/m`, `N s/m`. What stands after a slash divides,
up to the next product sign or slash; a blank is a product sign that belongs to what stands before it ("kg/m s" is
kg/(m s), as people write). Each name is a factor and the powers of metre, kilogram, second and radian.
"""

from __future__ import annotations

import math
import re
import reprlib
from dataclasses import dataclass

from nablasim.sysid.names import nearest


@dataclass(frozen=True)
class Unit:
    """How many SI units it is, and the powers of m, kg, s and rad."""

    factor: float
    powers: tuple[int, int, int, int]

    def __mul__(self, other: Unit) -> Unit:
        a, b = self.powers, other.powers
        return Unit(self.factor * other.factor, (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]))

    def __pow__(self, n: int) -> Unit:
        m, kg, s, rad = self.powers
        return Unit(self.factor**n, (m * n, kg * n, s * n, rad * n))


_M, _KG, _S, _RAD = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)
_N, _PA, _HZ = (1, 1, -2, 0), (-1, 1, -2, 0), (0, 0, -1, 0)
NAMED = {
    "m": Unit(1.0, _M), "km": Unit(1e3, _M), "dm": Unit(0.1, _M), "cm": Unit(1e-2, _M), "mm": Unit(1e-3, _M),
    "in": Unit(0.0254, _M), "ft": Unit(0.3048, _M),
    "kg": Unit(1.0, _KG), "g": Unit(1e-3, _KG), "mg": Unit(1e-6, _KG), "t": Unit(1e3, _KG), "lb": Unit(0.45359237, _KG),
    "s": Unit(1.0, _S), "ms": Unit(1e-3, _S), "us": Unit(1e-6, _S), "min": Unit(60.0, _S),
    "N": Unit(1.0, _N), "mN": Unit(1e-3, _N), "kN": Unit(1e3, _N),
    "Pa": Unit(1.0, _PA), "kPa": Unit(1e3, _PA), "MPa": Unit(1e6, _PA), "GPa": Unit(1e9, _PA),
    "rad": Unit(1.0, _RAD), "deg": Unit(math.pi / 180, _RAD), "turn": Unit(2 * math.pi, _RAD),
    "Hz": Unit(1.0, _HZ), "fps": Unit(1.0, _HZ), "px": Unit(1.0, (0, 0, 0, 0)), "%": Unit(1e-2, (0, 0, 0, 0)),
}  # fmt: skip
PLAIN = Unit(1.0, (0, 0, 0, 0))

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})(?:\s*/\s*({_NUMBER}))?\s*(.*?)\s*")
_FACTOR = re.compile(r"([A-Za-zµ%]+)(?:\^?([-+]?\d{1,2}))?")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def to_number(text: str | float, unit: str = "") -> float:
    """A quantity as a number of `unit`: to_number("50 cm", "m") is 0.5. Plain numbers are taken as they are."""
    try:
        made = _to_number(text, unit)
    except OverflowError:
        made = math.inf
    if not math.isfinite(made):
        raise ValueError(f"{reprlib.repr(text)} is not a finite number: write one of less than 308 digits")
    return made


def _to_number(text: str | float, unit: str) -> float:
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    found = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        shown = reprlib.repr(text)
        raise ValueError(f"{shown} is not a quantity: write a number and a unit, such as {_example(unit)!r}")
    value = float(found[1])
    if found[2] is not None:
        if not float(found[2]):
            raise ValueError(f"{text!r} divides by zero")
        value /= float(found[2])
    if not found[3]:
        return value
    given, wanted = parse_unit(found[3]), parse_unit(unit)
    if given.powers != wanted.powers:
        expected = f"a quantity in {unit}" if unit else "a plain number"
        raise ValueError(f"{text!r} is of another kind: expected {expected}")
    return value * given.factor / wanted.factor


def parse_unit(text: str) -> Unit:
    """A product of units: "kg/m^3"."""
    made, below = PLAIN, False
    for part in re.split(r"([/*·\s]+)", text.translate(_SUPERSCRIPTS).replace("°", "deg").replace("**", "^").strip()):
        sign = part.strip()
        if not part or part == "1":
            continue
        if not sign:
            continue  # A blank goes on as before.
        if sign in ("/", "*", "·"):
            below = sign == "/"
            continue
        factor = _FACTOR.fullmatch(sign)
        if factor is None:
            raise ValueError(f"{text!r} is not a unit: write products of names and powers, such as 'kg/m^3'")
        if factor[1] not in NAMED:
            raise ValueError(f"unknown unit {factor[1]!r}: {nearest_unit(factor[1])}")
        power = int(factor[2] or 1)
        made = made * NAMED[factor[1]] ** (-power if below else power)
    return made


def nearest_unit(name: str) -> str:
    """The unit that was probably meant: one that differs in capitals ("KG"), then by spelling ("kgs", "meter")."""
    spelled = {"meter": "m", "metre": "m", "gram": "g", "kilogram": "kg", "second": "s", "sec": "s", "newton": "N",
               "pascal": "Pa", "degree": "deg", "radian": "rad", "pixel": "px", "hertz": "Hz"}  # fmt: skip
    word = name.lower().rstrip("s") or name
    for known in (*NAMED, *spelled):
        if known.lower() in (name.lower(), word):
            return f"did you mean {spelled.get(known, known)!r}?"
    return nearest(name, NAMED)


def _example(unit: str) -> str:
    return f"0.5 {unit}".strip()
