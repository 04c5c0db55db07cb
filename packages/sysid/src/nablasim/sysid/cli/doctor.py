"""`nablasim doctor`: what is missing on this machine."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nablasim.sysid.cli.console import MISSING


def doctor() -> None:
    """Say what is missing on this machine and how to get it. Exit code 2 when something essential lacks."""
    from nablasim.sysid.doctor import examine

    checks = examine()
    table = Table("", "what", "found", "what to do")
    for check in checks:
        mark = "[green]ok[/]" if check.ok else "[red]missing[/]" if check.essential else "[yellow]optional[/]"
        table.add_row(mark, check.name, escape(check.found), "" if check.ok else escape(check.advice))
    Console().print(table)
    if any(check.essential and not check.ok for check in checks):
        raise typer.Exit(MISSING)
