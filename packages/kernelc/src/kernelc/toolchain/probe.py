"""Which C++ compiler this machine has and which flags it takes: asked of CMake once, then read from the cache.

The record is filed under the compiler's command, size and time of change, so that a compiler that was upgraded,
replaced or chosen by CXX gets a record of its own, and one that vanished has none.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from kernelc.errors import NoCompiler, ToolchainError
from kernelc.toolchain import cache

FLAGS = (
    "-std=c++17",
    "-shared",
    "-fPIC",
    "-O2",
    "-march=native",
    "-fvisibility=hidden",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    # The adjoint computes again what the forward kernel computed, and must get the same bits: who won a maximum, which
    # branch was taken. Fused products depend on what else uses them, so they differ between the two.
    "-ffp-contract=off",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    "-w",
    # math.h of the C library: the one of libstdc++ brings templates that take longer than a small kernel (85 ms).
    "-nostdinc++",
)
# Kernels use no C++ library, and the C library is there when they are opened: looking through either takes the linker
# 10 ms. (Opening one resolves all of its functions, so what is missing is said there.)
LIBRARIES = ("-nodefaultlibs", "-lm", "-lgcc")
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
        return _probed(cache.open_root(), command, _stamp(command))
    except NoCompiler:
        if not command:
            _searched.add(os.environ.get("PATH"))
        raise


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
        if found is None:
            raise NoCompiler(f"CXX is {chosen!r}, but there is no program {words[0]!r}")
        return (os.path.abspath(found), *words[1:])
    native = _native_build()
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    # A compiler that PATH does not lead to is one that the user does not want, or does not know of: CXX names it.
    if native and os.path.dirname(native["path"]) in folders and shutil.which(native["path"]):
        return (native["path"],)
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return (os.path.abspath(found),) if found else ()


def _stamp(command: tuple[str, ...]) -> str:
    files = [found for word in command if (found := shutil.which(word))]
    return repr([(s.st_size, s.st_mtime_ns) for s in map(os.stat, files)])


@functools.lru_cache(maxsize=16)
def _probed(root: Path, command: tuple[str, ...], stamp: str) -> Compiler:
    question = repr((command, stamp, FLAGS, LIBRARIES))
    path = root / "probe" / f"{hashlib.sha256(question.encode()).hexdigest()[:16]}.json"
    found = cache.answered(path, lambda: _read(path, stamp), lambda folder: _ask_cmake(folder, command))
    if found is None:
        raise ToolchainError(f"the compiler probe wrote a record that cannot be read: {path}", advice="remove it")
    return found


def _read(path: Path, stamp: str) -> Compiler | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
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
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None


def _ask_cmake(folder: Path, command: tuple[str, ...]) -> Path:
    """Configure the probe, or only its second half where the build of the native core has answered the first."""
    import subprocess

    if not command and not (_find("cmake") and _find("ninja")):
        raise NoCompiler("there is no C++ compiler on this machine")
    here, record = Path(__file__).with_name("cmake"), folder / "record.json"
    asked = [
        f"-DKERNELC_FLAGS={';'.join(FLAGS)}",
        f"-DKERNELC_LIBRARIES={';'.join(LIBRARIES)}",
        f"-DKERNELC_RECORD={record}",
    ]
    native = _native_build()
    if native and command == (native["path"],) and _still(native):
        asked += [f"-DKERNELC_{name}={native[key]}" for name, key in _NATIVE_KEYS.items()]
        run = [program("cmake"), *asked, "-P", str(here / "flags.cmake")]
    else:
        run = [program("cmake"), *asked, "-S", str(here), "-B", str(folder / "probe"), "-G", "Ninja"]
        run += [f"-DCMAKE_MAKE_PROGRAM={program('ninja')}"]
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


_NATIVE_KEYS = {"COMPILER": "path", "ID": "id", "VERSION": "version"}


@functools.cache
def _native_build() -> dict[str, str] | None:
    """What the build of the native core wrote down about its compiler."""
    package = sys.modules["kernelc"]  # not imported: it stands above this layer
    for folder in package.__path__:  # an editable installation has two: the sources, and what was built
        try:
            record = json.loads(Path(folder, "_probe.json").read_text())
            return {key: str(record[key]) for key in _NATIVE_KEYS.values()}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _still(native: dict[str, str]) -> bool:
    """Whether the compiler of the native core still has the version that it had then."""
    import subprocess

    try:
        said = subprocess.run([native["path"], "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return native["version"] in said


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
    import platform

    wanted = ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU implementer", "CPU part")
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(16384).split("\n\n")[0].splitlines()
    except OSError:
        first = []
    return repr((platform.machine(), [line for line in first if line.split("\t")[0].strip() in wanted]))
