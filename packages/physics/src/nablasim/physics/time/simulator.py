"""Runs models: `rollout`, one differentiable operation for any number of steps."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

import kernelc as kc
from nablasim.physics.checks import check_counts
from nablasim.physics.model import Model, Standalone, between_graphs, is_kernelc, is_torch, needs_gradient
from nablasim.physics.time.integrators import Integrator, named
from nablasim.physics.time.leaves import Leaves
from nablasim.physics.time.programs import looking
from nablasim.physics.time.runs import Run
from nablasim.physics.time.settings import Settings
from nablasim.physics.time.trajectory import Trajectory


@between_graphs
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
    how = Settings(dt, steps, every, substeps, named(integrator), checkpoint, check)
    times = np.arange(steps // every + 1, dtype=np.float64) * (dt * every)
    varied = control if isinstance(control, Mapping) else {}
    tensors = {name: value for name, value in {**model.foreign, **varied}.items() if is_torch(value)}
    if tensors:
        from kernelc.torch import follow, followed
        from nablasim.physics.time.transforms import Rolling

        if any(map(followed, tensors.values())):
            asked = {name: value for name, value in tensors.items() if followed(value) or needs_gradient(value)}
            op = Rolling(model, varied, how, list(asked))
            frames = follow(op, list(asked.values()))
            return Trajectory(model.layout, times, dict(zip(op.names, frames)), op.solves, model, dt / parts)
    leaves = Leaves(model, control, steps)
    run = how.run(leaves)
    return Trajectory(model.layout, times, _run(run, leaves, how), run.solves, model, run.dt)


def stable_dt(model: Model) -> float:
    """A step (s) that is surely stable for explicit integration near the start: k dt² + 2 c dt < 4 m everywhere.

    Elements are bounded from above, and contact is given some room. `rollout` itself refuses only what must fail.
    """
    program = looking(model)
    with program.lock:
        program.load(None, model.columns, 0.0)
        return min(limit.safety * limit.dt for limit in program.limits())


# -- the one operation
def _run(run: Run, leaves: Leaves, how: Settings) -> dict[str, Any]:
    names = [c.name for c in run.program.state_columns]
    values = leaves.asking
    tape = kc.Tape.current()
    if tape is not None and leaves.live:
        return _on_tape(run, leaves, tape)
    if any(is_kernelc(v) for v in values):
        raise TypeError("a kernelc array requires a gradient, but no tape is open: write `with kc.Tape() as tape:`")
    if values:
        from nablasim.physics.time.autograd import differentiable
        from nablasim.physics.time.transforms import Rolling

        again = Rolling(leaves.model, leaves.control, how, [name for name, _, _ in leaves.wanted])
        return differentiable(run, names, lambda seeds: leaves.gradients(*run.backward(seeds)), values, again)
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
