"""Outcomes as a picture: how many times slower than kernelc everybody is, for each case at each size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .harness import Outcome

_COLOURS = {
    "C++": "#444444", "Warp": "#76b900", "JAX": "#7a3fb5", "Taichi": "#d9822b", "Numba": "#1f9ed1", "torch": "#ee4c2c",
    "physics": "#c0392b",
}  # fmt: skip
_OTHER = "#999999"
_MARKERS = {"simd": "D", "graph": "s", "recorded": "s", "Function": "v", "custom op": "v"}


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write an SVG file: one row for each case, size and measure."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "nablasim"  # the same file for the same numbers
    from matplotlib import pyplot

    rows = list(_rows(outcomes))
    figure, axes = pyplot.subplots(figsize=(9, 0.34 * len(rows) + 1.4))
    for y, (_, ratios) in enumerate(rows):
        for name, ratio in ratios.items():
            axes.plot(ratio, y, marker=_marker(name), color=_colour(name), markersize=6, alpha=0.9)
    axes.axvline(1.0, color="#c0392b", linewidth=1.5, label="kernelc")
    names = dict.fromkeys(name for _, ratios in rows for name in ratios)
    for name in names:
        axes.plot([], [], marker=_marker(name), linestyle="", color=_colour(name), label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.invert_yaxis()
    axes.grid(axis="x", which="major", color="#dddddd")
    axes.set_xlabel("time, in units of kernelc's (to the right: slower)")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


def _rows(outcomes: Sequence[Outcome]) -> list[tuple[str, dict[str, float]]]:
    found = []
    for o in outcomes:
        for measure, best in o.best.items():
            if "kernelc" in best and len(best) > 1:
                label = f"{o.case.name} {o.size:,}: {measure}" if len(o.case.sizes) > 1 else f"{o.case.name}: {measure}"
                ratios = {n: t / best["kernelc"] for n, t in best.items() if n != "kernelc" and "import" not in n}
                found.append((label, ratios))
    return found


def _colour(name: str) -> str:
    return next((colour for start, colour in _COLOURS.items() if name.startswith(start)), _OTHER)


def _marker(name: str) -> str:
    return next((marker for word, marker in _MARKERS.items() if word in name), "o")
