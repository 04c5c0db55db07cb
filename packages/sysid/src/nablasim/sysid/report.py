"""Writes what a run found: two pictures and one HTML page that needs no other file and no JavaScript."""

from __future__ import annotations

import base64
import io
import platform
import sys
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import jinja2
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nablasim.render import Camera
from nablasim.sysid.demo import NAMES, UNITS, DemoResult

DISTRIBUTIONS = ("kernelc", "nablasim-physics", "nablasim-render", "nablasim-sysid", "numpy")

SIZE = (480, 720)
"""Height and width, in pixels, of the picture that the camera takes."""


def write_demo_report(result: DemoResult, out: Path) -> Path:
    """Write trajectory.png, loss.png and report.html into the folder `out`; returns the page."""
    out.mkdir(parents=True, exist_ok=True)
    trajectory, loss = _png(draw_trajectory(result)), _png(draw_loss(result))
    (out / "trajectory.png").write_bytes(trajectory)
    (out / "loss.png").write_bytes(loss)
    page = out / "report.html"
    page.write_text(_render(result, trajectory, loss), encoding="utf-8")
    return page


def draw_trajectory(result: DemoResult) -> Figure:
    """The cloth over time through one camera: where it was seen, and where the simulation has it, before and after."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    camera = Camera.look_at(eye=(1.6, 0.4, 6.0), target=(1.6, 0.4, 0.0), fov=40)
    for axes, positions, title in zip(
        figure.subplots(1, 2), (result.before, result.after), ("before: at rest", "after the descent")
    ):
        _draw_cloth(axes, result, camera, result.seen, color="tab:orange", width=1.6, label="seen")
        _draw_cloth(axes, result, camera, positions, color="tab:blue", width=0.5, label="simulated")
        axes.set(title=title, xlim=(0, SIZE[1]), ylim=(SIZE[0], 0), aspect="equal", xticks=[], yticks=[])
        axes.legend(loc="lower right")
    return figure


def draw_loss(result: DemoResult) -> Figure:
    """The loss against the iterations, on a logarithmic axis."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(result.fit.losses, marker=".")
    axes.set(xlabel="iteration", ylabel="mean squared distance [m²]", title="loss")
    axes.grid(True, alpha=0.3)
    return figure


def _draw_cloth(
    axes: Axes,
    result: DemoResult,
    camera: Camera,
    positions: NDArray[np.float64],
    *,
    color: str,
    width: float,
    label: str,
) -> None:
    for k in range(0, len(positions), 3):
        pixels, _ = camera.to_pixels(positions[k], SIZE)
        lines = list(pixels[:, ::-1][result.cloth.pairs])
        axes.add_collection(
            LineCollection(lines, colors=color, linewidths=width, alpha=0.6, label=label if k == 0 else None)
        )


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    return buffer.getvalue()


def _render(result: DemoResult, trajectory: bytes, loss: bytes) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nablasim.sysid"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    rows = zip(NAMES, UNITS, result.truth, result.fit.values[0], result.fit.value)
    return environment.get_template("demo.html.j2").render(
        result=result,
        rows=[(*row, abs(row[4] - row[2])) for row in rows],
        pictures={name: base64.b64encode(data).decode() for name, data in (("trajectory", trajectory), ("loss", loss))},
        versions={name: version(name) for name in DISTRIBUTIONS},
        python=f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}",
        command=" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        written=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    )
