"""The reference of scene files, made from the classes that read them."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from nablasim.sysid.scenes import Stage, entries, object_entries, parse_scene, picture_entries, units
from nablasim.sysid.scenes.estimates import everyday
from nablasim.sysid.scenes.quantities import Colour, Entry, In, Open

PARTS = {
    "The file": entries.SceneFile,
    "video": picture_entries.VideoEntry,
    "camera": picture_entries.CameraEntry,
    "objects: rigid": object_entries.RigidEntry,
    "objects: soft": object_entries.SoftEntry,
    "objects: cloth": object_entries.ClothEntry,
    "objects: robot": object_entries.RobotEntry,
    "objects: pendulum": object_entries.PendulumEntry,
    "shape": object_entries.ShapeEntry,
    "rotation": object_entries.RotationEntry,
    "pushes": object_entries.PushEntry,
    "fixed": object_entries.FixedEntry,
    "floor": entries.FloorEntry,
    "walls": entries.WallEntry,
    "light": picture_entries.LightEntry,
    "parameters": entries.ParameterEntry,
}

SCENE = """\
camera: {eye: [0, 1, 5], target: [0, 1, 0]}
objects:
  ball: {shape: {sphere: 20 cm}, mass: 0.4 kg}
  beam: {kind: soft, box: [1, 0.2, 0.2], density: 1000, young: 50 kPa}
  flag: {kind: cloth, size: [1, 1], density: 0.1}
floor: {}
"""


def page(how: str, table: Callable[..., str]) -> str:
    """The whole page; `table` makes one of Markdown."""
    text = [f"<!-- {how} -->", "# Scene files, entry by entry", ""]
    text += ["Numbers may have a unit; plain ones are of the unit that stands here. y is up. A time may be a fraction: "
             f"`1/960 s`. Units: {', '.join(f'`{name}`' for name in units.NAMED)}, and products of them with powers, "
             "such as `kg/m^3` or `N s/m`.", ""]  # fmt: skip
    for name, part in PARTS.items():
        rows = table("entry | value | default | meaning", _rows(part))
        text += [f"## {name}", "", inspect.getdoc(part) or "", "", rows, ""]
    known = everyday(Stage(parse_scene(SCENE)))
    names = [(f"`{q.name}`", f"`{q.of}`", q.unit) for q in known.values()]
    text += ["## What `--estimate` takes", "",
             "Of a scene with a rigid `ball`, a soft `beam`, a cloth `flag` and a floor. The name of the object may be "
             "left out where only one has such a quantity. Everything else that `model.parameters()` lists works too.",
             "", table("name | parameter of the model | unit", names)]  # fmt: skip
    return "\n".join(text) + "\n"


def _rows(part: type[Entry]) -> list[tuple[str, ...]]:
    rows = []
    for name, field in part.model_fields.items():
        if not field.description:
            continue
        # Outside of Optional, pydantic moves what annotates a field to the field.
        value = _value(typing.Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation)
        rows.append((f"`{name}`", value, _default(field), field.description))
    return rows


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if field.is_required():
        return "needed"
    if value is None or isinstance(value, Entry) or value in ((), {}):
        return ""
    return f"`{list(value) if isinstance(value, tuple) else value}`"


def _value(kind: Any) -> str:
    """What is written there, in words."""
    if kind is Colour:
        return "colour"
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        open_one = next((m for m in arguments[1:] if isinstance(m, Open)), None)
        if open_one is not None:
            return f"{open_one.unit or 'number'}, `[low, high]` or `unknown`"
        if arguments[0] == typing.get_args(Colour)[0]:
            return "colour" if kind != entries.Gravity else "m/s^2, three of them"
        unit = next((m.unit for m in arguments[1:] if isinstance(m, In)), None)
        return (unit or "number") if unit is not None else _value(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_value(a) for a in arguments if a is not type(None)))
    if origin is typing.Literal:
        return " or ".join(f"`{a}`" for a in arguments)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f"list: {_value(arguments[0])}"
        if len({str(a) for a in arguments}) > 1 and typing.get_origin(arguments[0]) is tuple:
            return " and ".join(dict.fromkeys(_value(a) for a in arguments))
        count = {2: "two", 3: "three", 4: "four"}[len(arguments)]
        return f"{_value(arguments[0])}, {count} of them"
    if origin is dict:
        return "entries by name"
    if isinstance(kind, type) and issubclass(kind, Entry):
        return next(f"see {name}" for name, part in PARTS.items() if part is kind)
    return {int: "whole number", float: "number", str: "text", bool: "`true` or `false`"}.get(kind, str(kind))
