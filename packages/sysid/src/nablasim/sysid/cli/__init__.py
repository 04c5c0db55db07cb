"""The command `nablasim`. Each subcommand has a file of its own; what they need is imported when it runs."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from nablasim.sysid.cli.control import control
from nablasim.sysid.cli.demo import demo
from nablasim.sysid.cli.doctor import doctor
from nablasim.sysid.cli.identify import identify
from nablasim.sysid.cli.look import look
from nablasim.sysid.cli.reproduce import reproduce
from nablasim.sysid.cli.view import view

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Differentiable simulation: find the physics.")
for command in (look, identify, view, control, reproduce, demo, doctor):
    app.command()(command)


@app.callback(invoke_without_command=True)
def main(
    show_version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
) -> None:
    if show_version:
        typer.echo(f"nablasim {version('nablasim-sysid')}, kernelc {version('kernelc')}")
        raise typer.Exit
