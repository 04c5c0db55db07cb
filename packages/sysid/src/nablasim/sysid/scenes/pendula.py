"""Pendula of scene files: the model that they are, where the corners of their bobs are, and what can be found of them.

One is a `ph.Pendulum`, two that hang on each other a `ph.DoublePendulum`. Angles are radians here, as in the models.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from nablasim import physics as ph
from nablasim.sysid.problem import Param, Pyramid
from nablasim.sysid.scenes.object_entries import PendulumEntry
from nablasim.sysid.scenes.quantities import Range
from nablasim.sysid.scenes.reading import Script

ANYWHERE = {"length": (0.05, 5.0), "angle": (-np.pi, np.pi), "rate": (-15.0, 15.0), "damping": (1e-4, 1.0)}
"""Where what is unknown is searched for: m, rad, rad/s, N m s/rad."""
UNITS = {"length": "m", "angle": "rad", "rate": "rad/s", "mass": "kg", "damping": "N m s/rad"}
LEVELS = 4
"""Of a pyramid of pictures: bobs are small, and what does not overlap has no slope."""


def pendula_of(script: Script) -> list[tuple[str, PendulumEntry]]:
    """The upper one first."""
    found = [(n, script.entries.objects[n]) for n in script.entries.pendula]
    return [(n, e) for n, e in found if isinstance(e, PendulumEntry)]


def model_of(script: Script) -> Any:
    """The pendulum, or both; what is a range is at its middle."""
    hung = [e for _, e in pendula_of(script)]
    values: dict[str, Any] = {what: [_value(e, what) for e in hung] for what in UNITS}
    x, y, z = script.entries.gravity
    if x or z or y > 0:
        raise script.wrong(("gravity",), "pendula swing in a gravity that points down, along -y")
    if len(hung) == 1:
        return ph.Pendulum(**{what: v[0] for what, v in values.items()}, gravity=-y)
    return ph.DoublePendulum(**values, gravity=-y)


def _value(entry: PendulumEntry, what: str) -> float:
    value = getattr(entry, what)
    if isinstance(value, Range):
        low, high = _ends(entry, what)
        return float((low * high) ** 0.5 if low > 0 else (low + high) / 2)
    return float(np.radians(value)) if what == "angle" else float(value)


def _ends(entry: PendulumEntry, what: str) -> tuple[float, float]:
    """Where it is searched for."""
    value = getattr(entry, what)
    if not isinstance(value, Range) or value.unknown:
        return ANYWHERE[what]
    ends = (float(value.low), float(value.high))
    return (float(np.radians(ends[0])), float(np.radians(ends[1]))) if what == "angle" else ends


def pictured(script: Script) -> dict[str, Any]:
    """What `Pictures` has to know of them."""
    hung, radii = [e for _, e in pendula_of(script)], []
    for name, entry in pendula_of(script):
        if isinstance(entry.radius, Range):
            raise script.wrong(("objects", name, "radius"), "pixels need the size of the bob: write one number")
        radii.append(entry.radius)
    return {"bob": tuple(radii), "pivot": hung[0].pivot or (0.0, 0.0, 0.0), "loss": Pyramid(LEVELS)}


def facts(script: Script) -> list[tuple[str, str, str, tuple[float, float] | None, Any, float]]:
    """What can be found: name, the model's, unit, range, what a value means for the model, and the value."""
    hung, made = pendula_of(script), []
    for k, (name, entry) in enumerate(hung):
        for what, unit in UNITS.items():
            span = _ends(entry, what) if what in ANYWHERE else None
            into = partial(_link, what, k, len(hung))
            made.append((f"{name}.{what}", what, unit, span, into, _value(entry, what)))
    return made


def _link(what: str, k: int, count: int, value: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """One number of the model: of a double pendulum, that of one of its rods."""
    if count == 1:
        return {what: value}
    base = given[what]
    if hasattr(value, "new_tensor"):
        import torch

        base = base if hasattr(base, "new_tensor") else value.new_tensor(base)
        parts = torch.broadcast_tensors(*(value if j == k else base[..., j] for j in range(count)))
        return {what: torch.stack(list(parts), dim=-1)}
    parts = np.broadcast_arrays(*(value if j == k else np.asarray(base)[..., j] for j in range(count)))
    return {what: np.stack(parts, axis=-1)}


def open_params(script: Script) -> list[Param]:
    """Nuisances: lengths and beginnings that the file gives as ranges, or not at all."""
    made = []
    for name, what, unit, span, into, value in facts(script):
        entry = script.entries.objects[name.partition(".")[0]]
        if what in getattr(entry, "unknown", ()):
            made.append(Param(name, span, start=value, into=into, given=(what,), unit=unit))
    return made
