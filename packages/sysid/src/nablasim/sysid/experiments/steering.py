"""Fig. 6: policies that are trained by one picture, by the centre of mass in space, or not at all, from several seeds.

A stage says what is to be moved and where to; `Steering` trains on it with every supervision and every seed, and draws
how far from the goal each of them is after each iteration. `nablasim control` trains on the same stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from nablasim.sysid.experiments.experiment import Chapter, Goal, Plate
from nablasim.sysid.report import Table

PICTURE, CENTRE, RANDOM = "one picture", "3-D centre of mass", "random"
"""What is told of the goal. `RANDOM` is told nothing, and learns nothing."""
ARMS = {PICTURE: "∇Sim, one picture", CENTRE: "DiffPhysics, 3-D centre of mass", RANDOM: "random"}


class Stage(Protocol):
    """What is to be moved: frozen, the same in every process; a seed decides the goal and the first weights."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Of the training."""

    def task(self, seed: int, told: str) -> Any:
        """A `control.Task` whose goal is told in one of the three ways."""

    def misses(self, seed: int, motion: Any) -> tuple[float, ...]:
        """How far from the goal a motion ends (m), in the columns of `measures`; the first decides."""


@dataclass(frozen=True)
class Scale:
    """How large an experiment is. `changes` of the stage make ones that are quick."""

    seeds: int
    iterations: int
    changes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Trained:
    """The item of one training."""

    stage: Any
    told: str
    seed: int
    iterations: int

    def run(self) -> dict[str, Any]:
        """How far the motion is from the goal after each iteration, and of the best one by what was told."""
        run = train(self.stage, self.told, self.seed, self.iterations, progress=False)
        best = run.watched[run.best]
        # Where a motion diverged nothing was watched.
        misses = [m or (float("nan"),) * len(best) for m in run.watched]
        return {"misses": misses, "end": best, "best": run.best, "losses": run.losses, "seconds": run.seconds[-1]}


def train(stage: Any, told: str, seed: int, iterations: int, **options: Any) -> Any:
    """A `control.Run` with the distances from the goal in `watched`."""
    iterations = 0 if told == RANDOM else iterations
    return stage.task(seed, told).train(
        iterations=iterations, seed=seed, watch=lambda motion: stage.misses(seed, motion), **stage.settings, **options
    )


@dataclass(frozen=True)
class Steering:
    """An experiment of Fig. 5 and 6.

    near: a goal is reached from below this distance (m). measures: what is counted, the first decides. paper: by arm
    and measure, its figures. told: the supervisions that take part. least: of iterations until the goal is reached,
    where the paper says so.
    """

    name: str
    title: str
    text: tuple[str, ...]
    stage: Any
    scales: tuple[tuple[str, Scale], ...]
    near: float
    measures: tuple[str, ...] = ("position",)
    paper: tuple[tuple[str, str], ...] = ()
    told: tuple[str, ...] = (PICTURE, CENTRE, RANDOM)
    soon: int | None = None

    def scale(self, size: str) -> Scale:
        return dict(self.scales)[size]

    def staged(self, size: str) -> Any:
        """The stage at a size."""
        return replace(self.stage, **dict(self.scale(size).changes))

    def items(self, size: str) -> list[Any]:
        scale, stage = self.scale(size), self.staged(size)
        return [Trained(stage, told, seed, scale.iterations) for told in self.told for seed in range(scale.seeds)]

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        arms: dict[str, list[dict[str, Any]]] = {}
        for item, result in zip(items, results):
            arms.setdefault(item.told, []).append(result)
        plates = tuple(Plate(_curves(arms, k), f"The error of {what} against iterations: the median, and from the least"
                             " to the largest of all seeds.") for k, what in enumerate(self.measures))  # fmt: skip
        data = {"trainings": [{"told": i.told, "seed": i.seed, **r} for i, r in zip(items, results)]}
        return Chapter(self.name, self.title, self.text, (self._table(arms),), self._goals(size, arms), plates, data)

    def _goals(self, size: str, arms: Mapping[str, Sequence[Any]]) -> tuple[Goal, ...]:
        if size == "ci":
            return ()
        ends = [r["end"][0] for r in arms[PICTURE]]
        asked = [Goal(f"{ARMS[PICTURE]}: {self.measures[0]} (m), the worst of {len(ends)} seeds", self.near, max(ends))]
        if self.soon is not None:
            found = max(self._reached(r) for r in arms[PICTURE])
            asked.append(Goal("iterations until the goal is reached, the worst seed", self.soon, found))
        return tuple(asked)

    def _reached(self, result: Mapping[str, Any]) -> float:
        """The first iteration that is near enough."""
        return next((float(k) for k, m in enumerate(result["misses"]) if m[0] < self.near), float("inf"))

    def _table(self, arms: Mapping[str, Sequence[Any]]) -> Table:
        rows: list[tuple[str, ...]] = []
        for told, results in arms.items():
            ends = np.array([r["end"] for r in results])
            cells = [f"{np.median(e):.4f} ({e.max():.4f})" for e in ends.T]
            first = np.median([r["misses"][0][0] for r in results])
            count = [self._reached(r) for r in results]
            soon = f"{np.median(count):g}" if np.isfinite(np.median(count)) else "never"
            reached = f"{int((ends[:, 0] < self.near).sum())} of {len(results)}"
            rows.append((ARMS[told], f"{first:.3f}", *cells, reached, soon,
                         f"{np.mean([r['seconds'] for r in results]):.1f}"))  # fmt: skip
            if told in dict(self.paper):
                rows.append(("  the paper", "", dict(self.paper)[told], *[""] * (len(cells) + 2)))
        heads = ("trained by", "at first (m)", *(f"{m}: median (worst) (m)" for m in self.measures),
                 f"within {self.near:g} m", "after iterations", "s each")  # fmt: skip
        return Table(heads, tuple(rows), "distance from the goal")


def _curves(arms: Mapping[str, Sequence[Any]], column: int) -> Figure:
    """As Fig. 6: a line and its spread for each supervision."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    length = max(len(r["misses"]) for results in arms.values() for r in results)
    for (told, results), colour in zip(arms.items(), ("tab:blue", "tab:orange", "gray")):
        lines = [[m[column] for m in r["misses"]] for r in results]
        drawn = np.array([line + line[-1:] * (length - len(line)) for line in lines])
        axes.plot(np.nanmedian(drawn, axis=0), color=colour, label=ARMS[told])
        axes.fill_between(range(length), np.nanmin(drawn, axis=0), np.nanmax(drawn, axis=0), color=colour, alpha=0.2)
    axes.set(xlabel="iterations", ylabel="distance (m)", yscale="log")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize="small")
    return figure
