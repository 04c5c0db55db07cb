"""Machine code that came with a package: found by what it was made of, so that nothing else is ever run for it.

    <package>/_kernels/index.json        for which machine, and what each library holds
                       baseline.so ...   one library for each level of the processor (simd.py)

Made by kernelc.aot when a wheel is built. A kernel is filed under a digest of its C++ text, of kernelc's headers and of
the flags that decide what the text means; not of paths, lines or the machine. An edited kernel, or another kernelc,
finds nothing here and is compiled as if the folder were not there.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import sys
from pathlib import Path

from kernelc.records import record
from kernelc.toolchain.build import FORMAT as BUILT
from kernelc.toolchain.build import headers_in
from kernelc.toolchain.flags import FLAGS as ALL_FLAGS
from kernelc.toolchain.simd import own_levels

FOLDER, INDEX = "_kernels", "index.json"
FORMAT = 1
_INCLUDE = Path(__file__).parents[1] / "include"
_LINE = re.compile(r"^\s*#line .*\n", re.MULTILINE)
FLAGS = tuple(flag for flag in ALL_FLAGS if not flag.startswith("-march="))
"""Of the compiler; a level adds its own."""


def plain(text: str) -> str:
    """C++ text without the marks that lead to the Python source: they name files of the machine that wrote it."""
    return _LINE.sub("", text)


def digest(text: str) -> str:
    """What a kernel is filed under: `text` is a translation unit that holds nothing else."""
    about = repr((FORMAT, BUILT, FLAGS, headers_in(_INCLUDE)))
    return hashlib.sha256((about + plain(text)).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def symbol(name: str, key: str) -> str:
    """The function of a kernel in a library that holds many: several may have the same name."""
    return f"{name}_{key}"


@record
class Shipped:
    """The machine code that one package brings for this machine."""

    package: str
    folder: Path
    held: dict[str, frozenset[str]]
    """By level: the digests of its kernels."""

    def find(self, name: str, text: str) -> tuple[Path, str] | None:
        """The library and the function of a kernel, given its name and a translation unit with nothing else."""
        key = digest(text)
        for level in reversed(own_levels()):
            if key in self.held.get(level.name, ()):
                return self.folder / f"{level.name}.so", symbol(name, key)
        return None


@functools.cache
def shipped_with(module: str) -> Shipped | None:
    """What the package of a module, or the nearest package around it that has any, brings for this machine."""
    names = module.split(".")
    for count in range(len(names), 0, -1):
        package = ".".join(names[:count])
        for folder in getattr(sys.modules.get(package), "__path__", ()):
            found = Path(folder) / FOLDER
            if (found / INDEX).is_file():
                return _read(package, found)
    return None


def _read(package: str, folder: Path) -> Shipped | None:
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if (index["format"], index["machine"]) != (FORMAT, machine()):
            return None
        held = {level: frozenset(kernels) for level, kernels in index["kernels"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # of another time, or damaged: kernels are compiled as without it
    return Shipped(package, folder, held)


def machine() -> str:
    """The system and architecture that machine code is for."""
    return f"{sys.platform}-{os.uname().machine}"
