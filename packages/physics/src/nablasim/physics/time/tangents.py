"""Tangents of rollouts: how all frames move along directions of parameters, in one sweep beside the rollout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nablasim.physics.checks import check_counts, finite
from nablasim.physics.model import Model, Parameter, Real, plain, shape_of
from nablasim.physics.time.checkpoints import plan
from nablasim.physics.time.integrators import Integrator, named
from nablasim.physics.time.leaves import Leaves, directed
from nablasim.physics.time.runs import Run
from nablasim.physics.time.settings import Settings
from nablasim.physics.time.trajectory import Tangents, Trajectory


def jvp(
    model: Model,
    tangents: Mapping[str, Any],
    *,
    dt: float,
    steps: int,
    every: int = 1,
    substeps: int = 1,
    integrator: str | Integrator = "semi_implicit",
    control: Mapping[str, Any] | None = None,
    check: bool = True,
    primal: bool = False,
) -> Any:
    """How the frames of a rollout move where parameters do: exact tangents, k of them at once.

    tangents: a direction for each parameter that moves, by name, in the shape of its value; or k directions along an
        axis in front. That of a parameter in `control` has the steps behind that axis.
    primal: give the rollout as well, (trajectory, tangents): it is computed on the way.

    The others are those of `ph.rollout`. Gives a `Trajectory` of tangents, as NumPy arrays with the axis of tangents in
    front: `ph.jvp(model, {"cube.density": 1.0}, dt=1e-3, steps=500)["cube"].x` is (1, frames, 3). Memory does not
    depend on the number of steps. At a kink, such as a contact that begins, the derivative is that of the side the
    rollout is on.
    """
    if not isinstance(model, Model):
        raise TypeError(f"tangents are those of a model that Scene.build gives, not of a {type(model).__name__}")
    if model.layout.scenes:
        raise ValueError("this model is a batch: push the tangents of its scenes one by one (model.scenes)")
    check_counts(dt, steps, every, substeps)
    leaves = Leaves(model, control, steps, by=tangents)
    directions, count = read_directions(leaves, tangents)
    run = pushing(leaves, Settings(dt, steps, every, substeps, named(integrator), check=check))
    steady, varied = directed(leaves, directions, count)
    seen, moved = run.push(steady, varied)
    times = np.arange(steps // every + 1, dtype=np.float64) * (dt * every)
    rolled = Trajectory(model.layout, times, seen, run.solves, model)
    found = Tangents(rolled, moved, {name: ways for name, ways in steady.items() if name not in moved})
    return (rolled, found) if primal else found


def pushing(leaves: Leaves, how: Settings) -> Run:
    """A run that keeps one segment of steps: what tangents need."""
    run = how.run(leaves, tangents=True)
    steps, program = run.plan.steps, run.program
    run.plan = plan("auto", steps=steps, frame=run.frame, state_bytes=program.state_bytes,
                    step_bytes=program.step_bytes, differentiable=False)  # fmt: skip
    return run


def read_directions(leaves: Leaves, tangents: Mapping[str, Any]) -> tuple[dict[str, Real], int]:
    """Directions of parameters with an axis of tangents in front, and how many there are."""
    if not tangents:
        raise ValueError('no parameter moves: write {"name": direction}; model.names() lists the names')
    read = {name: _read(leaves, name, value) for name, value in tangents.items()}
    count = _agreed({name: k for name, (_, k) in read.items()})
    return {name: np.broadcast_to(value, (count, *value.shape[1:])) for name, (value, _) in read.items()}, count


def _read(leaves: Leaves, name: str, value: Any) -> tuple[Real, int | None]:
    """A direction with an axis of tangents in front, and how many there are; None where the axis was not given."""
    model, varies = leaves.model, name in leaves.control
    parameter: Parameter = model.parameter(name)
    of = leaves.control[name] if varies else model[name]
    shape = tuple(shape_of(of) or ())
    direction = finite(f"the direction of {name!r}", np.asarray(plain(value), np.float64))
    # First in the shape that the value has: where that is (3,), (3, 3) is three directions.
    if direction.shape == shape:
        return direction[None], None
    if direction.ndim and direction.shape[1:] == shape:
        return direction, len(direction)
    if not varies and parameter.aligned(direction.shape, None) is not None:
        return direction[None], None
    raise ValueError(f"the direction of {name!r} has shape {direction.shape}; expected {shape}, or (k, "
                     f"{', '.join(map(str, shape))}) for k of them")  # fmt: skip


def _agreed(counts: Mapping[str, int | None]) -> int:
    """How many tangents there are."""
    given = {name: k for name, k in counts.items() if k is not None}
    if len(set(given.values())) > 1:
        said = ", ".join(f"{k} of {name!r}" for name, k in given.items())
        raise ValueError(f"directions are as many for every parameter: there are {said}")
    return next(iter(given.values()), 1)
