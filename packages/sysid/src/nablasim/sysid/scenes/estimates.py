"""What `--estimate` takes: everyday names of quantities, or those of the model, and where they are searched for.

    density, cube.density, restitution, floor.friction, cube.velocity, floor.kd ...

A name without an object is enough where only one object has such a quantity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nablasim.sysid.names import nearest
from nablasim.sysid.problem import Param
from nablasim.sysid.scenes.build import Stage
from nablasim.sysid.scenes.object_entries import ClothEntry, RigidEntry, RobotEntry, SoftEntry
from nablasim.sysid.scenes.pendula import facts
from nablasim.sysid.scenes.restitution import LEAST, MOST, damping_of
from nablasim.sysid.scenes.units import parse_unit, to_number

WIDER = 30.0
"""Without a range, a positive quantity is searched for from a 30th to 30 times the value of the file."""
MEANT = {"bounciness": "restitution", "elasticity": "restitution", "bounce": "restitution", "weight": "mass",
         "speed": "velocity", "roughness": "friction", "elastic_modulus": "young", "hardness": "stiffness"}  # fmt: skip
"""Other words for the same."""
FARTHER = 3.0
"""Without a range, a vector is searched for within so much of its own length, around zero."""


@dataclass(frozen=True)
class Quantity:
    """Something that can be found: its name, the parameter of the model, its unit and its usual range."""

    name: str
    of: str
    unit: str
    range: tuple[float, float] | None = None
    transform: str | None = None
    into: Callable[..., Mapping[str, Any]] | None = None
    given: tuple[str, ...] = ()
    value: float | None = None
    """As the file has it, where the model does not."""


def everyday(stage: Stage) -> dict[str, Quantity]:
    """What can be asked for by the words of scene files, by full name."""
    found: list[Quantity] = []
    if stage.entries.pendula:
        for full, of, unit, span, into, value in facts(stage.script):
            kind = "linear" if span is not None and span[0] <= 0 else None
            found.append(Quantity(full, full, unit, span, kind, into, (of,), value))
        found.append(Quantity("gravity", "gravity", "m/s^2", (1.0, 30.0)))
        return {q.name: q for q in found}
    for name, entry in stage.entries.objects.items():
        found += _of_object(stage, name, entry)
    if stage.entries.floor is not None:
        found += _of_floor(stage)
    for name in stage.entries.walls:
        words = {"stiffness": ("ke", "N/m"), "damping": ("kd", "N s/m"), "slip_damping": ("kf", "N s/m")}
        found += [Quantity(f"{name}.{word}", f"{name}.{of}", unit) for word, (of, unit) in words.items()]
        found.append(Quantity(f"{name}.friction", f"{name}.mu", "", (0.02, 2.0)))
    pull = np.array(stage.entries.gravity)
    size = float(np.linalg.norm(pull))
    down = tuple((pull / size if size else np.array([0.0, -1.0, 0.0])).tolist())
    found.append(Quantity("gravity", "gravity.number", "m/s^2", (1.0, 30.0), None, partial(_pull, down), value=size))
    return {q.name: q for q in found}


def quantities(stage: Stage) -> dict[str, Quantity]:
    """All that can be asked for in a scene, by full name: everyday names first, then those of the model."""
    made = everyday(stage)
    if stage.entries.pendula:
        return made
    for p in stage.model.parameters():
        # Positions of all particles are no quantity that a video has the numbers for.
        if p.name not in made and len(p.shape) < 2:
            made[p.name] = Quantity(p.name, p.name, "" if p.unit == "1" else p.unit)
    return made


def params(stage: Stage, wanted: Sequence[str]) -> list[Param]:
    """The params of a fit, for the names of `--estimate`. Raises KeyError or `BadScene` with what to do."""
    known = quantities(stage)
    for name in stage.entries.parameters:
        try:
            _full(name, known)
        except KeyError as error:
            raise stage.script.wrong(("parameters", name), str(error.args[0])) from error
    full = [_full(name, known) for name in wanted]
    for name in full:
        if full.count(name) > 1:
            raise KeyError(f"{name} is asked for twice")
    ranges = {_full(name, known): (name, entry) for name, entry in stage.entries.parameters.items()}
    return [_param(stage, known[name], *ranges.get(name, (name, None))) for name in full]


def _full(name: str, known: Mapping[str, Quantity]) -> str:
    """The full name of a quantity."""
    if name in known:
        return name
    if "." not in name:
        having = [k for k in known if k.endswith(f".{name}")]
        if len(having) == 1:
            return having[0]
        if having:
            raise KeyError(f"several objects have a {name}: say which, {' or '.join(having)}")
        words = list(dict.fromkeys(k.rpartition(".")[2] for k in known))
        meant = f"did you mean {MEANT[name]!r}?" if MEANT.get(name) in words else nearest(name, words)
        raise KeyError(f"nothing in this scene has a {name!r}: {meant}")
    raise KeyError(f"there is no parameter {name!r} in this scene: {nearest(name, known)}")


def _param(stage: Stage, quantity: Quantity, written: str, entry: Any) -> Param:
    place = ("parameters", written)
    value = stage.model[quantity.of] if quantity.value is None else quantity.value
    value = np.asarray(value.detach().numpy() if hasattr(value, "detach") else value, np.float64)
    settings: dict[str, Any] = {n: getattr(quantity, n) for n in ("transform", "into", "given", "unit")}
    settings["of"] = None if quantity.of == quantity.name else quantity.of
    start = None
    if entry is not None and quantity.transform != "sphere":
        try:
            low, high = (_number(b, quantity.unit) for b in entry.range)
        except ValueError as error:
            raise stage.script.wrong((*place, "range"), str(error)) from error
    else:
        low, high = quantity.range or _around(value)
    if entry is not None and entry.guess is not None:
        guess = entry.guess if isinstance(entry.guess, tuple) else (entry.guess,)
        try:
            start = np.array([_number(g, quantity.unit) for g in guess])
            start = np.broadcast_to(start if len(start) > 1 else start[0], value.shape)
        except ValueError as error:
            raise stage.script.wrong((*place, "guess"), str(error)) from error
    try:
        made = Param(quantity.name, None if quantity.transform == "sphere" else (low, high), start=start, **settings)
    except ValueError as error:
        wrong = "guess" if "guess" in str(error) else "range"
        raise stage.script.wrong((*place, wrong), str(error).removeprefix(f"{quantity.name}: ")) from error
    return replace(made, transform="linear") if made.kind == "log" and value.size > 1 else made


def _number(written: float | str, unit: str) -> float:
    """A number of a quantity; where the model's unit is not one of ours, plain numbers only."""
    try:
        parse_unit(unit)
    except ValueError:
        return to_number(written, "")
    return to_number(written, unit)


def _around(value: Any) -> tuple[float, float]:
    size = float(np.abs(value).max())
    if value.size > 1 or not value > 0:
        return -FARTHER * max(size, 1.0), FARTHER * max(size, 1.0)
    return size / WIDER, size * WIDER


# -- everyday names
def _of_object(stage: Stage, name: str, entry: Any) -> list[Quantity]:
    if isinstance(entry, RobotEntry):
        return []  # Its parameters have the names of its links and joints.
    speed = max(1.0, 2 * float(np.linalg.norm(entry.velocity)))
    found = [Quantity(f"{name}.velocity", f"{name}.v", "m/s", (-speed, speed), "linear")]
    if isinstance(entry, RigidEntry):
        volume = stage.volume(name)
        mass = Quantity(f"{name}.mass", f"{name}.density", "kg", into=partial(_density_of_mass, name, volume),
                        value=stage.mass(name))  # fmt: skip
        spin = max(1.0, 2 * float(np.linalg.norm(entry.spin)))
        found += [
            Quantity(f"{name}.density", f"{name}.density", "kg/m^3"),
            mass,
            Quantity(f"{name}.position", f"{name}.x", "m"),
            Quantity(f"{name}.rotation", f"{name}.rot", "", transform="sphere"),
            Quantity(f"{name}.spin", f"{name}.omega", "rad/s", (-spin, spin), "linear"),
        ]
    if isinstance(entry, SoftEntry):
        found += [
            Quantity(f"{name}.density", f"{name}.density", "kg/m^3"),
            Quantity(f"{name}.young", f"{name}.E", "Pa"),
            Quantity(f"{name}.poisson", f"{name}.nu", "", (0.01, 0.48), "linear"),
            Quantity(f"{name}.damping", f"{name}.damping", "Pa s"),
        ]
    if isinstance(entry, ClothEntry):
        found += [
            Quantity(f"{name}.density", f"{name}.density", "kg/m^2"),
            *(Quantity(f"{name}.{what}", f"{name}.{what}", "N/m") for what in ("stretch", "shear")),
            Quantity(f"{name}.damping", f"{name}.damping", "N s/m"),
            Quantity(f"{name}.bend", f"{name}.bend", "N m"),
            Quantity(f"{name}.drag", f"{name}.drag", "kg/m^3"),
        ]
    return found


def _of_floor(stage: Stage) -> list[Quantity]:
    floor = stage.entries.floor
    assert floor is not None
    found = [
        Quantity("floor.stiffness", "floor.ke", "N/m"),
        Quantity("floor.damping", "floor.kd", "N s/m"),
        Quantity("floor.friction", "floor.mu", "", (0.02, 2.0)),
        Quantity("floor.slip_damping", "floor.kf", "N s/m"),
        Quantity("floor.height", "floor.offset", "m", into=partial(_offset_of_height, floor.up[1]), value=floor.height),
    ]
    if len(stage.entries.rigid) == 1:
        (body,) = stage.entries.rigid
        into = partial(_damping_of_restitution, f"{body}.density", stage.volume(body))
        found.append(Quantity("floor.restitution", "floor.kd", "", (0.05, 0.95), "linear", into,
                              ("floor.ke", f"{body}.density"), 0.5))  # fmt: skip
    return found


def _pull(down: tuple[float, ...], size: Any) -> dict[str, Any]:
    """The vector of a gravity that is one number."""
    way = size.new_tensor(down) if hasattr(size, "new_tensor") else np.array(down)
    return {"gravity": size[..., None] * way}


def _offset_of_height(up: float, height: Any) -> dict[str, Any]:
    return {"floor.offset": height * up}


def _density_of_mass(name: str, volume: float, mass: Any) -> dict[str, Any]:
    return {f"{name}.density": mass / volume}


def _damping_of_restitution(density: str, volume: float, e: Any, others: Mapping[str, Any]) -> dict[str, Any]:
    e = e.clip(LEAST, MOST)
    return {"floor.kd": damping_of(e, stiffness=others["floor.ke"], mass=others[density] * volume)}
