"""`nablasim control`: train a policy on one of the paper's tasks, and see what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nablasim.sysid.cli.console import FAILED, check_folder, output, refuse, refusing

SIZES = ("ci", "desk", "paper")


def control(
    task: Annotated[str, typer.Argument(help="fem, cloth, walker or jellyfish.")],
    size: Annotated[str, typer.Option(help="ci (seconds), desk (minutes) or paper (the paper's counts).")] = "desk",
    seed: Annotated[int, typer.Option(min=0, help="Of the goal and of the first weights.")] = 0,
    iterations: Annotated[int | None, typer.Option(min=0, help="As many as the size has, unless told.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page, the film and the training.")] = Path("out"),
) -> None:
    """Train a policy from one picture of the goal: writes report.html and a film.

    The training is saved as it goes: the same command goes on after a kill. Exit code 1 where the goal is not reached.
    """
    from nablasim.sysid.experiments.controls import TASKS
    from nablasim.sysid.experiments.steering import PICTURE, train
    from nablasim.sysid.names import nearest

    if task not in TASKS:
        raise refuse(f"there is no task {task!r}: {nearest(task, TASKS)}", f"choose one of {', '.join(TASKS)}")
    if size not in SIZES:
        raise refuse(f"size is one of {', '.join(SIZES)}, not {size!r}")
    check_folder(out, "--out")
    chosen = TASKS[task]
    count = chosen.scale(size).iterations if iterations is None else iterations
    console = output()
    with refusing(ValueError, OSError), refusing(ArithmeticError, code=lambda: FAILED):
        run = train(chosen.staged(size), PICTURE, seed, count, folder=out / "training")
        page = run.report(out, title=chosen.title)
        film = run.video(out / f"{task}.mp4")
    end = run.watched[run.best][0]
    console.print(
        f"{len(run.losses) - 1} iterations in {run.seconds[-1]:.1f} s: {end:.4f} m from the goal, "
        f"{run.watched[0][0]:.3f} m at first; the goal is reached within {chosen.near:g} m"
    )
    console.print(f"[bold]{escape(str(page))}[/]\n[bold]{escape(str(film))}[/]")
    if not end < chosen.near:
        raise typer.Exit(1)
