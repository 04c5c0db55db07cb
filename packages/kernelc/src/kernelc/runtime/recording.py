"""Which tapes record, by thread: a tape sees what the thread that opened it launches and writes, and nothing else."""

from __future__ import annotations

from threading import get_ident
from typing import Any

open_tapes: dict[int, list[Any]] = {}
"""The open tapes of each thread, the innermost last. A thread without one has no entry: empty means nobody records."""


def current() -> Any:
    """The tape that records this thread's launches, or None."""
    tapes = open_tapes.get(get_ident())
    return tapes[-1] if tapes else None


def start(tape: Any) -> None:
    """Let a tape record what this thread does from here on."""
    open_tapes.setdefault(get_ident(), []).append(tape)


def stop(tape: Any) -> None:
    """End what `start` began, in the same thread."""
    thread = get_ident()
    tapes = open_tapes.get(thread, [])
    if tape in tapes:
        del tapes[len(tapes) - 1 - tapes[::-1].index(tape)]
    if not tapes:
        open_tapes.pop(thread, None)


def outer(tape: Any) -> list[Any]:
    """The tapes of this thread that were opened before this one and are still open."""
    tapes = open_tapes.get(get_ident())
    return tapes[: tapes.index(tape)] if tapes and len(tapes) > 1 and tape in tapes else []


def records(tape: Any) -> bool:
    """Whether a tape is open, in any thread."""
    return bool(open_tapes) and any(tape in tapes for tapes in list(open_tapes.values()))


class paused:
    """While it is open, no tape records what this thread does."""

    def __enter__(self) -> None:
        self.tapes = open_tapes.pop(get_ident(), None)

    def __exit__(self, *error: object) -> None:
        if self.tapes:
            open_tapes[get_ident()] = self.tapes
