"""Which elements of a mesh touch: edges, hinges, boundaries and incidence, from indices alone.

Pure functions of integer arrays, used by `mesh.py`. Everything is in a fixed order, so that sums over it are the same
bits on every run.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.errors import MeshError

Ints = NDArray[np.int32]

# The faces of a tetrahedron (a, b, c, d) of positive volume, each seen counterclockwise from outside.
TET_FACES = ((1, 2, 3), (0, 3, 2), (0, 1, 3), (0, 2, 1))


class Incidence(NamedTuple):
    """The elements around each vertex, in compressed rows: those of vertex v are item[start[v]:start[v + 1]].

    An item is `element * corners + corner`: the index of the element's corner in a buffer of shape (elements, corners)
    laid out flat. A kernel that writes one value per corner, and another that gathers the items of each vertex, add up
    without atomics and in a fixed order.
    """

    start: Ints
    item: Ints


class Hinges(NamedTuple):
    """The pairs of triangles that share an edge.

    A row of `vertices` is (a, b, i, j): the edge from i to j as the first triangle runs through it, a opposite to it in
    the first triangle and b in the second. `faces` has the two triangles.
    """

    vertices: Ints
    faces: Ints


def edges(cells: Ints) -> Ints:
    """The edges of triangles or tetrahedra: each once, the lower vertex first, in ascending order."""
    pairs = [np.sort(cells[:, [a, b]], axis=1) for a, b in combinations(range(cells.shape[1]), 2)]
    return np.unique(np.concatenate(pairs), axis=0).astype(np.int32).reshape(-1, 2)


def incidence(cells: Ints, count: int) -> Incidence:
    """The elements around each of `count` vertices."""
    flat = cells.ravel()
    start = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(flat, minlength=count), out=start[1:])
    return Incidence(start, np.argsort(flat, kind="stable").astype(np.int32))


def boundary(tets: Ints) -> Ints:
    """The triangles that belong to one tetrahedron only, seen counterclockwise from outside.

    Raises `MeshError` where more than two tetrahedra share a triangle.
    """
    faces = np.stack([tets[:, list(face)] for face in TET_FACES], axis=1).reshape(-1, 3)
    _, first, which, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    if (count > 2).any():
        k = int(first[np.argmax(count > 2)])
        tet, corners = k // 4, " ".join(map(str, faces[k]))
        raise MeshError(
            f"{count.max()} tets share the triangle {corners}",
            advice="A triangle lies between two tets at most; look for tets that are there twice",
            element=("tet", tet),
        )
    return faces[count[which.ravel()] == 1]


class _HalfEdges(NamedTuple):
    """The directed edges of triangles, sorted so that those of one edge are neighbours."""

    face: NDArray[np.int64]
    corner: NDArray[np.int64]  # the corner opposite to the edge
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    first: NDArray[np.int64]  # where each edge begins
    valence: NDArray[np.int64]  # how many triangles it has


def _half_edges(faces: Ints) -> _HalfEdges:
    corner = np.tile(np.arange(3), len(faces))
    face = np.repeat(np.arange(len(faces)), 3)
    tail, head = faces[face, (corner + 1) % 3].astype(np.int64), faces[face, (corner + 2) % 3].astype(np.int64)
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    order = np.lexsort((face, high, low))
    key = np.stack([low, high], axis=1)[order]
    new = np.ones(len(key), dtype=bool)
    new[1:] = (key[1:] != key[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    count = np.diff(np.append(first, len(key)))
    return _HalfEdges(face[order], corner[order], tail[order], head[order], first, count)


def hinges(faces: Ints) -> Hinges:
    """The pairs of triangles that share an edge, for bending.

    Raises `MeshError` where three triangles meet in one edge, or where two neighbours run the same way round it.
    """
    h = _half_edges(faces)
    _refuse_crowded(h)
    _refuse_twisted(h)
    k = h.first[h.valence == 2]
    opposite = [faces[h.face[k + n], h.corner[k + n]] for n in (0, 1)]
    vertices = np.stack([*opposite, h.tail[k], h.head[k]], axis=1).astype(np.int32)
    return Hinges(vertices, np.stack([h.face[k], h.face[k + 1]], axis=1).astype(np.int32))


def open_edges(faces: Ints) -> Ints:
    """The edges that belong to one triangle only, as that triangle runs through them."""
    h = _half_edges(faces)
    k = h.first[h.valence == 1]
    return np.stack([h.tail[k], h.head[k]], axis=1).astype(np.int32)


def require_closed(faces: Ints) -> None:
    """Raise `MeshError` unless the triangles run through every edge as often one way as the other: they then bound a
    volume. Bodies that touch in an edge are fine.
    """
    h = _half_edges(faces)
    if (h.valence == 1).any():
        k = int(h.first[np.argmax(h.valence == 1)])
        raise MeshError(
            f"the surface is open: {int((h.valence == 1).sum())} edges have a triangle on one side only, the first is "
            f"{h.tail[k]}-{h.head[k]} of face {h.face[k]}",
            advice="A volume needs a closed surface; fill the hole, or join vertices in the same place with merged()",
            element=("face", int(h.face[k])),
        )
    _refuse_twisted(h)
    ways = np.add.reduceat(np.where(h.tail < h.head, 1, -1), h.first) if len(h.first) else np.zeros(0, int)
    if (ways != 0).any():
        _refuse_crowded(h)


def _refuse_crowded(h: _HalfEdges) -> None:
    if (h.valence > 2).any():
        k = int(h.first[np.argmax(h.valence > 2)])
        raise MeshError(
            f"{int(h.valence.max())} triangles meet in the edge {h.tail[k]}-{h.head[k]} (face {h.face[k]} is one)",
            advice="An edge lies between two triangles at most",
            element=("face", int(h.face[k])),
        )


def _refuse_twisted(h: _HalfEdges) -> None:
    k = h.first[h.valence == 2]
    same = h.tail[k] == h.tail[k + 1]
    if same.any():
        n = int(k[np.argmax(same)])
        raise MeshError(
            f"faces {h.face[n]} and {h.face[n + 1]} run the same way through their edge {h.tail[n]}-{h.head[n]}: the "
            "orientation is inconsistent",
            advice="Turn one of them round by exchanging two of its vertices",
            element=("face", int(h.face[n + 1])),
        )
