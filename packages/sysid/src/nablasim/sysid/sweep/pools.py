"""Where the items of a sweep run: in this process, in others of this machine, or on a cluster of dask or ray.

A pool takes one job at a time and gives back what is finished. A worker that dies takes one item with it, which runs
once more in a fresh one; the others go on.
"""

from __future__ import annotations

import os
import queue
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

Job = tuple[int, Any]
"""The number of an item, and the item."""
Outcome = tuple[int, bool, Any]
"""The number of an item, whether it worked, and its result or what happened."""
Run = Callable[[Job], Outcome]

DIED = "its worker died ({}), and so did a fresh one. Too little memory is the usual reason: use fewer workers"


class Pool(ABC):
    """Jobs that run side by side."""

    width: int
    """How many jobs it takes before it gives one back."""

    def __init__(self, run: Run):
        self.run = run

    @abstractmethod
    def submit(self, job: Job) -> None: ...

    @abstractmethod
    def finished(self, seconds: float | None) -> list[Outcome]:
        """What has finished since the last call: waits for one, at most so long."""

    def close(self) -> None:
        """End what still runs."""
        return


class Serial(Pool):
    """One after the other, in this process."""

    width = 1

    def submit(self, job: Job) -> None:
        self._job = job

    def finished(self, seconds: float | None) -> list[Outcome]:
        return [self.run(self._job)]


class Loky(Pool):
    """Processes of this machine. Each has an executor of its own: one that dies breaks no other."""

    def __init__(self, run: Run, workers: int):
        super().__init__(run)
        self.width = workers
        self._threads = ThreadPoolExecutor(workers)
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._all: list[Any] = []
        self._flying: set[Future[Outcome]] = set()
        self._closed = False

    def submit(self, job: Job) -> None:
        self._flying.add(self._threads.submit(self._in_worker, job))

    def finished(self, seconds: float | None) -> list[Outcome]:
        done, self._flying = wait(self._flying, seconds, FIRST_COMPLETED)
        return [future.result() for future in done]

    def close(self) -> None:
        self._closed = True
        for executor in list(self._all):
            executor.shutdown(wait=True, kill_workers=True)
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _in_worker(self, job: Job) -> Outcome:
        from joblib.externals.loky.process_executor import BrokenProcessPool

        reason = ""
        for _ in range(2):
            executor = self._worker()
            try:
                outcome: Outcome = executor.submit(alone, self.run, job).result()
            except BrokenProcessPool as error:
                if self._closed:
                    raise
                reason = _exit_code(error)
                executor.shutdown(wait=False, kill_workers=True)
                self._all.remove(executor)
                continue
            except Exception as error:  # An item that cannot be sent there, or a result that cannot be sent back.
                outcome = (job[0], False, f"{type(error).__name__}: {error}")
            self._idle.put(executor)
            return outcome
        return job[0], False, DIED.format(reason)

    def _worker(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        try:
            return self._idle.get_nowait()
        except queue.Empty:
            executor = ProcessPoolExecutor(max_workers=1)
            self._all.append(executor)
            return executor


class Dask(Pool):
    """A cluster of dask that runs. Dask itself moves items of dead workers to others, several times; then each of them
    runs once more by itself, because it may have been another item that killed the worker."""

    def __init__(self, run: Run, address: Any):
        super().__init__(run)
        try:
            import distributed
        except ImportError as error:
            raise ImportError('backend="dask" needs dask: pip install "nablasim-sysid[dask]"') from error
        self._dask = distributed
        self._client = self._connected(address)
        self._is_ours = address is not None and self._client is not address
        self._flying: dict[Any, Job] = {}
        self._suspects: list[Job] = []

    def _connected(self, address: Any) -> Any:
        try:
            if address is None:
                return self._dask.get_client()
            return address if isinstance(address, self._dask.Client) else self._dask.Client(address)
        except (ValueError, OSError) as error:
            raise RuntimeError(
                'backend="dask" runs on a cluster that exists: make a distributed.Client first, or pass '
                f'address="tcp://scheduler:8786" ({error})'
            ) from error

    @property
    def width(self) -> int:  # type: ignore[override]
        return max(2 * sum(self._client.nthreads().values()), 4)

    def submit(self, job: Job) -> None:
        self._flying[self._client.submit(alone, self.run, job, pure=False)] = job

    def finished(self, seconds: float | None) -> list[Outcome]:
        if not self._flying:
            return [self._once_more(self._suspects.pop())]
        try:
            done = self._dask.wait(list(self._flying), timeout=seconds, return_when="FIRST_COMPLETED").done
        except (TimeoutError, self._dask.TimeoutError):
            return []
        outcomes = []
        for future in done:
            job = self._flying.pop(future)
            if isinstance(future.exception(), self._dask.KilledWorker):
                self._suspects.append(job)
            else:
                outcomes.append(_said(job, future.result))
        return outcomes

    def _once_more(self, job: Job) -> Outcome:
        future = self._client.submit(alone, self.run, job, pure=False)
        killed = future.exception()
        if isinstance(killed, self._dask.KilledWorker):
            return job[0], False, DIED.format("KilledWorker")
        return _said(job, future.result)

    def close(self) -> None:
        self._client.cancel(list(self._flying))
        if self._is_ours:
            self._client.close()


class Ray(Pool):
    """A cluster of ray that runs: an item whose worker dies runs once more there."""

    def __init__(self, run: Run, address: Any):
        super().__init__(run)
        try:
            import ray
        except ImportError as error:
            raise ImportError('backend="ray" needs ray: pip install "nablasim-sysid[ray]"') from error
        if not ray.is_initialized():
            if address is None:
                raise RuntimeError(
                    'backend="ray" runs on a cluster that exists: ray.init() first, or pass address="auto"'
                )
            ray.init(address=address)
        self._ray = ray
        self._remote = ray.remote(alone).options(max_retries=1)
        self._flying: dict[Any, Job] = {}

    @property
    def width(self) -> int:  # type: ignore[override]
        return max(2 * int(self._ray.cluster_resources().get("CPU", 1)), 4)

    def submit(self, job: Job) -> None:
        self._flying[self._remote.remote(self.run, job)] = job

    def finished(self, seconds: float | None) -> list[Outcome]:
        ready, _ = self._ray.wait(list(self._flying), timeout=seconds)
        return [self._outcome(ref, self._flying.pop(ref)) for ref in ready]

    def _outcome(self, ref: Any, job: Job) -> Outcome:
        try:
            outcome: Outcome = self._ray.get(ref)
        except (self._ray.exceptions.WorkerCrashedError, self._ray.exceptions.OutOfMemoryError) as error:
            return job[0], False, DIED.format(type(error).__name__)
        except Exception as error:  # An item that cannot be sent there, or a result that cannot be sent back.
            return job[0], False, f"{type(error).__name__}: {error}"
        return outcome

    def close(self) -> None:
        for ref in self._flying:
            self._ray.cancel(ref)


def alone(run: Run, job: Job) -> Outcome:
    """In a process beside others: one thread each, or they get in each other's way."""
    import kernelc as kc

    kc.config.threads = 1
    os.environ["OMP_NUM_THREADS"] = "1"  # For torch, if it is imported later on.
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return run(job)


def _said(job: Job, result: Callable[[], Outcome]) -> Outcome:
    try:
        return result()
    except Exception as error:  # An item that cannot be sent there, or a result that cannot be sent back.
        return job[0], False, f"{type(error).__name__}: {error}"


def _exit_code(error: BaseException) -> str:
    found = re.search(r"exit codes? of the workers? (?:are|is) \{(.*)\}", str(error))
    return found[1] if found else type(error).__name__
