"""KERNELC_CMAKE=1: each kernel also as a CMake project, to be opened, built and debugged in an IDE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelc.toolchain import cache
from kernelc.toolchain.diagnose import safe
from kernelc.toolchain.probe import Compiler

_MODULE = Path(__file__).with_name("cmake") / "KernelcRuntime.cmake"
_TEXT = """\
# Written by kernelc (KERNELC_CMAKE=1); written again by the next build of this kernel.
cmake_minimum_required(VERSION 3.20)
set(CMAKE_CXX_COMPILER {compiler})
set(CMAKE_BUILD_TYPE Debug CACHE STRING "adds -g to the flags below; #line leads the debugger to the Python file")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
project({name} LANGUAGES CXX)
include({module})
kernelc_library(kernel SOURCES kernel.cpp FLAGS {flags} LIBRARIES {libraries})
"""


def emit(name: str, text: str, using: Compiler, extra_flags: tuple[str, ...]) -> Path:
    """Write the project of one kernel to cmake/<name> in the cache."""
    folder = cache.open_root() / "cmake" / safe(name)
    listing = _TEXT.format(
        name=safe(name),
        compiler=_quoted(using.command),
        module=_quoted([str(_MODULE)]),
        flags=_quoted([*using.flags, *extra_flags]),
        libraries=_quoted(using.libraries),
    )
    with cache.writing():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache.write(folder / "kernel.cpp", text)
        cache.write(folder / "CMakeLists.txt", listing)
    return folder


def _quoted(words: Sequence[str]) -> str:
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") for word in words)
    return " ".join(f'"{word}"' for word in escaped)
