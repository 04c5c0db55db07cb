"""Which C++ compiler this machine has and which flags it takes: asked of CMake once, then read from a record.

The build of the native core asks first, and its record serves as long as that compiler is the same file. Any other one
is asked when it is first used; its record is kept in the cache, under the compiler's command, size and time of change,
so a compiler that was upgraded, replaced or chosen by CXX gets a record of its own, and one that vanished has none.
A compiler that has built something is remembered, though: what it built serves when it is gone.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelc.errors import NoCompiler, ToolchainError
from kernelc.records import record
from kernelc.toolchain import cache
from kernelc.toolchain.flags import FLAGS, LIBRARIES
from kernelc.toolchain.simd import NATIVE, chosen_level

_NAMES = ("c++", "g++", "clang++")


@dataclass(frozen=True)
class Compiler:
    """A compiler and the flags that it takes: `command` flags source -o library `libraries`."""

    path: Path
    identity: str
    """As CMake names it: GNU, Clang, AppleClang, ..."""
    version: str
    flags: tuple[str, ...]
    include: Path
    """The folder of the kernelc headers."""
    command: tuple[str, ...]
    """The path, and further words where CXX has them ("ccache g++")."""
    libraries: tuple[str, ...]
    stamp: str
    """Changes whenever the compiler's file does."""


def compiler() -> Compiler:
    """The compiler of this machine; CXX chooses another one. Raises `NoCompiler`."""
    command = _command(os.environ.get("CXX", "").strip())
    if not command and os.environ.get("PATH") in _searched:
        raise NoCompiler("there is no C++ compiler on this machine")
    try:
        return _for_level(_probed(cache.open_root(), command, _stamp(command)))
    except NoCompiler:
        if not command:
            _searched.add(os.environ.get("PATH"))
        raise


def _for_level(found: Compiler) -> Compiler:
    """The compiler with the flags of the level that KERNELC_CPU asks for, in place of those for this processor."""
    level = chosen_level()
    if level is None:
        return found
    return replace(found, flags=(*(f for f in found.flags if not f.startswith("-march=")), *level.flags))


_searched: set[str | None] = set()
"""Values of PATH with which CMake found no compiler: it takes a while, and may be asked again for every kernel."""


def _command(chosen: str) -> tuple[str, ...]:
    """The compiler as a command; empty when only CMake may know one."""
    if chosen:
        import shlex

        try:
            words = shlex.split(chosen)
        except ValueError as error:
            raise NoCompiler(f"CXX is {chosen!r}: {error}") from None
        found = shutil.which(words[0])
        if found is None and shutil.which(chosen):
            raise NoCompiler(f"CXX is {chosen!r}, of which only {words[0]!r} is taken for the program",
                             advice=f"put quotes around the path in CXX: {shlex.quote(chosen)}")  # fmt: skip
        if found is None:
            raise NoCompiler(f"CXX is {chosen!r}, but there is no program {words[0]!r}")
        return (os.path.abspath(found), *words[1:])
    native = _native_build()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    # A compiler that PATH does not lead to is one that the user does not want, or does not know of: CXX names it.
    if native and os.path.dirname(native.compiler.command[0]) in folders and shutil.which(native.compiler.command[0]):
        return native.compiler.command
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return (os.path.abspath(found),) if found else ()


def _stamp(command: tuple[str, ...]) -> str:
    files = [found for word in command if (found := shutil.which(word))]
    return repr([(s.st_size, s.st_mtime_ns) for s in map(os.stat, files)])


@functools.lru_cache(maxsize=16)
def _probed(root: Path, command: tuple[str, ...], stamp: str) -> Compiler:
    native = _native_build()
    if native and native.compiler.command == command and native.is_of(command[0]):
        return replace(native.compiler, stamp=stamp)
    question = repr((command, stamp, FLAGS, LIBRARIES))
    path = root / "probe" / f"{hashlib.sha256(question.encode()).hexdigest()[:16]}.json"
    found = cache.answered(path, lambda: _read(path, command, stamp), lambda folder: _ask_cmake(folder, command))
    if found is None:
        raise ToolchainError(f"the compiler probe wrote a record that cannot be read: {path}", advice="remove it")
    return found


def _read(path: Path, command: tuple[str, ...], stamp: str) -> Compiler | None:
    """What a record says; nothing if it is damaged, or that of another compiler in its place."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        native = _Native(_compiler(record, stamp), int(record["size"]), int(record["seconds"]))
        asked = native.is_of(record["command"][0]) and record["asked"] == [*FLAGS, *LIBRARIES]
        return native.compiler if asked and (not command or native.compiler.command == command) else None
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None


# -- compilers that are gone
def remember(using: Compiler) -> None:
    """Write down a compiler that has built something."""
    record = {"command": using.command, "id": using.identity, "version": using.version, "flags": using.flags,
              "libraries": using.libraries, "stamp": using.stamp, "level": _level_name()}  # fmt: skip
    text = json.dumps(record, indent=1)
    path = cache.open_root() / "compilers" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    with cache.writing():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            cache.write(path, text)


def remembered() -> list[Compiler]:
    """The compilers that have built something and that could be meant here, where there is none; latest first."""
    records = (cache.open_root() / "compilers").glob("*.json")
    found = []
    for path in sorted(records, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["level"] == _level_name():
                found.append(_compiler(record, record["stamp"]))
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            continue
    return [one for one in found if _is_meant(one.command)]


def _level_name() -> str:
    level = chosen_level()
    return level.name if level else NATIVE


def _is_meant(command: tuple[str, ...]) -> bool:
    """Whether CXX names this compiler; or names none, and this one has no words of its own either."""
    import shlex

    words = shlex.split(os.environ.get("CXX", ""))
    if not words:
        return len(command) == 1
    same = words[0] == (command[0] if os.sep in words[0] else os.path.basename(command[0]))
    return same and tuple(words[1:]) == command[1:]


def _compiler(record: Any, stamp: str) -> Compiler:
    command = tuple(record["command"])
    return Compiler(
        path=Path(command[0]),
        identity=record["id"],
        version=record["version"],
        flags=tuple(record["flags"]),
        include=Path(__file__).parents[1] / "include",
        command=command,
        libraries=tuple(record["libraries"]),
        stamp=stamp,
    )


def _ask_cmake(folder: Path, command: tuple[str, ...]) -> Path:
    """Configure the project of the probe."""
    import subprocess

    if not command and not (_find("cmake") and _find("ninja")):
        raise NoCompiler("there is no C++ compiler on this machine")
    here, record = Path(__file__).with_name("cmake"), folder / "record.json"
    run = [
        *(program("cmake"), "-S", str(here), "-B", str(folder / "probe"), "-G", "Ninja"),
        f"-DCMAKE_MAKE_PROGRAM={program('ninja')}",
        f"-DKERNELC_FLAGS={';'.join(FLAGS)}",
        f"-DKERNELC_LIBRARIES={';'.join(LIBRARIES)}",
        f"-DKERNELC_RECORD={record}",
    ]
    env = os.environ | {"LC_ALL": "C", "TMPDIR": str(folder)}
    if command:
        import shlex

        env["CXX"] = shlex.join(command)
    done = subprocess.run(run, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode or not record.exists():
        if cache.is_full(said):
            raise cache.unwritable("No space left on device")
        what = f"{' '.join(command)} cannot compile" if command else "there is no C++ compiler on this machine"
        raise NoCompiler(f"{what}; CMake says:\n{_tail(said)}")
    return record


def _tail(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip())[-2000:]


@record
class _Native:
    """What the build of the native core found out about its compiler."""

    compiler: Compiler
    size: int
    seconds: int

    def is_of(self, path: str) -> bool:
        """Whether that file is still the one that was asked."""
        now = os.stat(path)
        return (now.st_size, int(now.st_mtime)) == (self.size, self.seconds)


@functools.cache
def _native_build() -> _Native | None:
    """The record of the build of the native core, if it asked for the flags that are asked for now."""
    package = sys.modules["kernelc"]  # not imported: it stands above this layer
    for folder in package.__path__:  # an editable installation has two: the sources, and what was built
        try:
            record = json.loads(Path(folder, "_probe.json").read_text(encoding="utf-8"))
            if record["asked"] == [*FLAGS, *LIBRARIES]:
                return _Native(_compiler(record, ""), int(record["size"]), int(record["seconds"]))
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            continue
    return None


def program(name: str) -> str:
    """CMake or Ninja: from its PyPI package, else from PATH."""
    found = _find(name)
    if not found:
        raise ToolchainError(f"{name} was not found", advice=f"pip install {name}")
    return found


@functools.cache
def _find(name: str) -> str | None:
    return _packaged(name) or shutil.which(name)


def _packaged(name: str) -> str | None:
    import importlib.util

    spec = importlib.util.find_spec(name)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    # Where both packages have kept their programs; importing cmake lists its 4,000 files first, for 30 ms.
    found = shutil.which(name, path=os.pathsep.join(os.path.join(folder, "data", "bin") for folder in folders))
    if found or not spec:
        return found
    try:
        module = importlib.import_module(name)
    except (ImportError, AssertionError):  # the cmake package asserts that its files are there
        return None
    folder = getattr(module, {"cmake": "CMAKE_BIN_DIR", "ninja": "BIN_DIR"}[name], None)
    return shutil.which(name, path=folder) if folder else None


@functools.cache
def cpu() -> str:
    """What -march=native looks at: a cache that moved to another processor must not be used there."""
    wanted = ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU implementer", "CPU part")
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(16384).split("\n\n")[0].splitlines()
    except OSError:
        first = []
    return repr((os.uname().machine, [line for line in first if line.split("\t")[0].strip() in wanted]))
