"""What a scene file says of the video, of the camera and of the light. The rest is in `entries`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nablasim.sysid.scenes.quantities import (
    Angle,
    Colour,
    Direction,
    Entry,
    Length,
    Number,
    Part,
    Point,
    Rate,
    Time,
    given,
)


class VideoEntry(Entry):
    """What is taken from the video, and what of it is compared."""

    fps: Annotated[Rate, Field(gt=0)] | None = Field(
        None, description="Frames per second. Needed for a folder of pictures; a file that says otherwise is refused."
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
    noise: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="Standard deviation of a pixel, where white is 1, if it is known: '2/255'."
    )

    @model_validator(mode="after")
    def _silhouettes(self) -> VideoEntry:
        if self.compare == "colour" and (found := given(self, "masks", "region")):
            raise ValueError(f"{found[0]} is about silhouettes, and colours are compared: leave one of them out")
        return self


class CameraEntry(Entry):
    """Where the camera is."""

    eye: Point = Field(description="Where it is.")
    target: Point = Field(description="What is in the middle of the picture.")
    up: Direction = Field((0.0, 1.0, 0.0), description="What is up in the picture.")
    fov: Annotated[Angle, Field(gt=0, lt=180)] | None = Field(
        None, description="Vertical field of view; 60 deg if neither it nor `scale` is given."
    )
    scale: Annotated[Length, Field(gt=0)] | None = Field(
        None, description="Instead of `fov`, for an orthographic camera: half the height of what is seen."
    )

    @model_validator(mode="after")
    def _one_lens(self) -> CameraEntry:
        if len(given(self, "fov", "scale")) == 2:
            raise ValueError("give fov (perspective) or scale (orthographic), not both")
        if self.eye == self.target:
            raise ValueError("eye and target are the same point: the camera looks nowhere")
        return self


class LightEntry(Entry):
    """The light, for `compare: colour`."""

    ambient: Part = Field(0.4, description="Light from everywhere.")
    sun: Part = Field(0.6, description="Light from far away.")
    direction: Direction = Field((0.3, 1.0, 0.5), description="The direction to the sun.")
    background: Colour = Field((0.0, 0.0, 0.0), description="What is behind the objects.")
