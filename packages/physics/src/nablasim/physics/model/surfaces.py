"""What of an object can be drawn: triangles, and where their corners are in every frame of a trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.model.frames_kernels import corners, corners_of_copies


@dataclass(frozen=True, eq=False)
class Surface:
    """The skin of an object: `faces` (m, 3) are corners among its particles, or among `points` of a rigid body.

    points: corners in the body's own frame, which `rot` and `x` of the state put into the world; None for particles.
    links: of a robot the links that have shapes, and `link` (n): which of them each corner belongs to, and is in the
        frame of.
    """

    faces: NDArray[np.int32]
    points: NDArray[np.float64] | None = None
    links: tuple[str, ...] = ()
    link: NDArray[np.int64] | None = None

    def vertices(self, x: Any, rot: Any = None) -> Any:
        """Corners in the world (..., n, 3): of particles x (..., n, 3), or of bodies at x (..., 3), rot (..., 4).

        Of robots x and rot are those of all their `links`, (..., links, 3) and (..., links, 4).

        Arrays of kernelc give one of them, on the open tape.
        """
        if self.points is None:
            return x
        if type(x).__module__.startswith("kernelc"):
            return self._on_tape(x, rot)
        points = self.points.astype(x.dtype) if isinstance(x, np.ndarray) else x.new_tensor(self.points)
        x, rot = (value[..., None, :] if self.link is None else value[..., self.link, :] for value in (x, rot))
        q, w = rot[..., :3], rot[..., 3:]
        # Rodrigues: p + 2 w (q × p) + 2 q × (q × p).
        t = 2 * _cross(q, points)
        return x + points + w * t + _cross(q, t)

    def moved(self, rot: NDArray[Any], dx: NDArray[Any], drot: NDArray[Any]) -> NDArray[Any]:
        """How corners move where x and rot do, by k directions in front: the derivative of `vertices`."""
        if self.points is None:
            return dx
        turns = _turning(rot, drot)
        if self.link is None:
            return dx[..., None, :] + self.points.astype(dx.dtype) @ turns.swapaxes(-1, -2)
        made = np.empty((*dx.shape[:-2], *self.points.shape), dtype=dx.dtype)
        for k in range(len(self.links)):
            mine = self.link == k
            made[..., mine, :] = dx[..., k, None, :] + self.points[mine] @ turns[..., k, :, :].swapaxes(-1, -2)
        return made

    def of_links(self, poses: Mapping[str, Any]) -> tuple[Any, Any]:
        """x and rot of all links that are drawn, one after the other, from poses (`.x`, `.rot`) by name."""
        kind: Any = np if isinstance(poses[self.links[0]].x, np.ndarray) else import_module("torch")
        x, rot = (kind.stack([getattr(poses[name], what) for name in self.links], -2) for what in ("x", "rot"))
        return x, rot

    def _on_tape(self, x: Any, rot: Any) -> Any:
        """The same of arrays of kernelc; on the open tape, if there is one."""
        points = kc.array(self.points, dtype=kc.float3, real=x.real)
        out = kc.zeros((*x.shape, len(points)), dtype=kc.float3, real=x.real)
        kc.launch(corners if x.ndim == 1 else corners_of_copies, out.shape, [x, rot, points], [out])
        return out


def _turning(rot: NDArray[Any], drot: NDArray[Any]) -> NDArray[Any]:
    """How I + 2 w [q]× + 2 [q]×², the matrix of a quaternion as `vertices` has it, moves."""
    Q, dQ = _cross_matrix(rot[..., :3]), _cross_matrix(drot[..., :3])
    w, dw = rot[..., 3, None, None], drot[..., 3, None, None]
    return 2 * (dw * Q + w * dQ + dQ @ Q + Q @ dQ)


def _cross_matrix(q: NDArray[Any]) -> NDArray[Any]:
    """[q]×: its product with p is q × p."""
    x, y, z = np.moveaxis(q, -1, 0)
    none = np.zeros_like(x)
    rows = [np.stack(row, axis=-1) for row in ((none, -z, y), (z, none, -x), (-y, x, none))]
    return np.stack(rows, axis=-2)


def _cross(a: Any, b: Any) -> Any:
    """a × b of NumPy arrays or tensors, broadcast."""
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    if isinstance(parts[0], np.ndarray):
        return np.stack(parts, axis=-1)
    import torch

    return torch.stack(parts, dim=-1)
