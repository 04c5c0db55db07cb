"""What a scene file calls `unknown`: found from the track first, and then searched for with the pixels.

`look` gives the object's track in the video. Seen by the scene's camera, each place is a ray; how far along it the
object is follows from its size, or from the plane in which it moves. A parabola through the first places gives the
place and the speed at the beginning, near which the fit searches: they are parameters like those that were asked for,
so that what is not known of them widens their intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.problem import Param
from nablasim.sysid.scenes.build import Stage
from nablasim.sysid.scenes.object_entries import ObjectEntry, RigidEntry, ShapeEntry
from nablasim.sysid.scenes.pendula import open_params
from nablasim.sysid.scenes.quantities import Range
from nablasim.sysid.scenes.reading import Script

Vector = NDArray[np.float64]
FIRST = 14
"""Frames of the track from which the beginning is found, before the first impact."""
FEWEST = 5
ROOM = 8.0
"""Standard deviations around what the track says within which the fit searches."""
FASTEST = 25.0
"""rad/s, of a spin that is searched for."""


@dataclass(frozen=True, eq=False)
class Beginning:
    """Place (m) and velocity (m/s) of an object when the scene begins, with standard deviations."""

    place: Vector
    place_std: float
    speed: Vector
    speed_std: float


def settled(
    script: Script, video: str | Path, fps: float | None, look: Callable[..., Any]
) -> tuple[Script, list[Param], list[str]]:
    """The scene with what its track says in the place of what is unknown, what is to be found of it, and notes.

    `look` is `sysid.look`: this room comes before it.
    """
    if script.entries.pendula:
        return script, open_params(script), []
    name = next((n for n, entry in script.entries.objects.items() if entry.unknown or _unsized(entry)), None)
    if name is None:
        return script, [], []
    entry, zero = script.entries.objects[name], (0.0, 0.0, 0.0)
    assert isinstance(entry, ObjectEntry)
    values: dict[str, Any] = dict.fromkeys(entry.unknown, zero)
    stage = Stage(
        _with(
            script, name, **values, **({"shape": ShapeEntry.model_validate({"sphere": 1.0})} if _unsized(entry) else {})
        )
    )
    seen = _seen(stage, name, video, fps, look)
    notes = []
    if _unsized(entry):
        radius = _radius(stage, name, seen)
        notes.append(f"the radius of {name} is taken as {radius:.3g} m, as it is seen by this camera")
        script = _with(script, name, shape=ShapeEntry.model_validate({"sphere": radius}))
        stage = Stage(_with(script, name, **values))
    begins = _beginning(stage, name, seen)
    flat = script.entries.plane == "2d"
    made: list[Param] = []
    plain = (0, 1) if flat else (0, 1, 2)
    if "position" in entry.unknown:
        values["position"] = tuple(begins.place.tolist())
        made.append(_off(f"{name}.position_off", f"{name}.x", begins.place, ROOM * begins.place_std, "m", plain))
    if "velocity" in entry.unknown:
        values["velocity"] = tuple(begins.speed.tolist())
        made.append(_off(f"{name}.velocity_off", f"{name}.v", begins.speed, ROOM * begins.speed_std, "m/s", plain))
    if "spin" in entry.unknown:
        values["spin"] = zero
        if _is_ball(entry):
            notes.append(f"nobody sees the spin of {name}, which is a ball of one colour: it is taken to be zero")
        else:
            turning = (2,) if flat else (0, 1, 2)
            made.append(_off(f"{name}.spin", f"{name}.omega", np.zeros(3), FASTEST, "rad/s", turning))
    at = ", ".join(f"{v:.3g}" for v in begins.place)
    speed = ", ".join(f"{v:.3g}" for v in begins.speed)
    notes.append(f"by its track, {name} begins at [{at}] m with [{speed}] m/s; what was unknown is found with the rest")
    return _with(script, name, **values), made, notes


def _with(script: Script, name: str, **values: Any) -> Script:
    objects = {**script.entries.objects, name: script.entries.objects[name].model_copy(update=values)}
    return replace(script, entries=script.entries.model_copy(update={"objects": objects}))


def _is_ball(entry: Any) -> bool:
    return isinstance(entry, RigidEntry) and entry.shape.sphere is not None


def _off(name: str, of: str, value: Vector, room: float, unit: str, kept: tuple[int, ...]) -> Param:
    """By how much a value is off what the track says; `kept` are the numbers of it that can be off."""
    still = np.eye(3)[list(kept)]
    into = partial(_moved, of, value.copy(), still)
    return Param(name, (-room, room), "linear", np.zeros(len(kept)), into=into, unit=unit)


def _moved(of: str, value: Vector, still: Vector, off: Any) -> dict[str, Any]:
    if hasattr(off, "new_tensor"):
        return {of: off.new_tensor(value) + off @ off.new_tensor(still)}
    return {of: value + off @ still}


# -- the track
def _seen(stage: Stage, name: str, video: str | Path, fps: float | None, look: Callable[..., Any]) -> Any:
    """The track of the object."""
    entry = stage.entries.video
    try:
        return look(video, entry.region, None, fps or entry.fps)
    except ValueError as error:
        said = f"is unknown, and the video does not show it: {error}"
        raise stage.script.wrong(("objects", name), said) from error


def _unsized(entry: Any) -> bool:
    return isinstance(entry, RigidEntry) and isinstance(entry.shape.sphere, Range)


def _radius(stage: Stage, name: str, seen: Any) -> float:
    """m: of a ball, by a camera that says how large a pixel is where it is."""
    camera = stage.camera
    if camera.perspective:
        raise stage.script.wrong(
            ("objects", name, "shape"), "the radius is unknown, and pixels need it: write it as one number"
        )
    return float(np.nanmedian(seen.across)) / 2 * 2 * float(camera.half_height) / float(seen.size[0])


def _beginning(stage: Stage, name: str, seen: Any) -> Beginning:
    """Where it is and how fast, from the first frames of its free motion."""
    entry = stage.entries.video
    t = np.asarray(seen.track.time) - entry.start
    if t[0] > 1.5 / seen.rate:
        raise stage.script.wrong(
            ("video", "start"),
            f"{name} moves freely from frame {seen.release} on only, and what is unknown of it is found from its "
            f"flight: write `start: {float(seen.track.time[0]):.6g} s` below `video:`",
        )
    until = seen.contacts[0] - entry.start - 1 / seen.rate if seen.contacts else np.inf
    some = np.flatnonzero((t > -0.5 / seen.rate) & (t < until))[:FIRST]
    if len(some) < FEWEST:
        raise stage.script.wrong(
            ("objects", name),
            f"is unknown, and flies freely in {len(some)} frames from the start on: give its position and velocity",
        )
    places = _in_space(stage, name, seen, some)
    pull = np.array(stage.entries.gravity)
    design = np.stack([np.ones(len(some)), t[some]], axis=-1)
    left = places - 0.5 * t[some][:, None] ** 2 * pull
    terms, *_ = np.linalg.lstsq(design, left, rcond=None)
    noise = np.sqrt(((left - design @ terms) ** 2).sum(axis=0) / max(len(some) - 2, 1))
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    # Masks are half a pixel wrong all along, and the size by a few per cent: that does not scatter.
    size = _across(stage, name)
    return Beginning(terms[0], float(spread[0] * noise.max()) + 0.05 * size, terms[1],
                     float(spread[1] * noise.max()) + 0.02 * float(np.linalg.norm(terms[1])) + 0.02)  # fmt: skip


def _across(stage: Stage, name: str) -> float:
    """m: of a ball with the object's mean silhouette. That of a convex thing is a quarter of its surface."""
    surface = stage.model.surfaces[name]
    corners = np.asarray(surface.vertices(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])), np.float64)[surface.faces]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    return float(2 * np.sqrt(area / 4 / np.pi))


def _in_space(stage: Stage, name: str, seen: Any, some: NDArray[np.int64]) -> Vector:
    """(n, 3) places, by the camera of the scene."""
    camera, (height, width) = stage.camera, seen.size
    right, up, back = np.asarray(camera.rotation, np.float64)
    scale = float(camera.half_height) * 2 / height
    x = (seen.track.x[some] + 0.5 - width / 2) * scale
    y = (height / 2 - seen.track.y[some] - 0.5) * scale
    across = np.array([2 * np.sqrt(seen.masks[int(k)].sum() / np.pi) for k in seen.track.frame[some]])
    eye = np.asarray(camera.eye, np.float64)
    side = x[:, None] * right + y[:, None] * up
    origins = np.broadcast_to(eye, side.shape) + (0.0 if camera.perspective else side)
    rays = np.broadcast_to(-back, side.shape) + (side if camera.perspective else 0.0)
    if stage.entries.plane == "2d":
        if (np.abs(rays[:, 2]) < 1e-3).any():
            raise stage.script.wrong(
                ("plane",), "the camera looks along the plane of x and y: move it, or leave it out"
            )
        return np.asarray(origins - rays * (origins[:, 2] / rays[:, 2])[:, None])
    if not camera.perspective:
        raise stage.script.wrong(
            ("objects", name),
            "is unknown, and a camera with `scale` does not tell how far away it is: write `plane: 2d`, or give fov",
        )
    # One distance for all: sizes scatter more than a few frames of flight move it.
    depth = _across(stage, name) / (float(np.median(across)) * scale)
    return np.asarray(origins + depth * rays)
