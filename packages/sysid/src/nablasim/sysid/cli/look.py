"""`nablasim look`: what moves in a clip, before anything is fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nablasim.sysid.cli.console import check_folder, errors, output, refuse, refusing


def look(
    video: Annotated[Path, typer.Argument(help="A video (mp4, gif, ...), or a folder of pictures.")],
    region: Annotated[str | None, typer.Option(help="Where to look, in pixels: x,y,width,height.")] = None,
    object: Annotated[str | None, typer.Option(help="A place that the object passes, in pixels: x,y.")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second, if the file is wrong: slow motion.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page, the masks, the track and a draft scene.")] = Path(
        "look"
    ),
) -> None:
    """Find what moves freely in a clip, when it was let go and when it hit something."""
    from nablasim.sysid.look import CannotLook, said_impacts, said_release
    from nablasim.sysid.look import look as find

    where = numbers(region, 4, "--region", "x,y,width,height")
    place = numbers(object, 2, "--object", "x,y")
    check_folder(out, "--out")
    with refusing(CannotLook, ValueError):
        found = find(video, where, place, fps)  # type: ignore[arg-type]
    said = errors()
    for warning in found.warnings:
        said.print(f"[yellow]warning:[/] {escape(warning)}", highlight=False)
    page = found.write(out)
    shown = output()
    shown.print(said_release(found), highlight=False)
    shown.print(said_impacts(found), highlight=False)
    shown.print(f"[bold]{escape(str(page))}[/]", highlight=False)


def numbers(text: str | None, count: int, option: str, form: str) -> tuple[float, ...] | None:
    """Numbers between commas."""
    if text is None:
        return None
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != count:
        raise refuse(f"{option} is {form}, and not {text!r}", f"for example {option} {','.join(['100'] * count)}")
    return values
