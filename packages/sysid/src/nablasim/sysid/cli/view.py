"""`nablasim view`: motions in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nablasim.sysid.cli.console import output, refusing


def view(
    what: Annotated[Path, typer.Argument(help="A scene (.yaml), a motion (.npz), the folder of a report, or a clip.")],
    video: Annotated[Path | None, typer.Option(help="With a scene: the clip beside it.")] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Of a scene without a clip.")] = 2.0,
    fps: Annotated[float | None, typer.Option(help="Frames per second: 30, or what the file says.")] = None,
    port: Annotated[int, typer.Option(help="Of the page, or the next one that is free.")] = 8080,
    save: Annotated[Path | None, typer.Option(help="Write a page that plays by itself, and end.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Look at a motion from all sides: play, scrub, contact forces, target beside found, sliders that run it again.

    Needs viser: pip install "nablasim-sysid[view]". The page is served until Ctrl-C, to this machine alone.
    """
    from nablasim import physics as ph
    from nablasim.sysid.look import CannotLook
    from nablasim.sysid.view import view as shown

    with refusing(CannotLook, ph.MissingPackage, ValueError, OSError, ArithmeticError):
        viewer = shown(what, video=video, seconds=seconds, fps=fps, port=port)
    console = output()
    with viewer:
        if save is not None:
            console.print(f"[bold]{escape(str(viewer.save(save)))}[/]", highlight=False)
            return
        console.print(f"{escape(str(what))}: [bold]{viewer.url}[/] until Ctrl-C", highlight=False)
        if browser:
            viewer.open()
        viewer.wait()
