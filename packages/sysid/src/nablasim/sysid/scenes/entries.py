"""What can stand in a scene file. The reference in the documentation is made from these classes."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nablasim.sysid.names import nearest
from nablasim.sysid.scenes.object_entries import AnyObject, PendulumEntry, RigidEntry
from nablasim.sysid.scenes.picture_entries import CameraEntry, LightEntry, VideoEntry
from nablasim.sysid.scenes.quantities import (
    Acceleration,
    Damping,
    Direction,
    Entry,
    Length,
    Number,
    OpenAngle,
    Point,
    Range,
    Stiffness,
    Time,
    given,
)
from nablasim.sysid.scenes.units import to_number

NAME = r"[A-Za-z_]\w*"
TAKEN = ("floor", "gravity", "contact", "wind")


class FloorEntry(Entry):
    """The floor: everything below its height is pushed up, with friction. Its name is `floor`."""

    height: Length = Field(0.0, description="Of the surface; of a slope, where x and z are zero.")
    angle: OpenAngle | None = Field(None, description="Of a slope: by how much it falls towards larger x.")
    normal: Direction | None = Field(None, description="Instead of the angle: what is up for the surface.")
    stiffness: Annotated[Stiffness, Field(gt=0)] = Field(1e4, description="Force per depth at one point of contact.")
    damping: Annotated[Damping, Field(ge=0)] | None = Field(
        None, description="Force per speed at one point of contact; 100 N s/m if neither it nor `restitution` is given."
    )
    restitution: Annotated[Number, Field(ge=0.01, le=0.999)] | None = Field(
        None,
        description="Instead of the damping: the part of its speed that the scene's one rigid object keeps when it "
        "hits the floor head-on with one point.",
    )
    friction: Annotated[Number, Field(ge=0)] = Field(0.5, description="Friction per normal force, while it slides.")
    slip_damping: Annotated[Damping, Field(ge=0)] = Field(
        100.0, description="Friction per speed of slip, as long as it is less than that."
    )

    @model_validator(mode="after")
    def _one(self) -> FloorEntry:
        if len(given(self, "damping", "restitution")) == 2:
            raise ValueError("give damping or restitution, not both: each follows from the other")
        if len(given(self, "angle", "normal")) == 2:
            raise ValueError("give angle or normal, not both: each says how the floor lies")
        low, high = (self.angle.low, self.angle.high) if isinstance(self.angle, Range) else (self.angle or 0.0,) * 2
        if not -90 < low <= high < 90:
            raise ValueError("the angle of a slope is between -90 and 90 degrees, or a range between them")
        if self.normal is not None and not self.normal[1] > 0:
            raise ValueError(f"a floor's normal points up, and {self.normal[1]:g} is its second number")
        return self

    @property
    def up(self) -> tuple[float, float, float]:
        """Of length one."""
        if self.angle is not None:
            angle = (self.angle.low + self.angle.high) / 2 if isinstance(self.angle, Range) else self.angle
            return math.sin(math.radians(angle)), math.cos(math.radians(angle)), 0.0
        x, y, z = self.normal or (0.0, 1.0, 0.0)
        size = math.sqrt(x * x + y * y + z * z)
        return x / size, y / size, z / size


class WallEntry(Entry):
    """A wall, or a slope: a plane that pushes off what comes through it, and rubs."""

    point: Point = Field(description="On its surface.")
    normal: Direction = Field(description="Away from it, to where objects are.")
    stiffness: Annotated[Stiffness, Field(gt=0)] = Field(1e4, description="Force per depth at one point of contact.")
    damping: Annotated[Damping, Field(ge=0)] = Field(100.0, description="Force per speed at one point of contact.")
    friction: Annotated[Number, Field(ge=0)] = Field(0.5, description="Friction per normal force, while it slides.")
    slip_damping: Annotated[Damping, Field(ge=0)] = Field(
        100.0, description="Friction per speed of slip, as long as it is less than that."
    )

    @model_validator(mode="after")
    def _faces(self) -> WallEntry:
        if not any(self.normal):
            raise ValueError("a wall's normal is not zero: [1, 0, 0] is a wall on the left")
        return self

    @property
    def plane(self) -> tuple[tuple[float, float, float], float]:
        """The normal, of length one, and how far from the origin along it."""
        size = math.hypot(*self.normal)
        x, y, z = (n / size for n in self.normal)
        return (x, y, z), x * self.point[0] + y * self.point[1] + z * self.point[2]


# -- what is searched for
class ParameterEntry(Entry):
    """Where a quantity is searched for. Units are those of the quantity."""

    range: tuple[float | str, float | str] = Field(description="The lowest and the highest value that it can have.")
    guess: float | str | tuple[float | str, ...] | None = Field(
        None, description="Where the first start begins, if all quantities have one; others are drawn from the range."
    )


def _gravity(given: Any) -> Any:
    """One number is downwards."""
    if not isinstance(given, (int, float, str)):
        return given
    pull = to_number(given, "m/s^2")
    if pull < 0:
        raise ValueError(f"one number is how strong it pulls downwards, not {given}: write {-pull:g}, or a vector")
    return (0.0, -pull, 0.0)


Gravity = Annotated[tuple[Acceleration, Acceleration, Acceleration], BeforeValidator(_gravity)]


class SceneFile(Entry):
    """A scene file: SI units unless others are written, y is up."""

    video: VideoEntry = Field(VideoEntry.model_validate({}), description="What is taken from the video.")
    camera: CameraEntry = Field(description="Where the camera is.")
    light: LightEntry = Field(LightEntry.model_validate({}), description="The light, for `compare: colour`.")
    objects: Annotated[dict[str, AnyObject], Field(min_length=1)] = Field(
        description="What moves, by names of your choice."
    )
    floor: FloorEntry | None = Field(None, description="The floor; without it there is none.")
    walls: dict[str, WallEntry] = Field(default_factory=dict, description="Walls and slopes, by names of your choice.")
    gravity: Gravity = Field((0.0, -9.81, 0.0), description="A vector, or one number for downwards.")
    plane: Literal["2d"] | None = Field(
        None, description="`2d`: everything that is unknown moves in the plane of x and y, where z is zero."
    )
    time_step: Annotated[Time, Field(gt=0)] | None = Field(
        None, description="Of the simulation; a frame takes a whole number of them. About 1/960 s if it is left out."
    )
    parameters: dict[str, ParameterEntry] = Field(
        default_factory=dict, description="Where quantities are searched for, by the names that `--estimate` takes."
    )

    @model_validator(mode="after")
    def _walls(self) -> SceneFile:
        for name in self.walls:
            if not re.fullmatch(NAME, name) or name in TAKEN or name in self.objects:
                raise ValueError(f"a wall cannot be called {name!r}: use letters, digits and _, and no taken name")
        return self

    @field_validator("objects")
    @classmethod
    def _names(cls, objects: dict[str, Any]) -> dict[str, Any]:
        for name in objects:
            if not re.fullmatch(NAME, name) or name in TAKEN:
                raise ValueError(f"an object cannot be called {name!r}: use letters, digits and _, and no taken name")
        return objects

    @model_validator(mode="after")
    def _one_unknown(self) -> SceneFile:
        some = [n for n, entry in self.objects.items() if entry.unknown and not isinstance(entry, PendulumEntry)]
        if len(some) > 1:
            raise ValueError(f"one object's place and speed can be found from the track, and {' and '.join(some)} "
                             "are unknown: give those of all but one")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _restitution(self) -> SceneFile:
        if self.floor is not None and self.floor.restitution is not None and len(self.rigid) != 1:
            raise ValueError(f"floor.restitution needs one rigid object, and there are {len(self.rigid)}: give damping")
        return self

    @model_validator(mode="after")
    def _pendula(self) -> SceneFile:
        swing = {n: e for n, e in self.objects.items() if isinstance(e, PendulumEntry)}
        if not swing:
            return self
        others = [*(n for n in self.objects if n not in swing), *(["floor"] if self.floor else []), *self.walls]
        if others:
            raise ValueError(f"pendula hang by themselves, and {others[0]} is there as well: leave it out")
        upper = [n for n, e in swing.items() if e.of is None]
        if len(upper) != 1 or len(swing) > 2:
            raise ValueError("there is one pendulum in a scene, or another one hangs on it: `of` names the upper one")
        for name, entry in swing.items():
            if entry.of is not None and entry.of != upper[0]:
                raise ValueError(f"{name} hangs on {entry.of!r}, which is not there: {nearest(entry.of, upper)}")
        return self

    @property
    def pendula(self) -> list[str]:
        """The names of pendula, the upper one first."""
        found = [n for n, e in self.objects.items() if isinstance(e, PendulumEntry)]
        return sorted(found, key=lambda n: self.objects[n].of is not None)  # type: ignore[union-attr]

    @property
    def rigid(self) -> list[str]:
        """The names of the rigid objects."""
        return [name for name, entry in self.objects.items() if isinstance(entry, RigidEntry)]
