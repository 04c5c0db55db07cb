"""`nablasim reproduce foreign`: clips of MuJoCo and PyBullet, answered as a user would, and how often intervals hold.

Nobody tells the camera, the first place or the speed. What is judged is the command `nablasim identify CLIP --as ...`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nablasim.sysid.experiments.answers import Missing
from nablasim.sysid.experiments.experiment import Chapter, Goal
from nablasim.sysid.experiments.foreign.engines import ENGINES
from nablasim.sysid.experiments.foreign.shots import Shot, Told
from nablasim.sysid.experiments.foreign.worlds import KINDS, TWISTS
from nablasim.sysid.report import Table

SEEDS = {"ci": (1,), "desk": (101, 102, 103), "paper": tuple(range(101, 113))}
"""Numbers below 100 were looked at while intervals were made; the others were not."""
FEW = (("bounce", "mujoco"), ("throw", "pybullet"), ("pendulum", "pybullet"))
"""For `ci`."""
TWISTED = {"ci": 1, "desk": 1, "paper": 4}
"""Seeds of clips in which something is wrong on purpose."""
ANSWERED, HELD, FARTHEST = 0.8, 0.85, 3.0


@dataclass(frozen=True)
class Foreign:
    """The experiment."""

    name: str = "foreign"
    title: str = "Clips of engines that nobody here wrote: how often intervals hold the truth"

    def items(self, size: str) -> list[Shot]:
        if size == "ci":
            few = [Shot(kind, engine, seed, rows=224) for seed in SEEDS[size] for kind, engine in FEW]
            return [*few, Shot("throw", "pybullet", 1, rows=224, twist="frame rate a quarter too high")]
        made = [Shot(kind, engine, seed) for seed in SEEDS[size] for kind in KINDS for engine in ENGINES]
        for seed in SEEDS[size][: TWISTED[size]]:
            for k, (name, twist) in enumerate(TWISTS.items()):
                engine = "mujoco" if twist.needs_mujoco else ENGINES[k % 2]
                made.append(Shot(twist.kind, engine, seed, twist=name))
        return made

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        missing = [r for r in results if isinstance(r, Missing)]
        told = [t for r in results if not isinstance(r, Missing) for t in r]
        straight, twisted = [t for t in told if not t.twist], [t for t in told if t.twist]
        drawn = ", ".join(f"{engine} by {drawer}" for engine, drawer in sorted({(t.engine, t.drawn) for t in told}))
        text = (TEXT, f"Drawn here: {drawn}.", *sorted({m.why for m in missing}))
        tables = [_table(straight), *([_twists(twisted)] if twisted else [])]
        return Chapter(self.name, self.title, text, tuple(tables), _goals(straight, twisted) if straight else (),
                       data={"answers": [asdict(t) for t in told]})  # fmt: skip


TEXT = (
    "Each clip is simulated and filmed by another engine, with a hand's camera, motion blur, noise and H.264, and "
    "asked as `nablasim identify CLIP --as` asks. Truth is what the engine was told, and for friction and restitution "
    "what its states show. Certified intervals count. A gravity that is refused for not being the Earth's counts too, "
    "as an interval that misses: otherwise none could."
)


def _table(told: Sequence[Told]) -> Table:
    rows = []
    for kind in [*dict.fromkeys(t.clip for t in told), "all"]:
        some = [t for t in told if kind in (t.clip, "all")]
        count = [t for t in some if t.counts]
        width = sorted((t.high - t.low) / t.truth for t in count)
        rows.append((
            kind, ", ".join(dict.fromkeys(t.name for t in some)) if kind != "all" else "",
            str(len(some)), f"{_share(some):.0%}",
            f"{sum(t.holds for t in count)} of {len(count)}", f"{max((t.off for t in count), default=0.0):.2f}",
            f"{width[len(width) // 2]:.0%}" if width else "",
        ))  # fmt: skip
    heads = ("clips", "asked for", "questions", "answered", "intervals that hold", "farthest off, in widths", "width")
    return Table(heads, tuple(rows), "As it is")


def _twists(told: Sequence[Told]) -> Table:
    rows = tuple(
        (t.twist, t.name, f"{t.truth:.4g}", f"{t.value:.4g}", "yes" if t.certified else "no",
         "yes" if t.holds else "no", t.why)
        for t in told
    )  # fmt: skip
    heads = ("what is wrong", "asked for", "truth", "found", "certified", "holds", "why not")
    return Table(heads, rows, "Wrong on purpose")


def _share(told: Sequence[Told]) -> float:
    """Of questions that got a certified answer."""
    return sum(t.certified for t in told) / max(len(told), 1)


def _goals(straight: Sequence[Told], twisted: Sequence[Told]) -> tuple[Goal, ...]:
    count = [t for t in straight if t.counts]
    missed = sum(not t.holds for t in count) / max(len(count), 1)
    wrong = sum(t.certified and t.off > 0 for t in twisted)
    return (
        Goal("questions without an answer, share", 1 - ANSWERED, 1 - _share(straight)),
        Goal("intervals that miss, share", 1 - HELD, missed),
        Goal("farthest off, in widths", FARTHEST, max((t.off for t in count), default=0.0)),
        Goal("wrong on purpose, certified and missed", 0, wrong),
    )


FOREIGN = Foreign()
