"""Many problems at once: over the cores of this machine, or on a cluster of dask or ray that already exists.

Each item that is finished is kept in a file of its own, if there is a folder: a sweep that was killed loses none of
them, and the same call goes on with the rest. Several processes that make the same call share the work.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nablasim.sysid.progress import shown
from nablasim.sysid.sweep.pools import Dask, Job, Loky, Outcome, Pool, Ray, Run, Serial
from nablasim.sysid.sweep.results import Folder, Mark, Nowhere

BACKENDS = ("loky", "dask", "ray", "serial")
LOOK = 0.2
"""Seconds between two looks at what other processes have finished."""


class SweepFailed(RuntimeError):
    """Some items failed. `results` has those that did not (None for the others), `errors` what happened to which."""

    def __init__(self, results: list[Any], errors: dict[int, str]):
        self.results, self.errors = results, errors
        first = min(errors)
        super().__init__(f"{len(errors)} of {len(results)} items failed; item {first}: {errors[first]}")


def sweep(
    items: Iterable[Any],
    function: Callable[[Any], Any] | None = None,
    *,
    backend: str = "loky",
    workers: int | None = None,
    address: Any = None,
    folder: str | Path | None = None,
    key: str | None = None,
    progress: bool | None = None,
    **options: Any,
) -> list[Any]:
    """Call `function` with every item and give back the results in the order of the items.

    items: anything that can be sent to another process. Without a function they are problems, or functions that make
        one, and each is fitted; the result is that of `fitted`. `options` then go to the fit.
    backend: "loky" (processes of this machine), "dask" or "ray" (a cluster that runs), "serial"
    address: of the cluster, or a client of dask; by default the one that this process is connected to
    workers: how many processes of this machine; one per core by default
    folder: where finished items are kept; a later call takes them from there, and one at the same time shares the work.
        A folder belongs to one sweep and one user: other items, options or another function are refused. Items are
        compared by content, paths by the bytes of their files, functions by their code and what it reads.
    key: stands for function, options and items where they cannot be compared; another one whenever they change

    An item that fails, or whose worker dies twice, does not stop the others; `SweepFailed` has their results.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend is one of {', '.join(map(repr, BACKENDS))}, not {backend!r}")
    items = list(items)
    if function is not None and options:
        raise TypeError(f"sweep has no {', '.join(map(repr, options))}: options are for problems, without a function")
    kept = Nowhere() if folder is None else Folder(folder, Mark.of(function, dict(sorted(options.items())), items, key))
    results: list[Any] = [None] * len(items)
    errors: dict[int, str] = {}
    jobs = _Jobs(items, kept)
    run = partial(_guarded, partial(fitted, **options) if function is None else function)
    with shown(f"{len(items)} items", progress, total=len(items)) as bar:
        for done, (k, ok, value) in enumerate(_outcomes(jobs, lambda: _pool(backend, run, jobs, workers, address)), 1):
            if ok:
                results[k] = value
            else:
                errors[k] = value
            bar.to(done, f"{done} of {len(items)} items" + (f", {len(errors)} failed" if errors else ""))
    if errors:
        raise SweepFailed(results, errors)
    return results


def fitted(problem: Any, **options: Any) -> dict[str, Any]:
    """Fit a problem, or what a function makes; the numbers of the result, which can be sent anywhere."""
    problem = problem() if not hasattr(problem, "fit") else problem
    fit = problem.fit(progress=False, **options)
    return {
        "values": {e.name: e.value for e in fit.estimates},
        "estimates": list(fit.estimates),
        "loss": fit.loss,
        "converged": fit.converged,
        "seconds": fit.seconds,
        "starts": [s.to_dict() for s in fit.starts],
    }


def _guarded(function: Callable[[Any], Any], job: tuple[int, Any]) -> tuple[int, bool, Any]:
    """Run one item; an error is a result like any other, so that one item does not stop the rest."""
    k, item = job
    try:
        return k, True, function(item)
    except Exception as error:  # Said again, with all others, at the end of the sweep.
        return k, False, f"{type(error).__name__}: {error}"
    finally:
        # Models and their tapes refer to each other: few objects with much memory, of which Python thinks too late.
        gc.collect()


class _Jobs:
    """Items that are not finished: those that nobody works on, and those that another process does."""

    def __init__(self, items: Sequence[Any], kept: Nowhere):
        self._items, self._kept = items, kept
        self._free = list(range(len(items)))
        self._elsewhere: list[int] = []
        self.found: list[Outcome] = []
        """Results that were there already."""

    def __len__(self) -> int:
        return len(self._free) + len(self._elsewhere)

    def take(self) -> Job | None:
        """The next item for this process; None if there is none at the moment."""
        while self._free:
            k = self._free.pop(0)
            if self._is_found(k):
                continue
            if not self._kept.claim(k):
                self._elsewhere.append(k)
            elif self._is_found(k):  # Finished between the two looks.
                self._kept.release(k)
            else:
                return k, self._items[k]
        return None

    def look(self) -> None:
        """Ask again for what other processes work on: finished, or free because they gave up or died."""
        if not self._free:
            self._free, self._elsewhere = self._elsewhere, []

    def give_up(self, k: int) -> None:
        """An item that was taken, for whoever comes next."""
        self._kept.release(k)

    def end(self, outcome: Outcome) -> Outcome:
        """Keep the result of an item that was taken."""
        k, ok, value = outcome
        try:
            if ok:
                self._kept.write(k, value)
        except Exception as error:  # Whatever pickle says of somebody's classes.
            return k, False, f"its result cannot be kept: {type(error).__name__}: {error}"
        finally:
            self._kept.release(k)
        return outcome

    def _is_found(self, k: int) -> bool:
        found, value = self._kept.read(k)
        if found:
            self.found.append((k, True, value))
        return found


def _outcomes(jobs: _Jobs, make: Callable[[], Pool]) -> Iterator[Outcome]:
    """Of all items, as they come. The pool is made when there is something to do."""
    pool: Pool | None = None
    taken: set[int] = set()
    try:
        while True:
            while (pool is None or len(taken) < pool.width) and (job := jobs.take()) is not None:
                taken.add(job[0])
                pool = pool or make()
                pool.submit(job)
            yield from jobs.found
            jobs.found.clear()
            if taken and pool is not None:
                for outcome in pool.finished(LOOK if len(jobs) else None):
                    taken.remove(outcome[0])
                    yield jobs.end(outcome)
            elif len(jobs):
                time.sleep(LOOK)
            else:
                return
            jobs.look()
    finally:
        if pool is not None:
            pool.close()
        for k in taken:
            jobs.give_up(k)


def _pool(backend: str, run: Run, jobs: _Jobs, workers: int | None, address: Any) -> Pool:
    if backend == "dask":
        return Dask(run, address)
    if backend == "ray":
        return Ray(run, address)
    if backend == "serial":
        return Serial(run)
    import joblib

    return Loky(run, min(workers or joblib.cpu_count(), len(jobs) + 1))
