"""What a rollout depends on: the values of a model and of its control, which of them ask for gradients, and how those
come about from gradients of columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from nablasim.physics.checks import finite, nearest
from nablasim.physics.model import Model, Parameter, Real, is_kernelc, needs_gradient, plain, shape_of


class Leaves:
    """The parameters of a model, and the control: parameters that vary in time, one value per step in front."""

    def __init__(self, model: Model, control: Mapping[str, Any] | None, steps: int, by: Collection[str] | None = None):
        """`by` names what is differentiated by; without it, what requires a gradient is."""
        if callable(control):
            raise TypeError("control is a dictionary of arrays over the steps; a policy is not supported here")
        self.model, self.steps = model, steps
        self.control = {name: _checked(model, name, value, steps) for name, value in (control or {}).items()}
        values = [(name, False, value) for name, value in model.foreign.items()]
        values += [(name, True, value) for name, value in self.control.items()]
        named = [(name, name in self.control, self.control.get(name, model[name])) for name in by or ()]
        self.wanted = named if by is not None else [one for one in values if needs_gradient(one[2])]
        """Name, whether it is of the control, and value of all that is differentiated by."""
        self.live = [(name, varies, value) for name, varies, value in values if is_kernelc(value)]
        """The same of kernelc arrays, whose content may be another one in a replay."""

    @property
    def asking(self) -> list[Any]:
        """The values that are differentiated by."""
        return [value for _, _, value in self.wanted]

    def columns(self, names: Any) -> frozenset[str]:
        """Where the values of some parameters go."""
        parameters = self.model.layout.parameters
        return frozenset(place.column for name in names for place in parameters[name].places)

    def control_columns(self, model: Model) -> dict[str, Real]:
        """The columns that vary, (steps, worlds, rows, *element), in a model that may have fresh values."""
        made: dict[str, Real] = {}
        for name, value in self.control.items():
            parameter = model.layout.parameters[name]
            for place in parameter.places:
                if place.column not in made:
                    made[place.column] = np.repeat(model.columns[place.column][None], self.steps, axis=0)
            model.layout.write(made, parameter, plain(value), lead=1)
        return made

    def gradients(self, by_column: Mapping[str, Real], by_control: Mapping[str, Real]) -> list[Real]:
        """The gradients of what asks for one."""
        layout, found = self.model.layout, []
        for name, varies, value in self.wanted:
            shape = shape_of(value)
            assert shape is not None
            grads = by_control if varies else by_column
            found.append(layout.read_gradient(grads, layout.parameters[name], shape, lead=int(varies)))
        return found


def _checked(model: Model, name: str, value: Any, steps: int) -> Any:
    """The control of one parameter, if it can vary and fits."""
    parameter: Parameter = model.parameter(name)
    columns, known = model.layout.columns, model.layout.parameters
    varying = [n for n, p in known.items() if all(columns[place.column].per_step for place in p.places)]
    if name not in varying:
        raise ValueError(f"{name!r} cannot vary in time: {nearest(name, varying)}")
    if needs_gradient(model[name]):
        raise ValueError(f"{name!r} requires a gradient, but the control replaces it at every step: give one of them")
    shape = shape_of(value)
    if shape is None:
        value = np.array(value, np.float64)
        shape = value.shape
    if shape[:1] != (steps,) or parameter.aligned(shape[1:], model.batch) is None:
        full = ", ".join(map(str, (steps, *parameter.full)))
        raise ValueError(f"control of {name!r} has shape {shape}; expected one row per step: ({steps},) or ({full})")
    finite(f"control of {name!r}", plain(value))
    return value


def directed(leaves: Leaves, directions: Mapping[str, Real], count: int) -> tuple[dict[str, Real], dict[str, Real]]:
    """How given columns and the start move, (k, rows, *element), and those that vary in time, (k, steps, rows, ...)."""
    layout, real = leaves.model.layout, leaves.model.real
    steady: dict[str, Real] = {}
    varied: dict[str, Real] = {}
    for name, value in directions.items():
        parameter, varies = layout.parameters[name], name in leaves.control
        into, lead = (varied, (count, leaves.steps)) if varies else (steady, (count,))
        for place in parameter.places:
            c = layout.columns[place.column]
            into.setdefault(c.name, np.zeros((*lead, layout.worlds, layout.count.get(c.table, 0), *c.shape), real))
        layout.write(into, parameter, value, lead=len(lead))
    return ({n: a.reshape(count, -1, *a.shape[3:]) for n, a in steady.items()},
            {n: a.reshape(count, leaves.steps, -1, *a.shape[4:]) for n, a in varied.items()})  # fmt: skip
