"""The camera: from points of the world to the view, to NDC, to pixels. First stage of the renderer.

Conventions: right-handed, the camera looks along -z of its own frame with y up. NDC x points right and y up, [-1, 1]
over the whole picture. Depth is the distance along the optical axis, positive in front. `image[row, column]` has row 0
on top; the centre of pixel (i, j) of an H × W picture is at NDC x = (2j + 1 - W) / W, y = (H - 1 - 2i) / H.

Points may be NumPy arrays or torch tensors of shape (..., 3); what comes back is of the same kind, and carries
gradients where torch does. Torch itself is not imported here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Points = Any
"""A NumPy array, anything that becomes one, or a torch tensor; the last axis holds the coordinates."""


@dataclass(frozen=True, eq=False)
class Camera:
    """Where the camera is and what it sees; make one with `Camera.look_at`."""

    rotation: NDArray[np.float64]
    """(3, 3) rows are the camera's right, up and backward axes in the world."""
    eye: NDArray[np.float64]
    """(3) the camera's position in the world."""
    half_height: float
    """Half the height of what is seen: at depth 1 (perspective), or at every depth (orthographic)."""
    perspective: bool = True

    @classmethod
    def look_at(
        cls,
        eye: ArrayLike,
        target: ArrayLike,
        up: ArrayLike = (0.0, 1.0, 0.0),
        *,
        fov: float | None = None,
        scale: float | None = None,
    ) -> Camera:
        """A camera at `eye` that sees `target` in the middle of the picture.

        `fov`, in degrees, is the vertical field of view of a perspective camera (60 when nothing is given). `scale`
        makes an orthographic one: half the height of the picture, in units of the world.
        """
        position, axes = _axes(eye, target, up)
        if fov is not None and scale is not None:
            raise ValueError("give fov for a perspective camera or scale for an orthographic one, not both")
        if scale is not None:
            if not scale > 0:
                raise ValueError(f"scale must be positive, not {scale}")
            return cls(axes, position, float(scale), perspective=False)
        fov = 60.0 if fov is None else fov
        if not 0 < fov < 180:
            raise ValueError(f"fov is the vertical field of view in degrees, between 0 and 180, not {fov}")
        return cls(axes, position, float(np.tan(np.radians(fov) / 2)))

    def to_view(self, points: Points) -> Points:
        """Points in the camera's own frame: x right, y up, -z forward."""
        points = _points(points)
        return (points - _like(self.eye, points)) @ _like(self.rotation.T, points)

    def project(self, points: Points, *, aspect: float = 1.0) -> tuple[Points, Points]:
        """NDC (..., 2) and depth (...). `aspect` is width / height of the picture.

        Points at or behind a perspective camera have depth <= 0 and no picture: mask their NDC by the depth.
        """
        view = self.to_view(points)
        depth = -view[..., 2]
        xy = view[..., :2] / _like([self.half_height * aspect, self.half_height], view)
        return (xy / depth[..., None] if self.perspective else xy), depth

    def to_pixels(self, points: Points, size: tuple[int, int]) -> tuple[Points, Points]:
        """(row, column) as real numbers (..., 2) in a picture of `size` (height, width), and depth (...).

        Pixel centres are whole numbers: (0, 0) is the centre of the upper left pixel, (-0.5, -0.5) the corner.
        """
        height, width = size
        ndc, depth = self.project(points, aspect=width / height)
        return ndc_to_pixels(ndc, size), depth


def ndc_to_pixels(ndc: Points, size: tuple[int, int]) -> Points:
    """NDC (..., 2) as x, y to pixels (..., 2) as row, column."""
    ndc = _points(ndc)
    height, width = size
    return (ndc[..., [1, 0]] * _like([-height, width], ndc) + _like([height - 1, width - 1], ndc)) / 2


def pixels_to_ndc(pixels: Points, size: tuple[int, int]) -> Points:
    """Pixels (..., 2) as row, column to NDC (..., 2) as x, y: the inverse of `ndc_to_pixels`."""
    pixels = _points(pixels)
    height, width = size
    return (2 * pixels - _like([height - 1, width - 1], pixels))[..., [1, 0]] / _like([width, -height], pixels)


def _axes(eye: ArrayLike, target: ArrayLike, up: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    position, aim, above = (_vector(name, v) for name, v in (("eye", eye), ("target", target), ("up", up)))
    backward = position - aim
    if not np.linalg.norm(backward) > 0:
        raise ValueError("eye and target are the same point: the camera has no direction to look in")
    backward /= np.linalg.norm(backward)
    right = np.cross(above, backward)
    if not np.linalg.norm(right) > 1e-9 * np.linalg.norm(above):
        raise ValueError("up is parallel to the line from eye to target: give another up, for instance (0, 0, 1)")
    right /= np.linalg.norm(right)
    return position, np.stack([right, np.cross(backward, right), backward])


def _vector(name: str, value: ArrayLike) -> NDArray[np.float64]:
    vector = np.array(value, dtype=np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ValueError(f"{name} is three finite numbers, not {value!r}")
    return vector


def _points(points: Points) -> Points:
    if hasattr(points, "new_tensor"):
        return points
    array = np.asarray(points)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _like(constant: ArrayLike, points: Points) -> Points:
    """A constant as an array of the kind, precision and device of the points."""
    if hasattr(points, "new_tensor"):
        return points.new_tensor(np.asarray(constant))
    return np.asarray(constant, dtype=points.dtype)
