"""Stable neo-Hookean tetrahedra: a stretched block released in free fall, 64 steps, and the way back.

Psi = mu/2 (Ic - 3) + lambda/2 (J - alpha)² - mu/2 log(Ic + 1), alpha = 1 + 3 mu / (4 lambda); semi-implicit Euler.
The loss is the sum of weights times the last positions; gradients go to positions, velocities, mu and lambda.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...harness import Case, Results, Unit
from ...native import function

STEPS, DT, GRAVITY, SPACING, DENSITY = 64, 1e-3, -9.81, 0.1, 1000.0
SOURCE = Path(__file__).with_name("fem.cpp")
_CELLS = {
    5: (1, 1, 1), 40: (2, 2, 2), 100: (5, 2, 2), 1000: (10, 5, 4), 8000: (20, 10, 8), 10_000: (20, 10, 10),
    100_000: (50, 20, 20),
}  # fmt: skip
# A cell is cut into five tetrahedra, mirrored in every other cell, so that faces meet.
_CORNERS = np.array([[0, 1, 3, 5], [0, 3, 2, 6], [0, 5, 6, 4], [3, 5, 7, 6], [0, 3, 6, 5]])


@dataclass
class Work:
    """A block of tetrahedra and what is to be done with it, in float32."""

    x: np.ndarray
    v: np.ndarray
    tets: np.ndarray
    inverse: np.ndarray
    """Inverse of the rest edges, (n, 3, 3)."""
    volume: np.ndarray
    mu: np.ndarray
    lam: np.ndarray
    weight: np.ndarray
    """1 / mass of each vertex."""
    seed: np.ndarray
    """Adjoint of the last positions."""


def block(cells: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and tetrahedra of a box of cells."""
    counts = np.array(cells) + 1
    grid = np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), -1).reshape(-1, 3)
    tets = []
    for cell in np.ndindex(*cells):
        odd = sum(cell) % 2
        for corners in _CORNERS:
            places = [[(c & 1) ^ odd, c >> 1 & 1, c >> 2] for c in corners]
            ids = [int(np.ravel_multi_index(np.add(cell, p), counts)) for p in places]
            tets.append([ids[1], ids[0], *ids[2:]] if odd else ids)
    return SPACING * grid, np.array(tets)


def make(size: int) -> Work:
    rest, tets = block(_CELLS[size])
    edges = np.stack([rest[tets[:, k]] - rest[tets[:, 0]] for k in (1, 2, 3)], -1)
    volume = np.linalg.det(edges) / 6
    assert len(tets) == size and (volume > 0).all()
    mass = np.zeros(len(rest))
    np.add.at(mass, tets, DENSITY * volume[:, None] / 4)
    random = np.random.default_rng(0)
    bend = 1 + 0.1 * np.sin(3 * rest[:, [1, 2, 0]])
    exact = {
        "x": rest * bend, "v": 0.1 * random.standard_normal(rest.shape), "inverse": np.linalg.inv(edges),
        "volume": volume, "mu": 1000 * random.uniform(0.8, 1.2, size), "lam": 1000 * random.uniform(0.8, 1.2, size),
        "weight": 1 / mass, "seed": random.standard_normal(rest.shape),
    }  # fmt: skip
    return Work(tets=tets.astype(np.int32), **{k: np.ascontiguousarray(a, np.float32) for k, a in exact.items()})


def by_hand(work: Work, flavour: str, real: type) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """A C++ function with its arrays: "scalar" or "simd", forward and both ways."""
    cast = {k: np.ascontiguousarray(a, np.int32 if k == "tets" else real) for k, a in vars(work).items()}
    out = {"x": np.zeros_like(cast["x"])} | {f"grad {k}": np.zeros_like(cast[k]) for k in ("x", "v", "mu", "lam")}
    runs = {
        what: function(SOURCE, f"{flavour}_{np.dtype(real).name}", *cast.values(), *out.values(), len(work.x),
                       len(work.tets), STEPS, DT, GRAVITY, int(what != "forward"))
        for what in ("forward", "forward + backward")
    }  # fmt: skip
    return out, runs


def reference(work: Work) -> Results:
    out, runs = by_hand(work, "scalar", np.float64)
    runs["forward + backward"]()
    return out


CASE = Case(
    name="fem",
    title="Stable neo-Hookean tetrahedra, 64-step rollout",
    sizes=(100, 1000, 10_000, 100_000),
    tiny=40,
    make=make,
    unit=Unit("steps/s", rate=True),
    count=lambda work: STEPS,
    reference=reference,
    tolerance=2e-3,
)
