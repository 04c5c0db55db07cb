"""Launches whose threads add to shared elements, on several cores with the same bits.

The threads are cut into a few strips that depend on the size of the launch alone. The first strip adds to the array
itself, every other one to a copy that starts at zero; the copies are then added in the order of the strips.

A launch of several parts, whose threads touch different elements, runs each part as if it were launched alone. The
parts share the copies, and those that are too small for strips run side by side without any.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import _native

STRIPS = 4
_LEAST_THREADS = 8192
_MOST_BYTES_PER_THREAD = 256
_LENGTH_WORD = 4
_LEAST_ROW_THREADS = 1024


@dataclass
class Scratch:
    """Copies for strips, shared by all launches that run one after the other."""

    buffers: dict[tuple[int, int], np.ndarray[Any, Any]] = field(default_factory=dict)

    def get(self, number: int, nbytes: int) -> np.ndarray[Any, Any]:
        key = (number, nbytes)
        if key not in self.buffers:
            self.buffers[key] = np.empty(nbytes, np.uint8)
        return self.buffers[key]


def strip_length(part: int, targets: list[np.ndarray[Any, Any]], parts: int) -> int:
    """How many threads a strip has; 0 if a part of the launch is to run in one piece."""
    if not targets or not _LEAST_THREADS <= part < 2**31:  # the argument block has 32 bits for a length
        return 0
    copies = (STRIPS - 1) * sum(a.nbytes for a in targets) // parts
    if copies > _MOST_BYTES_PER_THREAD * part:
        return 0
    return (-(-part // STRIPS) + 63) // 64 * 64


def row_grain(block: bytes, total: int) -> int:
    """How many threads of a launch by rows run in one piece."""
    rows = int(struct.unpack_from("<q", block)[0])
    return whole(total // max(rows, 1))


def whole(part: int) -> int:
    """Threads of whole parts, and not too few of them."""
    return part * max(1, -(-_LEAST_ROW_THREADS // max(part, 1)))


def targets_of(binary: Any, args: list[Any], spare: Mapping[int, Any]) -> list[np.ndarray[Any, Any]]:
    """The memory that the threads of a launch add to together; `spare` has gradients of arrays that have none."""
    found = []
    for ref in binary.strips:
        a = args[ref.position]
        if ref.role == "grad" and ref.position in spare:
            data = spare[ref.position]
        else:
            data = a.grad._data if ref.role == "grad" else a._data
        if not data.flags.c_contiguous:
            return []
        found.append(data)
    return found


def add_launch(
    program: Any, binary: Any, block: bytes, total: int, args: list[Any], scratch: Scratch, parallel: bool,
    spare: Mapping[int, Any] = MappingProxyType({}), parts: int = 1,
) -> int:  # fmt: skip
    """Add a launch to a program, in strips where that pays; returns the step of the launch itself."""
    if binary.rows and parallel:
        return int(program.add_launch(binary.entry, block, total, True, None, row_grain(block, total)))
    targets = targets_of(binary, args, spare) if parallel else []
    part = total // parts
    length = strip_length(part, targets, parts)
    if not length and parts > 1 and targets:
        return int(program.add_launch(binary.entry, block, total, True, None, whole(part)))
    if not length:
        return int(program.add_launch(binary.entry, block, total, binary.parallel and parallel))
    patched = bytearray(block)
    apart = {"part": part} if parts > 1 else {}
    struct.pack_into("<q", patched, 8 * _LENGTH_WORD, length | apart.get("part", 0) << 32)
    strips = -(-part // length)
    copies = []
    for n, (ref, target) in enumerate(zip(binary.strips, targets, strict=True)):
        copy = scratch.get(n, (strips - 1) * target.nbytes)
        program.add_zero(copy.ctypes.data, copy.nbytes)
        struct.pack_into("<q", patched, 8 * binary.layout.slots[ref.position].role("shadow"), copy.ctypes.data)
        copies.append(copy)
    step = int(program.add_launch(binary.entry, bytes(patched), total, True, None, length, **apart))
    for target, copy in zip(targets, copies, strict=True):
        for s in range(strips - 1):
            source = copy.ctypes.data + s * target.nbytes
            program.add_accumulate(target.ctypes.data, source, target.size, target.itemsize)
    program.keep((targets, copies))
    return step


def is_alone(binary: Any, total: int) -> bool:
    """Whether a launch is nothing but one call of the machine code."""
    return not binary.rows and (not binary.strips or total < _LEAST_THREADS)


def launch(binary: Any, block: bytes, total: int, args: list[Any], parts: int = 1) -> Any:
    """Run a launch outside of a program."""
    if is_alone(binary, total):
        return _native.launch(binary.entry, block, total, binary.parallel)
    program = _native.Program()
    add_launch(program, binary, block, total, args, Scratch(), True, parts=parts)
    return program.run()
