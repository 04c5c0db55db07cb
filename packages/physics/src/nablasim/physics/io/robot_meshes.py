"""Meshes of robots: the convex hulls by which links touch, and what is drawn of them, in few enough triangles."""

from __future__ import annotations

from pathlib import Path
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike

from nablasim.physics.errors import MeshError
from nablasim.physics.geometry import TriMesh, join_vertices
from nablasim.physics.io.meshes import load_surface

CORNERS = 40
"""Of a hull at most: every corner is a point that planes are looked at for in every step."""
DRAWN = 4000
"""Triangles of a mesh that is drawn at most: robots have dozens of meshes."""


class Meshes:
    """The meshes of one robot, each file read once. What cannot be read is left out, and named in one warning."""

    def __init__(self, path: Path):
        self.path = path
        self._read: dict[Path, TriMesh] = {}
        self._unread: dict[str, str] = {}

    def mesh(self, file: Path, scale: ArrayLike) -> TriMesh | None:
        """The mesh of a file; None where it cannot be read."""
        try:
            if file not in self._read and file.name not in self._unread:
                self._read[file] = load_surface(file, drop_degenerate=True)
            return self._read[file].moved(scale=scale) if file in self._read else None
        except MeshError as error:
            self._unread[file.name] = error.reason
            return None

    def hull(self, file: Path, scale: ArrayLike) -> TriMesh | None:
        """Its convex hull; None where it is flat, too."""
        mesh = self.mesh(file, scale)
        return None if mesh is None else self.hull_of(file.name, mesh)

    def hull_of(self, name: str, mesh: TriMesh) -> TriMesh | None:
        try:
            return mesh.convex_hull(corners=CORNERS)
        except MeshError as error:
            self._unread[name] = error.reason
            return None

    def drawn(self, file: Path, scale: ArrayLike) -> TriMesh | None:
        mesh = self.mesh(file, scale)
        return None if mesh is None else coarser(mesh, DRAWN)

    def tell(self) -> None:
        """Warn of what was left out."""
        if self._unread:
            left = "; ".join(f"{name} ({why})" for name, why in sorted(self._unread.items()))
            warn(f"{self.path}: some meshes are left out, touch nothing and are not drawn: {left}", stacklevel=5)


def coarser(mesh: TriMesh, most: int) -> TriMesh:
    """A mesh of at most so many triangles that looks alike: vertices in one cell of a grid become one."""
    cells = 256
    while len(mesh.faces) > most:
        size = float(np.ptp(mesh.vertices, axis=0).max()) / cells
        vertices, index = join_vertices(np.asarray(mesh.vertices), size)
        faces = index[mesh.faces]
        faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
        _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
        if len(first) == 0:
            break
        mesh, cells = TriMesh(vertices, faces[np.sort(first)]).compact(), cells * 3 // 4
    return mesh
