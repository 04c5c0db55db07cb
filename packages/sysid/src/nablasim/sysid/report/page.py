"""The report of a fit: one HTML page that needs no other file and no JavaScript."""

from __future__ import annotations

import base64
import io
import platform
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nablasim.sysid.report.films import shown

if TYPE_CHECKING:
    from nablasim.sysid.fit import Fit

DISTRIBUTIONS = ("kernelc", "nablasim-physics", "nablasim-render", "nablasim-sysid", "numpy", "torch")


def write_report(
    fit: Fit,
    folder: str | Path = "out",
    *,
    title: str = "What was found",
    recording: NDArray[Any] | None = None,
    scene: str = "",
) -> Path:
    """Write report.html into a folder, and give its path. It is renamed into place: a failure leaves the old one.

    recording: the video (frames, height, width, 3) of which the target was made, to be shown as well
    scene: the text of the scene file, if there is one
    """
    return write_page(Path(folder) / "report.html", _page(fit, title, recording, scene))


def write_page(file: Path, page: str) -> Path:
    """Renamed into place: a failure leaves the old one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".part")
    aside.write_text(page, encoding="utf-8")
    aside.replace(file)
    return file


def filled(template: str, **content: Any) -> str:
    """A template of this package with its content."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nablasim.sysid.report"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(template).render(**content)


def made_by() -> str:
    """What was run, when, and with what."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
    written = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    return f"Made by {command}, {written}; {python}; {', '.join(f'{n} {v}' for n, v in _versions().items())}"


def _page(fit: Fit, title: str, recording: NDArray[Any] | None, scene: str) -> str:
    rows = [
        (e.name, "" if e.unit == "1" else e.unit, f"{first:.4g}", f"{e.value:.6g}",
         f"{e.low:.6g} … {e.high:.6g}" if e.certified else "")
        for e, first in zip(fit.estimates, fit.problem.space.numbers(fit.starts[fit.best].first))
    ]  # fmt: skip
    against: dict[str, list[str]] = {}
    for e in fit.estimates:
        for reason in e.why:
            against.setdefault(reason, []).append(e.name)
    return filled(
        "report.html.j2",
        title=title,
        fit=fit,
        rows=rows,
        against={reason: "all" if len(n) == len(rows) > 1 else ", ".join(n) for reason, n in against.items()},
        scene=scene,
        level=f"{fit.estimates[0].level:.0%}",
        films=shown(fit, recording),
        loss=svg(_draw_losses(fit)),
        landscape=svg(_draw_landscape(fit)),
        misfit=fit.certificate.misfit,
        made_by=made_by(),
    )


# -- curves
def _draw_losses(fit: Fit) -> Figure:
    """The loss of each window against its number of frames, for every start."""
    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    for k, start in enumerate(fit.starts):
        frames = [p["frames"] for p in start.path]
        axes.semilogy(frames, [max(p["loss"], 1e-32) for p in start.path], marker="o", label=f"start {k + 1}")
    axes.set(xlabel="frames in the window", ylabel="mean of squares", title="growing window")
    axes.grid(True, alpha=0.3)
    axes.legend()
    return figure


def _draw_landscape(fit: Fit, points: int = 31) -> Figure:
    """The loss along each number through what was found, over its bounds."""
    space, n = fit.problem.space, min(fit.problem.space.size, 6)
    figure = Figure(figsize=(2.6 * min(n, 3), 2.2 * -(-n // 3)), layout="constrained")
    grid: Any = np.atleast_1d(figure.subplots(-(-n // 3), min(n, 3), squeeze=False)).ravel()
    for j, axes in enumerate(grid):
        if j >= n:
            axes.axis("off")
            continue
        line = np.tile(fit.u, (points, 1))
        line[:, j] = np.linspace(space.low[j], space.high[j], points)
        squares = fit.problem.misfits(line).sum(axis=1) / fit.problem.bound.target.size
        values = [space.numbers(u)[j] if len(space.names) == space.size else u[j] for u in line]
        axes.semilogy(values, np.where(np.isfinite(squares), squares, np.nan), color="tab:blue")
        axes.axvline(values[int(np.argmin(np.abs(line[:, j] - fit.u[j])))], color="tab:orange", linewidth=1)
        axes.set(title=space.names[j] if len(space.names) == space.size else f"coordinate {j}")
        axes.set_xscale("log" if space.low[j] < 0 < min(values) or min(values) > 0 else "linear")
        axes.grid(True, alpha=0.3)
    return figure


def svg(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return base64.b64encode(buffer.getvalue()).decode()


def _versions() -> dict[str, str]:
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "from source"
    return found
