"""What a scene file says of the video, of the camera and of the light. The rest is in `entries`."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from nablasim.sysid.scenes.quantities import (
    Colour,
    Direction,
    Entry,
    Length,
    Number,
    Open,
    OpenAngle,
    OpenLength,
    Part,
    Point,
    Range,
    Rate,
    Time,
    given,
)


class VideoEntry(Entry):
    """What is taken from the video, and what of it is compared."""

    fps: Annotated[Rate, Field(gt=0)] | None = Field(
        None, description="Frames per second. Needed for a folder of pictures; a file that says otherwise is refused."
    )
    slow_motion: Literal["none", "unknown"] = Field(
        "none",
        description="`unknown` where nobody says that it was filmed at that rate: then what gravity alone tells is "
        "not certified.",
    )
    start: Annotated[Time, Field(ge=0)] = Field(0.0, description="Time in the video at which the scene begins.")
    duration: Annotated[Time, Field(gt=0)] | None = Field(
        None, description="How long the scene lasts; all of the video if it is left out."
    )
    height: Annotated[int, Field(ge=8, le=1024)] = Field(
        64, description="Frames are scaled to this many pixels of height before they are compared."
    )
    compare: Literal["silhouette", "colour"] = Field(
        "silhouette",
        description="Where the objects are (robust: needs no light and no colours), or every colour of the picture.",
    )
    background: Literal["scene", "median"] | Colour | str = Field(
        "scene",
        description="For silhouettes, what is behind the objects: `scene` (what the frames show where the scene says "
        "that no object is), `median` of all frames, a colour, or a picture file.",
    )
    masks: str | None = Field(
        None,
        description="A folder with one grey picture for each frame, such as `look/masks`, instead of cutting the "
        "objects out: white where they are.",
    )
    region: tuple[Number, Number, Number, Number] | None = Field(
        None,
        description="For silhouettes, where to look: x, y, width, height in pixels of the video; no object is "
        "seen elsewhere.",
    )
    exposure: Annotated[float | Range, Open("")] | None = Field(
        None,
        description="How long a frame is exposed, as a part of the time between two. A track takes the middle of what "
        "is blurred, whatever it is; pixels take no notice, and are refused where this stands.",
    )
    noise: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="Standard deviation of a pixel, where white is 1, if it is known: '2/255'."
    )

    @model_validator(mode="after")
    def _exposed(self) -> VideoEntry:
        low, high = (
            (self.exposure.low, self.exposure.high) if isinstance(self.exposure, Range) else (self.exposure,) * 2
        )
        if low is not None and high is not None and low != -math.inf and not 0 <= low <= high <= 1:
            raise ValueError("exposure is a part of the time between frames: between 0 and 1")
        return self

    @model_validator(mode="after")
    def _silhouettes(self) -> VideoEntry:
        if self.compare == "colour" and (found := given(self, "masks", "region")):
            raise ValueError(f"{found[0]} is about silhouettes, and colours are compared: leave one of them out")
        return self


class CameraEntry(Entry):
    """Where the camera is: `eye` and `target`, or what is known of it. A range is two numbers: `fov: [45, 75]`."""

    eye: Point | None = Field(None, description="Where it is. With `target`, or neither where `distance` is not known.")
    target: Point | None = Field(None, description="What is in the middle of the picture.")
    up: Direction = Field((0.0, 1.0, 0.0), description="What is up in the picture.")
    fov: OpenAngle | None = Field(
        None, description="Vertical field of view; 60 deg if neither it nor `scale` is given, and the camera is known."
    )
    scale: Annotated[Length, Field(gt=0)] | None = Field(
        None, description="Instead of `fov`, for an orthographic camera: half the height of what is seen."
    )
    distance: OpenLength | None = Field(None, description="Instead of `eye`: from there to the target, about where the "
                                                          "motion is.")  # fmt: skip
    tilt: OpenAngle | None = Field(None, description="By how much it looks up, or down, below zero.")
    roll: OpenAngle | None = Field(None, description="By how much it is turned about where it looks.")
    length: tuple[tuple[Number, Number], tuple[Number, Number], Annotated[Length, Field(gt=0)]] | None = Field(
        None, description="A length in the picture, as far away as the motion: `[[x, y], [x, y], 1 m]`, in pixels of "
        "the video from its upper left corner.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _one_lens(self) -> CameraEntry:
        if len(given(self, "fov", "scale")) == 2:
            raise ValueError("give fov (perspective) or scale (orthographic), not both")
        if self.eye is not None and self.eye == self.target:
            raise ValueError("eye and target are the same point: the camera looks nowhere")
        for name, least, most in (("fov", 0.0, 180.0), ("distance", 0.0, math.inf), ("tilt", -90.0, 90.0)):
            value = getattr(self, name)
            ends = (value.low, value.high) if isinstance(value, Range) else (value,) if value is not None else ()
            if not (isinstance(value, Range) and value.unknown) and any(not least < end < most for end in ends):
                raise ValueError(f"{name} is between {least:g} and {most:g}")
        return self

    @model_validator(mode="after")
    def _somewhere(self) -> CameraEntry:
        if (self.eye is None) != (self.target is None):
            missing = "eye" if self.eye is None else "target"
            raise ValueError(f"{missing} is missing: give eye and target, or neither and `distance: unknown`")
        if self.eye is None and self.distance is None and self.length is None:
            raise ValueError("eye and target are missing: give them, or what is known of the camera, such as "
                             "`fov: [45 deg, 75 deg], distance: unknown`")  # fmt: skip
        if self.open and self.scale is not None:
            raise ValueError("scale is of a camera that is known: give eye and target alone, or fov instead of scale")
        if self.length is not None and math.dist(*self.length[:2]) < 5:
            raise ValueError("a length is between two places in the picture that are some pixels apart")
        return self

    @property
    def open(self) -> bool:
        """Whether some of it is not known, so that the track has to tell."""
        ranged = isinstance(self.fov, Range)
        return self.eye is None or ranged or bool(given(self, "distance", "tilt", "roll", "length"))


class LightEntry(Entry):
    """The light, for `compare: colour`."""

    ambient: Part = Field(0.4, description="Light from everywhere.")
    sun: Part = Field(0.6, description="Light from far away.")
    direction: Direction = Field((0.3, 1.0, 0.5), description="The direction to the sun.")
    background: Colour = Field((0.0, 0.0, 0.0), description="What is behind the objects.")
