"""`nablasim identify`: a video and a scene file in, the physics out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nablasim.sysid.cli.console import FAILED, REFUSED, check_folder, errors, output, refuse, refusing

KEPT = "fit.json"
"""In the folder of the report: what has been done so far."""


def identify(
    video: Annotated[Path, typer.Argument(help="A video (mp4, gif, ...), or a folder of pictures.")],
    scene: Annotated[Path, typer.Option(help="The scene file: objects, camera, floor ... in YAML.")],
    estimate: Annotated[str, typer.Option(help="What to find, separated by commas: density,restitution")],
    report: Annotated[Path, typer.Option(help="Folder for the report, and what has been done so far.")] = Path("out"),
    starts: Annotated[int, typer.Option(min=1, help="How many blind starts there may be.")] = 4,
    seed: Annotated[int, typer.Option(help="Of the blind starts.")] = 0,
    fps: Annotated[float | None, typer.Option(help="Frames per second, if the file is wrong: slow motion.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Begin anew, whatever has been done already.")] = False,
) -> None:
    """Find out what a filmed object is made of.

    Stopped half-way, the same command goes on where it was. Exit code 2: the input cannot be used, and nothing was
    written. Exit code 1: the search failed, and what it did until then is in the folder of the report.
    """
    import kernelc as kc
    from nablasim import physics as ph
    from nablasim.sysid.fit import FitFailed
    from nablasim.sysid.identify import prepare

    wanted = [name.strip() for name in estimate.split(",") if name.strip()]
    if not wanted:
        raise refuse("there is nothing to find", "name some quantities: --estimate density,restitution")
    check_folder(report, "--report")
    with refusing(ValueError, KeyError):
        case = prepare(video, scene, wanted, fps=fps)
    said = errors()
    frames, (height, width) = case.problem.frames, case.video.size
    said.print(f"{escape(str(video))}: {frames} frames of {width} × {height} pixels, {case.video.times[-1]:.3g} s; "
               f"looking for {', '.join(case.problem.names)}", highlight=False)  # fmt: skip
    for warning in case.warnings:
        said.print(f"[yellow]warning:[/] {escape(warning)}", highlight=False)
    kept = report / KEPT
    if kept.exists() and not again:
        said.print(f"going on with {escape(str(kept))}", highlight=False)
    going_on = kept.exists() and not again
    advice = "another --report keeps both; --again begins anew" if going_on else "dt is time_step of the scene"
    with _put_aside(kept, again), _written(kept) as code:
        with refusing(FitFailed, ValueError, OSError, ph.Diverged, ph.StepTooLarge, advice=advice, code=code):
            fit = case.fit(starts=starts, seed=seed, save=kept, progress=True)
        with refusing(kc.KernelError, advice="`nablasim doctor` says what this machine lacks", code=code):
            page = case.report(fit, report, title=f"{video.name}: {', '.join(wanted)}")
    output().print(escape(str(fit.table())), highlight=False)
    output().print(f"[bold]{escape(str(page))}[/]", highlight=False)


@contextmanager
def _put_aside(kept: Path, again: bool) -> Iterator[None]:
    """Begin anew, and bring back what was kept if nothing takes its place."""
    if not again or not kept.exists():
        yield
        return
    aside = kept.with_name(f"{kept.name}.before")
    kept.replace(aside)
    try:
        yield
    finally:
        if kept.exists():
            aside.unlink()
        else:
            aside.replace(kept)


@contextmanager
def _written(kept: Path) -> Iterator[Callable[[], int]]:
    """The exit code of a failure: whether something was written until then."""

    def content() -> bytes | None:
        return kept.read_bytes() if kept.exists() else None

    before = content()
    yield lambda: REFUSED if content() == before else FAILED
