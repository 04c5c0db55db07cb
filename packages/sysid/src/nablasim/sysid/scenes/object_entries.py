"""What can move in a scene file: rigid and soft objects, cloth, robots, pendula. The file itself is in `entries`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from nablasim.sysid.names import nearest
from nablasim.sysid.scenes.quantities import (
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
    OpenAngle,
    OpenLength,
    OpenSpin,
    Point,
    Range,
    Stiffness,
    Time,
    Viscosity,
    given,
    is_unknown,
)

ZERO = (0.0, 0.0, 0.0)


# -- objects
class ShapeEntry(Entry):
    """The shape of a rigid object: one of these. Round ones stand upright; the origin is in the middle."""

    box: tuple[OpenLength, Length, Length] | None = Field(
        None, description="Its three sides; the first, along its way, may be a range."
    )
    sphere: OpenLength | None = Field(None, description="Its radius; `unknown` where gravity is the ruler.")
    capsule: tuple[Length, Length] | None = Field(None, description="Radius, and height of the straight part.")
    cylinder: tuple[Length, Length] | None = Field(None, description="Radius and height.")
    cone: tuple[Length, Length] | None = Field(None, description="Radius and height.")
    mesh: str | None = Field(None, description="A closed surface (obj, stl, ply, ...), beside the scene file.")

    @model_validator(mode="after")
    def _one(self) -> ShapeEntry:
        if len(given(self, *type(self).model_fields)) != 1:
            raise ValueError(f"give one of {', '.join(type(self).model_fields)}")
        for size in (self.sphere, (self.box or (None,))[0]):
            if isinstance(size, Range) and not size.unknown and not size.low > 0:
                raise ValueError("a size is above zero")
        if self.box is not None and isinstance(self.box[0], Range) and self.box[0].unknown:
            raise ValueError("write the sides of a box, or a range for the first: [[5 cm, 20 cm], 4 cm, 4 cm]")
        return self

    @property
    def open(self) -> bool:
        """Whether its size is not known."""
        return isinstance(self.sphere, Range) or (self.box is not None and isinstance(self.box[0], Range))


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


class PendulumEntry(Entry):
    """A pendulum, `kind: pendulum`: a ball on a rod without weight, in the plane of x and y of its pivot.

    Another one can hang on it. Length and beginning may be `unknown` or ranges: they are found from the video.
    """

    kind: Literal["pendulum"] = Field(description="")
    pivot: Point | None = Field(None, description="What it hangs on; `[0, 0, 0]` if it is left out.")
    of: str | None = Field(None, description="Instead of a pivot: the name of the pendulum on whose bob it hangs.")
    length: OpenLength = Field(description="From the pivot to the middle of the bob.")
    angle: OpenAngle = Field(0.0, description="At the beginning, from straight down, towards larger x.")
    rate: OpenSpin = Field(0.0, description="Of the angle, at the beginning.")
    radius: OpenLength = Field(description="Of the ball.")
    mass: Annotated[Mass, Field(gt=0)] = Field(1.0, description="Of the ball: one by itself swings alike with any.")
    damping: Annotated[Number, Field(ge=0)] = Field(0.0, description="N m s/rad, of the joint.")
    color: Colour = Field((0.7, 0.7, 0.7), description="For pictures of it.")

    @model_validator(mode="after")
    def _hangs(self) -> PendulumEntry:
        if len(given(self, "pivot", "of")) == 2:
            raise ValueError("give pivot or of, not both: each says what it hangs on")
        if not isinstance(self.length, Range) and not self.length > 0:
            raise ValueError("the length is above zero")
        return self

    @property
    def unknown(self) -> tuple[str, ...]:
        """What of it is to be found beside what is asked for."""
        return tuple(what for what in ("length", "angle", "rate") if isinstance(getattr(self, what), Range))


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


KINDS = {"rigid": RigidEntry, "soft": SoftEntry, "cloth": ClothEntry, "robot": RobotEntry, "pendulum": PendulumEntry}


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
        Annotated[PendulumEntry, Tag("pendulum")],
    ],
    Discriminator(_kind),
    BeforeValidator(_known_kind),
]
