"""What vector units can do: the levels that machine code is made for, and which of them this machine has.

Kernels that are compiled here are compiled for this very processor (-march=native); the level only says how many of
their threads run side by side. Kernels that come with a package are there once for each level (shipped.py).
"""

from __future__ import annotations

import functools
import os

from kernelc.errors import ToolchainError, WrongChoice
from kernelc.records import record

ABI = 3
"""KC_ABI of kernelc/context.h: what a kernel and the native core know of each other."""
_PLAIN = ("-march=x86-64",)
# Tuned for the first processor that had it: code that is tuned for all of them gathers elements one by one.
_AVX2 = (*_PLAIN, "-mtune=haswell", "-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mpopcnt")
_AVX512 = (*_AVX2, "-mavx512f", "-mavx512cd", "-mavx512bw", "-mavx512dq", "-mavx512vl")


@record
class Level:
    """What a processor needs to run some machine code, and the compiler's flags that make it."""

    name: str
    bytes: int
    """Of a vector register."""
    flags: tuple[str, ...] = ()


@record
class Simd:
    """Bytes of a vector register, and whether the C library has vector functions that fit them."""

    bytes: int
    libmvec: bool


def levels(machine: str) -> tuple[Level, ...]:
    """The levels of an architecture, lowest first; every processor has the first."""
    if machine not in ("x86_64", "AMD64"):
        return (Level("baseline", 16),)
    # What native/cpu.cpp looks for must be what these flags let the compiler use.
    return Level("baseline", 16, _PLAIN), Level("avx2", 32, _AVX2), Level("avx512", 64, _AVX512)


@functools.cache
def own_levels() -> tuple[Level, ...]:
    """The levels that this processor can run, lowest first; KERNELC_CPU names the highest to be used."""
    from kernelc import _native

    if _native.abi() != ABI:
        raise ToolchainError("the native core of kernelc is older than its Python sources",
                             advice="build it anew: pip install --editable packages/kernelc")  # fmt: skip
    known = levels(os.uname().machine)
    names = [level.name for level in known]
    highest = names.index(_native.cpu_level())
    asked = os.environ.get("KERNELC_CPU", "").strip()
    if asked:
        if asked not in names[: highest + 1]:
            raise WrongChoice(f"KERNELC_CPU={asked} in the environment is nothing that this processor can run",
                              advice=f"choose one of {', '.join(names[: highest + 1])}, or unset it")  # fmt: skip
        highest = names.index(asked)
    return known[: highest + 1]


def simd() -> Simd:
    """The vector unit of this machine."""
    return Simd(own_levels()[-1].bytes, libmvec())


@functools.cache
def libmvec() -> bool:
    """Whether the C library has the whole set of vector functions: glibc from 2.35 on, on x86-64."""
    said = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None  # "glibc 2.36"
    numbers = [int(n) for n in (said or "").removeprefix("glibc ").split(".")[:2] if n.isdigit()]
    return os.uname().machine == "x86_64" and numbers >= [2, 35]
