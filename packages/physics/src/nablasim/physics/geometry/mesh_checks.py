"""What meshes of triangles and of tetrahedra share: checks of vertices and cells, moving and joining, lattices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import check_numbers
from nablasim.physics.errors import MeshError
from nablasim.physics.geometry.rotation import rotation_matrix

MOST_CORNERS = 2**31 - 1
"""Corners of all elements together: they are counted in 32 bits."""


def set_once(mesh: object, name: str, value: Any) -> None:
    object.__setattr__(mesh, name, value)


def locked(array: NDArray) -> NDArray:
    array.flags.writeable = False
    return array


def checked_vertices(vertices: ArrayLike) -> NDArray[np.float64]:
    try:
        check_numbers("vertices", vertices)
    except ValueError as error:
        raise MeshError(str(error)) from None
    array = np.array(vertices, dtype=np.float64)  # a copy: the caller's array is the caller's
    if array.size == 0:
        raise MeshError("there are no vertices", advice="Is this the right file?")
    if array.ndim != 2 or array.shape[1] != 3:
        raise MeshError(f"vertices have shape {array.shape}; expected (n, 3)")
    bad = ~np.isfinite(array).all(axis=1)
    if bad.any():
        k = int(np.argmax(bad))
        raise MeshError(
            f"vertex {k} is {row(array[k])}, which is not finite ({int(bad.sum())} of {len(array)} are not)",
            advice="Write it anew with whatever made it",
            element=("vertex", k),
        )
    return locked(array)


def checked_cells(kind: str, cells: ArrayLike, corners: int, count: int) -> NDArray[np.int32]:
    array = np.array(cells)
    if array.size == 0:
        raise MeshError(f"there are no {kind}s", advice="Is this the right kind of mesh?")
    if array.ndim != 2 or array.shape[1] != corners:
        raise MeshError(f"{kind}s have shape {array.shape}; expected (m, {corners})")
    if not np.issubdtype(array.dtype, np.integer):
        raise MeshError(f"{kind}s are {array.dtype}; expected whole numbers, the indices of vertices")
    out = (array < 0) | (array >= count)
    if out.any():
        k = int(np.argmax(out.any(axis=1)))
        raise MeshError(
            f"{kind} {k} names vertex {array[k][out[k]][0]}, and there are vertices 0 to {count - 1}",
            advice="Indices count from 0",
            element=(kind, k),
        )
    ordered = np.sort(array, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        k = int(np.argmax(twice))
        raise MeshError(f"{kind} {k} has a corner twice: vertices {row(array[k])}", element=(kind, k))
    return locked(array.astype(np.int32))


def require_cells(cells: int | Sequence[int], count: int) -> tuple[int, ...]:
    """How many cells there are along each axis; one number is that of all of them."""
    each = (cells,) * count if isinstance(cells, (int, np.integer)) else tuple(cells)
    whole = all(isinstance(n, (int, np.integer)) for n in each)
    if len(each) != count or not whole or any(n < 1 for n in each):
        raise MeshError(f"cells are {count} whole numbers, at least one cell in each direction, not {cells}")
    corners = {2: 6, 3: 24}[count] * prod(int(n) for n in each)
    if corners > MOST_CORNERS:
        shown = " × ".join(f"{n:.3g}" if n < 1e300 else "more than 1e300" for n in each)
        raise MeshError(f"{shown} cells are more than fit into a mesh, which has at most 2³¹ - 1 corners of elements",
                        advice="Use fewer cells")  # fmt: skip
    return each


def join_vertices(vertices: NDArray, tolerance: float = 0.0) -> tuple[NDArray, NDArray]:
    """The vertices without repetitions, in the order of their first appearance, and for each old one its new index."""
    keys = np.round(vertices / tolerance) if tolerance > 0 else vertices + 0.0  # -0.0 is 0.0
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return vertices[first[order]], np.argsort(order)[which.ravel()]


def row(values: Any) -> str:
    return " ".join(f"{v:.6g}" for v in values)


def longest_edges(vertices: NDArray, cells: NDArray) -> NDArray:
    corners = vertices[cells]
    k = cells.shape[1]
    lengths = [np.linalg.norm(corners[:, a] - corners[:, b], axis=1) for a in range(k) for b in range(a)]
    return np.max(lengths, axis=0)


def moved_vertices(vertices: NDArray, pos: ArrayLike, rot: ArrayLike, scale: ArrayLike) -> NDArray:
    return (vertices * np.asarray(scale, dtype=float)) @ rotation_matrix(rot).T + np.asarray(pos, dtype=float)


def lattice(size: NDArray, cells: tuple[int, ...]) -> tuple[NDArray, Any]:
    """The points of a block, x fastest, and a function: for a corner (0 or 1 per axis) its vertex in every cell."""
    nx, ny, nz = (n + 1 for n in cells)
    axes = [np.linspace(0, s, n) for s, n in zip(size, (nx, ny, nz))]
    z, y, x = np.meshgrid(axes[2], axes[1], axes[0], indexing="ij")
    index = np.arange(nx * ny * nz).reshape(nz, ny, nx)

    def at(i: int, j: int, k: int) -> NDArray:
        return index[k : nz - 1 + k, j : ny - 1 + j, i : nx - 1 + i].ravel()

    return np.stack([x, y, z], axis=-1).reshape(-1, 3), at
