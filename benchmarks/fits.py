"""`python -m benchmarks.fits [bodies]`: fits with exact slopes beside the same fits with differences, in one run.

The demo, and bodies of the bouncier set of Table 2: from the video with blind starts, and from states. Times are those
of the processor, so that neighbours count less; errors are the largest of each fit.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from nablasim.sysid.demo import Bounce
from nablasim.sysid.experiments.table2 import TABLE2
from nablasim.sysid.problem import Problem

WAYS = ("tangents", "differences")


@contextmanager
def by_differences(problem: type[Problem]) -> Iterator[None]:
    """As if nothing had tangents."""
    before = problem.pushes
    problem.pushes = property(lambda _: False)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        problem.pushes = before  # type: ignore[method-assign]


def timed(way: str, fit: Callable[[], Any]) -> tuple[Any, float, float]:
    """A fit, seconds of the processor and of the clock."""
    begin, clock = time.process_time(), time.perf_counter()
    if way == "tangents":
        found = fit()
    else:
        with by_differences(Problem):
            found = fit()
    return found, time.process_time() - begin, time.perf_counter() - clock


Run = dict[str, tuple[float, float, float]]


def beside(make: Callable[[], Problem], truth: dict[str, float], **options: Any) -> Run:
    """By way: seconds of the processor, of the clock, and the largest relative error."""
    made = {}
    for way in WAYS:
        problem = make()
        problem.slopes(problem.space.low / 2 + problem.space.high / 2, by=way)  # type: ignore[arg-type]
        fit, busy, clock = timed(way, lambda: problem.fit(**options))  # noqa: B023
        made[way] = busy, clock, max(abs(fit[n].value / v - 1) for n, v in truth.items())
    return made


def show(what: str, runs: list[Run]) -> None:
    busy, clock = ({way: sum(r[way][k] for r in runs) for way in WAYS} for k in range(2))
    errors = {way: [r[way][2] for r in runs] for way in WAYS}
    print(f"{what}: {busy['differences'] / busy['tangents']:.2f} times as fast by tangents "
          f"({busy['tangents']:.1f} s beside {busy['differences']:.1f} s; by the clock "
          f"{clock['differences'] / clock['tangents']:.2f})")  # fmt: skip
    print("    by fit: " + ", ".join(f"{r['differences'][0] / r['tangents'][0]:.2f}" for r in runs))
    for way in WAYS:
        print(f"    {way:12} largest error: median {np.median(errors[way]):.2g}, mean {np.mean(errors[way]):.2g}")


def main(bodies: int) -> None:
    warnings.simplefilter("ignore")
    bounce = Bounce()
    video = bounce.film()
    for _ in range(2):  # The first time kernels are made ready.
        demo = beside(partial(bounce.problem, video), bounce.truth, starts=4, progress=False)
    show("demo", [demo])
    rules = TABLE2.groups[0].rules
    cases = [rules.case(k) for k in range(bodies)]
    for kind in ("video", "states"):
        runs = [beside(partial(case.problem, kind), case.truth, starts=3, agree=1, seed=case.index, progress=False)
                for case in cases]  # fmt: skip
        show(f"Table 2, bouncier, {kind}", runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
