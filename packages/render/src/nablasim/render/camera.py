"""The camera: from points of the world to the view, to NDC, to pixels. First stage of the renderer.

Conventions: right-handed, the camera looks along -z of its own frame with y up. NDC x points right and y up, [-1, 1]
over the whole picture. Depth is the distance along the optical axis, positive in front. `image[row, column]` has row 0
on top; the centre of pixel (i, j) of an H × W picture is at NDC x = (2j + 1 - W) / W, y = (H - 1 - 2i) / H.

Points may be NumPy arrays or torch tensors of shape (..., 3); what comes back is of the same kind, and carries
gradients where torch does. So may everything that a camera is made of: a tensor that requires a gradient gets the
gradient of a pose or of intrinsics. Torch itself is not imported here.

A batch of cameras has one more dimension in front of what differs between them, usually rotation and eye.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Points = Any
"""A NumPy array, anything that becomes one, or a torch tensor; the last axis holds the coordinates."""
Number = Any
"""A number, or a tensor of one element that may require a gradient."""


@dataclass(frozen=True, eq=False)
class Camera:
    """Where the camera is and what it sees: made by `Camera.look_at`, `Camera.orbit` or `Camera.opencv`."""

    rotation: Points
    """(3, 3), or (B, 3, 3) for a batch: rows are the camera's right, up and backward axes in the world."""
    eye: Points
    """(3) or (B, 3): the camera's position in the world."""
    half_height: Number = 1.0
    """Half the height of what is seen: at depth 1 (perspective), or at every depth (orthographic)."""
    perspective: bool = True
    intrinsics: tuple[Number, ...] | None = None
    """fx, fy, cx, cy, skew in pixels of a calibrated camera, instead of half_height."""
    calibrated: tuple[int, int] | None = None
    """The size (height, width) that the intrinsics are for; pictures of other sizes are scaled."""

    @classmethod
    def look_at(
        cls,
        eye: Points,
        target: Points,
        up: Points = (0.0, 1.0, 0.0),
        *,
        fov: Number | None = None,
        scale: Number | None = None,
    ) -> Camera:
        """A camera at `eye` that sees `target` in the middle of the picture.

        `fov`, in degrees, is the vertical field of view of a perspective camera (60 when nothing is given). `scale`
        makes an orthographic one: half the height of the picture, in units of the world. `eye`, `target` and `up` may
        be (B, 3) for a batch.
        """
        position, axes = _axes(eye, target, up)
        half_height, perspective = _half_height(fov, scale)
        return cls(axes, position, half_height, perspective=perspective)

    @classmethod
    def orbit(
        cls,
        distance: Number,
        elevation: Number,
        azimuth: Number,
        *,
        target: Points = (0.0, 0.0, 0.0),
        fov: Number | None = None,
        scale: Number | None = None,
    ) -> Camera:
        """A camera on a sphere around `target`: angles in degrees; azimuth 0 looks from +z, 90 from +x; y is up.

        Arrays of B distances or angles make a batch.
        """
        xp = _library(distance, elevation, azimuth, target)
        r, e, a = (_as(xp, v, distance, elevation, azimuth, target) for v in (distance, elevation, azimuth))
        e, a = e * (np.pi / 180), a * (np.pi / 180)
        parts = [r * xp.cos(e) * xp.sin(a), r * xp.sin(e) + 0 * a, r * xp.cos(e) * xp.cos(a)]
        offset = xp.stack(parts, -1)
        # At the poles y is no up direction: turn up with the camera, so that an orbit over the top stays smooth.
        up = xp.stack([-xp.sin(e) * xp.sin(a), xp.cos(e) + 0 * a, -xp.sin(e) * xp.cos(a)], -1)
        target = _as(xp, target, distance, elevation, azimuth, target)
        return cls.look_at(target + offset, target, up, fov=fov, scale=scale)

    @classmethod
    def opencv(cls, K: Points, R: Points, t: Points, size: tuple[int, int]) -> Camera:
        """A calibrated camera: x_camera = R x + t with x right, y down, z forward, and pixels u = K x_camera / z.

        `K` is the 3 × 3 matrix for pictures of `size` (height, width), where pixel (i, j) covers [j, j + 1) ×
        [i, i + 1); if your K has pixel centres at whole numbers, add 0.5 to cx and cy. Lens distortion is not part of
        it.
        """
        xp = _library(K, R, t)
        K, R, t = (_as(xp, v, K, R, t) for v in (K, R, t))
        for name, value, shape in (("K", K, (3, 3)), ("R", R, (3, 3)), ("t", t, (3,))):
            if tuple(value.shape[-len(shape) :]) != shape:
                raise ValueError(f"{name} has shape {tuple(value.shape)}, not {shape}")
        if tuple(K.shape) != (3, 3):
            raise ValueError(f"K is one 3 × 3 matrix, not of shape {tuple(K.shape)}")
        _check_size(size)
        flip = _as(xp, [[1.0, 0, 0], [0, -1, 0], [0, 0, -1]], R)
        eye = -(xp.swapaxes(R, -1, -2) @ t[..., None])[..., 0]
        return cls(
            flip @ R, eye, intrinsics=(K[0, 0], K[1, 1], K[0, 2], K[1, 2], K[0, 1]), calibrated=(size[0], size[1])
        )

    # -- what the renderer needs
    @property
    def count(self) -> int:
        """How many cameras this is."""
        sizes = [np.shape(v)[0] for v, n in ((self.rotation, 3), (self.eye, 2)) if len(np.shape(v)) == n]
        return max(sizes, default=1)

    @property
    def is_batch(self) -> bool:
        return len(np.shape(self.rotation)) == 3 or len(np.shape(self.eye)) == 2

    def lens(self, size: tuple[float, float]) -> list[Number]:
        """kx, ky, ox, oy, skew for a picture of `size` (height, width): NDC x = kx x + skew y + ox, y = ky y + oy,
        where x and y are of the view, divided by the depth by a perspective camera."""
        if self.intrinsics is None:
            aspect = size[1] / size[0]
            return [1 / (self.half_height * aspect), 1 / self.half_height, 0.0, 0.0, 0.0]
        assert self.calibrated is not None
        fx, fy, cx, cy, skew = self.intrinsics
        height, width = self.calibrated
        return [2 * fx / width, 2 * fy / height, 2 * cx / width - 1, 1 - 2 * cy / height, -2 * skew / width]

    # -- points
    def to_view(self, points: Points) -> Points:
        """Points in the camera's own frame: x right, y up, -z forward."""
        points = _points(points)
        tensor = next((v for v in (self.rotation, self.eye) if _is_tensor(v)), None)
        if tensor is not None and not _is_tensor(points):
            points = tensor.new_tensor(points)
        rotation, eye = _like(self.rotation, points), _like(self.eye, points)
        eye = eye[..., None, :] if self.is_batch and eye.ndim == 2 else eye
        return (points - eye) @ _swap(rotation)

    def project(self, points: Points, *, aspect: float = 1.0) -> tuple[Points, Points]:
        """NDC (..., 2) and depth (...). `aspect` is width / height of the picture.

        Points at or behind a perspective camera have depth <= 0 and no picture: mask their NDC by the depth.
        """
        view = self.to_view(points)
        depth = -view[..., 2]
        x, y = view[..., 0], view[..., 1]
        if self.perspective:
            x, y = x / depth, y / depth
        kx, ky, ox, oy, skew = self.lens((1.0, aspect))
        return _stack(kx * x + skew * y + ox, ky * y + oy), depth

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


# -- making cameras
def _half_height(fov: Any, scale: Any) -> tuple[Number, bool]:
    if fov is not None and scale is not None:
        raise ValueError("give fov for a perspective camera or scale for an orthographic one, not both")
    if scale is not None:
        if not scale > 0:
            raise ValueError(f"scale must be positive, not {scale}")
        return scale if _is_tensor(scale) else float(scale), False
    fov = 60.0 if fov is None else fov
    if not 0 < fov < 180:
        raise ValueError(f"fov is the vertical field of view in degrees, between 0 and 180, not {fov}")
    return ((fov * (np.pi / 360)).tan() if _is_tensor(fov) else float(np.tan(np.radians(fov) / 2))), True


def _axes(eye: Points, target: Points, up: Points) -> tuple[Points, Points]:
    xp = _library(eye, target, up)
    position, aim, above = (
        _vector(_as(xp, v, eye, target, up), name, v) for name, v in (("eye", eye), ("target", target), ("up", up))
    )
    backward = position - aim
    distance = _norm(backward)
    if not (_plain(distance) > 0).all():
        raise ValueError("eye and target are the same point: the camera has no direction to look in")
    backward = backward / distance
    right = _cross(xp, above, backward)
    if not (_plain(_norm(right)) > 1e-9 * _plain(_norm(above))).all():
        raise ValueError("up is parallel to the line from eye to target: give another up, for instance (0, 0, 1)")
    right = right / _norm(right)
    return position + 0 * backward, xp.stack([right, _cross(xp, backward, right), backward], -2)


def _vector(vector: Points, name: str, value: Points) -> Points:
    plain = _plain(vector)
    if plain.shape[-1:] != (3,) or plain.ndim > 2 or not np.isfinite(plain).all():
        raise ValueError(f"{name} is three finite numbers, or (B, 3) of them for a batch, not {value!r}")
    return vector


def _check_size(size: Sequence[int]) -> None:
    if len(size) != 2 or not all(int(n) == n and n > 0 for n in size):
        raise ValueError(f"size is (height, width) in whole pixels, both above zero, not {size!r}")


# -- NumPy or torch
def _is_tensor(value: Any) -> bool:
    return hasattr(value, "new_tensor")


def _library(*values: Any) -> Any:
    """torch, if one of the values is a tensor; else NumPy."""
    tensor = next((v for v in values if _is_tensor(v)), None)
    if tensor is None:
        return np
    import torch

    return torch


def _as(xp: Any, value: Any, *others: Any) -> Any:
    """A value as an array of the library; constants in the precision and on the device of the tensors among others."""
    if xp is np:
        return np.asarray(value, dtype=np.float64)
    if _is_tensor(value):
        return value
    like = next(v for v in others if _is_tensor(v))
    return like.new_tensor(np.asarray(value))


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if _is_tensor(value) else np.asarray(value)


def _norm(vector: Points) -> Points:
    return (vector * vector).sum(-1)[..., None] ** 0.5


def _cross(xp: Any, a: Points, b: Points) -> Points:
    if xp is np:
        return np.cross(a, b)
    a, b = xp.broadcast_tensors(a, b)
    return xp.linalg.cross(a, b)


def _swap(matrix: Points) -> Points:
    return matrix.swapaxes(-1, -2)


def _stack(x: Points, y: Points) -> Points:
    return _library(x, y).stack([x, y], -1)


def _points(points: Points) -> Points:
    if _is_tensor(points):
        return points
    array = np.asarray(points)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _like(value: Points, points: Points) -> Points:
    """A value as an array of the kind, precision and device of the points. A tensor stays one, with its gradient."""
    if _is_tensor(value):
        return value.to(points) if _is_tensor(points) else value
    if _is_tensor(points):
        return points.new_tensor(np.asarray(value))
    return np.asarray(value, dtype=points.dtype)
