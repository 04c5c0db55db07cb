"""Tables 1, 2 and 3: several methods on the same bodies, declared as groups of bodies and rows of the table.

`Contest` turns the declaration into items of a sweep, and their answers into the chapter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nablasim.sysid.experiments.answers import FOUND, Answer, Fitted, by_arm, errors_table, number, summary
from nablasim.sysid.experiments.experiment import Chapter, Goal, Plate
from nablasim.sysid.report import Table

TRAINING = 100_000
"""The first number of the bodies on which something is trained: never among those that are asked about."""

GUESSES = 100
"""Bodies of which the average is taken."""


@dataclass(frozen=True)
class Arm:
    """A row of a table: a method, and the paper's figures where it has them.

    method: "video" or "states" (fits), "average", "random", "convnet" or "bullet" (baselines)
    changes: of the rules by which bodies are drawn, where data come from other settings than the fit
    starts: how many blind starts a fit may use; the next one only where residuals of the last are not noise
    """

    label: str
    method: str
    paper: tuple[tuple[str, float], ...] = ()
    changes: tuple[tuple[str, Any], ...] = ()
    starts: int = 3


@dataclass(frozen=True)
class Group:
    """Bodies of common rules, and the rows of their table.

    goals: (arm, "mean" or "median", column, at most) at desk size and above
    """

    label: str
    rules: Any
    arms: tuple[Arm, ...]
    goals: tuple[tuple[str, str, str, float], ...] = ()


@dataclass(frozen=True)
class Scale:
    """How large an experiment is. `changes` of the rules make bodies that are quick to film."""

    objects: int
    training: int
    epochs: int
    reinforce: int = 125
    """Steps of REINFORCE."""
    changes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Contest:
    """A table of the paper."""

    name: str
    title: str
    text: tuple[str, ...]
    groups: tuple[Group, ...]
    scales: tuple[tuple[str, Scale], ...]
    units: tuple[tuple[str, str], ...] = ()
    """Columns whose mean error in this unit is in the table, too."""
    paper_units: tuple[tuple[str, float], ...] = ()
    """By arm: the paper's mean error in that unit."""

    def items(self, size: str) -> list[Any]:
        return [item for group in self.groups for item in self._items(group, size)]

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        tables, goals, plates, data, at = [], [], [], {}, 0
        for group in self.groups:
            count = len(self._items(group, size))
            given = results[at : at + count]
            at += count
            columns = _columns(given)
            paper = {arm.label: dict(arm.paper) for arm in group.arms if arm.paper}
            labels = [arm.label for arm in group.arms]
            tables.append(errors_table(group.label, columns, labels, given, paper))
            for column, unit in self.units:
                tables.append(self._absolute(column, unit, labels, given))
            goals += [] if size == "ci" else _goals(group, given)
            plates.append(Plate(_draw(labels, columns, given), f"{group.label}: the error of every run"))
            data[group.label] = [vars(a) for answers in by_arm(given).values() for a in answers]
        return Chapter(self.name, self.title, self.text, tuple(tables), tuple(goals), tuple(plates), data)

    def _items(self, group: Group, size: str) -> list[Any]:
        scale = dict(self.scales)[size]
        made: list[Any] = []
        # The last rows are what the table is about: they are run first.
        for arm in reversed(group.arms):
            rules = replace(group.rules, **dict(scale.changes), **dict(arm.changes))
            made += items_of(arm, rules, scale)
        return made

    def _absolute(self, column: str, unit: str, labels: Sequence[str], results: Sequence[Any]) -> Table:
        groups, known = by_arm(results), dict(self.paper_units)
        rows = []
        for label in labels:
            answers = [a for a in groups.get(label, []) if isinstance(a, Answer)]
            if answers:
                mean = number(float(np.mean([a.apart(column) for a in answers])))
                rows.append((label, mean, number(known[label]) if label in known else ""))
        return Table((f"mean error of {column} ({unit})", "here", "the paper"), tuple(rows))


def items_of(arm: Arm, rules: Any, scale: Scale) -> list[Any]:
    """The work of one row."""
    from nablasim.sysid.baselines import bullet, convnet, guesses

    cases = [rules.case(k) for k in range(scale.objects)]
    if arm.method in ("video", "states"):
        return [Fitted(arm.label, case, arm.method, arm.starts) for case in cases]
    training = tuple(rules.case(TRAINING + k) for k in range(scale.training))
    if arm.method in ("average", "random"):
        return [guesses.Guessed(arm.label, arm.method, tuple(cases), training[:GUESSES])]
    if arm.method == "convnet":
        return [convnet.Trained(arm.label, tuple(cases), training, scale.epochs)]
    if arm.method == "bullet":
        return [bullet.Reinforced(arm.label, case, scale.reinforce) for case in cases]
    raise ValueError(f"{arm.label}: there is no method {arm.method!r}")


def _columns(results: Sequence[Any]) -> list[str]:
    """In the order of the first answer that has them."""
    answers = [a for group in by_arm(results).values() for a in group if isinstance(a, Answer)]
    return list(dict.fromkeys(c for a in answers for c in a.truth))


def _goals(group: Group, results: Sequence[Any]) -> list[Goal]:
    answers, made = by_arm(results), []
    for arm, which, column, most in group.goals:
        measured: Mapping[str, float] = getattr(summary(answers[arm]), which)
        made.append(Goal(f"{group.label}, {arm}: {which} of {column}", most, measured[column]))
    return made


def _draw(labels: Sequence[str], columns: Sequence[str], results: Sequence[Any]) -> Figure:
    """Every run as a dot: columns side by side, a row for each arm."""
    groups = by_arm(results)
    shown = [label for label in labels if groups.get(label) and isinstance(groups[label][0], Answer)]
    figure = Figure(figsize=(2.0 + 1.9 * max(len(columns), 2), 0.9 + 0.36 * len(shown)), layout="constrained")
    every: Any = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axes, column in zip(every, columns):
        for row, label in enumerate(shown):
            errors = np.array([max(a.error(column), 1e-16) for a in groups[label] if column in a.truth])
            axes.plot(errors, np.full(len(errors), row), "o", color="tab:blue", alpha=0.4, markersize=4)
            axes.plot(np.median(errors), row, "|", color="tab:orange", markersize=14, markeredgewidth=2)
        axes.axvline(FOUND, color="gray", linewidth=0.8, linestyle=":")
        axes.set(title=column, xscale="log")
        axes.grid(True, axis="x", alpha=0.3)
    every[0].set_yticks(range(len(shown)), shown)
    every[0].invert_yaxis()
    figure.supxlabel("relative error (orange: median)", fontsize="small")
    return figure
