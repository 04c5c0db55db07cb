"""Many problems at once: over the cores of this machine, or on a cluster of dask or ray that already exists.

Each item that is finished is kept in a file of its own, if there is a folder: a sweep that was killed loses none of
them, and the same call goes on with the rest.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nablasim.sysid.progress import shown

BACKENDS = ("loky", "dask", "ray", "serial")


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
    progress: bool | None = None,
    **options: Any,
) -> list[Any]:
    """Call `function` with every item and give back the results in the order of the items.

    items: anything that can be sent to another process. Without a function they are problems, or functions that make
        one, and each is fitted; the result is that of `fitted`. `options` then go to the fit.
    backend: "loky" (processes of this machine), "dask" or "ray" (a cluster that runs), "serial"
    address: of the cluster, or a client of dask; by default the one that this process is connected to
    workers: how many processes of this machine; one per core by default
    folder: where finished items are kept; a later call takes them from there. A folder belongs to one sweep.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend is one of {', '.join(map(repr, BACKENDS))}, not {backend!r}")
    items = list(items)
    if function is None:
        function = partial(fitted, **options)
    elif options:
        raise TypeError(f"sweep has no {', '.join(map(repr, options))}: options are for problems, without a function")
    kept = _Kept(folder, items)
    results: list[Any] = [None] * len(items)
    todo = []
    for k, item in enumerate(items):
        found, results[k] = kept.read(k)
        if not found:
            todo.append((k, item))
    errors: dict[int, str] = {}
    run = {"loky": _loky, "dask": _dask, "ray": _ray, "serial": _serial}[backend]
    with shown(f"{len(todo)} items", progress, total=len(items)) as bar:
        done = len(items) - len(todo)
        for k, ok, value in run(partial(_guarded, function), todo, workers, address) if todo else ():
            done += 1
            if ok:
                results[k] = value
                kept.write(k, value)
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


Results = Iterator[tuple[int, bool, Any]]


def _serial(run: Any, todo: Sequence[Any], workers: int | None, address: Any) -> Results:
    return map(run, todo)


def _loky(run: Any, todo: Sequence[Any], workers: int | None, address: Any) -> Results:
    import joblib

    count = min(workers or joblib.cpu_count(), len(todo))
    jobs = (joblib.delayed(_alone)(run, job) for job in todo)
    yield from joblib.Parallel(n_jobs=count, backend="loky", batch_size=1, return_as="generator_unordered")(jobs)


def _dask(run: Any, todo: Sequence[Any], workers: int | None, address: Any) -> Results:
    try:
        import distributed
    except ImportError as error:
        raise ImportError('backend="dask" needs dask: pip install "nablasim-sysid[dask]"') from error
    try:
        if address is None:
            client = distributed.get_client()
        else:
            client = address if isinstance(address, distributed.Client) else distributed.Client(address)
    except (ValueError, OSError) as error:
        raise RuntimeError(
            'backend="dask" runs on a cluster that exists: make a distributed.Client first, or pass '
            f'address="tcp://scheduler:8786" ({error})'
        ) from error
    futures = [client.submit(_alone, run, job, pure=False) for job in todo]
    for _, result in distributed.as_completed(futures, with_results=True):
        yield result


def _ray(run: Any, todo: Sequence[Any], workers: int | None, address: Any) -> Results:
    try:
        import ray
    except ImportError as error:
        raise ImportError('backend="ray" needs ray: pip install "nablasim-sysid[ray]"') from error
    if not ray.is_initialized():
        if address is None:
            raise RuntimeError('backend="ray" runs on a cluster that exists: ray.init() first, or pass address="auto"')
        ray.init(address=address)
    remote = ray.remote(_alone)
    waiting = [remote.remote(run, job) for job in todo]
    while waiting:
        ready, waiting = ray.wait(waiting)
        yield from ray.get(ready)


def _alone(run: Any, job: tuple[int, Any]) -> tuple[int, bool, Any]:
    """In a process beside others: one thread each, or they get in each other's way."""
    import kernelc as kc

    kc.config.threads = 1
    os.environ["OMP_NUM_THREADS"] = "1"  # For torch, if it is imported later on.
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    result: tuple[int, bool, Any] = run(job)
    return result


class _Kept:
    """The folder of finished items: one file each, renamed into place, so that a kill leaves whole ones."""

    def __init__(self, folder: str | Path | None, items: Sequence[Any]):
        self.folder = None if folder is None else Path(folder)
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        mark, file = _mark(items), self.folder / "sweep"
        if not file.exists():
            if any(self.folder.glob("*.pickle")):
                raise ValueError(f"{self.folder} has items of something else: choose an empty folder")
            _put(file, mark.encode())
        elif file.read_text() != mark:
            raise ValueError(f"{self.folder} belongs to a sweep of other items: remove it or choose another folder")

    def read(self, k: int) -> tuple[bool, Any]:
        file = None if self.folder is None else self.folder / f"{k:06d}.pickle"
        if file is None or not file.exists():
            return False, None
        return True, pickle.loads(file.read_bytes())

    def write(self, k: int, value: Any) -> None:
        if self.folder is not None:
            _put(self.folder / f"{k:06d}.pickle", pickle.dumps(value))


def _put(file: Path, content: bytes) -> None:
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    aside.write_bytes(content)
    aside.replace(file)


def _mark(items: Sequence[Any]) -> str:
    """What tells these items from others: what problems look for in what, and what else there is in words."""
    from nablasim.sysid.fit import fingerprint

    texts = [fingerprint(item, {}) if hasattr(item, "bound") else repr(item) for item in items]
    # An object that has no words for itself is named by its address, which the next process does not know.
    return hashlib.sha256(repr([None if " at 0x" in t else t for t in texts]).encode()).hexdigest()
