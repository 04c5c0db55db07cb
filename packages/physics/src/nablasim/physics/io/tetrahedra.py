"""Fills a closed surface with tetrahedra, by wildmeshing (fTetWild; an optional package).

The package runs in a process of its own: it prints without end, and a surface that it cannot handle may end the
process. Its choices are random, so that the same surface gives other tetrahedra every time: save the result.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from nablasim.physics.errors import MeshError, MissingPackage
from nablasim.physics.geometry import TetMesh, TriMesh

WORKER = """
import sys
import numpy as np
import wildmeshing

given = np.load(sys.argv[1])
worker = wildmeshing.Tetrahedralizer(
    edge_length_r=float(given["edge"]), epsilon=float(given["tolerance"]), max_threads=1
)
worker.set_log_level(6)
worker.set_mesh(given["vertices"], given["faces"])
worker.tetrahedralize()
vertices, tets = worker.get_tet_mesh(correct_surface_orientation=True)[:2]
np.savez(sys.argv[2], vertices=vertices, tets=tets)
"""


def tetrahedralise(surface: TriMesh, *, edge: float | None = None, tolerance: float | None = None) -> TetMesh:
    """Tetrahedra that fill a closed surface.

    `edge` is the length of edge to aim at (m; by default a twentieth of the diagonal of the bounding box), `tolerance`
    how far the result may stray from the surface (m; by default a thousandth of it). The surface of the result has
    vertices of its own, and the result differs from call to call: save it.
    """
    if importlib.util.find_spec("wildmeshing") is None:
        raise MissingPackage("wildmeshing", "filling a surface with tetrahedra", "tets")
    surface.require_closed()
    diagonal = float(np.linalg.norm(np.ptp(surface.vertices, axis=0)))
    given = {"edge": diagonal / 20 if edge is None else edge, "tolerance": tolerance or diagonal / 1000}
    for name, length in given.items():
        if not 0 < length < diagonal:
            raise ValueError(f"{name} is {length} m; it is above 0 and below the surface's diagonal, {diagonal:.6g} m")
    vertices, tets = _run(surface, {name: length / diagonal for name, length in given.items()})
    if len(tets) == 0:
        raise MeshError("wildmeshing made no tetrahedra", advice="Try a shorter edge, or a smaller tolerance")
    used, tets = np.unique(tets, return_inverse=True)
    vertices, tets = vertices[used], tets.reshape(-1, 4)
    a, b, c, d = (vertices[tets[:, k]] for k in range(4))
    inverted = np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) < 0  # It counts corners the other way round.
    return TetMesh(vertices, np.where(inverted[:, None], tets[:, [0, 2, 1, 3]], tets))


def _run(surface: TriMesh, parts: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    with tempfile.TemporaryDirectory(prefix="nablasim-") as folder:
        to, back = Path(folder, "surface.npz"), Path(folder, "tets.npz")
        np.savez(to, vertices=surface.vertices, faces=surface.faces, edge=parts["edge"], tolerance=parts["tolerance"])
        # In the folder: wildmeshing leaves files where it runs.
        command = [sys.executable, "-c", WORKER, str(to), str(back)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
        if done.returncode != 0 or not back.exists():
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise MeshError(
                f"wildmeshing failed with status {done.returncode}" + (f": {said[0]}" if said else ""),
                advice="Does the surface cut itself, or is the edge too long for it?",
            )
        with np.load(back) as result:
            return result["vertices"], result["tets"].astype(np.int64)
