"""The command `nablasim`."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Differentiable simulation: find the physics.")

MISSING = 2
"""Exit code when something that is needed is not there."""


@app.callback(invoke_without_command=True)
def main(
    show_version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
) -> None:
    if show_version:
        typer.echo(f"nablasim {version('nablasim-sysid')}, kernelc {version('kernelc')}")
        raise typer.Exit


@app.command()
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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report and the pictures.")] = Path("out"),
    iterations: Annotated[int, typer.Option(min=1, help="How many steps the descent may take.")] = 60,
) -> None:
    """Find out how a cloth was thrown, by gradient descent through its simulation."""
    import kernelc as kc
    from nablasim.sysid.demo import run_demo
    from nablasim.sysid.report import write_demo_report

    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("recording the simulation", total=iterations)

        def show(iteration: int, loss: float) -> None:
            progress.update(task, completed=iteration, description=f"loss {loss:.2e} m²")

        try:
            result = run_demo(iterations=iterations, on_iteration=show)
        except kc.KernelError as error:
            progress.stop()
            advice = getattr(error, "advice", "")
            console.print(f"[red]{escape(str(error))}[/]", escape(f"help: {advice}" if advice else ""), sep="\n")
            console.print("`nablasim doctor` says what this machine lacks.")
            raise typer.Exit(MISSING) from error
        progress.update(task, total=len(result.fit.losses) - 1, description="writing the report")
        page = write_demo_report(result, out)
    console.print(f"{'Found' if result.fit.converged else 'Not found'}: {result.fit.message}; error {result.error:.1e}")
    console.print(f"[bold]{escape(str(page))}[/]")
    if not result.fit.converged:
        raise typer.Exit(1)
