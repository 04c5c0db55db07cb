"""`nablasim identify CLIP --as bounce`: a number from a clip that somebody filmed, without a scene file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from nablasim.sysid.cli.console import errors, output, refuse, refusing
from nablasim.sysid.cli.look import numbers


def answer(
    video: Path, kind: str, wanted: list[str], report: Path, *, fps: float | None, diameter: str | None,
    length: str | None, gravity: str | None, angle: str | None, region: str | None, place: str | None,
) -> None:  # fmt: skip
    """Look, ask, print, and write the report."""
    from nablasim.sysid.look import CannotLook, look
    from nablasim.sysid.scenes import to_number
    from nablasim.sysid.tracks import CannotTell, Known, ask
    from nablasim.sysid.tracks.questions import check, names_of

    with refusing(CannotTell, ValueError):
        known = Known(
            diameter=None if diameter is None else _positive("--diameter", to_number(diameter, "m")),
            length=None if length is None else _line(length),
            gravity=None if gravity is None else _positive("--gravity", to_number(gravity, "m/s^2")),
            angle=None if angle is None else to_number(angle, "rad"),
        )
        names = names_of(kind, wanted)
        check(kind, names, known)
    where, at = numbers(region, 4, "--region", "x,y,width,height"), numbers(place, 2, "--object", "x,y")
    with refusing(CannotLook, CannotTell):
        seen = look(video, where, at, fps)  # type: ignore[arg-type]
        asked = ask(seen, kind, names, known)
    show(asked, report, f"{video.name}: {', '.join(names)}")


def show(asked: Any, report: Path, title: str) -> None:
    """Print what a track told, and write its report."""
    from nablasim.sysid.tracks import HOW, write_answers

    said = errors()
    for note in asked.notes:
        said.print(f"[yellow]note:[/] {escape(note)}", highlight=False)
    page = write_answers(asked, report, title)
    shown = output()
    for found in asked.answers:
        shown.print(escape(str(found)), highlight=False)
        shown.print(escape(f"  assumed: {'; '.join(found.assumed)}"), highlight=False)
    shown.print(f"found {HOW}", highlight=False)
    shown.print(f"[bold]{escape(str(page))}[/]", highlight=False)


def _positive(option: str, value: float) -> float:
    if not value > 0:
        raise refuse(f"{option} is above zero, and not {value:g}")
    return value


def _line(text: str) -> tuple[float, float, float, float, float]:
    from nablasim.sysid.scenes import to_number

    parts = text.split(",")
    try:
        x0, y0, x1, y1 = (float(p) for p in parts[:4])
        return x0, y0, x1, y1, _positive("--length", to_number(parts[4].strip().strip("\"'"), "m"))
    except (ValueError, IndexError):
        raise refuse(
            f"--length is x,y,x,y,length, and not {text!r}", 'for example --length 100,20,100,420,"1 m"'
        ) from None
