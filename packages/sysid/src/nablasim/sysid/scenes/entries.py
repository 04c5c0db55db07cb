"""What can stand in a scene file. The reference in the documentation is made from these classes."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from nablasim.sysid.names import nearest
from nablasim.sysid.scenes.picture_entries import CameraEntry, LightEntry, VideoEntry
from nablasim.sysid.scenes.quantities import (
    Acceleration,
    Angle,
    AreaDensity,
    Colour,
    Damping,
    Density,
    Direction,
    Entry,
    Force,
    Impulse,
    Length,
    Mass,
    MaybePoint,
    MaybeSpin,
    MaybeVelocity,
    Modulus,
    Moment,
    Number,
    Point,
    Stiffness,
    Time,
    Viscosity,
    given,
    is_unknown,
)
from nablasim.sysid.scenes.units import to_number

ZERO = (0.0, 0.0, 0.0)


# -- objects
class ShapeEntry(Entry):
    """The shape of a rigid object: one of these. Round ones stand upright; the origin is in the middle."""

    box: tuple[Length, Length, Length] | None = Field(None, description="Its three sides.")
    sphere: Length | None = Field(None, description="Its radius.")
    capsule: tuple[Length, Length] | None = Field(None, description="Radius, and height of the straight part.")
    cylinder: tuple[Length, Length] | None = Field(None, description="Radius and height.")
    cone: tuple[Length, Length] | None = Field(None, description="Radius and height.")
    mesh: str | None = Field(None, description="A closed surface (obj, stl, ply, ...), beside the scene file.")

    @model_validator(mode="after")
    def _one(self) -> ShapeEntry:
        if len(given(self, *type(self).model_fields)) != 1:
            raise ValueError(f"give one of {', '.join(type(self).model_fields)}")
        return self


class RotationEntry(Entry):
    """How an object is turned at the beginning."""

    axis: Direction = Field(description="Around which it is turned.")
    angle: Angle = Field(description="How far.")


class PushEntry(Entry):
    """Something that pushes an object from outside."""

    impulse: tuple[Impulse, Impulse, Impulse] | None = Field(None, description="At once, at the time `start`.")
    force: tuple[Force, Force, Force] | None = Field(None, description="From `start` to `stop`.")
    at: Point | None = Field(None, description="The point of a rigid object where it acts, in the object's own frame.")
    start: Annotated[Time, Field(ge=0)] = Field(0.0, description="When it begins.")
    stop: Annotated[Time, Field(gt=0)] | None = Field(None, description="When a force ends; never if it is left out.")

    @model_validator(mode="after")
    def _one(self) -> PushEntry:
        if len(given(self, "impulse", "force")) != 1:
            raise ValueError("give impulse or force")
        if self.impulse is not None and self.stop is not None:
            raise ValueError("an impulse has no stop: it acts at once")
        return self


class FixedEntry(Entry):
    """Which particles of an object are held: those on one side of a plane, at the beginning."""

    axis: Literal["x", "y", "z"] = Field(description="Of the object's own frame.")
    below: Length | None = Field(None, description="Held where the coordinate is at most this.")
    above: Length | None = Field(None, description="Held where the coordinate is at least this.")

    @model_validator(mode="after")
    def _some(self) -> FixedEntry:
        if not given(self, "below", "above"):
            raise ValueError("give below, above, or both")
        return self


class ObjectEntry(Entry):
    """What all objects have."""

    position: MaybePoint = Field(
        ZERO, description="Where the origin of its frame is at the beginning; `unknown`: found from its track."
    )
    rotation: RotationEntry | None = Field(None, description="How it is turned at the beginning.")
    velocity: MaybeVelocity = Field(ZERO, description="At the beginning; `unknown`: found from its track.")
    pushes: tuple[PushEntry, ...] = Field((), description="What acts on it from outside.")
    color: Colour = Field((0.7, 0.7, 0.7), description="For `compare: colour`.")

    @property
    def unknown(self) -> tuple[str, ...]:
        """What of it is to be found beside what is asked for."""
        return tuple(what for what in ("position", "velocity", "spin") if is_unknown(getattr(self, what, ())))


class RigidEntry(ObjectEntry):
    """A rigid object, `kind: rigid` (which may be left out)."""

    kind: Literal["rigid"] = Field("rigid", description="")
    shape: ShapeEntry = Field(description="Its shape.")
    density: Annotated[Density, Field(gt=0)] | None = Field(None, description="Of the solid.")
    mass: Annotated[Mass, Field(gt=0)] | None = Field(None, description="Instead of the density.")
    spin: MaybeSpin = Field(
        ZERO, description="Angular velocity at the beginning, in world axes; `unknown`: searched for with the pixels."
    )

    @model_validator(mode="after")
    def _weighs(self) -> RigidEntry:
        if len(given(self, "density", "mass")) != 1:
            raise ValueError("give density or mass: a guess, if it is to be found")
        return self


class SoftEntry(ObjectEntry):
    """A deformable solid, `kind: soft`."""

    kind: Literal["soft"] = Field(description="")
    box: tuple[Length, Length, Length] | None = Field(None, description="A block of these sides, origin in a corner.")
    cells: tuple[int, int, int] = Field((4, 2, 2), description="Of a block, along each side.")
    mesh: str | None = Field(None, description="Instead of a block: tetrahedra (msh, vtk, vtu, mesh, tet).")
    density: Annotated[Density, Field(gt=0)] = Field(description="Of the solid.")
    young: Annotated[Modulus, Field(gt=0)] = Field(description="Young's modulus.")
    poisson: Annotated[Number, Field(ge=0, lt=0.5)] = Field(0.3, description="Poisson's ratio.")
    damping: Annotated[Viscosity, Field(ge=0)] = Field(0.0, description="Against the rate of strain.")
    fixed: FixedEntry | None = Field(None, description="What of it is held.")

    @model_validator(mode="after")
    def _shaped(self) -> SoftEntry:
        if len(given(self, "box", "mesh")) != 1:
            raise ValueError("give box or mesh")
        return self


class ClothEntry(ObjectEntry):
    """A cloth, `kind: cloth`: a rectangle in the plane of x and y, the origin in a corner."""

    kind: Literal["cloth"] = Field(description="")
    size: tuple[Length, Length] = Field(description="Its sides.")
    cells: tuple[int, int] = Field((8, 8), description="Along each side.")
    density: Annotated[AreaDensity, Field(gt=0)] = Field(description="Per area.")
    stretch: Annotated[Stiffness, Field(ge=0)] = Field(1e3, description="Against changes of area.")
    shear: Annotated[Stiffness, Field(ge=0)] = Field(1e3, description="Against changes of shape.")
    damping: Annotated[Damping, Field(ge=0)] = Field(0.0, description="Against the rate of strain.")
    bend: Annotated[Moment, Field(ge=0)] = Field(0.0, description="Against bending.")
    drag: Annotated[Density, Field(ge=0)] = Field(0.0, description="Of the air, per area and squared speed.")
    fixed: FixedEntry | None = Field(None, description="What of it is held.")


class RobotEntry(ObjectEntry):
    """A robot, `kind: robot`: links and joints of a URDF or MJCF file. Such files have z up: turn it by `rotation`."""

    kind: Literal["robot"] = Field(description="")
    file: str = Field(description="URDF or MJCF, beside the scene file.")
    free: bool = Field(False, description="Whether the root of a URDF moves freely: by a joint `root`, the first.")
    q: tuple[Number, ...] | None = Field(
        None, description="Of its joints at the beginning, in rad or m, in their order; as drawn if it is left out."
    )
    qd: tuple[Number, ...] | None = Field(None, description="Their rates at the beginning, in rad/s or m/s.")

    @model_validator(mode="after")
    def _moves_by_joints(self) -> RobotEntry:
        if self.velocity != ZERO or self.pushes:
            raise ValueError("a robot moves by its joints: give q and qd, and neither velocity nor pushes")
        return self


KINDS = {"rigid": RigidEntry, "soft": SoftEntry, "cloth": ClothEntry, "robot": RobotEntry}


def _kind(given: Any) -> str:
    return str(given.get("kind", "rigid") if isinstance(given, dict) else getattr(given, "kind", "rigid"))


def _known_kind(given: Any) -> Any:
    if _kind(given) not in KINDS:
        raise ValueError(f"unknown kind {_kind(given)!r}: {nearest(_kind(given), KINDS)}")
    return given


AnyObject = Annotated[
    Union[  # noqa: UP007
        Annotated[RigidEntry, Tag("rigid")],
        Annotated[SoftEntry, Tag("soft")],
        Annotated[ClothEntry, Tag("cloth")],
        Annotated[RobotEntry, Tag("robot")],
    ],
    Discriminator(_kind),
    BeforeValidator(_known_kind),
]


class FloorEntry(Entry):
    """The floor: it pushes up what is below its height, and rubs. Its name is `floor`."""

    height: Length = Field(0.0, description="Of the surface; of a slope, where x and z are zero.")
    angle: Annotated[Angle, Field(gt=-90, lt=90)] | None = Field(
        None, description="Of a slope: by how much it falls towards larger x."
    )
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
        if self.normal is not None and not self.normal[1] > 0:
            raise ValueError(f"a floor's normal points up, and {self.normal[1]:g} is its second number")
        return self

    @property
    def up(self) -> tuple[float, float, float]:
        """Of length one."""
        if self.angle is not None:
            return math.sin(math.radians(self.angle)), math.cos(math.radians(self.angle)), 0.0
        x, y, z = self.normal or (0.0, 1.0, 0.0)
        size = math.sqrt(x * x + y * y + z * z)
        return x / size, y / size, z / size


# -- what is searched for
class ParameterEntry(Entry):
    """Where a quantity is searched for. Units are those of the quantity."""

    range: tuple[float | str, float | str] = Field(description="The lowest and the highest value that it can have.")
    guess: float | str | tuple[float | str, ...] | None = Field(
        None, description="Where the first start begins, if all quantities have one; others are drawn from the range."
    )


def _gravity(given: Any) -> Any:
    """One number is downwards."""
    return (0.0, -to_number(given, "m/s^2"), 0.0) if isinstance(given, (int, float, str)) else given


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

    @field_validator("objects")
    @classmethod
    def _names(cls, objects: dict[str, Any]) -> dict[str, Any]:
        for name in objects:
            if not re.fullmatch(r"[A-Za-z_]\w*", name) or name in ("floor", "gravity", "contact", "wind"):
                raise ValueError(f"an object cannot be called {name!r}: use letters, digits and _, and no taken name")
        return objects

    @model_validator(mode="after")
    def _one_unknown(self) -> SceneFile:
        some = [name for name, entry in self.objects.items() if entry.unknown]
        if len(some) > 1:
            raise ValueError(f"one object's place and speed can be found from the track, and {' and '.join(some)} "
                             "are unknown: give those of all but one")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _restitution(self) -> SceneFile:
        if self.floor is not None and self.floor.restitution is not None and len(self.rigid) != 1:
            raise ValueError(f"floor.restitution needs one rigid object, and there are {len(self.rigid)}: give damping")
        return self

    @property
    def rigid(self) -> list[str]:
        """The names of the rigid objects."""
        return [name for name, entry in self.objects.items() if isinstance(entry, RigidEntry)]
