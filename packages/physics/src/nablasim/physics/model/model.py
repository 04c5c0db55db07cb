"""A scene that is ready to run: an immutable tree of named values.

To optimise a quantity, replace its value by a tensor or an array that requires a gradient:
`model.replace({"gear.mu": torch.tensor(1e3, requires_grad=True)})`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from nablasim.physics.checks import check_numbers, finite, nearest
from nablasim.physics.model.draft import Parameter, Real
from nablasim.physics.model.layout import Layout
from nablasim.physics.model.scenes import joined, joined_columns, named
from nablasim.physics.model.state import State
from nablasim.physics.model.surfaces import Surface
from nablasim.physics.model.values import between_graphs, is_kernelc, is_torch, plain, shape_of


class Model:
    """What `Scene.build` gives. Models are values: `replace` makes another one, and shares what was compiled."""

    def __init__(
        self,
        layout: Layout,
        real: str,
        values: Mapping[str, Any],
        off: frozenset[str],
        like: Model | None = None,
        changed: frozenset[str] = frozenset(),
        parts: Sequence[Model] = (),
    ):
        """`like` is a model whose columns are the same but for those `changed`; `parts` are models that it joins."""
        self.layout, self.real = layout, real
        self._values, self._off = dict(values), off
        self._like, self._changed, self._parts = like, changed, parts
        self._present: frozenset[str] = frozenset()

    @property
    def batch(self) -> int | None:
        """How many copies of the scene there are, or None for a single one and for different ones side by side."""
        return self.layout.copies

    def batched(self, copies: int) -> Model:
        """So many copies of the same scene, each with its own parameters from now on."""
        if self.batch is not None:
            raise ValueError(f"this is a batch of {self.batch} already")
        return batch([self] * copies)

    @property
    def scenes(self) -> list[Model]:
        """The scenes of a batch, each with the values that it has now, as models of their own."""
        return [self._scene(k) for k in range(len(self.layout.scenes))] or [self]

    def _scene(self, k: int) -> Model:
        layout = self.layout.scenes[k]
        if self.batch is not None:
            values = {n: _of_copy(p, self._values[n], k, self.batch) for n, p in layout.parameters.items()}
            return Model(layout, self.real, values, self._off)
        values = {name: self._values[named(k, name)] for name in layout.parameters}
        return Model(layout, self.real, values, frozenset(n for n in values if named(k, n) in self._off))

    @property
    def surfaces(self) -> Mapping[str, Surface]:
        """The triangles of every object that can be drawn, by name; `Trajectory.vertices` says where they are."""
        return self.layout.surfaces

    # -- parameters
    def parameters(self) -> list[Parameter]:
        """Every quantity that can be optimised: name, shape, unit, bounds and the value that it has now.

        Of quantities that exclude each other, such as density and mass, those in force.
        """
        return [
            replace(p, value=self._values[name])
            for name, p in self.layout.parameters.items()
            if name not in self._off
        ]

    def names(self) -> list[str]:
        return [name for name in self.layout.parameters if name not in self._off]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.layout.parameters and name not in self._off

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter: a NumPy array, or the tensor or array that replaced it."""
        self.parameter(name)
        if name in self._off:
            raise KeyError(f"{name!r} is not in force: {self._instead(name)}")
        return self._values[name]

    @between_graphs
    def replace(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Model:
        """The same model with other values of some parameters: numbers, NumPy arrays, torch tensors, kernelc arrays.

        One number stands for all rows, and its gradient is the sum. Giving one of several quantities that exclude each
        other (`mass` for `density`, `E` and `nu` for `mu` and `lam`) puts that one in force.
        """
        given = {**(values or {}), **more}
        made, off = dict(self._values), set(self._off)
        chosen: dict[str, tuple[str, str]] = {}
        for name, value in given.items():
            parameter = self.parameter(name)
            made[name] = self._checked(parameter, value)
            if parameter.choice is not None:
                group, option = parameter.choice
                other, by = chosen.setdefault(group, (option, name))
                if other != option:
                    what = group.partition(": ")[2]
                    raise ValueError(f"{name!r} and {by!r} exclude each other: give the {what} once")
        for group, (option, _) in chosen.items():
            for name, other in self.layout.choices[group].items():
                (off.discard if other == option else off.add)(name)
        moved = {*given, *(off ^ self._off)}
        changed = frozenset(place.column for name in moved for place in self.layout.parameters[name].places)
        return Model(self.layout, self.real, made, frozenset(off), self, changed)

    def refreshed(self) -> Model:
        """The same model with what its tensors and arrays hold now."""
        places = (place for name in self.foreign for place in self.layout.parameters[name].places)
        self.columns  # noqa: B018  (what does not change)
        return Model(self.layout, self.real, self._values, self._off, self, frozenset(place.column for place in places))

    def with_numbers(self, values: Mapping[str, Real]) -> Model:
        """The same model with numbers in the place of tensors. What those hold is not asked for."""
        return Model(self.layout, self.real, {**self._values, **values}, self._off)

    def parameter(self, name: str) -> Parameter:
        """The description of a parameter, in force or not, with the value that the scene was built with."""
        if name not in self.layout.parameters:
            raise KeyError(f"there is no parameter {name!r}: {nearest(name, self.layout.parameters)}")
        return self.layout.parameters[name]

    def _instead(self, name: str) -> str:
        choice = self.layout.parameters[name].choice
        assert choice is not None
        others = [n for n, p in self.layout.parameters.items() if p.choice and p.choice[0] == choice[0]
                  and n not in self._off]  # fmt: skip
        return f"{' and '.join(map(repr, others))} stand for it; model.replace({{{name!r}: ...}}) changes that"

    def _checked(self, parameter: Parameter, value: Any) -> Any:
        check_numbers(parameter.name, value)
        shape = shape_of(value)
        if shape is None:
            try:
                found = np.asarray(value)
                check_numbers(parameter.name, found)
                value = found.astype(np.float64)
            except (TypeError, ValueError):
                raise TypeError(
                    f"{parameter.name}: a value is a number, a NumPy array, a torch tensor or a kernelc array, "
                    f"not {type(value).__name__}"
                ) from None
            shape = value.shape
        elif isinstance(value, np.ndarray):
            value = value.copy()  # a model does not change when whoever gave it numbers writes others there
        if parameter.aligned(tuple(shape), self.batch) is None:
            sizes = [f"{s}" for s in dict.fromkeys([(), parameter.element, parameter.full])]
            lead = f", each also with {self.batch} in front for the copies of the batch" if self.batch else ""
            raise ValueError(f"{parameter.name} has shape {tuple(shape)}; expected {' or '.join(sizes)}{lead}")
        return value

    # -- what a rollout needs
    @cached_property
    def columns(self) -> dict[str, Real]:
        """The given columns and the start of the state, (worlds, rows, *element), in the model's precision. Read-only.

        Columns that a replacement did not touch are those of the model that it came from.
        """
        like, self._like = self._like, None
        parts, self._parts = self._parts, ()
        layout = self.layout
        if parts:
            self._present = frozenset[str]().union(*(part.present for part in parts))
            return joined_columns(layout, [part.columns for part in parts])
        made = {} if like is None else dict(like.columns)
        changed = layout.steady if like is None else self._changed
        numbers: dict[str, Real] = {}
        for column in changed:
            for p in layout.by_column[column]:
                if p.name not in numbers and p.name not in self._off:
                    numbers[p.name] = self._number(p.name)
            made[column] = layout.fill(column, numbers, self.real)
        before = frozenset[str]() if like is None else like._present - self._changed
        self._present = before.union(n for n in layout.optional if n in changed and made[n].any())
        return made

    @property
    def present(self) -> frozenset[str]:
        """The optional columns that are not zero."""
        self.columns  # noqa: B018  (they say it)
        return self._present

    @cached_property
    def foreign(self) -> dict[str, Any]:
        """The parameters whose values are tensors or arrays of kernelc: they may ask for gradients."""
        return {n: a for n, a in self._values.items() if type(a) is not np.ndarray and n not in self._off}

    def _number(self, name: str) -> Real:
        return self.layout.parameters[name].checked(finite(name, plain(self._values[name])))

    @property
    def state0(self) -> State:
        """The state at time zero."""
        columns = self.layout.columns
        return State(self.layout, {name: values for name, values in self.columns.items()
                                   if columns[name].role == "state"})  # fmt: skip

    def at(self, state: State) -> Model:
        """The same model, starting from another state."""
        made = {}
        for thing in self.layout.things.values():
            for name in state[thing.name].names if thing.name in state else ():
                made[f"{thing.name}.{name}"] = getattr(state[thing.name], name)
        return self.replace(made)

    def __repr__(self) -> str:
        things = ", ".join(f"{t.name} ({t.kind})" for t in self.layout.things.values() if t.kind != "link")
        copies = f"{self.batch} copies of " if self.batch else ""
        if self.layout.scenes and not self.batch:
            copies = f"{len(self.layout.scenes)} scenes with "
        return f"<Model of {copies}{things}; {len(self.names())} parameters, {self.real}>"


def batch(models: Sequence[Model]) -> Model:
    """Many scenes in one model, which a rollout runs in the same launches, and of which none feels another.

    Replacements of one built model are copies of its scene: values and frames have the copies in front. Models of
    different scenes keep their shapes, and what belongs to scene k has "k/" in front of its name: "0/cube.density",
    "1/gravity". In both cases `scenes` of a model, of a state and of a trajectory are those of the scenes one by one.
    """
    if not models:
        raise ValueError("batch needs at least one model")
    first = models[0]
    for i, other in enumerate(models):
        if not isinstance(other, Model):
            raise TypeError(f"model {i} is a {type(other).__name__}; a batch is made of models from `Scene.build`")
        if other.batch is not None:
            raise ValueError(f"model {i} is a batch of copies itself: give its scenes one by one, `*model.scenes`")
        if other.real != first.real:
            raise ValueError(
                f"model {i} was built with real={other.real!r} and model 0 with real={first.real!r}: the scenes of a "
                f"batch have the same precision"
            )
    return _copies(models) if all(m.layout is first.layout for m in models) else _side_by_side(models)


def _side_by_side(models: Sequence[Model]) -> Model:
    """A batch of different scenes."""
    values = {named(k, name): value for k, m in enumerate(models) for name, value in m._values.items()}
    off = frozenset(named(k, name) for k, m in enumerate(models) for name in m._off)
    return Model(joined([m.layout for m in models]), models[0].real, values, off, parts=models)


def _copies(models: Sequence[Model]) -> Model:
    """A batch of replacements of one model."""
    first = models[0]
    for i, other in enumerate(models):
        if other._off != first._off:
            name = min(other._off ^ first._off)
            raise ValueError(f"model {i} differs in which quantities are in force: {name!r} in only one of the two")
    layout = first.layout.batched(len(models))
    values = {
        name: _stacked(layout.parameters[name], [m._values[name] for m in models], len(models))
        for name in first.layout.parameters
    }
    return Model(layout, first.real, values, first._off)


def _of_copy(parameter: Parameter, value: Any, copy: int, copies: int) -> Any:
    """What a value of a batch is for one copy."""
    shape = shape_of(value)
    assert shape is not None
    if not parameter.by_copy(shape, copies):
        return value
    # One element alone is no array of kernelc.
    return value[copy : copy + 1] if is_kernelc(value) and shape[1:] == parameter.element else value[copy]


def _stacked(parameter: Parameter, values: list[Any], copies: int) -> Any:
    """One value for all copies if they share it, otherwise with the copies in front."""
    one = values[0]
    aligned = parameter.aligned(shape_of(one) or (), copies)
    if all(v is one for v in values) and aligned is not None and aligned[0] == 1:
        return one
    if any(is_kernelc(v) for v in values):
        raise TypeError(f"{parameter.name}: stack the arrays of kernelc yourself, copies first, and replace by that")
    shapes = {shape_of(v) for v in values}
    if any(is_torch(v) for v in values):
        import torch

        values = [v if is_torch(v) else torch.as_tensor(v) for v in values]
        return torch.stack(values if len(shapes) == 1 else [torch.broadcast_to(v, parameter.full) for v in values])
    return np.stack(values if len(shapes) == 1 else [np.broadcast_to(v, parameter.full) for v in values])


