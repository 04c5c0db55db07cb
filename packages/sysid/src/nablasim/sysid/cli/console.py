"""How commands speak: what was found goes to standard output, everything else to standard error; exit codes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

MISSING = 2
"""Exit code when something that is needed is not there."""
REFUSED = 2
"""Exit code when the input cannot be used: nothing has been written then."""


FAILED = 1
"""Exit code when the work was begun and has no result: what was done until then has been written."""


def output() -> Console:
    return Console(soft_wrap=True)


def errors() -> Console:
    return Console(stderr=True, soft_wrap=True)


def refuse(message: str, advice: str = "", code: int = REFUSED) -> typer.Exit:
    """Say why a command cannot go on, and what to do; to be raised."""
    console = errors()
    console.print(f"[red]error:[/] {escape(message)}", highlight=False)
    if advice:
        console.print(f"help: {escape(advice)}", highlight=False)
    return typer.Exit(code)


def check_folder(folder: Path, option: str) -> None:
    """Refuse a folder that cannot be made or written to, before any work is done for it."""
    there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not there.is_dir():
        raise refuse(f"{there} is a file, and {option} needs a folder", f"choose another {option}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise refuse(f"nothing can be written in {there}", f"choose another {option}, or change its permissions")


@contextmanager
def refusing(*kinds: type[Exception], advice: str = "", code: Callable[[], int] = lambda: REFUSED) -> Iterator[None]:
    """Turn errors that the input is to blame for into a message and the exit code, which is asked for then."""
    try:
        yield
    except kinds as error:
        raise refuse(message_of(error), getattr(error, "advice", "") or advice, code()) from error


def message_of(error: BaseException) -> str:
    """What an error says; that of a KeyError without the quotes that Python puts around it."""
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
