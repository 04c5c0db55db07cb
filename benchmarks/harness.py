"""What a case is, and how it is run: every entrant is checked first, then all are timed in interleaved rounds."""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Results = dict[str, np.ndarray]


@dataclass
class Entrant:
    """One way to do the work of a case.

    runs: by measure, a function that does the work once and returns when it is done
    results: values and gradients, asked for after every run was called once
    """

    runs: dict[str, Callable[[], Any]]
    results: Callable[[], Results] = dict


@dataclass(frozen=True)
class Unit:
    """How a time is shown: seconds of one run × `factor`, per thing counted; or things per second."""

    name: str
    factor: float = 1.0
    rate: bool = False

    def show(self, seconds: float, count: float) -> float:
        return count / seconds if self.rate else seconds * self.factor / count


MILLISECONDS = Unit("ms", 1e3)
SECONDS = Unit("s")


@dataclass(frozen=True)
class Sample:
    """One round of an entrant: seconds of one run, by the clock that the case goes by; and of CPU, over all threads."""

    seconds: float
    cpu: float


def wall(run: Callable[[], Any], times: int) -> Sample:
    """By the clock on the wall, and the CPU time of this process."""
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        run()
    return Sample((time.perf_counter() - begin) / times, (time.process_time() - cpu) / times)


@dataclass(frozen=True)
class Case:
    """Work of a size, and how it is measured. A package in `cases/` holds one, with a module for each peer.

    Each module `cases/<name>/<peer>.py` has `entrants(work)`, which returns `Entrant`s by name.
    """

    name: str
    title: str
    sizes: Sequence[int]
    tiny: int
    make: Callable[[int], Any]
    unit: Unit
    count: Callable[[Any], float] = lambda work: 1.0
    reference: Callable[[Any], Results] | None = None
    tolerance: float = 1e-3
    timer: Callable[[Callable[[], Any], int], Sample] = wall
    once: bool = False
    """Each sample is a single run: processes that start, for instance."""


@dataclass
class Outcome:
    """What was measured for one case at one size, by measure and entrant: all rounds; and who could not take part."""

    case: Case
    size: int
    count: float
    samples: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    """By entrant, the worst relative distance from the reference."""

    @property
    def best(self) -> dict[str, dict[str, float]]:
        """The seconds of the best rounds."""
        return {
            measure: {name: min(s.seconds for s in rounds) for name, rounds in entrants.items()}
            for measure, entrants in self.samples.items()
        }


class Disagreement(AssertionError):
    """An entrant computed something else."""


def cases() -> dict[str, Case]:
    """Every case there is, by name."""
    from . import cases as package

    names = [m.name for m in pkgutil.iter_modules(package.__path__)]
    found = [importlib.import_module(f"{package.__name__}.{name}").CASE for name in names]
    return {case.name: case for case in sorted(found, key=lambda c: c.name)}


def peers(case: Case) -> list[str]:
    """The modules of a case: ours first."""
    package = importlib.import_module(f"benchmarks.cases.{case.name}")
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")]
    return sorted(names, key=lambda n: (n != "kernelc", n))


def run(case: Case, size: int, *, rounds: int = 7, only: Sequence[str] = (), sample: float = 0.02) -> Outcome:
    """Check and time a case at one size."""
    work = case.make(size)
    outcome = Outcome(case, size, case.count(work))
    entrants = enter(case, work, outcome, only)
    check(case, work, entrants, outcome)
    if rounds:
        measure(case, entrants, outcome, rounds, sample)
    return outcome


def enter(case: Case, work: Any, outcome: Outcome, only: Sequence[str]) -> dict[str, Entrant]:
    """The entrants that are there; a peer that is not installed is noted, and so is one that fails."""
    found: dict[str, Entrant] = {}
    for peer in peers(case):
        if only and peer not in only:
            continue
        with noting(peer, outcome), quiet():
            module = importlib.import_module(f"benchmarks.cases.{case.name}.{peer}")
            found |= module.entrants(work)
    return found


@contextlib.contextmanager
def noting(name: str, outcome: Outcome) -> Iterator[None]:
    """A peer's failure is a line of the report. Ours is an error."""
    try:
        yield
    except ImportError as error:
        if error.name and error.name.split(".")[0] == "kernelc":
            raise
        outcome.absent[name] = f"not installed ({error.name or error})"
    except Disagreement:
        raise
    except Exception as error:
        if name == "kernelc":
            raise
        outcome.absent[name] = f"failed: {type(error).__name__}: {error}".splitlines()[0]
        traceback.clear_frames(error.__traceback__)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Peers greet on standard output."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def check(case: Case, work: Any, entrants: dict[str, Entrant], outcome: Outcome) -> None:
    """Run everything once; all must agree with the reference."""
    reference = case.reference(work) if case.reference else {}
    for name, entrant in list(entrants.items()):
        with noting(name.split()[0].split(",")[0], outcome), quiet():
            for go in entrant.runs.values():
                go()
            outcome.errors[name] = agree(case, name, entrant.results(), reference)
        if name not in outcome.errors:
            del entrants[name]


def agree(case: Case, name: str, found: Results, reference: Results) -> float:
    worst = 0.0
    for key, value in found.items():
        wanted = reference[key]
        scale = max(float(np.abs(wanted).max()), 1e-30)
        off = float(np.abs(np.asarray(value, np.float64).reshape(wanted.shape) - wanted).max()) / scale
        if not off <= case.tolerance:
            raise Disagreement(f"{case.name}: {name} is off by {off:.2g} (relative) in {key!r}")
        worst = max(worst, off)
    return worst


def measure(case: Case, entrants: dict[str, Entrant], outcome: Outcome, rounds: int, sample: float) -> None:
    """Interleaved rounds: whatever else the machine does then hits everybody alike."""
    jobs = []
    for name, entrant in entrants.items():
        for what, go in entrant.runs.items():
            first = 0.0 if case.once else case.timer(go, 1).seconds
            jobs.append((name, what, go, 1 if case.once else max(1, int(sample / max(first, 1e-9)))))
    for _ in range(rounds):
        for name, what, go, times in jobs:
            with quiet():
                sample_of_round = case.timer(go, times)
            outcome.samples.setdefault(what, {}).setdefault(name, []).append(sample_of_round)
