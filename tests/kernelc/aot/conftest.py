"""A small package whose kernels are compiled ahead of time, built once, and Python without a compiler to use it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernelc
from kernelc.toolchain.probe import program

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
SOURCES = Path(kernelc.__file__).parents[1]


def build(package: Path, target: Path, hash_seed: int = 0, **defined: str) -> str:
    """Configure, compile and install a package with the CMake function; returns what was said if that fails."""
    env = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    build_folder = target.with_name(f"{target.name}-build")
    values = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_INSTALL_PREFIX": target, "CMAKE_MODULE_PATH": ROOT / "cmake",
              "Python_EXECUTABLE": sys.executable, "CMAKE_MAKE_PROGRAM": program("ninja")} | defined  # fmt: skip
    configure = [program("cmake"), "-G", "Ninja", "-S", package, "-B", build_folder]
    configure += [f"-D{name}={value}" for name, value in values.items()]
    for command in (
        configure,
        [program("cmake"), "--build", build_folder],
        [program("cmake"), "--install", build_folder],
    ):
        done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            return done.stdout
    shutil.copytree(package / "src", target, dirs_exist_ok=True)
    return ""


@pytest.fixture(scope="session")
def build_package() -> Callable[..., str]:
    """`build`, above."""
    return build


@pytest.fixture(scope="session")
def package() -> Path:
    """The sources of the small package."""
    return HERE / "package"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the small package is installed, with its kernels."""
    target = tmp_path_factory.mktemp("ahead") / "site"
    said = build(HERE / "package", target)
    assert not said, said
    return target


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Any]:
    """Runs use.py with a package on the path and, unless asked otherwise, no compiler; returns its answer."""

    numbers = itertools.count()

    def start(site: Path, case: str, *, compiler: bool = False, **environment: str) -> Any:
        # Which code the processor gets is the subject here, also where the suite runs with other lanes.
        settings = ("CXX", "KERNELC_CPU", "KERNELC_CMAKE", "KERNELC_LANES")
        env = {k: v for k, v in os.environ.items() if k not in settings} | environment
        env["PYTHONPATH"] = os.pathsep.join(map(str, (site, SOURCES)))
        cache = tmp_path / f"cache-{next(numbers)}"
        env["KERNELC_CACHE_DIR"] = str(cache)
        if not compiler:
            (tmp_path / "nothing").mkdir(exist_ok=True)
            env["PATH"] = str(tmp_path / "nothing")
        command = [sys.executable, HERE / "use.py", case]
        done = subprocess.run(command, env=env, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        answer["built"] = [p.parent.name for p in cache.glob("kernels/*/kernel.so")]
        return answer

    return start
