"""KERNELC_CMAKE=1: each kernel also as a CMake project, to be opened, built and debugged in an IDE."""

from __future__ import annotations

from pathlib import Path

from kernelc.toolchain import cache
from kernelc.toolchain.diagnose import safe
from kernelc.toolchain.probe import Compiler

_TEXT = """\
# Written by kernelc (KERNELC_CMAKE=1); written again by the next build of this kernel.
cmake_minimum_required(VERSION 3.20)
set(CMAKE_CXX_COMPILER {compiler} CACHE FILEPATH "the compiler that kernelc uses")
set(CMAKE_BUILD_TYPE Debug CACHE STRING "adds -g to the flags below; #line leads the debugger to the Python file")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
project({name} LANGUAGES CXX)
add_library({name} MODULE kernel.cpp)
target_include_directories({name} PRIVATE {include})
target_compile_options({name} PRIVATE {compile})
target_link_options({name} PRIVATE {link})
target_link_libraries({name} PRIVATE {libraries})
"""


def emit(name: str, text: str, using: Compiler, extra_flags: tuple[str, ...]) -> Path:
    """Write the project of one kernel to cmake/<name> in the cache."""
    folder = cache.open_root() / "cmake" / safe(name)
    link = [flag for flag in using.flags if flag.startswith("-Wl,") or flag == "-nostartfiles"]
    compile_ = [flag for flag in (*using.command[1:], *using.flags, *extra_flags) if flag not in (*link, "-shared")]
    listing = _TEXT.format(
        name=safe(name),
        compiler=_quote(str(using.path)),
        include=_quote(str(using.include)),
        compile=" ".join(map(_quote, compile_)),
        link=" ".join(map(_quote, (*link, *(f for f in using.libraries if not f.startswith("-l"))))),
        libraries=" ".join(f for f in using.libraries if f.startswith("-l")),
    )
    with cache.writing():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache.write(folder / "kernel.cpp", text)
        cache.write(folder / "CMakeLists.txt", listing)
    return folder


def _quote(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'
