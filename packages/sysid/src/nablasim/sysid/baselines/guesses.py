"""The average of the training bodies, and a draw from them: what is known without looking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nablasim.sysid.experiments.answers import Answer


@dataclass(frozen=True)
class Guessed:
    """The item of all cases: kind is "average" or "random"."""

    arm: str
    kind: str
    cases: tuple[Any, ...]
    training: tuple[Any, ...]

    def run(self) -> list[Answer]:
        known = [case.columns(case.truth) for case in self.training]
        mean = {column: np.mean([k[column] for k in known], axis=0) for column in known[0]}
        rng = np.random.default_rng(0)
        made = []
        for case in self.cases:
            guess = mean if self.kind == "average" else known[int(rng.integers(len(known)))]
            made.append(Answer(self.arm, case.index, case.columns(case.truth), dict(guess), 0.0))
        return made
