"""Ten kernels with adjoints: CPU time from process start to the first gradient, with an empty cache and a full one."""

from __future__ import annotations

import atexit
import importlib.util
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

import numpy as np

from ...harness import SECONDS, Case, Entrant, Results, Sample

SCRIPTS = Path(__file__).with_name("scripts")
POINTS = 16


@dataclass
class Work:
    """Where the processes of this run keep their caches."""

    folder: Path


def make(size: int) -> Work:
    del size
    folder = Path(tempfile.mkdtemp(prefix="nablasim-start-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Work(folder)


def children(run: Callable[[], Any], times: int) -> Sample:
    """CPU seconds of the processes that a run starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / times
    return Sample(seconds, seconds)


def process(work: Work, script: str, cache: str, *, needs: str = "numpy") -> Entrant:
    """An entrant that runs a script, which prints its gradient.

    cache: the environment variable that says where its cache lies
    needs: the module without which it cannot take part
    """
    if importlib.util.find_spec(needs) is None:
        raise ImportError(name=needs)
    home = work.folder / script
    # Bytecode is kept, as in an installation: importing sources for the first time is nobody's start.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(work.folder / "bytecode"), cache: str(home)}
    printed = ""

    def warm() -> None:
        nonlocal printed
        printed = subprocess.run([sys.executable, str(SCRIPTS / script)], env=environment, check=True, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout  # fmt: skip

    def cold() -> None:
        shutil.rmtree(home, ignore_errors=True)
        warm()

    warm()
    return Entrant({"cold": cold, "warm": warm}, lambda: {"grad x": gradient(printed)})


def gradient(printed: str) -> np.ndarray:
    """The last lines: peers greet on standard output."""
    return np.loadtxt(printed.splitlines()[-POINTS:])


def reference(work: Work) -> Results:
    environment = os.environ | {"TEN_CACHE_DIR": str(work.folder / "reference")}
    printed = subprocess.run([sys.executable, str(SCRIPTS / "ten_cpp.py"), "double"], env=environment, check=True,
                             text=True, stdout=subprocess.PIPE).stdout  # fmt: skip
    return {"grad x": gradient(printed)}


CASE = Case(
    name="start",
    title="Ten kernels with adjoints, from process start to first gradient, CPU time",
    sizes=(10,),
    tiny=10,
    make=make,
    unit=SECONDS,
    reference=reference,
    timer=children,
    once=True,
)
