"""Particle integration: one semi-implicit step of many particles. Bound by memory, forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...harness import MILLISECONDS, Case, Results
from ...native import function

DT, GRAVITY = 1e-3, -9.81
SOURCE = Path(__file__).with_name("particles.cpp")


@dataclass
class Work:
    x: np.ndarray
    v: np.ndarray
    f: np.ndarray
    weight: np.ndarray
    """1 / mass."""
    seed_x: np.ndarray
    seed_v: np.ndarray
    """Adjoints of the new positions and velocities."""


def make(size: int) -> Work:
    random = np.random.default_rng(0)
    x, v, f, seed_x, seed_v = random.standard_normal((5, size, 3), np.float32)
    return Work(x, v, f, random.uniform(0.5, 1.5, size).astype(np.float32), seed_x, seed_v)


def by_hand(work: Work, real: type) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    cast = {k: np.ascontiguousarray(a, real) for k, a in vars(work).items()}
    new = {"x": np.zeros_like(cast["x"]), "v": np.zeros_like(cast["x"])}
    grads = {f"grad {k}": np.zeros_like(cast[k]) for k in ("x", "v", "f", "weight")}
    name, given, n = np.dtype(real).name, list(cast.values()), len(work.x)
    forward = function(SOURCE, f"step_{name}", *given[:4], *new.values(), n, DT, GRAVITY)
    backward = function(SOURCE, f"adjoint_{name}", *given[2:], *grads.values(), n, DT)
    return new | grads, {"forward": forward, "forward + backward": lambda: (forward(), backward())}


def reference(work: Work) -> Results:
    out, runs = by_hand(work, np.float64)
    runs["forward + backward"]()
    return out


CASE = Case(
    name="particles",
    title="Particle integration, bound by memory",
    sizes=(1_000_000,),
    tiny=10,
    make=make,
    unit=MILLISECONDS,
    reference=reference,
)
