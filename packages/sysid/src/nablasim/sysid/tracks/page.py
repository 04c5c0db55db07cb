"""The report of what a track told: the numbers, what was assumed, what stands against them, and the outlined frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nablasim.sysid.look import outlined, said_impacts, said_release, write_track
from nablasim.sysid.report import filled, made_by, svg, write_page
from nablasim.sysid.tracks.asking import Asked

SHOWN = 10
"""Frames on the page."""


def write_answers(asked: Asked, folder: Path, title: str) -> Path:
    """Write report.html and track.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    write_track(asked.look, folder / "track.csv")
    rows = asked.look.track
    chosen = np.unique(np.linspace(0, len(rows) - 1, SHOWN).round().astype(int))
    page = filled(
        "filmed.html.j2",
        title=title,
        asked=asked,
        how=HOW,
        release=said_release(asked.look),
        impacts=said_impacts(asked.look),
        pictures=[(f"frame {int(rows.frame[k])}", outlined(asked.look, int(k))) for k in chosen],
        curves=svg(_residuals(asked)),
        made_by=made_by(),
    )
    return write_page(folder / "report.html", page)


HOW = "from the track: the motion of the object's middle and its size, in closed form; pixels were not fitted"


def _residuals(asked: Asked) -> Figure:
    """What the model leaves of each measurement."""
    figure = Figure(figsize=(8, 1.7 * max(1, len(asked.residuals))), layout="constrained")
    grid: Any = figure.subplots(max(1, len(asked.residuals)), 1, sharex=True, squeeze=False)
    for axes, (name, values) in zip(grid[:, 0], asked.residuals.items()):
        axes.plot(asked.times[: len(values)], values, ".", markersize=3)
        axes.axhline(0, color="gray", linewidth=0.8)
        axes.set_ylabel(f"{name} (pixels)")
        axes.grid(True, alpha=0.3)
        spread = 6 * max(float(np.median(np.abs(values))), 0.05)
        axes.set_ylim(-spread, spread)
    grid[-1, 0].set_xlabel("time (s)")
    return figure
