"""What vector units can do: the levels that machine code is made for, and which of them this machine has.

Kernels that are compiled here are compiled for this very processor (-march=native), unless KERNELC_CPU names a level:
then for any processor that has it. The level also says how many of their threads run side by side. Kernels that come
with a package are there once for each level (shipped.py).
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
_ARM = ("-march=armv8-a",)
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
        return (Level("baseline", 16, _ARM if machine in ("aarch64", "arm64") else ()),)
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
    own = known[: names.index(_native.cpu_level()) + 1]
    asked = _asked()
    return own[: names.index(asked) + 1] if _is_level(asked, names, own) else own


def chosen_level() -> Level | None:
    """The level that KERNELC_CPU asks for; None where kernels are compiled for this very processor."""
    return own_levels()[-1] if _asked() not in ("", NATIVE) else None


NATIVE = "native"
"""What KERNELC_CPU may say besides the names of levels: this very processor, which is the default."""


def _asked() -> str:
    return os.environ.get("KERNELC_CPU", "").strip()


def _is_level(asked: str, names: list[str], own: tuple[Level, ...]) -> bool:
    """Whether a level was asked for; raises where it is unknown, or none that this processor has."""
    if asked in ("", NATIVE):
        return False
    choices = ", ".join([NATIVE, *(level.name for level in own)])
    if asked not in names:
        raise WrongChoice(f"KERNELC_CPU={asked} in the environment names no kind of processor that is known here",
                          advice=f"choose one of {choices}, or unset it")  # fmt: skip
    if asked not in (level.name for level in own):
        raise WrongChoice(f"KERNELC_CPU={asked} in the environment is nothing that this processor can run: "
                          f"it has {own[-1].name} at most",
                          advice=f"choose one of {choices}, or unset it")  # fmt: skip
    return True


def simd() -> Simd:
    """The vector unit of this machine."""
    return Simd(own_levels()[-1].bytes, libmvec())


@functools.cache
def libmvec() -> bool:
    """Whether the C library has the whole set of vector functions: glibc from 2.35 on, on x86-64."""
    said = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None  # "glibc 2.36"
    numbers = [int(n) for n in (said or "").removeprefix("glibc ").split(".")[:2] if n.isdigit()]
    return os.uname().machine == "x86_64" and numbers >= [2, 35]
