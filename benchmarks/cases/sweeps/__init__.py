"""The tape's overhead: many one-element launches recorded, run again, and run backwards. Per launch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...harness import Case, Results, Unit

FACTOR = 1.0001


@dataclass
class Work:
    launches: int
    x: np.ndarray


def make(size: int) -> Work:
    return Work(size, np.array([2.0], np.float32))


def reference(work: Work) -> Results:
    grown = FACTOR**work.launches
    return {"y": np.array([2.0 * grown]), "grad x": np.array([grown])}


CASE = Case(
    name="sweeps",
    title="A tape of one-element launches, per launch",
    sizes=(1000,),
    tiny=5,
    make=make,
    unit=Unit("µs", 1e6),
    count=lambda work: work.launches,
    reference=reference,
)
