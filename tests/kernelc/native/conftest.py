"""Compiles the tiny kernels of entries.c once, and gives their addresses."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import kernelc
from kernelc import _native

HERE = Path(__file__).parent
INCLUDE = Path(kernelc.__file__).parent / "include"
Compile = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def compile_cpp() -> Compile:
    """Runs the C++ compiler with the headers of kernelc in its path."""
    names = (os.environ.get("CXX"), "g++", "c++", "clang++")
    compiler = next((name for name in names if name and shutil.which(name)), None)
    if compiler is None:
        pytest.skip("no C++ compiler")

    def run(*arguments: str | Path, std: str = "c++17", check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [compiler, f"-std={std}", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", *arguments]
        return subprocess.run(command, check=check, stderr=None if check else subprocess.PIPE, text=True)

    return run


@pytest.fixture(scope="session")
def library(compile_cpp: Compile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("entries") / "entries.so"
    compile_cpp("-O2", "-shared", "-fPIC", "-x", "c++", HERE / "entries.c", "-o", path)
    return path


@pytest.fixture(scope="session")
def entry(library: Path) -> Callable[[str], int]:
    handle = _native.open_library(str(library))
    return lambda name: _native.symbol(handle, name)


@pytest.fixture
def block() -> Callable[..., bytes]:
    """Words of an argument block: numbers, and arrays, which the test keeps alive."""

    def pack(*words: int | np.ndarray) -> bytes:
        return struct.pack(f"{len(words)}q", *(w.ctypes.data if isinstance(w, np.ndarray) else w for w in words))

    return pack


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Every test starts with the default settings and nothing printed."""
    _native.take_prints()
    yield
    _native.set_threads(0)
    _native.set_tape_limit(2 << 30)
    _native.take_prints()
