"""Curves of a report: the search, and how sure its result is."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from cycler import cycler
from matplotlib import rc_context
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from nablasim.sysid.fit import Fit

BLUE, ORANGE = "#2a6fbb", "#e0762b"
STYLE: Any = {
    "font.size": 9.5, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.25, "axes.prop_cycle": cycler(
        color=[BLUE, ORANGE, "#4f9a5b", "#8b62b5", "#b28b2e", "#4aa3a5"]
    ),
}  # fmt: skip
MOST = 20
"""Parameters whose correlations can be read."""


def svg(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return base64.b64encode(buffer.getvalue()).decode()


def styled(draw: Callable[[Fit], Figure], fit: Fit) -> str:
    """A curve of a fit as SVG in the type and the colours of all of them."""
    with rc_context(STYLE):
        return svg(draw(fit))


def trust(fit: Fit) -> dict[str, str]:
    """What says how sure a result is, by caption."""
    found = {"What is left in each frame: the root of the mean of squared residuals. A frame that stands out is where "
             "the model does not hold.": styled(_draw_residuals, fit)}  # fmt: skip
    if any(np.isfinite([e.low, e.high]).all() and e.value for e in fit.estimates):
        found[f"{fit.estimates[0].level:.0%} intervals, in percent of what was found. Hollow: not certified."] = styled(
            _draw_intervals, fit
        )
    if 1 < len(fit.certificate.covariance) <= MOST and np.isfinite(fit.certificate.covariance).all():
        found["Correlation of the errors: near 1 or -1, only a combination of the two is known."] = styled(
            _draw_correlation, fit
        )
    return found


def draw_losses(fit: Fit) -> Figure:
    """The loss of each window against its number of frames, for every start."""
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.subplots()
    for k, start in enumerate(fit.starts):
        frames = [p["frames"] for p in start.path]
        axes.semilogy(frames, [max(p["loss"], 1e-32) for p in start.path], marker="o", ms=4, label=f"start {k + 1}")
    axes.set(xlabel="frames in the window", ylabel="mean of squares")
    axes.legend(frameon=False)
    return figure


def draw_landscape(fit: Fit, points: int = 31) -> Figure:
    """The loss along each number through what was found, over its bounds."""
    space, n = fit.problem.space, min(fit.problem.space.size, 6)
    figure = Figure(figsize=(2.9 * min(n, 3), 2.3 * -(-n // 3)), layout="constrained")
    grid: Any = np.atleast_1d(figure.subplots(-(-n // 3), min(n, 3), squeeze=False)).ravel()
    labels = _labels(fit)
    for j, axes in enumerate(grid):
        if j >= n:
            axes.axis("off")
            continue
        line = np.tile(fit.u, (points, 1))
        line[:, j] = np.linspace(space.low[j], space.high[j], points)
        squares = fit.problem.misfits(line).sum(axis=1) / fit.problem.bound.target.size
        values = [space.numbers(u)[j] if len(space.names) == space.size else u[j] for u in line]
        axes.semilogy(values, np.where(np.isfinite(squares), squares, np.nan))
        axes.axvline(values[int(np.argmin(np.abs(line[:, j] - fit.u[j])))], color=ORANGE, linewidth=1)
        axes.set(title=labels[j])
        axes.set_xscale("log" if space.low[j] < 0 < min(values) or min(values) > 0 else "linear")
    return figure


def _draw_residuals(fit: Fit) -> Figure:
    figure = Figure(figsize=(4.6, 2.8), layout="constrained")
    axes, bound = figure.subplots(), fit.problem.bound
    squares = fit.problem.misfits(fit.u)[0] / bound.target[0].size
    axes.plot(bound.times, np.sqrt(squares), marker=".", ms=4, lw=1)
    axes.set(xlabel="time (s)", ylabel="residual")
    axes.set_ylim(bottom=0)
    return figure


def _draw_intervals(fit: Fit) -> Figure:
    shown = [e for e in fit.estimates if np.isfinite([e.low, e.high]).all() and e.value]
    figure = Figure(figsize=(4.6, 0.7 + 0.32 * len(shown)), layout="constrained")
    axes = figure.subplots()
    widths = []
    for k, e in enumerate(shown):
        low, high = sorted(100 * (end / e.value - 1) for end in (e.low, e.high))
        axes.plot([low, high], [k, k], color=BLUE, lw=2, solid_capstyle="butt")
        axes.plot(0, k, marker="o", ms=5, color=BLUE, mfc=BLUE if e.certified else "white")
        widths += [abs(low), abs(high)]
    if max(widths) > 30 * min(widths) > 0:
        axes.set_xscale("symlog", linthresh=max(min(widths), 1e-12))
    axes.axvline(0, color="0.7", lw=0.8, zorder=0)
    axes.set(xlabel="percent of the value", yticks=range(len(shown)), yticklabels=[e.name for e in shown],
             ylim=(len(shown) - 0.5, -0.5))  # fmt: skip
    axes.locator_params(axis="x", nbins=5) if axes.get_xscale() == "linear" else axes.tick_params(axis="x", rotation=30)
    return figure


def _draw_correlation(fit: Fit) -> Figure:
    covariance, labels = fit.certificate.covariance, _labels(fit)
    std = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlation, n = covariance / np.outer(std, std), len(std)
    side = 1.4 + 0.5 * n
    figure = Figure(figsize=(side + 0.6, side), layout="constrained")
    axes = figure.subplots()
    axes.grid(False)
    axes.imshow(correlation, cmap="RdBu_r", vmin=-1, vmax=1)
    for (i, j), value in np.ndenumerate(correlation):
        axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8,
                  color="white" if abs(value) > 0.6 else "black")  # fmt: skip
    axes.set(xticks=range(n), yticks=range(n), yticklabels=labels)
    axes.set_xticklabels(labels, rotation=35, ha="right", rotation_mode="anchor")
    return figure


def _labels(fit: Fit) -> list[str]:
    """The names of the coordinates of the search."""
    space = fit.problem.space
    return list(space.names) if len(space.names) == space.size else [f"coordinate {j}" for j in range(space.size)]
