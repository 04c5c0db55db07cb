"""Runs models: `rollout`, one differentiable operation for any number of steps, and `forces` and `energy` for study."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from itertools import chain
from typing import Any, Literal
from warnings import warn

import numpy as np

import kernelc as kc
from nablasim.physics.checks import check_counts
from nablasim.physics.errors import StepShortened, StepTooLarge
from nablasim.physics.model import Model, Part, Real, Standalone, State, Step, is_kernelc, is_torch, part
from nablasim.physics.time.checkpoints import plan
from nablasim.physics.time.integrators import Integrator, named
from nablasim.physics.time.leaves import Leaves
from nablasim.physics.time.programs import looking, program_of
from nablasim.physics.time.runs import Run
from nablasim.physics.time.solvers.backward_euler import Solves
from nablasim.physics.time.trajectory import Trajectory


def rollout(
    model: Model | Standalone,
    *,
    dt: float,
    steps: int,
    every: int = 1,
    substeps: int | Literal["auto"] = "auto",
    integrator: str | Integrator = "semi_implicit",
    control: Mapping[str, Any] | None = None,
    checkpoint: str | int = "auto",
    check: bool = True,
) -> Any:
    """Run a model for `steps` steps of `dt` seconds and look at it every `every` steps, from the start on.

    substeps: each step is made of this many shorter ones. "auto" is one, or up to four (with a warning) where the step
        is too large for the elements of cloth.
    integrator: "semi_implicit", "backward_euler", or an integrator with settings such as `ph.BackwardEuler(tol=1e-6)`.
    control: parameters that vary in time, by name: an array with one value per step in front, such as
        {"gear.activation": (steps, tetrahedra)} or (steps,) for all alike.
    checkpoint: what is kept for the gradient: "all" states, about 2 "sqrt"(steps) of them, at most so many states, or
        bytes (numbers from 1 MB on); "auto" keeps all of them if they take little memory. Never changes the gradient.
    check: refuse a step beyond the estimated limit of stability.

    With torch tensors among the parameters or in the control, the frames are the result of one autograd operation. With
    kernelc arrays and an open `kc.Tape`, the rollout is recorded on it as one operation, and frames are kernelc arrays.

    Gives a `Trajectory`; for models that stand beside scenes, such as smoke and pendula, the frames that they have.
    """
    if isinstance(model, Standalone):
        usual = {"every": 1, "substeps": "auto", "integrator": "semi_implicit", "control": None, "checkpoint": "auto",
                 "check": True}  # fmt: skip
        given = {"every": every, "substeps": substeps, "integrator": integrator, "control": control,
                 "checkpoint": checkpoint, "check": check}  # fmt: skip
        return model.rollout(dt=dt, steps=steps, **{name: v for name, v in given.items() if v != usual[name]})
    parts = 1 if substeps == "auto" else substeps
    check_counts(dt, steps, every, parts)
    leaves = Leaves(model, control, steps)
    program = program_of(leaves, named(integrator), leaves.columns(name for name, _, _ in leaves.wanted))

    def prepared(parts: int) -> Run:
        run = Run(
            program=program,
            columns=model.columns,
            control=leaves.control_columns(model),
            dt=dt / parts,
            plan=plan(
                checkpoint,
                steps=steps * parts,
                frame=every * parts,
                state_bytes=program.state_bytes,
                step_bytes=program.step_bytes,
                differentiable=program.differentiable,
            ),
            frame=every * parts,
            hold=parts,
            solves=None if program.integrator.explicit else Solves(steps * parts),
        )
        run.check(explicit=check and program.integrator.explicit)
        return run

    try:
        run = prepared(parts)
    except StepTooLarge as error:
        if substeps != "auto":
            raise
        run = prepared(_more_parts(model, dt, error))
    times = np.arange(steps // every + 1, dtype=np.float64) * (dt * every)
    return Trajectory(model.layout, times, _run(run, leaves), run.solves, model)


def _more_parts(model: Model, dt: float, error: StepTooLarge) -> int:
    """How many substeps a rollout takes by itself. Others than cloth are refused: one looks at how stiff they are."""
    parts = int(np.ceil(dt / (0.9 * error.limit)))
    if model.layout.things[error.thing].kind != "cloth" or parts > MOST_PARTS:
        raise error
    warn(
        f"{error.thing!r}: cloth is light and stiff in its plane, and dt = {dt:g} s is beyond its limit of about "
        f"{error.limit:.3g} s. Each step is taken as {parts} shorter ones; substeps={parts} says that it is meant",
        StepShortened, stacklevel=3,
    )  # fmt: skip
    return parts


def forces(model: Model, state: State | None = None) -> dict[str, Part]:
    """The forces (N) on everything in a state, by object: `forces["gear"].f` is (n, 3). Without gravity."""

    def look(step: Step) -> dict[str, Real]:
        for system in program.systems:
            system.forces(step)
        found = {c.name: program.worlds(c.name, step.numpy(c)).copy() for c in program.sum_columns}
        for name in [n for n in found if ".contact_" in n]:
            found[name.replace(".contact_", ".")] += found.pop(name)
        return found

    program, state = looking(model), state or model.state0
    with program.lock:
        program.load(None, model.columns, 0.0)
        found = program.look(state.columns, look)
    single = model.batch is None
    return {name: part(model.layout, name, found, lambda values, rows: values[:, rows], single) for name in state}


def energy(model: Model, state: State | None = None) -> dict[str, Any]:
    """The energy (J) of a state by system, with gravity in that of the masses; "total" is their sum.

    In a batch there is one number per copy, or per scene.
    """
    if model.layout.scenes and model.batch is None:
        states = [None] * len(model.scenes) if state is None else state.scenes
        each = [energy(scene, at) for scene, at in zip(model.scenes, states)]
        names = sorted(dict.fromkeys(chain(*each)), key=lambda name: name == "total")  # The sum comes last.
        return {name: np.array([one.get(name, 0.0) for one in each]) for name in names}

    def look(step: Step) -> dict[str, Real]:
        found = {}
        for system in program.systems:
            system.place(step)
        for system in program.systems:
            each = system.energy(step)
            if each is not None:
                found[system.name] = np.asarray(each.numpy(), np.float64).reshape(model.layout.worlds, -1).sum(axis=1)
        return found

    program, state = looking(model), state or model.state0
    with program.lock:
        program.load(None, model.columns, 0.0)
        found = program.look(state.columns, look)
    found["total"] = sum(found.values())
    return {name: float(values[0]) if model.batch is None else values for name, values in found.items()}


def stable_dt(model: Model) -> float:
    """A step (s) that is surely stable for explicit integration near the start: k dt² + 2 c dt < 4 m everywhere.

    Elements are bounded from above, and contact is given some room. `rollout` itself refuses only what must fail.
    """
    program = looking(model)
    with program.lock:
        program.load(None, model.columns, 0.0)
        return min(limit.safety * limit.dt for limit in program.limits())


MOST_PARTS = 4
"""How many substeps a rollout takes by itself where the elements of cloth need them."""


# -- the one operation
def _run(run: Run, leaves: Leaves) -> dict[str, Any]:
    names = [c.name for c in run.program.state_columns]
    values = leaves.asking
    tape = kc.Tape.current()
    if tape is not None and leaves.live:
        return _on_tape(run, leaves, tape)
    if any(is_kernelc(v) for v in values):
        raise TypeError("a kernelc array requires a gradient, but no tape is open: write `with kc.Tape() as tape:`")
    if values:
        from nablasim.physics.time.autograd import differentiable

        return differentiable(run, names, lambda seeds: leaves.gradients(*run.backward(seeds)), values)
    frames = run.forward()
    if find_spec("torch") is None:
        return frames
    from nablasim.physics.time.autograd import tensors

    return tensors(frames)


def _on_tape(run: Run, leaves: Leaves, tape: kc.Tape) -> dict[str, Any]:
    """Record the run on a tape of kernelc, as one operation that can be replayed."""
    if any(is_torch(v) for v in leaves.asking):
        raise TypeError("torch tensors and kernelc arrays both ask for gradients of this rollout: use one kind")
    model, layout = leaves.model, leaves.model.layout
    seen = run.forward()
    out = {name: kc.array(frames, dtype=layout.columns[name].element) for name, frames in seen.items()}

    def forward() -> None:
        fresh = model.refreshed()
        run.columns, run.control = fresh.columns, leaves.control_columns(fresh)
        run.program.owner = None
        run.forward(seen)

    def backward() -> None:
        seeds = {name: a.grad.numpy() for name, a in out.items() if a.grad is not None}
        for value, g in zip(leaves.asking, leaves.gradients(*run.backward(seeds))):
            total = value.grad.numpy()
            np.add(total, g, out=total)

    tape.record(backward, reads=[value for _, _, value in leaves.live], writes=list(out.values()), forward=forward)
    return out
