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
import struct
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
    fault: str = ""
    """Why none of it can be used."""

    def find(self, name: str, text: str) -> tuple[Path, str] | None:
        """The library and the function of a kernel, given its name and a translation unit with nothing else."""
        key = digest(text)
        for level in reversed(own_levels()):
            library = self.folder / f"{level.name}.so"
            if key in self.held.get(level.name, ()) and is_whole(library):
                return library, symbol(name, key)
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


def _read(package: str, folder: Path) -> Shipped:
    """What cannot be used is as if it were not there, but an error can say why."""
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if index["machine"] != machine():
            return Shipped(package, folder, {}, f"it is for {index['machine']}, and this is {machine()}")
        if index["format"] != FORMAT:
            return Shipped(package, folder, {}, "it was made by another kernelc")
        return Shipped(package, folder, {level: frozenset(kernels) for level, kernels in index["kernels"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Shipped(package, folder, {}, f"{folder / INDEX} is damaged")


@functools.cache
def is_whole(library: Path) -> bool:
    """Whether an ELF file is as long as its own headers say: opening one that was cut off would end the process."""
    try:
        with library.open("rb") as file:
            head, size = file.read(64), os.fstat(file.fileno()).st_size
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                return True  # nothing that could be mapped: the loader says so
            (at,), (step, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
            file.seek(min(at, size))
            table = file.read(step * count)
    except OSError:
        return False
    if step < 56 or len(table) < step * count:
        return False  # a header of a segment has 56 bytes
    # Where each segment begins in the file, and how long it is.
    return all(sum(struct.unpack_from("<Q16xQ", table, n * step + 8)) <= size for n in range(count))


def machine() -> str:
    """The system and architecture that machine code is for."""
    return f"{sys.platform}-{os.uname().machine}"
