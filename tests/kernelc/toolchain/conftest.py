"""A cache of its own for each test, sources that say what they compute, and a compiler that counts its runs."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kernelc
from kernelc.config import config
from kernelc.toolchain import compiler

SOURCE_FOLDER = Path(kernelc.__file__).parents[1]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CXX", "KERNELC_CMAKE", "KERNELC_CACHE_DIR", "KERNELC_CPU"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the probe has run for the compiler of the machine and for one that counts: saves much time."""
    folder, before = tmp_path_factory.mktemp("probed"), config.cache_dir
    with pytest.MonkeyPatch.context() as patch:
        config.cache_dir = folder / "cache"
        patch.delenv("CXX", raising=False)
        compiler()
        patch.setenv("CXX", str(Counting(folder, folder).path))
        patch.setenv("RUNS", os.devnull)
        compiler()
        config.cache_dir = before
    return folder


@pytest.fixture
def use_cache(probed: Path) -> Iterator[Callable[[Path], Path]]:
    """Makes a folder the cache of this process, with the probe already run."""
    before = config.cache_dir

    def use(root: Path) -> Path:
        shutil.copytree(probed / "cache", root, dirs_exist_ok=True)
        root.chmod(0o700)
        config.cache_dir = root
        return root

    yield use
    config.cache_dir = before


@pytest.fixture
def root(use_cache: Callable[[Path], Path], tmp_path: Path) -> Path:
    """An empty cache."""
    return use_cache(tmp_path / "cache")


@pytest.fixture
def text() -> Callable[..., str]:
    """C++ whose function `answer` returns the given number."""

    def make(number: int, more: str = "") -> str:
        return (
            "#include <math.h>\n#include <stdint.h>\n"
            f'extern "C" __attribute__((visibility("default"))) int64_t answer() {{ {more} return {number}; }}\n'
        )

    return make


@pytest.fixture
def answer() -> Callable[[Path], int]:
    """Calls the function `answer` of a library."""

    def call(library: Path) -> int:
        function = ctypes.CDLL(str(library)).answer
        function.restype = ctypes.c_int64
        return int(function())

    return call


class Counting:
    """A compiler that writes down each run, and does what `first` says (in the shell), before it does its work."""

    def __init__(self, folder: Path, logs: Path, first: str = ""):
        self.path, self.log = folder / "counting-c++", logs / "runs.txt"
        if not self.path.exists():
            self.path.write_text(f'#!/bin/sh\necho "$@" >> "$RUNS"\n{first}\nexec {shutil.which("c++")} "$@"\n')
            self.path.chmod(0o755)

    @property
    def kernels(self) -> list[str]:
        """The keys of the kernels that were compiled, in order."""
        said = self.log.read_text() if self.log.exists() else ""
        return re.findall(r"-o ([0-9a-f]{64})\.so", said)

    @property
    def probes(self) -> int:
        """How often the flags were tried, all at once."""
        return self.log.read_text().count("flags.cpp")


@pytest.fixture
def make_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Counting]:
    """Sets CXX to a new compiler that counts, and does something else first."""

    def make(first: str = "", folder: Path = tmp_path) -> Counting:
        made = Counting(folder, tmp_path, first)
        monkeypatch.setenv("CXX", str(made.path))
        monkeypatch.setenv("RUNS", str(made.log))
        return made

    return make


@pytest.fixture
def counting(make_counting: Callable[..., Counting], probed: Path) -> Counting:
    """CXX is a compiler that counts, and that the probe knows."""
    return make_counting(folder=probed)


@pytest.fixture
def process() -> Callable[..., subprocess.Popen[str]]:
    """Starts Python with a script that can import kernelc, on the cache of this process."""

    def start(script: str, *arguments: str) -> subprocess.Popen[str]:
        env = os.environ | {"KERNELC_CACHE_DIR": str(config.cache_dir), "PYTHONPATH": str(SOURCE_FOLDER)}
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.Popen(
            command, env=env, start_new_session=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    return start


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk of so many bytes; needs root."""
    mounted = []

    def mount(size: int) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(folder)], stderr=-1)
        if done.returncode:
            pytest.skip("mounting needs root")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)
