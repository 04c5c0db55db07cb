"""Losses by which shapes are fitted: of silhouettes, of points, and of how regular a mesh is.

Functions of torch: small is good, and every one of them has a gradient. Meshes are a `Mesh`, or vertices (n, 3), or
(B, n, 3) for a batch, with faces (m, 3). What depends on faces alone is found once and kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from nablasim.render.checks import check_faces, check_number, check_shape
from nablasim.render.either import is_tensor, plain
from nablasim.render.mesh import Mesh

__all__ = ["chamfer", "edge_length", "iou", "laplacian", "normal_consistency"]


def iou(image: Any, target: Any) -> torch.Tensor:
    """One less the intersection over the union of two silhouettes: 0 where they are alike, 1 where they do not meet.

    Silhouettes are (height, width) or batches of them, in [0, 1]: Σ a b / Σ (a + b - a b), the mean over a batch. Two
    empty ones are alike.
    """
    a, b = _pair("image", image, "target", target)
    if a.ndim < 2 or a.shape != b.shape:
        raise ValueError(
            f"image and target are silhouettes (height, width) of one shape, or batches of them, not {tuple(a.shape)} "
            f'and {tuple(b.shape)}: renderer(mesh, output="silhouette"), or image[..., 3]'
        )
    both = (a * b).sum((-2, -1))
    either = (a + b - a * b).sum((-2, -1))
    some = either > 0
    return (1 - torch.where(some, both / torch.where(some, either, torch.ones_like(either)), 1.0)).mean()


def chamfer(a: Any, b: Any, *, samples: int = 10_000, seed: int = 0) -> torch.Tensor:
    """How far two sets of points are apart: the mean squared distance from each point to the nearest of the others, in
    both directions, added.

    Points are (n, 3) and (m, 3), in any dimension, or (B, n, 3) and (B, m, 3) for a batch, of which the mean is taken.
    Of a `Mesh`, `samples` points are drawn evenly from the surface, the same ones for the same seed; their gradient
    goes to its vertices. Neighbours are found by a tree: a hundred thousand points take a fraction of a second. Which
    point is the nearest has no gradient, and needs none: where it changes, both are equally far.
    """
    a, b = _points("a", a, samples, seed), _points("b", b, samples, seed + 1)
    a, b = _pair("a", a, "b", b)
    if a.ndim not in (2, 3) or a.ndim != b.ndim or a.shape[-1] != b.shape[-1] or a.shape[:-2] != b.shape[:-2]:
        raise ValueError(f"a and b are points (n, 3) and (m, 3), or as many batches of them, not {tuple(a.shape)} and "
                         f"{tuple(b.shape)}")  # fmt: skip
    if not (a.shape[-2] and b.shape[-2] and a.shape[-1]):
        raise ValueError("there are no points: nothing is near to nothing")
    if a.ndim == 3:
        return torch.stack([_to_nearest(x, y) + _to_nearest(y, x) for x, y in zip(a, b)]).mean()
    return _to_nearest(a, b) + _to_nearest(b, a)


def laplacian(mesh: Any, faces: Any = None) -> torch.Tensor:
    """How rough a mesh is: the mean over its vertices of the squared distance to the mean of their neighbours.

    Vertices that no face has do not count.
    """
    x, faces = _vertices(mesh, faces)
    neighbours, found = _neighbours(*_key(faces), x.shape[-2])
    if not len(found):
        return (x * 0).sum()
    flat = x if x.ndim == 2 else x.transpose(0, 1).reshape(x.shape[1], -1)
    off = _Product.apply(neighbours, flat) - flat
    off = off if x.ndim == 2 else off.reshape(x.shape[1], x.shape[0], 3).transpose(0, 1)
    return (off[..., torch.from_numpy(found), :] ** 2).sum(-1).mean()


def edge_length(mesh: Any, faces: Any = None, *, target: float = 0.0) -> torch.Tensor:
    """The mean over all edges of (length - target)²: keeps edges short, or at a length."""
    x, faces = _vertices(mesh, faces)
    target = check_number("target", target)
    ends = torch.from_numpy(_edges(*_key(faces))[0])
    if not len(ends):
        return (x * 0).sum()
    squared = ((x[..., ends[:, 0], :] - x[..., ends[:, 1], :]) ** 2).sum(-1)
    if target == 0.0:
        return squared.mean()
    # An edge without a length has no direction in which it grows.
    length = torch.where(squared > 0, squared, torch.ones_like(squared)).sqrt()
    return (torch.where(squared > 0, length - target, squared - target) ** 2).mean()


def normal_consistency(mesh: Any, faces: Any = None) -> torch.Tensor:
    """The mean of 1 - cos of the angle between the normals of faces that share an edge: 0 where a surface is flat.

    Where more than two faces share an edge, all pairs of them count. Normals are those of the order of the corners, so
    faces that are turned against each other count as folded. Faces without area have no normal, and no share.
    """
    x, faces = _vertices(mesh, faces)
    pairs = torch.from_numpy(_edges(*_key(faces))[1])
    corners = torch.from_numpy(np.asarray(faces, np.int64))
    a, b, c = (x[..., corners[:, k], :] for k in range(3))
    n = torch.linalg.cross(b - a, c - a)
    squared = (n * n).sum(-1, keepdim=True)
    proper = squared > 0
    n = torch.where(proper, n / torch.where(proper, squared, torch.ones_like(squared)).sqrt(), torch.zeros_like(n))
    both = (proper[..., pairs[:, 0], 0] & proper[..., pairs[:, 1], 0]).to(x)
    off = 1 - (n[..., pairs[:, 0], :] * n[..., pairs[:, 1], :]).sum(-1)
    return (off * both).sum() / both.sum().clamp(min=1)


# -- points
def _points(name: str, value: Any, samples: int, seed: int) -> Any:
    if not isinstance(value, Mesh):
        return value
    if type(samples) is not int or samples < 1:
        raise ValueError(f"samples is a whole number of points, not {samples!r}")
    if np.ndim(value.vertices) != 2:
        raise ValueError(f"{name} is a mesh with a batch of vertices: give one mesh after the other")
    x, faces = _vertices(value, None)
    corners = np.asarray(faces, np.int64)
    a, b, c = (plain(x)[corners[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=-1)
    if not area.sum() > 0:
        raise ValueError(f"{name} is a mesh without area: there are no points on it")
    rng = np.random.default_rng(seed)
    chosen = corners[np.searchsorted(np.cumsum(area) / area.sum(), rng.uniform(size=samples)).clip(max=len(area) - 1)]
    u, v = rng.uniform(size=(2, samples))
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
    weights = x.new_tensor(np.stack([1 - u - v, u, v], -1))
    return (x[torch.from_numpy(chosen)] * weights[..., None]).sum(1)


def _to_nearest(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The mean squared distance from each of a to the nearest of b."""
    _, nearest = cKDTree(plain(b)).query(plain(a))
    return ((a - b[torch.from_numpy(np.asarray(nearest, np.int64))]) ** 2).sum(-1).mean()


class _Product(torch.autograd.Function):
    """A sparse matrix of scipy times columns."""

    @staticmethod
    def forward(ctx: Any, matrix: Any, x: Any) -> Any:
        ctx.matrix = matrix
        return torch.from_numpy(matrix @ plain(x)).to(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, _Product.apply(ctx.matrix.T, grad)


# -- what is found of faces
def _key(faces: Any) -> tuple[bytes, int]:
    found = np.ascontiguousarray(faces, np.int64)
    return found.tobytes(), len(found)


@lru_cache(maxsize=16)
def _edges(faces: bytes, count: int) -> tuple[Any, Any]:
    """(k, 2) vertices of each edge, and (p, 2) faces that share one."""
    corners = np.frombuffer(faces, np.int64).reshape(count, 3)
    sides = np.sort(corners[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    edges, number = np.unique(sides, axis=0, return_inverse=True)
    order = np.argsort(number.ravel(), kind="stable")
    owner, edge = np.repeat(np.arange(count), 3)[order], number.ravel()[order]
    pairs = []
    step = 1
    while True:  # Faces of one edge lie side by side: most have two.
        same = edge[step:] == edge[:-step]
        if not same.any():
            break
        pairs.append(np.stack([owner[:-step][same], owner[step:][same]], -1))
        step += 1
    proper = edges[:, 0] != edges[:, 1]
    return edges[proper], np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64)


@lru_cache(maxsize=16)
def _neighbours(faces: bytes, count: int, vertices: int) -> tuple[Any, Any]:
    """The matrix of the mean of neighbours, and which vertices have some."""
    edges, _ = _edges(faces, count)
    i, j = np.concatenate([edges, edges[:, ::-1]]).T
    degree = np.bincount(i, minlength=vertices)
    matrix = csr_matrix((1.0 / degree[i], (i, j)), shape=(vertices, vertices))
    return matrix, np.flatnonzero(degree)


# -- what is given
def _vertices(mesh: Any, faces: Any) -> tuple[torch.Tensor, Any]:
    if isinstance(mesh, Mesh):
        if faces is not None:
            raise TypeError("a Mesh brings its own faces")
        vertices, faces = mesh.vertices, mesh.faces
    elif faces is None:
        raise TypeError("give vertices and faces, or a Mesh")
    else:
        vertices = mesh
    x = _tensor("vertices", vertices)
    count = check_shape("vertices", x, (None, 3), batch=True)[-2]
    check_faces("faces", faces, count, "vertices")
    return x, plain(faces)


def _pair(first: str, a: Any, second: str, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Both as tensors of the higher precision."""
    x, y = _tensor(first, a), _tensor(second, b)
    real = torch.promote_types(x.dtype, y.dtype)
    return x.to(real), y.to(real)


def _tensor(name: str, value: Any) -> torch.Tensor:
    x = value if is_tensor(value) else torch.from_numpy(np.array(value))
    if x.dtype not in (torch.float32, torch.float64):
        if x.dtype.is_floating_point or x.is_complex():
            raise TypeError(f"{name} is float32 or float64, not {x.dtype}: convert it, .float()")
        x = x.to(torch.float64)
    if not bool(torch.isfinite(x.detach()).all()):
        check_shape(name, x, tuple(x.shape))  # says which number it is
    return x
