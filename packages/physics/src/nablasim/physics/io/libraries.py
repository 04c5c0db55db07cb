"""The formats that trimesh and meshio read and write, with what those libraries let pass looked at again."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import numpy as np

from nablasim.physics.errors import MeshError, MissingPackage
from nablasim.physics.geometry import TetMesh, TriMesh
from nablasim.physics.io import lines
from nablasim.physics.io.text import Raw

# What meshio calls our cells, and the orders that a mesh of straight edges cannot hold.
CELLS = {"face": ("triangle", 3, {"triangle6", "triangle7", "triangle10"}), "tet": ("tetra", 4, {"tetra10", "tetra20"})}


def read_by_trimesh(path: Path) -> Raw:
    """Vertices and triangles as the file has them; parts of a scene are put together in their places."""
    import trimesh

    if path.suffix.lower() == ".stl":
        _check_stl(path)
    if path.suffix.lower() == ".dae":
        _check_dae(path)
    try:
        mesh = trimesh.load(str(path), force="mesh", process=False)
        vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=np.int64)
        if path.suffix.lower() == ".dae":  # Collada says how long its unit is, and trimesh leaves it to us.
            vertices = vertices * trimesh.units.unit_conversion(mesh.units or "meters", "meters")
    except Exception as error:  # Whatever a parser may stumble over: a broken file raises any of a dozen types.
        raise _unreadable(path, error) from error
    if len(faces) == 0:
        raise MeshError("there are no faces", advice="Does the ending of the name fit the content?", file=path)
    return Raw(vertices, faces, lambda: lines.find(path))


def write_by_trimesh(path: Path, mesh: TriMesh) -> None:
    """Stl and glb hold single precision."""
    import trimesh

    trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).export(str(path))


def read_by_meshio(path: Path, kind: str) -> Raw:
    """The vertices, and the cells of one kind ("face" or "tet"); other cells are left out."""
    import meshio

    reader = {".msh": meshio.gmsh, ".vtk": meshio.vtk, ".vtu": meshio.vtu, ".mesh": meshio.medit}[path.suffix.lower()]
    try:
        mesh = reader.read(str(path))
    except Exception as error:  # As above.
        raise _unreadable(path, error) from error
    name, corners, curved = CELLS[kind]
    found = [block.data for block in mesh.cells if block.type == name]
    if not found:
        others = sorted({block.type for block in mesh.cells})
        what = f"; it has {', '.join(others)}" if others else ", nor any other cell"
        hint = (
            "Write it with straight edges (first order)" if curved & set(others) else "Is this the right kind of mesh?"
        )
        raise MeshError(f"the file has no {kind}s{what}", advice=hint, file=path)
    points = np.asarray(mesh.points, dtype=float)
    if points.ndim == 2 and points.shape[1] == 2:
        points = np.pad(points, ((0, 0), (0, 1)))
    return Raw(points, np.concatenate(found).astype(np.int64).reshape(-1, corners), lambda: lines.find(path))


def write_by_meshio(path: Path, mesh: TetMesh | TriMesh) -> None:
    """In the binary variant of the format, where it has one, so that no digit is lost."""
    import meshio

    cells = ("tetra", mesh.tets) if isinstance(mesh, TetMesh) else ("triangle", mesh.faces)
    file_format = {".msh": "gmsh", ".vtk": "vtk", ".vtu": "vtu", ".mesh": "medit"}[path.suffix]
    meshio.Mesh(np.array(mesh.vertices), [cells]).write(str(path), file_format=file_format)


# ------------------------------------------------------------------------------------------------------------ parts
def _unreadable(path: Path, error: Exception) -> MeshError:
    """What a look at the text finds, with its line; the words of the library otherwise."""
    try:
        lines.find(path)
    except MeshError as found:
        return found.at(path)
    said = f" ({type(error).__name__}: {error})" if str(error) else ""
    return MeshError(
        f"this cannot be read as {path.suffix.lower()[1:]}{said}",
        advice="Is it whole, and does the ending of the name fit the content?",
        file=path,
    )


def _check_dae(path: Path) -> None:
    """It is XML: entities may read other files or fill the memory."""
    if importlib.util.find_spec("collada") is None:
        raise MissingPackage("pycollada", "reading dae", "urdf")
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if b"<!ENTITY" in line or b"<!DOCTYPE" in line:
            raise MeshError("the file declares entities or a document type, and those are not read",
                            advice="Write what they stand for", file=path, line=number)  # fmt: skip


def _check_stl(path: Path) -> None:
    """trimesh reads a cut file as an empty one: count bytes, or look for the end, before it does."""
    data = path.read_bytes()
    if data.lstrip()[:5].lower() == b"solid" and b"facet" in data[:1000]:
        lines.find(path)
        return
    if len(data) < 84:
        raise MeshError(f"a binary stl has at least 84 bytes, not {len(data)}", file=path)
    (count,) = struct.unpack("<I", data[80:84])
    if len(data) != 84 + 50 * count:
        raise MeshError(
            f"a binary stl of {count} triangles has {84 + 50 * count} bytes, not {len(data)}",
            advice="It was cut short, or is no stl",
            file=path,
        )
