"""The C++ of a package's kernels, for each level of the processor, and the index of what its libraries will hold.

Run by the CMake function `kernelc_add_kernels` (toolchain/cmake/KernelcAot.cmake) when a wheel is configured; CMake
then compiles what is written here. Nothing is launched, no compiler is asked: the text depends on the kernels alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from ..codegen import calls_again, lanes_refused, uses_math
from ..errors import NotDifferentiable, WrongChoice, WrongUse
from ..runtime.compile import Variant, unit
from ..toolchain import shipped
from ..toolchain.flags import LIBRARIES
from ..toolchain.simd import Level
from ..toolchain.simd import levels as levels_of
from . import Ahead, kernels

_UNIT = 40_000
"""Characters of C++ that are compiled together: small kernels share the reading of the headers."""


@dataclass(frozen=True)
class Piece:
    """One kernel, forward or adjoint, in one precision, for one level."""

    level: str
    name: str
    key: str
    text: str
    width: int
    label: str


def declared(module: ModuleType) -> list[Ahead]:
    """What a module declares as AHEAD; without it, every kernel that it defines."""
    found: Sequence[Ahead] = module.AHEAD if hasattr(module, "AHEAD") else kernels(module)
    unknown = {name for one in found for name in one.boxed} - {name for one in found for name in one.kernel.values}
    if unknown:
        raise WrongUse(f"{module.__name__}: no kernel has a number called {' or '.join(sorted(unknown))}",
                       advice="boxed=(...) names parameters that are no arrays")  # fmt: skip
    unknown = {name for one in found for name in one.absent} - {name for one in found for name in one.kernel.optional}
    if unknown:
        raise WrongUse(f"{module.__name__}: no kernel has an optional member {' or '.join(sorted(unknown))}",
                       advice='absent=(...) names members of parameters, as "bodies.wind"')  # fmt: skip
    return list({(one.kernel, one.given_as_arrays, one.left_out): one for one in found}.values())


def write(ahead: Sequence[Ahead], folder: Path, machine: str, names: Sequence[str] = ()) -> None:
    """Write sources, index and a list of both for CMake. `machine`: "linux-x86_64"; `names`: of levels, all if none."""
    levels = _chosen(machine, names)
    pieces = [piece for found in _each(ahead, levels) for piece in found]
    lines = [
        # A function that is nowhere defined is to be said here, not where the library is opened.
        f"set(KERNELC_FLAGS {_words([*shipped.FLAGS, '-Wl,-z,defs'])})",
        f"set(KERNELC_LIBRARIES {_words([*LIBRARIES, '-lc'])})",
        f"set(KERNELC_LEVELS {_words([level.name for level in levels])})",
    ]
    index: dict[str, dict[str, str]] = {}
    for level in levels:
        # A kernel without reals is the same in both precisions.
        own = list({piece.key: piece for piece in reversed(pieces) if piece.level == level.name}.values())[::-1]
        names = [_write_unit(folder / f"{level.name}-{n}.cpp", group) for n, group in enumerate(_groups(own))]
        index[level.name] = {piece.key: piece.label for piece in own}
        lines.append(f"set(KERNELC_FLAGS_{level.name} {_words(level.flags)})")
        lines.append(f"set(KERNELC_SOURCES_{level.name} {_words(names)})")
    table = {"format": shipped.FORMAT, "machine": machine, "kernels": index}
    _put(folder / shipped.INDEX, json.dumps(table, indent=1) + "\n")
    _put(folder / "sources.cmake", "# Written by kernelc.aot.\n" + "\n".join(lines) + "\n")


def _chosen(machine: str, names: Sequence[str]) -> list[Level]:
    """Some levels of an architecture; the one that every processor has is always needed."""
    known = levels_of(machine.rpartition("-")[2])
    there = [level.name for level in known]
    if names and (set(names) - set(there) or there[0] not in names):
        raise WrongChoice(f"{machine} has no kernels for {','.join(names)} alone",
                          advice=f"choose {there[0]}, and with it any of {', '.join(there)}")  # fmt: skip
    # On an architecture with several levels the lowest is all that is left of old machines: they run thread by thread.
    lowest = known[0] if len(known) == 1 else replace(known[0], bytes=0)
    return [level for level in (lowest, *known[1:]) if not names or level.name in names]


def _each(ahead: Sequence[Ahead], levels: Sequence[Level]) -> Iterator[list[Piece]]:
    """The pieces of each kernel; by several processes, which get the kernels by fork: functions cannot be sent."""
    global _work
    _work = (ahead, levels)
    workers = min(len(ahead), os.cpu_count() or 1)
    if workers < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(_pieces, range(len(ahead)))
        return
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        yield from pool.imap(_pieces, range(len(ahead)))


_work: tuple[Sequence[Ahead], Sequence[Level]] = ((), ())


def _pieces(number: int) -> list[Piece]:
    """All that is compiled of one kernel."""
    ahead, levels = _work[0][number], _work[1]
    found = []
    for real in ahead.reals:
        variant = ahead.kernel.variant(real, ahead.given_as_arrays, ahead.left_out)
        arrays = frozenset(i for i, p in enumerate(variant.kernel.params) if p.array is not None)
        wanted = [("forward", frozenset[int]())]
        if ahead.adjoint and _has_adjoint(variant):
            wanted.append(("adjoint", variant.all_reals))
        for which, seeds in wanted:
            for level, width in _widths(ahead, variant, which, seeds, levels):
                found.append(_piece(variant, which, seeds, arrays, level, width))
    return found


def _has_adjoint(variant: Variant) -> bool:
    try:
        return bool(variant.adjoint_reads(variant.all_reals)[0])
    except NotDifferentiable as error:
        ways = [error.advice, "where it is never differentiated: aot.kernels(..., adjoint=False)"]
        raise NotDifferentiable(error.message, error.span, advice="; ".join(filter(None, ways))) from None


def _widths(
    ahead: Ahead, variant: Variant, which: str, seeds: frozenset[int], levels: Sequence[Level]
) -> Iterator[tuple[str, int]]:
    """The levels and numbers of lanes that a kernel is compiled for.

    Code that runs thread by thread gains little from wide registers: it is there once, for every processor. Unless it
    calls functions that are others on each level: a launch in lanes must find the same ones.
    """
    arrays = frozenset(i for i, p in enumerate(variant.kernel.params) if p.array is not None)
    for level in levels if uses_math(variant.code(which, seeds, arrays).text) else levels[:1]:
        yield level.name, 0
    chosen = ahead.kernel.options.lanes
    if chosen == 0 or not ahead.lanes or lanes_refused(variant.ir_of(which, seeds)):
        return
    for level in levels:
        if level.bytes:
            yield level.name, chosen or level.bytes // variant.real.size


def _piece(
    variant: Variant, which: str, seeds: frozenset[int], arrays: frozenset[int], level: str, width: int
) -> Piece:
    code = variant.code(which, seeds, arrays, width)
    key = shipped.digest(unit([code.text], [width]))
    head = f"void {code.name}(const int64_t* block"
    if code.text.count(head) != 1:
        raise AssertionError(f"the text of {code.name} has another form than expected")
    name, text = shipped.symbol(code.name, key), shipped.plain(code.text)
    text = text.replace(head, f"void {name}(const int64_t* block")
    text = text.replace(f"{calls_again(code.name)},", f"{calls_again(name)},")
    source = variant.source
    label = f"{source.function.__module__}.{source.name} {variant.real} {which}" + (f" x{width}" if width else "")
    return Piece(level, code.name, key, text, width, label)


def _groups(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """What is compiled together: small pieces, but no two of one name, which would have functions of one name."""
    groups: list[list[Piece]] = []
    open_group: list[Piece] = []
    for piece in pieces:
        if len(piece.text) >= _UNIT:
            groups.append([piece])
            continue
        size = sum(len(other.text) for other in open_group)
        if size + len(piece.text) > _UNIT or any(other.name == piece.name for other in open_group):
            groups.append(open_group)
            open_group = []
        open_group.append(piece)
    # The long ones first: the last to be done should not be the longest.
    return sorted([g for g in [*groups, open_group] if g], key=lambda g: -sum(len(piece.text) for piece in g))


def _write_unit(path: Path, group: Sequence[Piece]) -> str:
    _put(path, unit([piece.text for piece in group], [piece.width for piece in group]))
    return str(path)


def _put(path: Path, text: str) -> None:
    """Write a file if it is to change: what has not changed is not compiled again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _words(words: Sequence[str]) -> str:
    return " ".join(f'"{word}"' for word in words)
