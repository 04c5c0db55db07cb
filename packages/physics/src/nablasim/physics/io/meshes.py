"""Meshes from and to files: chooses the reader by the file's ending, checks what it read, and says where it is wrong.

`text.py` reads the formats that are lines of text (obj, tet), `libraries.py` the others through trimesh and meshio, and
`lines.py` finds the line of an element in those that have a text variant.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nablasim.physics.errors import MeshError
from nablasim.physics.geometry import TetMesh, TriMesh, join_vertices
from nablasim.physics.io import libraries, text
from nablasim.physics.io.text import Raw

Reader = Callable[[Path], Raw]

SURFACES: dict[str, Reader] = {
    ".obj": text.read_obj,
    **dict.fromkeys((".stl", ".ply", ".off", ".gltf", ".glb", ".dae"), libraries.read_by_trimesh),
    **dict.fromkeys((".msh", ".vtk", ".vtu"), lambda path: libraries.read_by_meshio(path, "face")),
}
TETS: dict[str, Reader] = {
    ".tet": text.read_tet,
    **dict.fromkeys((".msh", ".vtk", ".vtu", ".mesh"), lambda path: libraries.read_by_meshio(path, "tet")),
}
SURFACE_WRITERS: dict[str, Callable[[Path, TriMesh], None]] = {
    ".obj": text.write_obj,
    **dict.fromkeys((".stl", ".ply", ".off", ".glb"), libraries.write_by_trimesh),
    **dict.fromkeys((".msh", ".vtk", ".vtu"), libraries.write_by_meshio),
}
TET_WRITERS: dict[str, Callable[[Path, TetMesh], None]] = {
    ".tet": text.write_tet,
    **dict.fromkeys((".msh", ".vtk", ".vtu", ".mesh"), libraries.write_by_meshio),
}
# These formats repeat a vertex for every triangle, or along seams of texture.
REPEATING = {".stl", ".gltf", ".glb", ".dae"}


def load_surface(path: str | os.PathLike[str], *, merge: bool | None = None, drop_degenerate: bool = False) -> TriMesh:
    """Read a surface; see `TriMesh.load`."""
    path = Path(path)
    raw = _read(path, SURFACES, "surface")
    try:
        faces = _kept(raw.cells, drop_degenerate)
        mesh = TriMesh(raw.vertices, faces)
        if merge if merge is not None else path.suffix.lower() in REPEATING:
            vertices, index = join_vertices(mesh.vertices)
            mesh = TriMesh(vertices, _kept(index[mesh.faces], drop_degenerate))
        return mesh.read_from(path)
    except MeshError as error:
        if error.element and error.element[0] == "face" and "twice" in error.reason:
            advice = "TriMesh.load(path, drop_degenerate=True) leaves such faces out"
            error = MeshError(error.reason, advice=advice, element=error.element)
        raise error.at(path, raw.lines()) from None


def load_tets(path: str | os.PathLike[str], *, orient: bool = False, drop_unused: bool = False) -> TetMesh:
    """Read tetrahedra; see `TetMesh.load`."""
    path = Path(path)
    raw = _read(path, TETS, "tetrahedral mesh")
    vertices, cells = raw.vertices, raw.cells
    try:
        if orient:
            cells = _oriented(vertices, cells)
        if drop_unused:
            used, cells = np.unique(cells, return_inverse=True)
            vertices, cells = vertices[used], cells.reshape(-1, 4)
        return TetMesh(vertices, cells)
    except MeshError as error:
        raise error.at(path, None if drop_unused else raw.lines()) from None


def save_surface(path: str | os.PathLike[str], mesh: TriMesh) -> None:
    """Write a surface; see `TriMesh.save`."""
    _write(Path(path), mesh, SURFACE_WRITERS, "surface")


def save_tets(path: str | os.PathLike[str], mesh: TetMesh) -> None:
    """Write tetrahedra; see `TetMesh.save`."""
    _write(Path(path), mesh, TET_WRITERS, "tetrahedral mesh")


# ------------------------------------------------------------------------------------------------------------ parts
def _read(path: Path, readers: dict[str, Reader], what: str) -> Raw:
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise MeshError(
            f"a {what} cannot be read from {path.suffix or 'a file without ending'}",
            advice=f"Known endings: {', '.join(sorted(readers))}",
            file=path,
        )
    if not path.is_file():
        found = "this is a folder" if path.is_dir() else "there is no such file"
        raise MeshError(found, advice=f"The current folder is {Path.cwd()}", file=path)
    if path.stat().st_size == 0:
        raise MeshError("the file is empty", advice="Write it anew with whatever made it", file=path)
    raw = reader(path)
    if raw.vertices.ndim != 2 or raw.vertices.shape[-1:] != (3,):
        raise MeshError(f"vertices have shape {raw.vertices.shape}; expected (n, 3)", file=path)
    return raw


def _kept(faces: Any, drop_degenerate: bool) -> Any:
    return faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)] if drop_degenerate else faces


def _oriented(vertices: Any, tets: Any) -> Any:
    if not len(tets) or tets.min() < 0 or tets.max() >= len(vertices):
        return tets  # for the mesh to refuse
    a, b, c, d = (vertices[tets[:, k]] for k in range(4))
    inverted = np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) < 0
    return np.where(inverted[:, None], tets[:, [0, 2, 1, 3]], tets)


def _write(path: Path, mesh: Any, writers: dict[str, Any], what: str) -> None:
    """Beside its place first, then into it by renaming: no half-written file is ever seen there."""
    suffix = path.suffix.lower()
    if suffix not in writers:
        raise MeshError(
            f"a {what} cannot be written to {path.suffix or 'a file without ending'}",
            advice=f"Known endings: {', '.join(sorted(writers))}",
            file=path,
        )
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".saving-") as folder:
        aside = Path(folder, f"mesh{suffix}")
        writers[suffix](aside, mesh)
        os.replace(aside, path)
