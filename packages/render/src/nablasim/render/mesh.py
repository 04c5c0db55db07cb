"""Meshes: vertices, triangles, and what is painted on them. A few shapes to begin with, and several meshes as one.

Everything may be a NumPy array or a torch tensor; tensors keep their gradients. Faces are indices, counter-clockwise
seen from the front.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim.render.checks import (
    NO_UVS,
    check_choice,
    check_faces,
    check_objects,
    check_paint,
    check_shape,
    check_texture,
    check_uvs,
    check_which,
    is_several,
)
from nablasim.render.either import concatenated, is_tensor, library, plain
from nablasim.render.lights import Material

Values = Any
"""A NumPy array, anything that becomes one, or a torch tensor."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh of n vertices and m faces. `renderer(mesh)` draws it."""

    vertices: Values
    """(n, 3)."""
    faces: Values
    """(m, 3) whole numbers."""
    colors: Values | None = None
    """(n, 3) by vertex, or (3) for all."""
    face_colors: Values | None = None
    """(m, 3) by face."""
    uvs: Values | None = None
    """(k, 2): u to the right, v up."""
    uv_faces: Values | None = None
    """(m, 3) whole numbers: which uv each corner of a face has; those of its vertices if not given."""
    texture: Values | None = None
    """(height, width, 3), or 4 with opacity: row 0 on top, so that v = 0 is the bottom edge. (B, height, width, 3) is
    one for each frame of a batch; a list are several, of which `texture_index` says which one a face has."""
    normals: Values | None = None
    """(n, 3) by vertex."""
    objects: Values | None = None
    """(m) which object a face belongs to; 0 if not given."""
    texture_index: Values | None = None
    """(m) which texture a face has; -1 for none, so that colours are seen. The first if not given."""
    wrap: str | Sequence[str | None] | None = None
    """What lies outside of textures, "clamp" or "wrap", for all or for each; what the renderer says if not given."""
    material: Material | Sequence[Material] | None = None
    """How light is reflected: one, or several, of which `material_index` says which one a face has."""
    material_index: Values | None = None
    """(m) which material a face has; -1 for that of the renderer. The first if not given."""

    def __post_init__(self) -> None:
        check_mesh(self)

    def replace(self, **values: Any) -> Mesh:
        """The same mesh with some values exchanged."""
        return dataclasses.replace(self, **values)

    def moved(self, *, by: Any = (0.0, 0.0, 0.0), scale: Any = 1.0) -> Mesh:
        """The mesh scaled, then moved."""
        xp = library(self.vertices, by, scale)
        if xp is np:
            return self.replace(vertices=np.asarray(self.vertices) * scale + np.asarray(by))
        vertices = self.vertices if is_tensor(self.vertices) else xp.as_tensor(np.asarray(self.vertices))
        return self.replace(vertices=vertices * scale + (by if is_tensor(by) else vertices.new_tensor(by)))

    def painted(self, color: Any) -> Mesh:
        """The mesh in one colour."""
        return self.replace(colors=color, face_colors=None, texture=None, texture_index=None, wrap=None)

    @property
    def textures(self) -> list[Values]:
        """All textures, none or one or several."""
        if self.texture is None:
            return []
        return list(self.texture) if is_several(self.texture) else [self.texture]

    @property
    def materials(self) -> list[Material]:
        """All materials of its own."""
        if self.material is None:
            return []
        return list(self.material) if isinstance(self.material, (list, tuple)) else [self.material]  # type: ignore[list-item]

    @property
    def vertex_colors(self) -> Values | None:
        """(n, 3), also where one colour is given for all."""
        if self.colors is None or len(np.shape(self.colors)) == 2:
            return self.colors
        shape = (np.shape(self.vertices)[-2], 3)
        return self.colors.expand(shape) if is_tensor(self.colors) else np.broadcast_to(self.colors, shape)

    # -- shapes
    @classmethod
    def sphere(cls, level: int = 3, radius: float = 1.0) -> Mesh:
        """An icosahedron whose faces are cut into four, `level` times: 20 · 4^level faces, 1280 at level 3."""
        if not 0 <= level <= 8:
            raise ValueError(f"level is between 0 and 8, not {level}: it multiplies the faces by four each time")
        vertices, faces = _icosahedron()
        for _ in range(level):
            vertices, faces = _subdivided(vertices, faces)
        return cls(radius * vertices, faces)

    @classmethod
    def box(cls, size: Sequence[float] = (1.0, 1.0, 1.0)) -> Mesh:
        """A box around the origin: 8 vertices, 12 faces."""
        corners = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)], float)
        sides = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
        faces = np.array([[a, b, c, a, c, d] for a, b, c, d in sides], np.int32).reshape(-1, 3)
        return cls(corners * np.asarray(size, float) / 2, faces)

    @classmethod
    def plane(cls, size: float = 10.0, *, height: float = 0.0, cells: int = 1, repeat: float = 1.0) -> Mesh:
        """A square in the plane y = height that is seen from above: a ground. uvs run from 0 to `repeat`."""
        if cells < 1:
            raise ValueError(f"a plane has at least one cell, not {cells}")
        t = np.linspace(0, 1, cells + 1)
        v, u = np.meshgrid(t, t, indexing="ij")
        x = np.stack([(u - 0.5) * size, np.full_like(u, height), (0.5 - v) * size], -1).reshape(-1, 3)
        a = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
        b, c, d = a + 1, a + cells + 2, a + cells + 1
        faces = np.stack([a, b, c, a, c, d], -1).reshape(-1, 3).astype(np.int32)
        return cls(x, faces, uvs=repeat * np.stack([u, v], -1).reshape(-1, 2))

    @classmethod
    def join(cls, meshes: Sequence[Mesh]) -> Mesh:
        """Several meshes as one, which hide each other. Face k of `objects` says which mesh it came from."""
        return join(meshes)


def join(meshes: Sequence[Mesh]) -> Mesh:
    """Several meshes as one, each with its textures, materials and colours, by vertex or by face; white where there are
    none. Normals that are given stay if all meshes have some."""
    if not meshes:
        raise ValueError("no meshes to join")
    offsets = np.cumsum([0, *(np.shape(m.vertices)[-2] for m in meshes)])
    faces = np.concatenate([plain(m.faces) + n for m, n in zip(meshes, offsets)]).astype(np.int32)
    values: dict[str, Any] = {
        "vertices": concatenated([m.vertices for m in meshes], -2),
        "faces": faces,
        "objects": np.repeat(np.arange(len(meshes), dtype=np.int32), [len(m.faces) for m in meshes]),
    }
    if any(m.texture is not None for m in meshes):
        values |= _joined_textures(meshes)
    if any(m.material is not None for m in meshes):
        values["material"], values["material_index"], _ = _joined(
            [(m.materials, [None] * len(m.materials), m.material_index, len(m.faces)) for m in meshes]
        )
    if any(m.face_colors is not None for m in meshes):
        values["face_colors"] = concatenated([_face_colors(m) for m in meshes], 0)
    elif any(m.colors is not None for m in meshes):
        values["colors"] = concatenated([_white(m) if m.colors is None else m.vertex_colors for m in meshes], 0)
    if all(m.normals is not None for m in meshes):
        values["normals"] = concatenated([m.normals for m in meshes], 0)
    return Mesh(**values)


def _joined_textures(meshes: Sequence[Mesh]) -> dict[str, Any]:
    """All textures, which of them each face has, and where it lies on it: anywhere, if it has none."""
    each = []
    for m in meshes:
        ways = [m.wrap] * len(m.textures) if m.wrap is None or isinstance(m.wrap, str) else list(m.wrap)
        each.append((m.textures, ways, m.texture_index, len(m.faces)))
    textures, index, wrap = _joined(each)
    uvs = [np.zeros((1, 2)) if m.texture is None else m.uvs for m in meshes]
    starts = np.cumsum([0, *(len(plain(x)) for x in uvs)])
    own = [m.faces if m.uv_faces is None else m.uv_faces for m in meshes]
    corners = [np.zeros((len(m.faces), 3), np.int32) if m.texture is None else plain(f) for m, f in zip(meshes, own)]
    return {
        "texture": textures, "texture_index": index, "wrap": wrap, "uvs": concatenated(uvs, 0),
        "uv_faces": np.concatenate([c + n for c, n in zip(corners, starts)]).astype(np.int32),
    }  # fmt: skip


def _joined(each: Sequence[tuple[list[Any], list[Any], Any, int]]) -> tuple[list[Any], NDArray[np.int32], list[Any]]:
    """Things of several meshes in one list, every one once, which of them each face has, and what else is said."""
    numbers: dict[tuple[int, Any], int] = {}
    things: list[Any] = []
    said: list[Any] = []
    rows = []
    for own, more, index, faces in each:
        for thing, word in zip(own, more):
            if numbers.setdefault((id(thing), word), len(things)) == len(things):
                things.append(thing)
                said.append(word)
        places = np.array([*(numbers[id(thing), word] for thing, word in zip(own, more)), -1], np.int32)
        rows.append(places[np.full(faces, 0 if own else -1) if index is None else plain(index)])
    return things, np.concatenate(rows), said


def _white(mesh: Mesh) -> NDArray[np.float64]:
    return np.ones((np.shape(mesh.vertices)[-2], 3))


def _face_colors(mesh: Mesh) -> Values:
    if mesh.face_colors is not None:
        return mesh.face_colors
    if mesh.colors is None:
        return np.ones((len(mesh.faces), 3))
    if len(np.shape(mesh.colors)) == 2 and mesh.texture is None:
        raise ValueError("colours by vertex and by face cannot be joined: give all meshes the same kind")
    shape = (len(mesh.faces), 3)
    return mesh.colors.expand(shape) if is_tensor(mesh.colors) else np.broadcast_to(mesh.colors, shape)


# -- what can be wrong
def check_mesh(mesh: Mesh) -> None:
    """Say what is wrong with a mesh, before anything is drawn."""
    count = check_shape("vertices", mesh.vertices, (None, 3), batch=True)[-2]
    faces = check_faces("faces", mesh.faces, count, "vertices")
    for name in ("colors", "face_colors"):
        check_paint(name, getattr(mesh, name))
    if mesh.colors is not None and np.shape(mesh.colors) != (3,):
        check_shape("colors", mesh.colors, (count, 3), why="one colour per vertex, or (3,) for all")
    if mesh.face_colors is not None:
        check_shape("face_colors", mesh.face_colors, (faces, 3), why="one colour per face")
    if mesh.normals is not None:
        check_shape("normals", mesh.normals, (count, 3), why="one normal per vertex", batch=True)
    if mesh.texture is not None:
        check_texture(mesh.texture)
        if mesh.uvs is None:
            raise ValueError(NO_UVS)
    if mesh.uvs is not None:
        check_uvs(mesh.uvs, mesh.uv_faces, count, faces)
    if mesh.objects is not None:
        check_objects(mesh.objects, faces)
    for name, count_of, what in (
        ("texture_index", len(mesh.textures), "texture"), ("material_index", len(mesh.materials), "material"),
    ):  # fmt: skip
        index = getattr(mesh, name)
        if index is not None and not count_of:
            raise ValueError(f"{name} is given, but there is no {what}")
        if index is not None:
            check_which(name, index, faces, count_of)
    for one in mesh.materials:
        if not isinstance(one, Material):
            raise TypeError(f"the material of a mesh is a render.Material, or several, not {type(one).__name__}")
    ways = [mesh.wrap] if mesh.wrap is None or isinstance(mesh.wrap, str) else list(mesh.wrap)
    for way in ways:
        if way is not None:
            check_choice("wrap", way, ("clamp", "wrap"))
    if not (mesh.wrap is None or isinstance(mesh.wrap, str)) and len(ways) != len(mesh.textures):
        raise ValueError(f"wrap is given for {len(ways)} textures, but there are {len(mesh.textures)}")


# -- shapes
def _icosahedron() -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    t = (1 + 5**0.5) / 2
    vertices = np.array([
        (-1, t, 0), (1, t, 0), (-1, -t, 0), (1, -t, 0), (0, -1, t), (0, 1, t), (0, -1, -t), (0, 1, -t), (t, 0, -1),
        (t, 0, 1), (-t, 0, -1), (-t, 0, 1),
    ], float)  # fmt: skip
    faces = np.array([
        (0, 11, 5), (0, 5, 1), (0, 1, 7), (0, 7, 10), (0, 10, 11), (1, 5, 9), (5, 11, 4), (11, 10, 2), (10, 7, 6),
        (7, 1, 8), (3, 9, 4), (3, 4, 2), (3, 2, 6), (3, 6, 8), (3, 8, 9), (4, 9, 5), (2, 4, 11), (6, 2, 10), (8, 6, 7),
        (9, 8, 1),
    ], np.int32)  # fmt: skip
    return vertices / np.linalg.norm(vertices[0]), faces


def _subdivided(
    vertices: NDArray[np.float64], faces: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Each face as four, with the new vertices on the unit sphere."""
    edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    unique, number = np.unique(edges, axis=0, return_inverse=True)
    middle = vertices[unique].sum(1)
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    ab, bc, ca = (number.reshape(-1, 3) + len(vertices)).astype(np.int32).T
    a, b, c = faces.T
    parts = [np.stack(p, 1) for p in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))]
    return np.concatenate([vertices, middle]), np.concatenate(parts).astype(np.int32)
