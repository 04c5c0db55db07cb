"""C++ text in, shared libraries out: what the cache does not hold is built by one Ninja run.

One kernel is one edge of the Ninja file, compiled and linked by one command. Ninja runs in a folder beside the cache,
with names that we chose, so no path of the user's has to be quoted.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kernelc.errors import NoCompiler, ToolchainError
from kernelc.records import record
from kernelc.toolchain import cache, diagnose, project
from kernelc.toolchain.probe import Compiler, compiler, cpu, program, remember, remembered

FORMAT = 1
"""Part of every key: count up when the meaning of a cached library changes."""


@record
class Recipe:
    """How a text becomes a binary: `command` text -o binary `after`. `about`: what else decides what comes out."""

    command: tuple[str, ...]
    after: tuple[str, ...]
    about: bytes
    source: str = ".cpp"
    product: str = ".so"
    note: Callable[[], None] | None = None
    """Called after something was built."""


def build_many(sources: Mapping[str, str], *, extra_flags: Sequence[str] = ()) -> dict[str, Path]:
    """The shared libraries of `sources` (name to C++17 text), built where the cache does not have them yet.

    Raises `NoCompiler`, `CompilerFailed` (what else was in the batch is kept), `CacheNotWritable`.
    """
    if not sources:
        return {}
    try:
        using = compiler()
    except NoCompiler:
        if kept := _without_compiler(sources, tuple(extra_flags)):
            return kept
        raise
    if os.environ.get("KERNELC_CMAKE", "0") not in ("", "0"):
        for name, text in sources.items():
            project.emit(name, text, using, tuple(extra_flags))
    command = (*using.command, *using.flags, f"-I{using.include}", *extra_flags)
    about = _about(using, tuple(extra_flags))
    return cook(sources, Recipe(command, using.libraries, about, note=lambda: remember(using)))


def _without_compiler(sources: Mapping[str, str], extra_flags: tuple[str, ...]) -> dict[str, Path]:
    """All libraries from the cache, as a compiler built them that is gone by now; nothing if one of them is missing."""
    for using in remembered():
        keys = _keys(sources, _about(using, extra_flags))
        found = {name: library for name, key in keys.items() if (library := cache.find(key))}
        if len(found) == len(sources):
            return found
    return {}


def _keys(sources: Mapping[str, str], about: bytes) -> dict[str, str]:
    texts = {name: text.encode("utf-8", "surrogateescape") for name, text in sources.items()}
    return {name: hashlib.sha256(about + text).hexdigest() for name, text in texts.items()}


def cook(sources: Mapping[str, str], recipe: Recipe) -> dict[str, Path]:
    """The binaries of `sources`, by name: from the cache, or built."""
    keys = _keys(sources, recipe.about)
    found = {key: cache.find(key, recipe.product) for key in keys.values()}
    missing = [key for key, library in found.items() if library is None]
    if missing:
        wanted = [(keys[name], (name, text)) for name, text in sources.items() if keys[name] in missing]
        for start in range(0, len(wanted), cache.BATCH):
            found |= _build_missing(dict(wanted[start : start + cache.BATCH]), recipe)
    return {name: library for name, key in keys.items() if (library := found[key])}


def build(source: str, *, name: str, extra_flags: Sequence[str] = ()) -> Path:
    """The shared library of one source; see `build_many`."""
    return build_many({name: source}, extra_flags=extra_flags)[name]


def _about(using: Compiler, extra_flags: tuple[str, ...]) -> bytes:
    """Everything but the text that decides what a library holds."""
    headers = headers_in(using.include)
    tool = (using.command, using.identity, using.version, using.stamp, using.flags, using.libraries)
    return hashlib.sha256(repr((FORMAT, tool, extra_flags, headers, cpu())).encode()).digest()


def headers_in(include: Path) -> str:
    """A digest of the headers that kernels include."""
    return _headers(include, _header_stamps(include))


def _header_stamps(include: Path) -> tuple[tuple[str, int, int], ...]:
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(include) for name in names]
    states = [(os.path.relpath(path, include), os.stat(path)) for path in sorted(paths)]
    return tuple((path, state.st_size, state.st_mtime_ns) for path, state in states)


@functools.lru_cache(maxsize=4)
def _headers(include: Path, stamps: tuple[tuple[str, int, int], ...]) -> str:
    # The stamps say when to read again; the digest holds the content alone, so a new installation finds old kernels.
    content = [(path, hashlib.sha256((include / path).read_bytes()).hexdigest()) for path, _, _ in stamps]
    return hashlib.sha256(repr(content).encode()).hexdigest()


Wanted = Mapping[str, tuple[str, str]]
"""Key to name and text."""


def _build_missing(wanted: Wanted, recipe: Recipe) -> dict[str, Path]:
    with cache.workplace(map(cache.stripe, wanted)) as folder:
        # Whoever held the lock before us may have built some of them.
        done = {key: library for key in wanted if (library := cache.find(key, recipe.product))}
        rest = {key: what for key, what in wanted.items() if key not in done}
        if not rest:
            return done
        said = _run_ninja(folder, rest, recipe)
        for key, (_, text) in rest.items():
            if (folder / f"{key}.ok").exists():
                done[key] = cache.publish(key, folder / f"{key}{recipe.product}", text, recipe.source)
        if recipe.note:
            recipe.note()
        for key, (name, text) in rest.items():
            if key not in done:
                raise diagnose.failure(name, text, diagnose.output_of(f"{key}{recipe.source}", said), recipe.source)
    return done


def _run_ninja(folder: Path, wanted: Wanted, recipe: Recipe) -> str:
    import subprocess

    with cache.writing():
        for key, (_, text) in wanted.items():
            cache.write(folder / f"{key}{recipe.source}", text)
        cache.write(folder / "build.ninja", _ninja_file(wanted, recipe))
    done = subprocess.run(
        [program("ninja"), "-k", "0"],
        cwd=folder,
        # The temporary files of the compiler go the same way as ours, also when it is killed.
        env=os.environ | {"LC_ALL": "C", "TMPDIR": str(folder), "NINJA_STATUS": "ninja: "},
        umask=0o077,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    return done.stdout


def _ninja_file(wanted: Wanted, recipe: Recipe) -> str:
    import shlex

    def quoted(words: Sequence[str]) -> str:
        return shlex.join(words).replace("$", "$$")

    for word in (*recipe.command, *recipe.after):
        if "\n" in word:
            raise ToolchainError(f"there is a line break in {word!r}, which Ninja cannot take",
                                 advice="move the compiler or kernelc to a folder without one in its name")  # fmt: skip
    # The output is a mark made at the end: a compiler killed half-way leaves a library that only looks finished.
    names = f"$key{recipe.source} -o $key{recipe.product}"
    command = f"{quoted(recipe.command)} {names} {quoted(recipe.after)} && : > $out"
    lines = ["rule kernel", f"  command = {command}"]
    for key in wanted:
        lines += [f"build {key}.ok: kernel {key}{recipe.source}", f"  key = {key}"]
    return "\n".join(lines) + "\n"
