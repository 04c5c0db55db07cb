"""Triangle and tetrahedral meshes: vertices and indices, checked once when they are made, and never changed.

`TriMesh` is for surfaces (rigid bodies, cloth, obstacles), `TetMesh` for deformable solids. Files are read and written
in `io/`, shapes are cut into triangles in `shapes.py`, neighbours are found in `topology.py`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError

from nablasim.physics.errors import MeshError
from nablasim.physics.geometry import topology
from nablasim.physics.geometry.hulls import outermost
from nablasim.physics.geometry.mesh_checks import (
    checked_cells,
    checked_vertices,
    join_vertices,
    lattice,
    locked,
    longest_edges,
    moved_vertices,
    require_cells,
    row,
    set_once,
)

if TYPE_CHECKING:
    from nablasim.physics.geometry.shapes import Shape

Path = str | os.PathLike[str]

# A tetrahedron whose volume is below this part of its longest edge cubed is flat: coordinates that were written in
# single precision leave about 1e-8 of noise in a volume that should be zero.
FLAT = 1e-8


@dataclass(frozen=True, eq=False)
class TriMesh:
    """Triangles in space: `vertices` (n, 3), `faces` (m, 3) counterclockwise seen from outside. Both are read-only."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    file: ClassVar[str | None] = None
    """Where it was read from, for errors that show only when it is used."""

    def __init__(self, vertices: ArrayLike, faces: ArrayLike) -> None:
        set_once(self, "vertices", checked_vertices(vertices))
        set_once(self, "faces", checked_cells("face", faces, 3, len(self.vertices)))

    def read_from(self, file: Path | None) -> TriMesh:
        """The same mesh, which then knows where it comes from."""
        if file is not None:
            set_once(self, "file", os.fspath(file))
        return self

    # ------------------------------------------------------------------------------------------------------ makers
    @classmethod
    def load(cls, path: Path, *, merge: bool | None = None, drop_degenerate: bool = False) -> TriMesh:
        """Read a surface: obj, stl, ply, off, gltf, glb, dae, or the triangles of msh, vtk, vtu.

        `merge` joins vertices at the same place; by default that is done for formats that repeat them for every
        triangle or seam (stl, gltf, glb, dae). `drop_degenerate` leaves out triangles with a corner twice instead of
        refusing the file.
        """
        from nablasim.physics.io import load_surface

        return load_surface(path, merge=merge, drop_degenerate=drop_degenerate)

    @classmethod
    def grid(cls, size: tuple[float, float], cells: tuple[int, int]) -> TriMesh:
        """A rectangle in the plane z = 0 from (0, 0, 0) to (*size, 0), facing +z, two triangles per cell.

        Vertex (i, j) has index j (cells[0] + 1) + i. The diagonals alternate, so that no direction is preferred.
        """
        across, up = require_cells(cells, 2)
        nx, ny = across + 1, up + 1
        xs, ys = np.meshgrid(np.linspace(0, size[0], nx), np.linspace(0, size[1], ny))
        index = np.arange(nx * ny).reshape(ny, nx)
        a, b, c, d = (s.ravel() for s in (index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]))
        i, j = np.meshgrid(np.arange(across), np.arange(up))
        even = ((i + j) % 2 == 0).ravel()[:, None, None]
        one = np.stack([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)], axis=1)
        two = np.stack([np.stack([a, b, d], axis=1), np.stack([b, c, d], axis=1)], axis=1)
        points = np.stack([xs, ys, np.zeros_like(xs)], axis=-1).reshape(-1, 3)
        return cls(points, np.where(even, one, two).reshape(-1, 3))

    @classmethod
    def from_shape(cls, shape: Shape, **detail: Any) -> TriMesh:
        """The surface of a shape as triangles: the same as `shape.mesh(**detail)`."""
        return shape.mesh(**detail)

    @classmethod
    def icosphere(cls, radius: float = 1.0, *, subdivisions: int = 3) -> TriMesh:
        """A sphere of 20·4^subdivisions nearly equal triangles; its vertices lie on the sphere."""
        from nablasim.physics.geometry.shapes import Sphere

        return Sphere(radius).mesh(subdivisions=subdivisions)

    # ------------------------------------------------------------------------------------------------------- files
    def save(self, path: Path) -> None:
        """Write to obj, stl, ply, off, glb, msh, vtk or vtu, as the name ends; whole or not at all."""
        from nablasim.physics.io import save_surface

        save_surface(path, self)

    # -------------------------------------------------------------------------------------------------- neighbours
    @cached_property
    def edges(self) -> NDArray[np.int32]:
        """(e, 2) each edge once, in ascending order."""
        return locked(topology.edges(self.faces))

    @cached_property
    def hinges(self) -> topology.Hinges:
        """The pairs of triangles that share an edge, for bending."""
        return topology.hinges(self.faces)

    @cached_property
    def incidence(self) -> topology.Incidence:
        """The faces around each vertex."""
        return topology.incidence(self.faces, len(self.vertices))

    @cached_property
    def is_closed(self) -> bool:
        """Whether the faces bound a volume, and look outwards."""
        try:
            self.require_closed()
        except MeshError:
            return False
        return True

    def require_closed(self) -> TriMesh:
        """The mesh itself, if its faces bound a volume and look outwards; `MeshError` otherwise."""
        try:
            topology.require_closed(self.faces)
            if abs(self.volume) <= FLAT * np.ptp(self.vertices, axis=0).max() ** 3:
                raise MeshError("the surface encloses no volume: it is flat", advice="Was one of its axes lost?")
            if self.volume < 0:
                raise MeshError(
                    f"the surface encloses a volume of {self.volume:.6g}: its faces look inwards",
                    advice="Turn them round with flipped()",
                    element=("face", 0) if len(self.faces) else None,
                )
        except MeshError as error:
            raise (error if self.file is None else error.at(self.file)) from None
        return self

    # ------------------------------------------------------------------------------------------------------ sizes
    @cached_property
    def areas(self) -> NDArray[np.float64]:
        """(m) the area of each face."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        return locked(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1))

    @cached_property
    def volume(self) -> float:
        """The volume that the faces enclose, if they are closed; negative if they look inwards."""
        a, b, c = (self.vertices[self.faces[:, k]] - self.vertices.mean(axis=0) for k in range(3))
        return float(np.einsum("ij,ij->i", np.cross(a, b), c).sum() / 6)

    def require_area(self) -> TriMesh:
        """The mesh itself, if every face has an area: what a cloth needs at rest. `MeshError` otherwise."""
        longest = longest_edges(self.vertices, self.faces)
        flat = self.areas <= FLAT * longest**2
        if flat.any():
            k = int(np.argmax(flat))
            raise MeshError(
                f"face {k} (vertices {row(self.faces[k])}) has no area",
                advice="Remove it, or move its vertices apart",
                element=("face", k),
            )
        return self

    # --------------------------------------------------------------------------------------------------- variants
    def moved(self, *, pos: ArrayLike = (0, 0, 0), rot: ArrayLike = (0, 0, 0, 1), scale: ArrayLike = 1.0) -> TriMesh:
        """The mesh scaled, then turned by the quaternion `rot` (x, y, z, w), then moved to `pos`."""
        mesh = TriMesh(moved_vertices(self.vertices, pos, rot, scale), self.faces).read_from(self.file)
        return mesh.flipped() if np.prod(np.broadcast_to(scale, 3)) < 0 else mesh

    def flipped(self) -> TriMesh:
        """The mesh with every face seen from the other side."""
        return TriMesh(self.vertices, self.faces[:, [0, 2, 1]]).read_from(self.file)

    def merged(self, tolerance: float = 0.0) -> TriMesh:
        """The mesh with vertices joined that lie in the same place, or in the same cell of a grid of `tolerance`.

        The first of them stays. Faces that lose a corner are refused, as in any mesh.
        """
        vertices, index = join_vertices(self.vertices, tolerance)
        return TriMesh(vertices, index[self.faces])

    def convex_hull(self, *, corners: int | None = None) -> TriMesh:
        """The smallest convex surface around the mesh: closed, seen from outside, of vertices of the mesh.

        Bodies that are convex, or nearly so, touch by fewer points, and cannot catch in each other's hollows.
        corners: at most so many, those that stand out the most; the hull then lies a little inside of the whole one.
        """
        if corners is not None and corners < 4:
            raise ValueError(f"corners must be at least 4, and is {corners}")
        points = self.vertices if corners is None else outermost(self.convex_hull().vertices, corners)
        try:
            hull = ConvexHull(points)
        except (QhullError, ValueError):
            raise MeshError(
                f"the {len(self.vertices)} vertices span no volume, and have no convex hull",
                advice="A flat sheet can be an obstacle or cloth; a body needs a thickness",
            ) from None
        a, b, c = (points[hull.simplices[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        inward = np.einsum("ni,ni->n", normal, hull.equations[:, :3]) < 0  # Qhull's normals point outward.
        faces = np.where(inward[:, None], hull.simplices[:, [0, 2, 1]], hull.simplices)
        return TriMesh(points, faces).compact().read_from(self.file)

    def compact(self) -> TriMesh:
        """The mesh without the vertices that no face uses."""
        used, faces = np.unique(self.faces, return_inverse=True)
        return TriMesh(self.vertices[used], faces.reshape(-1, 3))


@dataclass(frozen=True, eq=False)
class TetMesh:
    """Tetrahedra: `vertices` (n, 3), `tets` (m, 4) of positive volume. Both are read-only."""

    vertices: NDArray[np.float64]
    tets: NDArray[np.int32]

    def __init__(self, vertices: ArrayLike, tets: ArrayLike) -> None:
        set_once(self, "vertices", checked_vertices(vertices))
        set_once(self, "tets", checked_cells("tet", tets, 4, len(self.vertices)))
        _refuse_flat_or_inverted(self)
        _refuse_unused(self)

    # ------------------------------------------------------------------------------------------------------ makers
    @classmethod
    def load(cls, path: Path, *, orient: bool = False, drop_unused: bool = False) -> TetMesh:
        """Read the tetrahedra of msh, vtk, vtu, mesh, or of the text format tet (lines `v x y z` and `t i j k l`).

        `orient` turns tets round that are inverted, `drop_unused` leaves out vertices that belong to no tet; without
        them such files are refused.
        """
        from nablasim.physics.io import load_tets

        return load_tets(path, orient=orient, drop_unused=drop_unused)

    @classmethod
    def box(cls, size: ArrayLike = (1, 1, 1), cells: int | tuple[int, int, int] = 4) -> TetMesh:
        """A block from (0, 0, 0) to `size`, six tets per cell, all around the same diagonal.

        Vertex (i, j, k) has index (k (cells[1] + 1) + j) (cells[0] + 1) + i.
        """
        n = require_cells(cells, 3)
        points, at = lattice(np.broadcast_to(np.asarray(size, dtype=float), 3), n)
        # Six ways from corner 000 to corner 111 along the axes (Kuhn): each is a tet, and faces of cells agree.
        steps = [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0)]
        tets = []
        for turn, (a, b, c) in enumerate(steps):
            corners = np.cumsum([np.zeros(3, int), *(np.eye(3, dtype=int)[axis] for axis in (a, b, c))], axis=0)
            ends = [at(*corner) for corner in corners]
            if turn >= 3:  # odd permutations are left-handed
                ends[1], ends[2] = ends[2], ends[1]
            tets.append(np.stack(ends, axis=1))
        return cls(points, np.stack(tets, axis=1).reshape(-1, 4))

    @classmethod
    def grid(cls, size: ArrayLike = (1, 1, 1), cells: int | tuple[int, int, int] = 4) -> TetMesh:
        """The same as `TetMesh.box`, beside `TriMesh.grid`."""
        return cls.box(size, cells)

    @classmethod
    def from_surface(cls, surface: TriMesh, **options: Any) -> TetMesh:
        """Fill a closed surface with tetrahedra (package wildmeshing); options: `io.tetrahedralise`."""
        from nablasim.physics.io import tetrahedralise

        return tetrahedralise(surface, **options)

    # ------------------------------------------------------------------------------------------------------- files
    def save(self, path: Path) -> None:
        """Write to msh, vtk, vtu, mesh or tet, as the name ends; whole or not at all."""
        from nablasim.physics.io import save_tets

        save_tets(path, self)

    # -------------------------------------------------------------------------------------------------- neighbours
    @cached_property
    def edges(self) -> NDArray[np.int32]:
        """(e, 2) each edge once, in ascending order."""
        return locked(topology.edges(self.tets))

    @cached_property
    def incidence(self) -> topology.Incidence:
        """The tets around each vertex."""
        return topology.incidence(self.tets, len(self.vertices))

    @cached_property
    def surface(self) -> TriMesh:
        """The outer faces, with all vertices: index i is the same vertex in both meshes. `compact()` drops the rest."""
        return TriMesh(self.vertices, topology.boundary(self.tets))

    # ------------------------------------------------------------------------------------------------------ sizes
    @cached_property
    def volumes(self) -> NDArray[np.float64]:
        """(m) the volume of each tet."""
        a, b, c, d = (self.vertices[self.tets[:, k]] for k in range(4))
        return locked(np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) / 6)

    @cached_property
    def volume(self) -> float:
        """The volume of all tets."""
        return float(self.volumes.sum())

    # --------------------------------------------------------------------------------------------------- variants
    def moved(self, *, pos: ArrayLike = (0, 0, 0), rot: ArrayLike = (0, 0, 0, 1), scale: ArrayLike = 1.0) -> TetMesh:
        """The mesh scaled, then turned by the quaternion `rot` (x, y, z, w), then moved to `pos`."""
        tets = self.tets[:, [0, 2, 1, 3]] if np.prod(np.broadcast_to(scale, 3)) < 0 else self.tets
        return TetMesh(moved_vertices(self.vertices, pos, rot, scale), tets)


def _refuse_flat_or_inverted(mesh: TetMesh) -> None:
    size = longest_edges(mesh.vertices, mesh.tets) ** 3
    flat, inverted = np.abs(mesh.volumes) <= FLAT * size, mesh.volumes < 0
    if not (flat | inverted).any():
        return
    k = int(np.argmax(flat | inverted))
    what = f"tet {k} (vertices {row(mesh.tets[k])})"
    if flat[k]:
        raise MeshError(f"{what} has no volume", advice="Remove it, or move its vertices apart", element=("tet", k))
    many = "all tets are" if inverted.all() else f"{int(inverted.sum())} of {len(inverted)} are"
    raise MeshError(
        f"{what} has the volume {mesh.volumes[k]:.6g}: it is inverted ({many})",
        advice="Exchange two of its vertices; TetMesh.load(path, orient=True) does that",
        element=("tet", k),
    )


def _refuse_unused(mesh: TetMesh) -> None:
    unused = np.bincount(mesh.tets.ravel(), minlength=len(mesh.vertices)) == 0
    if unused.any():
        k = int(np.argmax(unused))
        raise MeshError(
            f"vertex {k} belongs to no tet: it would have no mass ({int(unused.sum())} of {len(unused)} are like that)",
            advice="TetMesh.load(path, drop_unused=True) leaves them out",
            element=("vertex", k),
        )
