"""Meshes of MJCF: what <asset> names, where the files are, and what a geom of one is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.errors import MeshError
from nablasim.physics.geometry import MassProperties, TriMesh, solid_mass_properties
from nablasim.physics.io.robot_meshes import DRAWN, Meshes, coarser
from nablasim.physics.io.xml import refuse

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Asset:
    """A <mesh> of an <asset>."""

    element: Any
    file: Path
    """The MJCF file, for errors."""
    source: Path | TriMesh
    scale: Floats
    pos: Floats
    rot: Floats
    """Where its own origin is, and how it is turned there."""
    inertia: str
    meshes: Meshes

    @cached_property
    def mesh(self) -> TriMesh | None:
        """None where its file cannot be read, which a warning says."""
        found = self.source if isinstance(self.source, TriMesh) else self.meshes.mesh(self.source, 1.0)
        if found is None:
            return None
        x, y, z, w = self.rot
        back = np.array([-x, -y, -z, w])
        return found.moved(pos=-self.pos).moved(rot=back).moved(scale=self.scale)

    @property
    def name(self) -> str:
        return self.element.get("name") or Path(self.element.get("file") or "mesh").stem

    @cached_property
    def hull(self) -> TriMesh | None:
        return None if self.mesh is None else self.meshes.hull_of(self.name, self.mesh)

    @cached_property
    def drawn(self) -> TriMesh | None:
        return None if self.mesh is None else coarser(self.mesh, DRAWN)

    def unit(self, geom: Any) -> MassProperties:
        """What it weighs, filled with density 1."""
        if self.mesh is None:
            refuse(geom, self.file, f"the mesh {self.name!r} cannot be read, and its mass is needed",
                   "Give the body an <inertial>")  # fmt: skip
        if self.inertia == "shell":
            refuse(self.element, self.file, 'inertia="shell" is not read', "Give the body an <inertial>")
        try:
            whole = self.mesh.convex_hull() if self.inertia == "convex" else self.mesh.require_closed()
        except MeshError as error:
            refuse(geom, self.file, f"the mesh {self.name!r} has no mass: {error.reason}",
                   'Give the body an <inertial>, or the mesh inertia="convex"')  # fmt: skip
        return solid_mass_properties(whole, 1.0)


class Assets:
    """The meshes of a file by name."""

    def __init__(self, file: Any, meshes: bool) -> None:
        self.file, self.reads = file, meshes
        self.known: dict[str, Asset] = {}
        self.meshes = Meshes(file.path)

    def of(self, geom: Any, name: str) -> Asset:
        if name not in self.known:
            refuse(geom, self.file.path, f"there is no mesh {name!r} in an <asset>")
        return self.known[name]

    def tell(self) -> None:
        self.meshes.tell()


def read_assets(file: Any, root: Any, with_defaults: Any, *, meshes: bool) -> Assets:
    """The meshes of all assets; files that are missing are refused, and read when a geom is one of them."""
    found = Assets(file, meshes)
    folder, strip = ".", False
    for compiler in root.iterfind("compiler"):
        folder = compiler.get("meshdir", compiler.get("assetdir", folder))
        strip = compiler.get("strippath", "true" if strip else "false") == "true"
    for e in root.iterfind("asset/mesh"):
        a = with_defaults(file, e, "main")
        values = {key: file.values(e, key, a.get(key), (n,), default) for key, n, default in (
            ("scale", 3, (1, 1, 1)), ("refpos", 3, (0, 0, 0)), ("refquat", 4, (1, 0, 0, 0)))}  # fmt: skip
        w, x, y, z = values["refquat"]
        turn = np.array([x, y, z, w]) / np.linalg.norm(values["refquat"])
        made = Asset(e, file.path, _source(file, e, a, folder, strip), values["scale"], values["refpos"], turn,
                     a.get("inertia", "legacy"), found.meshes)  # fmt: skip
        found.known[made.name] = made
    return found


def _source(file: Any, e: Any, a: dict[str, str], folder: str, strip: bool) -> Path | TriMesh:
    """Its file, or what stands in the element itself."""
    if "file" not in a:
        if "vertex" not in a:
            refuse(e, file.path, "a <mesh> has neither a file nor vertices", "Meshes of a builtin kind are not read")
        words = a["vertex"].split()
        try:
            points = np.array([float(word) for word in words]).reshape(-1, 3)
            faces = np.array([int(word) for word in a.get("face", "").split()]).reshape(-1, 3)
            if len(faces):
                return TriMesh(points, faces)
            return TriMesh(points, [[0, 1, 2]]).convex_hull()  # Any face will do: only the hull is taken.
        except (ValueError, MeshError) as error:
            refuse(e, file.path, f"the vertices or faces of a <mesh> are wrong: {error}")
    path = file.path.parent / folder / (Path(a["file"]).name if strip else a["file"])
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(file.within)):
        refuse(e, file.path, f"the mesh {a['file']!r} is outside of {os.path.abspath(file.within)}",
               "load_robot(..., within=) the folder that holds both")  # fmt: skip
    if not path.is_file():
        refuse(e, file.path, f"there is no mesh {a['file']!r}", f"It was looked for at {path}")
    return path
