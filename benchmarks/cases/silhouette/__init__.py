"""A soft silhouette (SoftRas): the icosphere of 1,280 faces in a square picture, and the gradient by its vertices.

The size is that of the picture. Everybody starts from the vertices and ends with their gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nablasim.render.mesh import Mesh

from ...harness import MILLISECONDS, Case, Results
from ...native import function

SOURCE = Path(__file__).with_name("silhouette.cpp")
SIGMA = 1e-4
LIMIT = float(np.log(1e6 - 1) * SIGMA)
"""The squared distance at which less than 1e-6 is covered."""
DISTANCE = 2.7
HALF_HEIGHT = float(np.tan(np.radians(30)))


@dataclass
class Work:
    vertices: np.ndarray
    faces: np.ndarray
    size: int
    seed: np.ndarray
    """Adjoint of the picture."""


def make(size: int) -> Work:
    mesh = Mesh.sphere(3)
    seed = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    return Work(mesh.vertices.astype(np.float32), mesh.faces.astype(np.int32), size, seed)


def by_hand(work: Work, real: type) -> tuple[Results, dict[str, object]]:
    vertices, seed = np.ascontiguousarray(work.vertices, real), np.ascontiguousarray(work.seed, real)
    out = {"image": np.zeros_like(seed), "grad vertices": np.zeros_like(vertices)}
    given = [vertices, work.faces, seed, len(vertices), len(work.faces), work.size, SIGMA, DISTANCE, HALF_HEIGHT]
    name = f"silhouette_{np.dtype(real).name}"
    runs = {
        "forward": function(SOURCE, name, *given, *out.values(), 0),
        "forward + backward": function(SOURCE, name, *given, *out.values(), 1),
    }
    return out, runs


def reference(work: Work) -> Results:
    out, runs = by_hand(work, np.float64)
    runs["forward + backward"]()
    return out


CASE = Case(
    name="silhouette",
    title="Soft silhouette, 1,280 faces",
    sizes=(64, 128),
    tiny=16,
    make=make,
    unit=MILLISECONDS,
    reference=reference,
    tolerance=2e-3,
)
