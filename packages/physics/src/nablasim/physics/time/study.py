"""Models for study: the forces and energies of a state, how they move, and products with the Hessian of the energy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from nablasim.physics.model import Model, Part, Real, State, Step, between_graphs, is_torch, needs_gradient, part, plain
from nablasim.physics.time.leaves import Leaves
from nablasim.physics.time.programs import looking
from nablasim.physics.time.studies import Looking, ShowEnergies, ShowForces, look_at_energies, look_at_forces
from nablasim.physics.time.tangents import read_directions

Columns = Mapping[str, Any]


@between_graphs
def forces(model: Model, state: State | None = None, *, tangents: Mapping[str, Any] | None = None) -> dict[str, Part]:
    """The forces (N) on everything in a state, by object: `forces["gear"].f` is (n, 3). Without gravity.

    tangents: directions of parameters by name, as in `ph.jvp`; those of the state are "gear.x", "gear.v" and so on.
        Gives how the forces move instead, with the axis of tangents in front.

    Where parameters of the model are torch tensors that ask for gradients, so are the forces: by the state, too, where
    it is that of the model, `model.replace({"gear.x": x})`.
    """

    def look() -> dict[str, Real]:
        program, start = looking(model), state or model.state0

        def see(step: Step) -> dict[str, Real]:
            for system in program.systems:
                system.place(step)
            for system in program.systems:
                system.forces(step)
            found = {c.name: program.worlds(c.name, step.numpy(c)).copy() for c in program.sum_columns}
            for name in [n for n in found if ".contact_" in n]:
                found[name.replace(".contact_", ".")] += found.pop(name)
            return found

        with program.lock:
            program.load(None, model.columns, 0.0)
            seen: dict[str, Real] = program.look(start.columns, see)
            return seen

    op = Looking("ph.forces", _at(model, state), [], look_at_forces, ShowForces())
    if tangents is not None:
        moved = _pushed(op, tangents)
        single = model.batch is None
        return _parts(model, moved, lambda values, rows: values[:, 0, rows] if single else values[:, :, rows], False)
    found = _as_asked(op, look)
    return _parts(model, found, lambda values, rows: values[:, rows], model.batch is None)


@between_graphs
def energy(model: Model, state: State | None = None, *, tangents: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The energy (J) of a state by system, with gravity in that of the masses; "total" is their sum.

    In a batch there is one number per copy, or per scene. `tangents` and torch tensors are as for `ph.forces`; energies
    have second derivatives as well.
    """
    if model.layout.scenes and model.batch is None:
        if tangents is not None:
            raise ValueError("this is a batch of different scenes: push the tangents of model.scenes one by one")
        states = [None] * len(model.scenes) if state is None else state.scenes
        each = [energy(scene, at) for scene, at in zip(model.scenes, states)]
        names = sorted(dict.fromkeys(chain(*each)), key=lambda name: name == "total")  # The sum comes last.
        return {name: _stacked([one.get(name, 0.0) for one in each]) for name in names}

    def look() -> dict[str, Real]:
        program, start = looking(model), state or model.state0

        def see(step: Step) -> dict[str, Real]:
            found = {}
            for system in program.systems:
                system.place(step)
            for system in program.systems:
                each = system.energy(step)
                if each is not None:
                    by_copy = np.asarray(each.numpy(), np.float64).reshape(model.layout.worlds, -1)
                    found[system.name] = by_copy.sum(axis=1)
            return found

        with program.lock:
            program.load(None, model.columns, 0.0)
            seen: dict[str, Real] = program.look(start.columns, see)
            return seen

    op = Looking("ph.energy", _at(model, state), [], look_at_energies, ShowEnergies())
    found: dict[str, Any] = _as_asked(op, look) if tangents is None else dict(_pushed(op, tangents))
    found["total"] = sum(found.values())
    if model.batch is not None:
        return dict(found)
    if tangents is not None:
        return {name: values[:, 0] for name, values in found.items()}
    return {name: values[0] if is_torch(values) else float(values[0]) for name, values in found.items()}


def hessian_vector(model: Model, state: State | None, tangents: Mapping[str, Any]) -> dict[str, Real]:
    """Products of the Hessian of the energy with directions: `ph.hessian_vector(model, state, {"block.x": v})`.

    tangents: directions of positions, or of any other parameters, by name, in the shape of their values, or k of them
        along an axis in front, as in `ph.jvp`. With several names the Hessian is that by all of them together.

    The energy is the "total" of `ph.energy`; where only positions move, the product is how the conservative forces
    change, with the other sign. `state=None` is the start. Gives arrays in the shape of the directions. In a batch each
    copy has a Hessian of its own.
    """
    if not isinstance(model, Model):
        raise TypeError(f"the energy is that of a model that Scene.build gives, not of a {type(model).__name__}")
    if model.layout.scenes and model.batch is None:
        raise ValueError("this is a batch of different scenes: take products for model.scenes one by one")
    op = Looking("ph.hessian_vector", _at(model, state), list(tangents), look_at_energies, ShowEnergies())
    directions, _ = read_directions(Leaves(op.model, None, 0), tangents)
    values = [np.broadcast_to(op.value(name), way.shape[1:]) for name, way in directions.items()]
    found = op.products(values, list(directions.values()))
    return {name: a if np.ndim(plain(way)) == a.ndim else a[0] for (name, way), a in zip(tangents.items(), found)}


def _at(model: Model, state: State | None) -> Model:
    return model if state is None else model.at(state)


def _pushed(op: Looking, tangents: Mapping[str, Any]) -> dict[str, Real]:
    """How what is seen moves, k in front."""
    if op.model.layout.scenes and op.model.batch is None:
        raise ValueError("this is a batch of different scenes: push the tangents of model.scenes one by one")
    op.by = list(tangents)
    directions, _ = read_directions(Leaves(op.model, None, 0), tangents)
    values = [np.broadcast_to(op.value(name), way.shape[1:]) for name, way in directions.items()]
    moved = op.push(values, list(directions.values()))
    return dict(zip(op.names, moved))


def _as_asked(op: Looking, look: Callable[[], dict[str, Real]]) -> dict[str, Any]:
    """Numbers; tensors, where tensors among the parameters ask for derivatives."""
    foreign = {name: value for name, value in op.model.foreign.items() if is_torch(value)}
    if foreign:
        from kernelc.torch import follow, followed

        asked = {name: value for name, value in foreign.items() if needs_gradient(value) or followed(value)}
        if asked:
            op.by = list(asked)
            found = follow(op, list(asked.values()))
            return dict(zip(op.names, found))
    return look()


def _stacked(each: list[Any]) -> Any:
    if not any(map(is_torch, each)):
        return np.array(each)
    import torch

    return torch.stack([torch.as_tensor(one, dtype=torch.float64) for one in each])


def _parts(model: Model, found: Columns, cut: Callable[[Any, slice], Any], single: bool) -> dict[str, Part]:
    """By object that has a state."""
    layout = model.layout
    things = State(layout, {name: np.zeros(0) for name, c in layout.columns.items() if c.role == "state"})
    return {name: part(layout, name, found, cut, single) for name in things}
