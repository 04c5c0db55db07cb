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

    def of_links(self, poses: Mapping[str, Any]) -> Any:
        """The corners of a robot whose links have these poses (`.x`, `.rot`), by name."""
        kind: Any = np if isinstance(poses[self.links[0]].x, np.ndarray) else import_module("torch")
        return self.vertices(*(kind.stack([getattr(poses[name], what) for name in self.links], -2)
                               for what in ("x", "rot")))  # fmt: skip

    def _on_tape(self, x: Any, rot: Any) -> Any:
        """The same of arrays of kernelc; on the open tape, if there is one."""
        points = kc.array(self.points, dtype=kc.float3, real=x.real)
        out = kc.zeros((*x.shape, len(points)), dtype=kc.float3, real=x.real)
        kc.launch(corners if x.ndim == 1 else corners_of_copies, out.shape, [x, rot, points], [out])
        return out


def _cross(a: Any, b: Any) -> Any:
    """a × b of NumPy arrays or tensors, broadcast."""
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    if isinstance(parts[0], np.ndarray):
        return np.stack(parts, axis=-1)
    import torch

    return torch.stack(parts, dim=-1)
