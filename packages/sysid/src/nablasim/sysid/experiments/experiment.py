"""What an experiment is: items that are run by a sweep, and a chapter that is made of their results.

    items(size)              what is to be computed, each by itself: frozen, in words, the same in every process
    chapter(size, results)   tables beside the paper's, curves, and what was asked for beside what was measured

`nablasim reproduce` runs the items and prints and writes the chapter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from matplotlib.figure import Figure

from nablasim.sysid.report import Table

SIZES = ("ci", "desk", "paper")
"""Seconds, minutes, and the paper's counts."""


class Item(Protocol):
    """A piece of work that can be sent to another process and named by its words."""

    def run(self) -> Any: ...


@dataclass(frozen=True)
class Goal:
    """What was asked for beside what was measured."""

    what: str
    most: float
    measured: float

    @property
    def reached(self) -> bool:
        return self.measured <= self.most


@dataclass(frozen=True, eq=False)
class Plate:
    """A drawing with its caption."""

    figure: Figure
    caption: str


@dataclass(frozen=True, eq=False)
class Chapter:
    """What an experiment found."""

    name: str
    title: str
    text: tuple[str, ...] = ()
    """Paragraphs: how it was done, and what differs from the paper."""
    tables: tuple[Table, ...] = ()
    goals: tuple[Goal, ...] = ()
    plates: tuple[Plate, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    """All numbers, for files."""

    def __str__(self) -> str:
        parts = [f"{self.title}\n{'=' * len(self.title)}", *self.text, *(str(t) for t in self.tables)]
        if self.goals:
            parts.append(str(goals_table(self.goals)))
        return "\n\n".join(parts)


class Experiment(Protocol):
    """One table or figure of the paper."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def items(self, size: str) -> list[Any]: ...

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter: ...


def goals_table(goals: Sequence[Goal]) -> Table:
    rows = [(g.what, f"{g.most:.2g}", f"{g.measured:.2g}", "yes" if g.reached else "no") for g in goals]
    return Table(("asked for", "at most", "measured", "reached"), tuple(rows))
