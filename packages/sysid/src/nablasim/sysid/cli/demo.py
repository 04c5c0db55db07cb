"""`nablasim demo`: the main job end to end on a built-in scene."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from nablasim.sysid.cli.console import MISSING, check_folder

if TYPE_CHECKING:
    from nablasim.sysid.search import Start


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the video and the report.")] = Path("out"),
    starts: Annotated[int, typer.Option(min=1, help="How many blind starts there may be.")] = 4,
    seed: Annotated[int, typer.Option(help="Of the blind starts.")] = 0,
) -> None:
    """Film a bouncing cube, and find its mass, elasticity and friction from the pixels alone."""
    import kernelc as kc
    from nablasim.sysid.demo import Bounce, run_demo
    from nablasim.sysid.fit import FitFailed

    check_folder(out, "--out")
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
    console.print(f"The cube as it was found, in colour: {escape(str(out / 'film.mp4'))}")
    console.print(f"[bold]{escape(str(page))}[/]")
    if not result.found:
        raise typer.Exit(1)
