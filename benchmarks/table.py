"""Outcomes as tables: text for the terminal, markdown for the documentation. Ratios are to kernelc."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from .harness import Case, Outcome

Row = list[str]
_COUNTS = {1: "one thread", 2: "two threads"}


def text(outcomes: Sequence[Outcome]) -> str:
    """Tables with aligned columns."""
    parts = []
    for case, found in _by_case(outcomes):
        parts.append(_heading(case))
        for header, rows in _tables(found):
            parts.append(_aligned([header, *rows]))
        parts.extend(_remarks(found))
    return "\n\n".join(parts) + "\n"


def markdown(outcomes: Sequence[Outcome], command: str, picture: str, threads: int) -> str:
    """The same for a page."""
    parts = [
        f"<!-- Written by `python -m benchmarks`; do not edit. -->\n# How fast, with {_COUNTS.get(threads, threads)}",
        f"`{command}` on {_machine()}. Best of interleaved rounds; in brackets how many times slower than kernelc. "
        "Everybody's values and gradients agree with a reference in float64. Read ratios: the machine is shared.",
        f"![Times in units of kernelc's]({picture})",
    ]
    for case, found in _by_case(outcomes):
        parts.append(f"## {_heading(case)}")
        for header, rows in _tables(found):
            lines = [header, ["---"] * len(header), *rows]
            parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
        parts.extend(_remarks(found))
    return "\n\n".join(parts) + "\n"


def _by_case(outcomes: Sequence[Outcome]) -> list[tuple[Case, list[Outcome]]]:
    names = dict.fromkeys(o.case.name for o in outcomes)
    return [(found[0].case, found) for name in names if (found := [o for o in outcomes if o.case.name == name])]


def _heading(case: Case) -> str:
    return f"{case.title} ({case.unit.name})"


def _tables(found: list[Outcome]) -> list[tuple[Row, list[Row]]]:
    """Sizes become columns, or measures where there is one size."""
    measures = dict.fromkeys(m for o in found for m in o.best)
    if len(found) == 1:
        columns = {m: (found[0], m) for m in measures}
        return [_table("", columns)] if columns else []
    return [_table(m, {f"{o.size:,}": (o, m) for o in found}) for m in measures]


def _table(corner: str, columns: dict[str, tuple[Outcome, str]]) -> tuple[Row, list[Row]]:
    entrants = dict.fromkeys(name for o, m in columns.values() for name in o.best.get(m, {}))
    rows = [[name, *[_cell(o, m, name) for o, m in columns.values()]] for name in entrants]
    return [corner, *columns], rows


def _cell(outcome: Outcome, measure: str, name: str) -> str:
    best = outcome.best.get(measure, {})
    if name not in best:
        return "–"
    shown = _number(outcome.case.unit.show(best[name], outcome.count))
    ours = best.get("kernelc")
    return shown if ours is None or name == "kernelc" else f"{shown} ({best[name] / ours:.2f})"


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
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, Python {platform.python_version()}"
