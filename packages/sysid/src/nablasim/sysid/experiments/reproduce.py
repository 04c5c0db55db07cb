"""Runs experiments, and writes what they found: as text, as numbers, and as one page with curves.

Items are kept as they are finished: what was killed goes on where it stood. The folder of items is named by what they
are, so that a changed experiment does not take old results for its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from nablasim.sysid.experiments.experiment import SIZES, Chapter, Experiment, goals_table
from nablasim.sysid.names import nearest
from nablasim.sysid.report import filled, made_by, svg, write_page
from nablasim.sysid.sweep import Mark, sweep


def experiments() -> dict[str, Experiment]:
    """All that can be reproduced, by name."""
    from nablasim.sysid.experiments.closed_loop import CLOSED_LOOP
    from nablasim.sysid.experiments.controls import TASKS
    from nablasim.sysid.experiments.fig7 import FIG7
    from nablasim.sysid.experiments.foreign import FOREIGN
    from nablasim.sysid.experiments.imperfect import TABLE4LEFT
    from nablasim.sysid.experiments.landscapes import LANDSCAPES
    from nablasim.sysid.experiments.pendula import PENDULA
    from nablasim.sysid.experiments.rates import TABLE4RIGHT
    from nablasim.sysid.experiments.smoke import SMOKE
    from nablasim.sysid.experiments.table1 import TABLE1
    from nablasim.sysid.experiments.table2 import TABLE2
    from nablasim.sysid.experiments.table3 import TABLE3
    from nablasim.sysid.experiments.tosses import TOSSES

    made: list[Experiment] = [TABLE1, TABLE2, TABLE3, LANDSCAPES, TABLE4LEFT, TABLE4RIGHT, FIG7, *TASKS.values(),
                              CLOSED_LOOP, PENDULA, SMOKE, TOSSES, FOREIGN]  # fmt: skip
    return {e.name: e for e in made}


def chosen(what: str, data: str | Path | None = None) -> list[Experiment]:
    """One experiment, or all of them: those of recordings only where these are given."""
    known = {name: _given(e, data) for name, e in experiments().items()}
    if what == "all":
        return [e for e in known.values() if getattr(e, "data", "") is not None]
    if what not in known:
        raise KeyError(f"there is no experiment {what!r}: {nearest(what, [*known, 'all'])}")
    if data is not None and not hasattr(known[what], "data"):
        raise ValueError(f"{what} takes no --data: it makes its own")
    return [known[what]]


def _given(experiment: Any, data: str | Path | None) -> Any:
    return experiment.given(str(data)) if data is not None and hasattr(experiment, "given") else experiment


def reproduce(
    what: str,
    size: str = "desk",
    out: str | Path = "out/reproduce",
    *,
    data: str | Path | None = None,
    on_chapter: Callable[[Chapter], None] = lambda chapter: None,
    **options: Any,
) -> list[Chapter]:
    """Run one experiment or "all", and write text, numbers and a page into a folder. `options` go to `sweep`.

    data: recordings that are not part of the project, where the experiment needs them.
    """
    if size not in SIZES:
        raise ValueError(f"size is one of {', '.join(SIZES)}, not {size!r}")
    folder, chapters = Path(out) / size, []
    for experiment in chosen(what, data):
        items = experiment.items(size)
        mark = Mark.of(run_item, {}, items).name
        results = sweep(items, run_item, folder=folder / "items" / f"{experiment.name}-{mark}", **options)
        chapter = experiment.chapter(size, items, results)
        write(chapter, folder)
        on_chapter(chapter)
        chapters.append(chapter)
    write_book(chapters, folder / "report.html", f"The paper's experiments, size {size}")
    return chapters


def run_item(item: Any) -> Any:
    return item.run()


def write(chapter: Chapter, folder: Path) -> None:
    """The chapter as text, and its numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{chapter.name}.txt").write_text(f"{chapter}\n", encoding="utf-8")
    (folder / f"{chapter.name}.json").write_text(json.dumps(chapter.data, default=_plain, indent=1), encoding="utf-8")


def write_book(chapters: Iterable[Chapter], file: Path, title: str) -> Path:
    """All chapters on one page that needs nothing else."""
    made = [
        {"chapter": c, "goals": goals_table(c.goals) if c.goals else None,
         "plates": [(svg(p.figure), p.caption) for p in c.plates]}
        for c in chapters
    ]  # fmt: skip
    return write_page(file, filled("reproduce.html.j2", title=title, chapters=made, made_by=made_by()))


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a number or a text")
