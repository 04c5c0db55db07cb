"""What a fit found, to be looked at from all sides: `motion.npz` beside the page, for `nablasim view`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from nablasim import physics as ph
from nablasim.sysid.problem import FAILURES, Simulation

if TYPE_CHECKING:
    from nablasim.sysid.fit import Fit

FILE = "motion.npz"


def motion_of(simulation: Simulation, model: ph.Model, pictures: NDArray[Any] | None = None) -> ph.Motion:
    """A model at the times that a simulation is looked at, with a video of as many frames."""
    steps = simulation.steps
    ran = ph.rollout(model, dt=simulation.dt, steps=int(steps[-1]), every=simulation.every, **simulation.options)
    motion = ph.Motion.of(ran, frames=steps // simulation.every, dt=simulation.dt)
    motion = replace(motion, times=simulation.times)
    return motion if pictures is None else motion.beside(pictures)


def write_motions(
    fit: Fit, folder: Path, recording: NDArray[Any] | None, others: Mapping[str, ph.Model] | None = None
) -> Path | None:
    """What was found and the first guess; None of what is no scene. `others` are models beside them, by name."""
    if not isinstance(fit.problem.model, ph.Model):
        return None
    simulation, space = fit.problem.simulation, fit.problem.space
    pictures = getattr(fit.problem.target, "frames", None) if recording is None else recording
    made = {"found": motion_of(simulation, fit.model, pictures)}
    guess = fit.problem.model.replace(space.values(fit.starts[fit.best].first))
    for name, model in {**(others or {}), "first guess": guess}.items():
        try:
            made[name] = motion_of(simulation, model)
        except FAILURES:  # A guess may be one that cannot be run.
            continue
    return ph.save_motions(folder / FILE, made)
