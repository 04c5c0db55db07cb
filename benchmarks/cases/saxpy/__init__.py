"""saxpy: out = a x + y. The simplest kernel there is; bound by memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...harness import MILLISECONDS, Case, Results
from ...native import function

A = 2.5
SOURCE = Path(__file__).with_name("saxpy.cpp")


@dataclass
class Work:
    x: np.ndarray
    y: np.ndarray
    seed: np.ndarray
    """Adjoint of the result."""


def make(size: int) -> Work:
    return Work(*np.random.default_rng(0).standard_normal((3, size), np.float32))


def by_hand(work: Work, real: type) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    x, y, seed = (np.ascontiguousarray(a, real) for a in vars(work).values())
    out = {name: np.zeros_like(x) for name in ("out", "grad x", "grad y")}
    result, xb, yb = out.values()
    name = np.dtype(real).name
    forward = function(SOURCE, f"saxpy_{name}", x, y, result, len(x), A)
    backward = function(SOURCE, f"adjoint_{name}", seed, xb, yb, len(x), A)
    return out, {"forward": forward, "forward + backward": lambda: (forward(), backward())}


def reference(work: Work) -> Results:
    out, runs = by_hand(work, np.float64)
    runs["forward + backward"]()
    return out


CASE = Case(
    name="saxpy",
    title="saxpy, bound by memory",
    sizes=(1_000_000,),
    tiny=10,
    make=make,
    unit=MILLISECONDS,
    reference=reference,
)
