"""Tables to print: of estimates, and of experiments beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nablasim.sysid.trust import Estimate


@dataclass(frozen=True)
class Table:
    """Rows of text under headings. `str(table)` is aligned text; rich and the report show it in their way."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""

    def __str__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.heads))]
        text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in lines]
        text.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join([self.title, *text] if self.title else text)

    __repr__ = __str__


def estimates_table(estimates: Iterable[Estimate]) -> Table:
    rows = []
    for e in estimates:
        interval = f"[{e.low:.6g}, {e.high:.6g}]" if e.certified else "not certified: " + "; ".join(e.why)
        rows.append((e.name, f"{e.value:.6g}", e.unit if e.unit != "1" else "", interval))
    level = next(iter(estimates)).level if isinstance(estimates, Sequence) and estimates else 0.9
    return Table(("parameter", "value", "unit", f"{level:.0%} interval"), tuple(rows))
