"""Hand-written C++: compiled when it is first needed, called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

# What -ffast-math means, by its parts: as a whole it makes a library flush denormals in the process that loads it.
FAST = ("-fno-math-errno", "-fno-trapping-math", "-fassociative-math", "-freciprocal-math", "-ffinite-math-only",
        "-fno-signed-zeros", "-ffp-contract=fast")  # fmt: skip
FLAGS = ("-std=c++17", "-O3", "-march=native", *FAST, "-shared", "-fPIC", "-pthread", "-w")

HEADERS = Path(__file__).with_name("cases")


class NoCompilerHere(ImportError):
    """There is no C++ compiler: the hand-written entrants stay out."""


@functools.cache
def library(source: Path) -> ctypes.CDLL:
    """The shared library of a C++ file."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise NoCompilerHere("no C++ compiler")
    texts = [source.read_bytes(), *(path.read_bytes() for path in sorted(HEADERS.glob("*.hpp")))]
    key = hashlib.sha256(b"\0".join([*texts, repr((compiler, FLAGS)).encode()])).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"nablasim-benchmarks-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    made = folder / f"{source.stem}-{key}.so"
    if not made.exists():
        building = made.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, *FLAGS, str(source), "-o", str(building), "-lm"], check=True)
        building.rename(made)
    return ctypes.CDLL(str(made))


def function(source: Path, name: str, *args: Any) -> functools.partial[None]:
    """A function of a C++ file, bound to NumPy arrays (as pointers), integers and floats (as double)."""
    return functools.partial(getattr(library(source), name), *[_pass(a) for a in args])


def _pass(arg: Any) -> Any:
    if isinstance(arg, np.ndarray):
        assert arg.flags.c_contiguous
        pointer = arg.ctypes.data_as(ctypes.c_void_p)
        pointer.array = arg  # alive as long as the call
        return pointer
    return ctypes.c_double(arg) if isinstance(arg, float) else ctypes.c_int64(arg)
