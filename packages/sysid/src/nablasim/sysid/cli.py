"""The command `nablasim`."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from nablasim.sysid.windows import Start

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
    out: Annotated[Path, typer.Option(help="Folder for the video and the report.")] = Path("out"),
    starts: Annotated[int, typer.Option(min=1, help="How many blind starts there may be.")] = 4,
    seed: Annotated[int, typer.Option(help="Of the blind starts.")] = 0,
) -> None:
    """Film a bouncing cube, and find its mass, elasticity and friction from the pixels alone."""
    import kernelc as kc
    from nablasim.sysid.demo import Bounce, run_demo
    from nablasim.sysid.fit import FitFailed

    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    bounce = Bounce()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("filming (kernels are compiled the first time)", total=starts * bounce.frames)

        def show(k: int, start: Start) -> None:
            text = f"start {k + 1}: {start.frames} of {bounce.frames} frames, loss {start.loss:.1e}"
            progress.update(task, completed=k * bounce.frames + start.frames, description=text)

        try:
            result = run_demo(bounce=bounce, starts=starts, seed=seed, progress=False, on_window=show)
        except (kc.KernelError, FitFailed) as error:
            progress.stop()
            advice = getattr(error, "advice", "")
            console.print(f"[red]{escape(str(error))}[/]", escape(f"help: {advice}" if advice else ""), sep="\n")
            console.print("`nablasim doctor` says what this machine lacks.")
            raise typer.Exit(MISSING) from error
        progress.update(task, completed=starts * bounce.frames, description="writing the report")
        page = result.write(out)
    console.print(escape(str(result.fit.table())))
    worst = max(result.errors.values())
    console.print(f"{'Found' if result.found else 'Not found'}: the largest error is {worst:.1e} of the true value")
    console.print(f"[bold]{escape(str(page))}[/]")
    if not result.found:
        raise typer.Exit(1)
