"""What a rollout was asked for, and the run that does it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal
from warnings import warn

import numpy as np

from nablasim.physics.errors import StepShortened, StepTooLarge
from nablasim.physics.model import Model
from nablasim.physics.time.checkpoints import plan
from nablasim.physics.time.integrators import Integrator
from nablasim.physics.time.leaves import Leaves
from nablasim.physics.time.programs import program_of
from nablasim.physics.time.runs import Run
from nablasim.physics.time.solvers.backward_euler import Solves

MOST_PARTS = 4
"""How many substeps a rollout takes by itself where the elements of cloth need them."""


@dataclass(frozen=True)
class Settings:
    """The arguments of `ph.rollout`, beside model and control."""

    dt: float
    steps: int
    every: int
    substeps: int | Literal["auto"]
    integrator: Integrator
    checkpoint: str | int = "auto"
    check: bool = True

    def run(self, leaves: Leaves) -> Run:
        """A run that can go back to what is asked for. Cloth may get shorter steps, with a warning."""
        parts = 1 if self.substeps == "auto" else self.substeps
        try:
            return self._prepared(leaves, parts)
        except StepTooLarge as error:
            if self.substeps != "auto":
                raise
            return self._prepared(leaves, _more_parts(leaves.model, self.dt, error))

    def _prepared(self, leaves: Leaves, parts: int) -> Run:
        program = program_of(leaves, self.integrator, leaves.columns(name for name, _, _ in leaves.wanted))
        steps = self.steps * parts
        run = Run(
            program=program,
            columns=leaves.model.columns,
            control=leaves.control_columns(leaves.model),
            dt=self.dt / parts,
            plan=plan(
                self.checkpoint,
                steps=steps,
                frame=self.every * parts,
                state_bytes=program.state_bytes,
                step_bytes=program.step_bytes,
                differentiable=program.differentiable,
            ),
            frame=self.every * parts,
            hold=parts,
            solves=None if program.integrator.explicit else Solves(steps),
        )
        run.check(explicit=self.check and program.integrator.explicit)
        return run


def _more_parts(model: Model, dt: float, error: StepTooLarge) -> int:
    """How many substeps a rollout takes by itself. Others than cloth are refused: one looks at how stiff they are."""
    parts = int(np.ceil(dt / (0.9 * error.limit)))
    thing = model.layout.things.get(error.thing)
    if thing is None or thing.kind != "cloth" or parts > MOST_PARTS:
        raise error
    warn(
        f"{error.thing!r}: cloth is light and stiff in its plane, and dt = {dt:g} s is beyond its limit of about "
        f"{error.limit:.3g} s. Each step is taken as {parts} shorter ones; substeps={parts} says that it is meant",
        StepShortened, stacklevel=_level_of_user(),
    )  # fmt: skip
    return parts


def _level_of_user() -> int:
    """How far above `_more_parts` the user's line is: torch may have put frames of its own in between."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(("nablasim.", "torch.")):
        frame, level = frame.f_back, level + 1
    return level
