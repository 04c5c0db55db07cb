"""Progress with the time left, where somebody watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

SECONDS = 5.0
"""Between two lines, where there is no bar."""


class Shown(Protocol):
    """What long work tells."""

    def to(self, done: float, text: str) -> None: ...


class _Silent:
    def to(self, done: float, text: str) -> None:
        return


class _Lines:
    """For files and pipes: a line now and then."""

    def __init__(self, console: Console, total: float):
        self._console, self._total, self._began, self._last = console, total, monotonic(), monotonic()

    def to(self, done: float, text: str) -> None:
        now = monotonic()
        if now - self._last < SECONDS:
            return
        left = (now - self._began) * (self._total / done - 1) if done else float("nan")
        self._console.print(f"{text} ({done / self._total:.0%}, at most {left:.0f} s left)", highlight=False)
        self._last = now


class _Bar:
    def __init__(self, progress: Progress, task: Any):
        self._progress, self._task = progress, task

    def to(self, done: float, text: str) -> None:
        self._progress.update(self._task, completed=done, description=text)


@contextmanager
def shown(text: str, show: bool | None, *, total: float) -> Iterator[Shown]:
    """Show progress from 0 to `total`; `show` None: if standard error is a terminal."""
    console = Console(stderr=True)
    if show is False or (show is None and not console.is_terminal):
        yield _Silent()
        return
    if not console.is_terminal:
        yield _Lines(console, total)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console) as progress:
        yield _Bar(progress, progress.add_task(text, total=total))
