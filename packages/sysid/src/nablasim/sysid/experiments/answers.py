"""Answers of methods to cases, and the tables that they make: mean, median and success rate, no run left out.

A case is a body with a truth (`truth`, by column of the table), a way to look for it (`problem`), and what estimated
parameters mean as columns (`columns`). Rigid and soft bodies have the same few names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.report import Table

FOUND = 0.01
"""A case is found where every column is this near, relative to the truth."""

FEW = 10
"""Objects below which they are counted: "100 %" of one says nothing."""


class Case(Protocol):
    """One body of an experiment."""

    @property
    def index(self) -> int: ...

    @property
    def truth(self) -> Mapping[str, Any]:
        """Of the parameters that are searched for, by their name in the model."""

    def columns(self, values: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
        """Values of the parameters as the table counts them: a number, or one for each particle."""

    def problem(self, kind: str) -> Any: ...


@dataclass(frozen=True)
class Answer:
    """What a method said about a case."""

    arm: str
    index: int
    truth: dict[str, Any]
    """By column."""
    found: dict[str, Any]
    seconds: float
    note: str = ""
    starts: int = 0

    def error(self, column: str) -> float:
        """Relative: the mean of |found - truth| over the numbers of a column, by the mean of |truth|."""
        truth = np.asarray(self.truth[column])
        return float(np.abs(np.asarray(self.found[column]) - truth).mean() / np.abs(truth).mean())

    def apart(self, column: str) -> float:
        """|found - truth| in the unit of the column."""
        return float(np.abs(np.asarray(self.found[column]) - np.asarray(self.truth[column])).mean())

    @property
    def success(self) -> bool:
        return all(self.error(c) < FOUND for c in self.truth)


@dataclass(frozen=True)
class Missing:
    """An answer that could not be given, and why: something is not installed."""

    arm: str
    index: int
    why: str


@dataclass(frozen=True)
class Fitted:
    """The item of a fit: a case seen as "video" or as "states", from blind guesses."""

    arm: str
    case: Any
    kind: str
    starts: int = 3

    def run(self) -> Answer:
        from nablasim.sysid.fit import FitFailed

        problem = self.case.problem(self.kind)
        options = {"starts": self.starts, "agree": 1, "seed": self.case.index, "progress": False}
        try:
            fit = problem.fit(**options, **self.case.settings)
        except FitFailed as error:
            # Not left out: what is known then is the blind guess.
            guess = problem.space.draw(np.random.default_rng([self.case.index, 0]))
            values = problem.space.values(guess)
            return answer(self.arm, self.case, values, note=str(error), starts=self.starts)
        return answer(
            self.arm, self.case, fit.values, fit.seconds, note=fit.starts[fit.best].message, starts=len(fit.starts)
        )


def answer(
    arm: str, case: Case, values: Mapping[str, Any], seconds: float = 0.0, *, note: str = "", starts: int = 0
) -> Answer:
    """From values of the parameters."""
    return Answer(arm, case.index, case.columns(case.truth), case.columns(values), seconds, note, starts)


# -- tables
@dataclass(frozen=True)
class Summary:
    """Of all answers of one arm."""

    count: int
    mean: dict[str, float]
    median: dict[str, float]
    worst: dict[str, float]
    success: float
    seconds: float


def summary(answers: Sequence[Answer]) -> Summary:
    columns = list(answers[0].truth)
    errors = {c: np.array([a.error(c) for a in answers if c in a.truth]) for c in columns}
    return Summary(
        len(answers),
        {c: float(e.mean()) for c, e in errors.items()},
        {c: float(np.median(e)) for c, e in errors.items()},
        {c: float(e.max()) for c, e in errors.items()},
        float(np.mean([a.success for a in answers])),
        float(np.mean([a.seconds for a in answers])),
    )


def number(value: float) -> str:
    """As short as tables need it."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.4f}" if 0.01 <= value < 1000 else f"{value:.2e}"


def part(success: float, count: int) -> str:
    """How many of all: a percentage only where there are enough to speak of one."""
    return f"{success:.0%}" if count >= FEW else f"{round(success * count)} of {count}"


def by_arm(results: Sequence[Any]) -> dict[str, list[Any]]:
    """Answers (or what is missing) of each arm in order. An item may have given several."""
    made: dict[str, list[Any]] = {}
    for result in results:
        for one in result if isinstance(result, list) else [result]:
            made.setdefault(one.arm, []).append(one)
    return made


def errors_table(
    title: str, columns: Sequence[str], arms: Sequence[str], results: Sequence[Any],
    paper: Mapping[str, Mapping[str, float]],
) -> Table:  # fmt: skip
    """Mean and median of relative errors for each arm, and the paper's row below where it has one."""
    groups, rows = by_arm(results), []
    for arm in arms:
        given = groups.get(arm, [])
        if not given:
            continue
        if isinstance(given[0], Missing):
            rows.append((arm, given[0].why, *([""] * (len(columns) + 3))))
        else:
            s = summary(given)
            end = (part(s.success, s.count), str(s.count), f"{s.seconds:.1f}" if s.seconds else "")
            rows.append((arm, "mean", *(number(s.mean[c]) for c in columns), *end))
            rows.append(("", "median", *(number(s.median[c]) for c in columns), "", "", ""))
        if arm in paper:
            known = (number(paper[arm][c]) if c in paper[arm] else "" for c in columns)
            rows.append(("", "the paper", *known, "", "", ""))
    return Table(("relative error", "", *columns, f"all within {FOUND:.0%}", "objects", "s each"), tuple(rows), title)
