"""Ten kernels with adjoints: CPU time from process start to the first gradient, with an empty cache and a full one."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...harness import SECONDS, Case, Entrant

SCRIPTS = Path(__file__).with_name("scripts")


@dataclass
class Work:
    """Where the processes of this run keep their caches."""

    folder: Path


def make(size: int) -> Work:
    del size
    return Work(Path(tempfile.mkdtemp(prefix="nablasim-start-")))


def children(run: Callable[[], Any], times: int) -> float:
    """CPU seconds of the processes that a run starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / times


def process(work: Work, script: str, cache: str) -> Entrant:
    """An entrant that runs a script; `cache` is the environment variable that says where its cache lies."""
    home = work.folder / script
    # Bytecode is kept, as in an installation: importing sources for the first time is nobody's start.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(work.folder / "bytecode"), cache: str(home)}

    def warm() -> None:
        subprocess.run([sys.executable, str(SCRIPTS / script)], env=environment, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)  # fmt: skip

    def cold() -> None:
        shutil.rmtree(home, ignore_errors=True)
        warm()

    warm()
    return Entrant({"cold": cold, "warm": warm})


CASE = Case(
    name="start",
    title="Ten kernels with adjoints, from process start to first gradient, CPU time",
    sizes=(10,),
    tiny=10,
    make=make,
    unit=SECONDS,
    timer=children,
    once=True,
)
