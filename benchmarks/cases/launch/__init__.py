"""The overhead of one launch from Python: eight arrays of one element, arguments checked each time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...harness import Case, Results, Unit

MICROSECONDS = Unit("µs", 1e6)
SOURCE = Path(__file__).with_name("launch.cpp")


@dataclass
class Work:
    arrays: np.ndarray
    """Seven terms of a sum, each with `size` elements."""


def make(size: int) -> Work:
    return Work(np.random.default_rng(0).standard_normal((7, size)).astype(np.float32))


def reference(work: Work) -> Results:
    return {"sum": work.arrays.astype(np.float64).sum(0)}


CASE = Case(
    name="launch",
    title="Launch of an 8-array kernel from Python",
    sizes=(1,),
    tiny=1,
    make=make,
    unit=MICROSECONDS,
    reference=reference,
)
