"""KERNELC_CMAKE=1: each kernel also as a CMake project, to be opened, built and debugged in an IDE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelc.toolchain import cache
from kernelc.toolchain.diagnose import safe
from kernelc.toolchain.probe import Compiler

_TEXT = """\
# Written by kernelc (KERNELC_CMAKE=1); written again by the next build of this kernel.
cmake_minimum_required(VERSION 3.20)
set(CMAKE_CXX_COMPILER {compiler})
set(CMAKE_BUILD_TYPE Debug CACHE STRING "adds -g to the flags below; #line leads the debugger to the Python file")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
project({name} LANGUAGES CXX)
add_library(kernel MODULE kernel.cpp)
target_include_directories(kernel PRIVATE {include})
target_compile_options(kernel PRIVATE {compile})
target_link_options(kernel PRIVATE {link})
target_link_libraries(kernel PRIVATE {libraries})
"""


def emit(name: str, text: str, using: Compiler, extra_flags: tuple[str, ...]) -> Path:
    """Write the project of one kernel to cmake/<name> in the cache."""
    folder = cache.open_root() / "cmake" / safe(name)
    flags = [flag for flag in (*using.flags, *extra_flags) if flag != "-shared"]
    link = [flag for flag in flags if flag.startswith("-Wl,")]
    listing = _TEXT.format(
        name=safe(name),
        compiler=_quoted(using.command),
        include=_quoted([str(using.include)]),
        compile=_quoted([flag for flag in flags if flag not in link]),
        link=_quoted([*link, *(word for word in using.libraries if not word.startswith("-l"))]),
        libraries=_quoted([word for word in using.libraries if word.startswith("-l")]),
    )
    with cache.writing():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache.write(folder / "kernel.cpp", text)
        cache.write(folder / "CMakeLists.txt", listing)
    return folder


def _quoted(words: Sequence[str]) -> str:
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") for word in words)
    return " ".join(f'"{word}"' for word in escaped)
