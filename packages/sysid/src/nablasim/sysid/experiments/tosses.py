"""Real tosses of a cube: friction and contact found from some of them, and the others predicted.

Beside this physics MuJoCo is fitted to the same tosses, from the same starts, by the same optimiser and by its own; and
both predict with the numbers that they have by default. `nablasim reproduce tosses --data PATH`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from nablasim.sysid.experiments.answers import Missing
from nablasim.sysid.experiments.cubes import Engine, MuJoCo, Ours, fitted, restitution
from nablasim.sysid.experiments.experiment import Chapter, Goal
from nablasim.sysid.experiments.toss_data import Misses, digest, flown, misses, read_tosses, summed
from nablasim.sysid.report import Table

COUNTS = {"ci": (1, 2), "desk": (1, 4, 16, 50), "paper": (1, 4, 16, 50)}
SEARCH = {"ci": (4, 8), "desk": (64, 200), "paper": (128, 600)}
"""Points of the Sobol sequence, and steps of the simplex."""
HALVES = {"ci": 1, "desk": 4, "paper": 8}
"""Disjoint parts of each half of the tosses, whose fits say how far friction scatters."""


@dataclass(frozen=True)
class Predicted:
    """What an engine found from its tosses, and how far it was from the others."""

    arm: str
    count: int
    part: int | None
    values: dict[str, float]
    missed: Misses
    restitution: float
    """Of a cube that falls flat at 1 m/s, by the contact that was found."""


@dataclass(frozen=True)
class Trial:
    """An engine fitted to some tosses (none: its defaults). `part` marks a piece of the data instead of a count."""

    engine: Engine
    data: str
    held: str
    train: tuple[int, ...]
    test: tuple[int, ...]
    search: tuple[int, int]
    part: int | None = None

    def run(self) -> Predicted | Missing:
        if isinstance(self.engine, MuJoCo) and find_spec("mujoco") is None:
            return Missing(self.engine.name, len(self.train), "MuJoCo is not installed: pip install mujoco")
        of = flown(read_tosses(self.data))
        train, test = ([of.tosses[k] for k in chosen] for chosen in (self.train, self.test))
        values = dict(self.engine.defaults)
        if train:
            values = fitted(self.engine, train, of, samples=self.search[0], steps=self.search[1])
        rows = misses(test, *self.engine.predict(values, test, of), of.half_width)
        back = restitution(self.engine, values, of)
        return Predicted(self.engine.name, len(train), self.part, values, summed(rows), back)


@dataclass(frozen=True)
class TossExperiment:
    """`data` is where the tosses are: they are not part of this project."""

    name: str = "tosses"
    title: str = "Real tosses of a cube: contact from some, predictions of the others"
    data: str | None = None

    def given(self, data: str) -> TossExperiment:
        return replace(self, data=data)

    def items(self, size: str) -> list[Trial]:
        if self.data is None:
            raise ValueError("tosses needs the recordings: --data PATH (the data set's folder of tensors, or an .npz)")
        total = len(flown(read_tosses(self.data)).tosses)
        if total < 4:
            raise ValueError(f"{self.data} has {total} tosses in flight; at least four are needed")
        middle, held = total // 2, digest(self.data)
        test, counts = tuple(range(middle, total)), sorted({0, *(min(n, middle) for n in COUNTS[size])})
        made = [
            Trial(engine, self.data, held, tuple(range(n)), test, SEARCH[size])
            for engine in (Ours(), MuJoCo(), MuJoCo(own_tool=True))
            for n in counts
            if n or engine != MuJoCo(own_tool=True)  # defaults are not fitted
        ]
        pieces = np.array_split(np.arange(total), 2 * HALVES[size])
        for k, piece in enumerate(pieces):
            own = tuple(int(i) for i in piece)
            made.append(Trial(Ours(), self.data, held, own, own, SEARCH[size], part=k))
        return made

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        whole = [r for r in results if isinstance(r, Missing) or r.part is None]
        parts = [r for r in results if not isinstance(r, Missing) and r.part is not None]
        found = [p.values["friction"] for p in parts]
        friction = [friction_interval(half) for half in (found[: len(found) // 2], found[len(found) // 2 :])]
        best = {r.arm: r for r in whole if not isinstance(r, Missing)}
        return Chapter(
            self.name,
            self.title,
            TEXT,
            (_predictions(whole, len(items[0].test)), _halves(friction)),
            _goals(best),
            data={"predictions": [_plain(r) for r in whole], "friction": friction},
        )


TEXT = (
    "Each toss starts from the last frames of its flight, by a parabola and a constant spin, in true metres by gravity "
    "in flight, above the height at which cubes come to rest: the same for both engines. Errors are means over frames "
    "and tosses that were not fitted.",
)


def friction_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean of fits to disjoint pieces, and its 90 % interval by their scatter; none from a single piece."""
    from scipy.stats import t

    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return mean, float("-inf"), float("inf")
    half = float(t.ppf(0.95, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def _predictions(results: Sequence[Any], unseen: int) -> Table:
    rows = []
    for r in results:
        if isinstance(r, Missing):
            rows.append((r.arm, str(r.index), r.why, "", "", "", ""))
            continue
        m, found = r.missed, {**r.values, "restitution": r.restitution}
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in found.items())
        errors = (f"{m.position:.1f}", f"{m.turn:.1f}", f"{m.last_position:.1f}", f"{m.last_turn:.1f}")
        rows.append((r.arm, str(r.count) if r.count else "defaults", *errors, numbers))
    heads = ("engine", "tosses", "% of width", "degrees", "% at the end", "degrees at the end", "found")
    return Table(heads, tuple(rows), f"Predictions of {unseen} unseen tosses")


def _halves(friction: Sequence[tuple[float, float, float]]) -> Table:
    rows = tuple(
        (half, f"{mean:.4f}", f"[{low:.4f}, {high:.4f}]")
        for half, (mean, low, high) in zip(("first", "second"), friction)
    )
    return Table(("half", "friction", "90 % interval"), rows, "Friction from disjoint halves, by disjoint pieces")


def _goals(best: dict[str, Predicted]) -> tuple[Goal, ...]:
    """With most tosses: no farther from the unseen ones than MuJoCo."""
    ours, made = best["nablasim"].missed, []
    for name, found in best.items():
        if name != "nablasim":
            made.append(Goal(f"position, % of width, as {name}", found.missed.position, ours.position))
            made.append(Goal(f"rotation, degrees, as {name}", found.missed.turn, ours.turn))
    return tuple(made)


def _plain(result: Predicted | Missing) -> dict[str, Any]:
    if isinstance(result, Missing):
        return {"engine": result.arm, "why": result.why}
    return {
        "engine": result.arm,
        "count": result.count,
        "values": result.values,
        "restitution": result.restitution,
        **vars(result.missed),
    }


TOSSES = TossExperiment()
