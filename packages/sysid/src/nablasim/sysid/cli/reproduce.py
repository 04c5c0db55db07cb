"""The command `nablasim reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nablasim.sysid.cli.console import FAILED, check_folder, output, refusing


def reproduce(
    what: Annotated[str, typer.Argument(help="table1, table2 ... or all; `list` says what there is.")],
    size: Annotated[str, typer.Option(help="ci (seconds), desk (minutes) or paper (the paper's counts).")] = "desk",
    out: Annotated[Path, typer.Option(help="Folder for tables, numbers and the page.")] = Path("out/reproduce"),
    data: Annotated[Path | None, typer.Option(help="Recordings, for tosses: an .npz or a folder of tensors.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core by default.")] = None,
    backend: Annotated[str, typer.Option(help="loky (this machine), dask or ray (a cluster), serial.")] = "loky",
    address: Annotated[str | None, typer.Option(help="Of the cluster.")] = None,
) -> None:
    """Repeat an experiment of the paper: the table beside the paper's, and a page with curves.

    Finished parts are kept in the folder; the same call goes on after a kill. Exit code 1 where a goal is missed or
    a part has failed.
    """
    from nablasim.sysid.experiments.reproduce import experiments
    from nablasim.sysid.experiments.reproduce import reproduce as run
    from nablasim.sysid.sweep import SweepFailed

    console = output()
    if what == "list":
        for experiment in experiments().values():
            console.print(f"{experiment.name:12}{escape(experiment.title)}")
        return
    check_folder(out, "--out")
    with refusing(KeyError, ValueError, ImportError, OSError), refusing(SweepFailed, code=lambda: FAILED):
        chapters = run(what, size, out, data=data, workers=workers, backend=backend, address=address,
                       on_chapter=lambda chapter: console.print(escape(f"{chapter}\n"), highlight=False))  # fmt: skip
    console.print(f"[bold]{escape(str(Path(out) / size / 'report.html'))}[/]")
    if any(not goal.reached for chapter in chapters for goal in chapter.goals):
        raise typer.Exit(1)
