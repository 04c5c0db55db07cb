"""Rollouts that forward mode and `torch.func` go through: a function of numbers with its tangents and gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelc.torch import follow, followed
from nablasim.physics.model import Model, Real
from nablasim.physics.time.leaves import Leaves, directed
from nablasim.physics.time.runs import Run
from nablasim.physics.time.settings import Settings
from nablasim.physics.time.solvers.backward_euler import Solves
from nablasim.physics.time.tangents import pushing

__all__ = ["Rolling", "follow", "followed"]


class Rolling:
    """The frames of a rollout, as a function of some parameters: see `kernelc.torch.Followed`."""

    name = "ph.rollout"

    def __init__(self, model: Model, control: Mapping[str, Any], how: Settings, by: Sequence[str]):
        self.model, self.control, self.how, self.by = model, control, how, by
        self.names: list[str] = []
        """The columns of the frames; known once it ran."""
        self.solves: Solves | None = None
        self._last: tuple[list[Real], Run, Leaves] | None = None

    def _leaves(self, values: Sequence[Real], by: Sequence[str] | None) -> Leaves:
        given = dict(zip(self.by, values))
        model = self.model.with_numbers({name: v for name, v in given.items() if name not in self.control})
        control = {name: given.get(name, v) for name, v in self.control.items()}
        return Leaves(model, control, self.how.steps, by=by)

    def run(self, values: list[Real]) -> list[Real]:
        leaves = self._leaves(values, self.by)
        run = self.how.run(leaves)
        frames = run.forward()
        self.names, self.solves, self._last = list(frames), run.solves, (values, run, leaves)
        return list(frames.values())

    def pull(self, values: list[Real], seeds: Sequence[Any]) -> list[Real]:
        if self._last is None or not all(map(np.array_equal, self._last[0], values)):
            self.run(values)
        assert self._last is not None
        _, run, leaves = self._last
        given = {name: np.ascontiguousarray(g) for name, g in zip(self._columns(run), seeds) if g is not None}
        return leaves.gradients(*run.backward(given))

    def _columns(self, run: Run) -> list[str]:
        return [c.name for c in run.program.state_columns]

    def push(self, values: list[Real], ways: Sequence[Any]) -> list[Real]:
        given = {name: np.asarray(way) for name, way in zip(self.by, ways) if way is not None}
        count = len(next(iter(given.values())))
        leaves = self._leaves(values, list(given))
        _, moved = pushing(leaves, self.how).push(*directed(leaves, given, count))
        return [np.ascontiguousarray(np.moveaxis(a, 1, 0)) for a in moved.values()]

    def bend(
        self, values: list[Real], seeds: Sequence[Any], ways: Sequence[Any], turns: Sequence[Any]
    ) -> tuple[list[Real], list[Real]]:
        if not self.how.integrator.explicit:
            raise TypeError("rollouts of backward Euler have no second derivatives: take differences of the gradient, "
                            "or of ph.jvp")  # fmt: skip
        leaves = self._leaves(values, self.by)
        run = self.how.run(leaves)
        given = {name: np.zeros((1, *np.shape(v))) if way is None else np.asarray(way)[None]
                 for name, v, way in zip(self.by, values, ways)}  # fmt: skip
        weights, turned = ({name: np.ascontiguousarray(g) for name, g in zip(self._columns(run), some) if g is not None}
                           for some in (seeds, turns))  # fmt: skip
        by_column, by_control, moved = run.bend(weights, turned, *directed(leaves, given, 1))
        return leaves.gradients(by_column, by_control), [np.ascontiguousarray(a[:, 0]) for a in moved.values()]
