"""`nablasim identify`: a video and a scene file in, the physics out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nablasim.sysid.cli.console import FAILED, REFUSED, check_folder, errors, output, refuse, refusing
from nablasim.sysid.cli.filmed import answer, show

KEPT = "fit.json"
"""In the folder of the report: what has been done so far."""


def identify(
    video: Annotated[Path, typer.Argument(help="A video (mp4, gif, ...), or a folder of pictures.")],
    estimate: Annotated[str, typer.Option(help="What to find, separated by commas: density,restitution")],
    scene: Annotated[Path | None, typer.Option(help="The scene file: objects, camera, floor ... in YAML.")] = None,
    kind: Annotated[
        str | None, typer.Option("--as", help="Instead of a scene file: throw, bounce, slide, roll or swing.")
    ] = None,
    report: Annotated[Path, typer.Option(help="Folder for the report, and what has been done so far.")] = Path("out"),
    starts: Annotated[int, typer.Option(min=1, help="How many blind starts there may be.")] = 4,
    seed: Annotated[int, typer.Option(help="Of the blind starts.")] = 0,
    fps: Annotated[float | None, typer.Option(help="Frames per second, if the file is wrong: slow motion.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Begin anew, whatever has been done already.")] = False,
    diameter: Annotated[str | None, typer.Option(help='With --as: how large the object is, "4 cm".')] = None,
    length: Annotated[str | None, typer.Option(help='With --as: a line in the picture, x,y,x,y,"1 m".')] = None,
    gravity: Annotated[str | None, typer.Option(help="With --as: 9.81 m/s² if it is left out.")] = None,
    angle: Annotated[str | None, typer.Option(help='With --as: of the slope, "9 deg".')] = None,
    region: Annotated[str | None, typer.Option(help="With --as: where to look, x,y,width,height in pixels.")] = None,
    object: Annotated[str | None, typer.Option(help="With --as: a place that the object passes, x,y.")] = None,
) -> None:
    """Find out what a filmed object is made of: with a scene file, or --as an everyday motion without one.

    Stopped half-way, the same command goes on where it was. Exit code 2: the input cannot be used, and nothing was
    written. Exit code 1: the search failed, and what it did until then is in the folder of the report.
    """
    wanted = [name.strip() for name in estimate.split(",") if name.strip()]
    if not wanted:
        raise refuse("there is nothing to find", "name some quantities: --estimate density,restitution")
    if (scene is None) == (kind is None):
        raise refuse(
            "there are both --scene and --as" if scene else "what is to be seen in the video is not said",
            "--as throw, bounce, slide, roll or swing needs no scene file; --scene scene.yaml describes the rest",
        )
    check_folder(report, "--report")
    if kind is not None:
        answer(video, kind, wanted, report, fps=fps, diameter=diameter, length=length, gravity=gravity, angle=angle,
               region=region, place=object)  # fmt: skip
        return
    assert scene is not None
    if any(v is not None for v in (diameter, length, gravity, angle, region, object)):
        raise refuse("--diameter, --length, --gravity, --angle, --region and --object belong to --as",
                     "write what they say into the scene file")  # fmt: skip
    import kernelc as kc
    from nablasim import physics as ph
    from nablasim.sysid.fit import FitFailed
    from nablasim.sysid.identify import TrackCase, prepare

    with refusing(ValueError, KeyError):
        case = prepare(video, scene, wanted, fps=fps)
    if isinstance(case, TrackCase):
        show(case.asked, report, f"{video.name}: {', '.join(wanted)}")
        return
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
