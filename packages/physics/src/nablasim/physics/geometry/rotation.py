"""Rotations as people write them: quaternions (x, y, z, w) from an axis and an angle, and as matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc


def quat(axis: ArrayLike, angle: float) -> NDArray[np.float64]:
    """The quaternion (x, y, z, w) that turns by `angle` (rad) about `axis`, right-handed. The axis need not be unit."""
    direction = np.asarray(axis, dtype=float)
    length = float(np.linalg.norm(direction)) if direction.shape == (3,) else 0.0
    if not (np.isfinite(length) and length > 0 and np.isfinite(angle)):
        raise ValueError(
            f"a rotation needs an axis of three numbers, not all zero, and an angle, not {axis!r}, {angle!r}"
        )
    return np.asarray(kc.quat_from_axis_angle(direction / length, float(angle)))


def rotation_matrix(q: ArrayLike) -> NDArray[np.float64]:
    """The matrix of a quaternion (x, y, z, w), which need not be unit."""
    given = np.asarray(q, dtype=float)
    length = float(np.linalg.norm(given)) if given.shape == (4,) else 0.0
    if not (np.isfinite(length) and length > 0):
        raise ValueError(f"a rotation is a quaternion (x, y, z, w), not {q!r}; ph.quat(axis, angle) makes one")
    return np.asarray(kc.quat_to_matrix(given / length))


def turned(first: ArrayLike, then: ArrayLike) -> NDArray[np.float64]:
    """The quaternion of a rotation inside of another one: what `then` turns in the frame that `first` turned."""
    a, b = (np.asarray(q, dtype=float) for q in (first, then))
    return np.array([*(a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])), a[3] * b[3] - a[:3] @ b[:3]])
