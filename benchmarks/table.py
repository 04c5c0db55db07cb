"""Outcomes as tables: text for the terminal, markdown for the documentation. Ratios are to kernelc."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from .harness import Case, Outcome, Sample

Row = list[str]
Cell = Callable[[Outcome, str, str], str]
_COUNTS = {1: "on one core", 2: "on two cores"}


def text(outcomes: Sequence[Outcome]) -> str:
    """Tables with aligned columns."""
    parts = []
    for case, found in _by_case(outcomes):
        parts.append(_heading(case))
        for cell in (_cell, _steady):
            for header, rows in _tables(found, cell):
                parts.append(_aligned([header, *rows]))
        parts.extend(_remarks(found))
    return "\n\n".join(parts) + "\n"


def markdown(outcomes: Sequence[Outcome], command: str, picture: str, threads: int) -> str:
    """The same for a page."""
    parts = [
        "<!-- Written by `python -m benchmarks`; do not edit. -->\n"
        f"# How fast, {_COUNTS.get(threads, f'on {threads} cores')}",
        f"`{command}` on {_machine()}. Best of interleaved rounds; in brackets how many times slower than kernelc. "
        "Everybody's values and gradients agree with a reference in float64. Read ratios: the machine is shared. "
        "Below the best rounds stands how steady they were: the median, half of how far the middle half of the rounds "
        "spreads, and how many cores were busy (CPU time by time on the wall): who uses one where there are two.",
        f"![Times in units of kernelc's]({picture})",
    ]
    for case, found in _by_case(outcomes):
        parts.append(f"## {_heading(case)}")
        parts.extend(_as_markdown(header, rows) for header, rows in _tables(found, _cell))
        if steady := [_as_markdown(header, rows) for header, rows in _tables(found, _steady)]:
            parts.extend(["Median ± spread, cores:", *steady])
        parts.extend(_remarks(found))
    return "\n\n".join(parts) + "\n"


def _by_case(outcomes: Sequence[Outcome]) -> list[tuple[Case, list[Outcome]]]:
    names = dict.fromkeys(o.case.name for o in outcomes)
    return [(found[0].case, found) for name in names if (found := [o for o in outcomes if o.case.name == name])]


def _heading(case: Case) -> str:
    return f"{case.title} ({case.unit.name})"


def _as_markdown(header: Row, rows: list[Row]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows])


def _tables(found: list[Outcome], cell: Cell) -> list[tuple[Row, list[Row]]]:
    """Sizes become columns, or measures where there is one size."""
    measures = dict.fromkeys(m for o in found for m in o.samples)
    if len(found) == 1:
        columns = {m: (found[0], m) for m in measures}
        return [_table("", columns, cell)] if columns else []
    return [_table(m, {f"{o.size:,}": (o, m) for o in found}, cell) for m in measures]


def _table(corner: str, columns: dict[str, tuple[Outcome, str]], cell: Cell) -> tuple[Row, list[Row]]:
    entrants = dict.fromkeys(name for o, m in columns.values() for name in o.samples.get(m, {}))
    rows = [[name, *[cell(o, m, name) for o, m in columns.values()]] for name in entrants]
    return [corner, *columns], rows


def _cell(outcome: Outcome, measure: str, name: str) -> str:
    best = outcome.best.get(measure, {})
    if name not in best:
        return "–"
    shown = _number(outcome.case.unit.show(best[name], outcome.count))
    ours = best.get("kernelc")
    return shown if ours is None or name == "kernelc" else f"{shown} ({best[name] / ours:.2f})"


def _steady(outcome: Outcome, measure: str, name: str) -> str:
    """Of all rounds: the median, how far apart the middle half of them lies, and how many cores were busy."""
    rounds = outcome.samples.get(measure, {}).get(name)
    if not rounds:
        return "–"
    middle, spread, cores = steadiness(rounds)
    return f"{_number(outcome.case.unit.show(middle, outcome.count))} ± {spread:.0%}, {cores:.1f}"


def steadiness(rounds: Sequence[Sample]) -> tuple[float, float, float]:
    """The median of the seconds; half the distance of their quartiles, as a part of it; CPU time by wall time."""
    seconds = sorted(s.seconds for s in rounds)
    middle = median(seconds)
    quarter = (len(seconds) - 1) / 4
    spread = (seconds[-1 - int(quarter)] - seconds[int(quarter)]) / 2 / middle
    return middle, spread, median(s.cpu / s.seconds for s in rounds)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _remarks(found: list[Outcome]) -> list[str]:
    absent = {name: why for o in found for name, why in o.absent.items()}
    return [f"{name}: {why}" for name, why in absent.items()]


def _aligned(rows: list[Row]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        row[0].ljust(widths[0]) + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _machine() -> str:
    """The processor, with how wide its lanes are: "Intel" alone may be either."""
    name = platform.processor() or platform.machine()
    lanes = ""
    try:
        known = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        name = re.findall(r"^model name\s*:\s*(.*)$", known, re.MULTILINE)[0].strip()
        flags = re.findall(r"^flags\s*:\s*(.*)$", known, re.MULTILINE)[0].split()
        lanes = next((f" ({shown})" for flag, shown in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), "")
    except (OSError, IndexError):
        pass
    return f"{name}{lanes}, Python {platform.python_version()}"
