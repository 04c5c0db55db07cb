"""Types of the entries of a scene file: numbers with units, and a base that answers unknown keys with the nearest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from nablasim.sysid.names import nearest
from nablasim.sysid.scenes.units import to_number


class Entry(BaseModel):
    """A part of a scene file."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        if isinstance(given, Entry):
            return given
        if not isinstance(given, Mapping):
            raise ValueError(f"write entries below it, such as '{next(iter(cls.model_fields))}: ...', not {given!r}")
        for key in given:
            if key not in cls.model_fields:
                said = f"unknown key {str(key)!r}: {nearest(str(key), cls.model_fields)}"
                raise PydanticCustomError("unknown_key", "{said}", {"said": said, "key": str(key)})
        return given


def given(entry: Entry, *names: str) -> list[str]:
    """Those of some keys that a file has."""
    return [name for name in names if getattr(entry, name) is not None]


@dataclass(frozen=True)
class In:
    """Marks a number that may be written with a unit; plain numbers are of this one."""

    unit: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        read = partial(to_number, unit=self.unit)
        return core_schema.no_info_before_validator_function(read, handler(source))


Number = Annotated[float, In("")]
Length = Annotated[float, In("m")]
Time = Annotated[float, In("s")]
Rate = Annotated[float, In("Hz")]
Angle = Annotated[float, In("deg")]
Speed = Annotated[float, In("m/s")]
Acceleration = Annotated[float, In("m/s^2")]
Spin = Annotated[float, In("rad/s")]
Mass = Annotated[float, In("kg")]
Density = Annotated[float, In("kg/m^3")]
AreaDensity = Annotated[float, In("kg/m^2")]
Stiffness = Annotated[float, In("N/m")]
Damping = Annotated[float, In("N s/m")]
Modulus = Annotated[float, In("Pa")]
Viscosity = Annotated[float, In("Pa s")]
Impulse = Annotated[float, In("N s")]
Force = Annotated[float, In("N")]
Moment = Annotated[float, In("N m")]
Part = Annotated[float, In(""), Field(ge=0, le=1)]

Point = tuple[Length, Length, Length]
Direction = tuple[Number, Number, Number]


UNKNOWN = "unknown"
"""What stands in a scene file where nobody knows: it is found from the track first, and then with the pixels."""


@dataclass(frozen=True)
class Range:
    """What a file says of a number that nobody knows exactly: `[low, high]`, or `unknown`, which has no ends."""

    low: float = -math.inf
    high: float = math.inf

    @property
    def unknown(self) -> bool:
        return self.low == -math.inf


def middle_of(value: float | Range) -> float:
    """Of a range of lengths, the middle between its ends by their ratio."""
    return (value.low * value.high) ** 0.5 if isinstance(value, Range) else value


@dataclass(frozen=True)
class Open:
    """Marks a number that may be written with a unit, as a range, or as `unknown`."""

    unit: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def read(self, given: Any) -> float | Range:
        if isinstance(given, Range):
            return given
        if given == UNKNOWN:
            return Range()
        if not isinstance(given, (list, tuple)):
            return to_number(given, self.unit)
        if len(given) != 2:
            raise ValueError(f"write a number, [low, high] or `{UNKNOWN}`, not {list(given)!r}")
        low, high = (to_number(end, self.unit) for end in given)
        if not low < high:
            raise ValueError(f"a range is its lower end first, and then a higher one, not {list(given)!r}")
        return Range(low, high)


OpenAngle = Annotated[float | Range, Open("deg")]
OpenLength = Annotated[float | Range, Open("m")]
OpenSpin = Annotated[float | Range, Open("rad/s")]


def _unknown(given: Any, read: ValidatorFunctionWrapHandler) -> Any:
    return (float("nan"),) * 3 if isinstance(given, str) and given == UNKNOWN else read(given)


MaybePoint = Annotated[Point, WrapValidator(_unknown)]
MaybeVelocity = Annotated[tuple[Speed, Speed, Speed], WrapValidator(_unknown)]
MaybeSpin = Annotated[tuple[Spin, Spin, Spin], WrapValidator(_unknown)]


def is_unknown(values: Any) -> bool:
    """Whether a file says `unknown` there."""
    return any(v != v for v in values)


def _colour(given: Any) -> Any:
    """Three parts of light, or one for grey; "#rrggbb" as well."""
    if isinstance(given, str) and given.startswith("#"):
        digits = given[1:]
        try:
            if len(digits) == 6:
                return tuple(int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4))
        except ValueError:
            pass  # Said below, as for any other length.
        raise ValueError(f"{given!r} is not a colour: write '#rrggbb', such as '#cc5522', or three numbers from 0 to 1")
    return (given,) * 3 if isinstance(given, (int, float, str)) and not isinstance(given, bool) else given


Colour = Annotated[tuple[Part, Part, Part], BeforeValidator(_colour)]
