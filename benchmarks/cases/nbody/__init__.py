"""N-body: each thread sums the pull of all others, in a loop of a length known only at run time; and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...harness import MILLISECONDS, Case, Results
from ...native import function

SOFTENING = 0.01
SOURCE = Path(__file__).with_name("nbody.cpp")


@dataclass
class Work:
    x: np.ndarray
    mass: np.ndarray
    seed: np.ndarray
    """Adjoint of the accelerations."""


def make(size: int) -> Work:
    random = np.random.default_rng(0)
    x, seed = random.standard_normal((2, size, 3)).astype(np.float32)
    return Work(x, random.uniform(0.5, 1.5, size).astype(np.float32), seed)


def by_hand(work: Work, flavour: str, real: type) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    cast = {k: np.ascontiguousarray(a, real) for k, a in vars(work).items()}
    out = {"a": np.zeros_like(cast["x"])} | {f"grad {k}": np.zeros_like(cast[k]) for k in ("x", "mass")}
    given, name = [*cast.values(), *out.values(), len(work.x), SOFTENING], f"{flavour}_{np.dtype(real).name}"
    runs = {"forward": function(SOURCE, name, *given, 0), "forward + backward": function(SOURCE, name, *given, 1)}
    return out, runs


def reference(work: Work) -> Results:
    out, runs = by_hand(work, "scalar", np.float64)
    runs["forward + backward"]()
    return out


CASE = Case(
    name="nbody",
    title="N-body, dynamic inner loop",
    sizes=(1024,),
    tiny=16,
    make=make,
    unit=MILLISECONDS,
    reference=reference,
    tolerance=2e-3,
)
