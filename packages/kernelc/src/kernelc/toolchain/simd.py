"""How wide the vector registers are that the compiler targets: asked once of its predefined macros."""

from __future__ import annotations

import functools
import json
import platform
from dataclasses import dataclass

from . import cache, probe
from .probe import Compiler, compiler


@dataclass(frozen=True)
class Simd:
    """Bytes of a vector register, and whether the C library has vector functions that fit them."""

    bytes: int
    libmvec: bool


def simd() -> Simd:
    """The vector unit of the machine that kernels are compiled for."""
    return _ask(compiler())


@functools.lru_cache(maxsize=4)
def _ask(found: Compiler) -> Simd:
    import hashlib

    question = repr((found.command, found.flags, found.stamp, probe.cpu()))
    path = cache.open_root() / "probe" / f"{hashlib.sha256(question.encode()).hexdigest()[:16]}.simd.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return Simd(int(record["bytes"]), bool(record["libmvec"]))
    except (OSError, ValueError, KeyError, TypeError):
        made = _measure(found)
    with cache.writing():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        cache.write(path, json.dumps({"bytes": made.bytes, "libmvec": made.libmvec}))
    return made


def _measure(found: Compiler) -> Simd:
    import subprocess

    flags = [f for f in found.flags if f.startswith(("-m", "-std"))]
    command = [*found.command, *flags, "-dM", "-E", "-x", "c++", "/dev/null"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    macros = {line.split()[1] for line in run.stdout.splitlines() if line.startswith("#define ")}
    if "__AVX512F__" in macros and "__AVX512DQ__" in macros:
        width = 64
    elif "__AVX2__" in macros:
        width = 32
    else:
        width = 16
    return Simd(width, "__x86_64__" in macros and _has_libmvec())


def _has_libmvec() -> bool:
    """glibc has the whole set of vector functions from 2.35 on."""
    name, version = platform.libc_ver()
    numbers = [int(n) for n in version.split(".")[:2] if n.isdigit()]
    return name == "glibc" and numbers >= [2, 35]
