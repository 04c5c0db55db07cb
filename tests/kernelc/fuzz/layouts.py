"""How the arrays of a random program lie in memory: dense, with gaps, backwards, or further apart than 32 bits say."""

from __future__ import annotations

import mmap
import os
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import kernelc as kc

UNRESERVED = 0x4000  # MAP_NORESERVE of Linux: the system gives out only what is touched
BITS = {"kc.uint8": np.uint8, "kc.int8": np.int8, "kc.int16": np.int16, "kc.uint16": np.uint16, "kc.uint64": np.uint64}
"""Integers of which memory is made, and programs are not; with uint64, which has bits that int has not."""
CONTIGUOUS = ("lows", "highs")  # where derivatives of atomic minima and maxima are to be had, arrays must be so
HALVES = {"kc.float16": kc.float16, "kc.bfloat16": kc.bfloat16}
# An emulator keeps a note for each page that it maps, and runs out of memory where the system does not.
HUGE = 2**16 if os.environ.get("KERNELC_TEST_MEMORY") == "small" else 2**30
STEPS = {"dense": 1, "gaps": 3, "backwards": -1, "gaps, backwards": -2, "huge": HUGE, "huge, backwards": -HUGE}
"""Of the first axis, in rows; huge ones in numbers, so that the third row begins 2**31 numbers after the first."""


def choose(seed: int, names: Any) -> dict[str, str]:
    """The layout of each array: all dense for seed 0, where shrinking goes."""
    random = np.random.default_rng(seed)
    found = {name: str(random.choice(list(STEPS))) if seed else "dense" for name in names}
    return found | dict.fromkeys(CONTIGUOUS, "dense")


def laid(data: np.ndarray, layout: str) -> np.ndarray:
    """The same content with other strides. Vectors and rows stay together."""
    step, numbers = STEPS[layout], prod(data.shape[1:])
    if abs(step) < HUGE:
        wide = np.zeros((len(data) * abs(step), *data.shape[1:]), data.dtype)
        made = wide[::step]
    else:
        step = (1 if step > 0 else -1) * (HUGE // numbers + 1) * numbers  # whole rows, and no power of two
        size = ((len(data) - 1) * abs(step) + numbers) * data.itemsize
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | UNRESERVED)
        first = np.frombuffer(memory, data.dtype)[(len(data) - 1) * -step if step < 0 else 0 :]
        made = as_strided(first, data.shape, (step * data.itemsize, *data.strides[1:]))
    made[...] = data
    return made


def array(data: np.ndarray, dtype: Any, layout: str, requires_grad: bool = False) -> Any:
    """An array of ours over memory of that layout; NumPy has no bfloat16 to lay out."""
    if dtype is not kc.bfloat16:
        return kc.array(laid(data, layout), dtype=dtype, requires_grad=requires_grad)
    step = max(-3, min(3, STEPS[layout]))
    made = kc.zeros((len(data) * abs(step), *data.shape[1:]), dtype=dtype)[::step]
    made.assign(data)
    return made


def rounded(value: float, dtype: Any) -> float:
    """The nearest half, ties to even, for numbers of moderate size."""
    if dtype is kc.float16:
        return float(np.float16(value))
    bits = int(np.float64(value).view(np.uint64))
    dropped = 52 - 7  # bfloat16 keeps seven bits of the fraction
    kept = bits >> dropped
    rest, half = bits & ((1 << dropped) - 1), 1 << (dropped - 1)
    kept += rest > half or (rest == half and kept & 1)
    return float(np.uint64(kept << dropped).view(np.float64))
