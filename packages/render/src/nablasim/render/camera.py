"""The camera: from points of the world to the view, to NDC, to pixels. First stage of the renderer.

Conventions: right-handed, the camera looks along -z of its own frame with y up. NDC x points right and y up, [-1, 1]
over the whole picture. Depth is the distance along the optical axis, positive in front. `image[row, column]` has row 0
on top; the centre of pixel (i, j) of an H × W picture is at NDC x = (2j + 1 - W) / W, y = (H - 1 - 2i) / H.

Points may be NumPy arrays or torch tensors of shape (..., 3); what comes back is of the same kind, and carries
gradients where torch does. So may everything that a camera is made of: a tensor that requires a gradient gets the
gradient of a pose or of intrinsics. Torch itself is not imported here.

A batch of cameras has one more dimension in front of what differs between them: rotation, eye, field of view, K.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nablasim.render.checks import check_finite, check_shape, check_size
from nablasim.render.either import as_one, first_tensor, is_tensor, library, like, plain

Points = Any
"""A NumPy array, anything that becomes one, or a torch tensor; the last axis holds the coordinates."""
NEVER = 1e12
"""A squared radius that no picture reaches."""
Number = Any
"""A number, or a tensor of one element that may require a gradient; (B) of them for a batch."""


@dataclass(frozen=True, eq=False)
class Camera:
    """Pose and projection of a camera: made by `Camera.look_at`, `Camera.orbit` or `Camera.opencv`, or read from
    files by `Camera.from_opencv`, `from_colmap` and `from_nerf`."""

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
    distortion: Points | None = None
    """k1, k2, p1, p2, k3 of OpenCV's model, or the first of them; (B, 5) for a batch."""

    def __post_init__(self) -> None:
        check_shape("rotation", self.rotation, (3, 3), batch=True)
        check_shape("eye", self.eye, (3,), batch=True)
        if self.intrinsics is None:
            check_finite("half_height", self.half_height)
        elif self.calibrated is None:
            raise ValueError("intrinsics are in pixels: give the size (height, width) of the picture, calibrated=")
        if self.distortion is not None:
            self._check_distortion()
        counts = {name: n for name, n in self._batches.items() if n is not None}
        if len(set(counts.values()) - {1}) > 1:
            raise ValueError(f"the cameras of a batch are as many in everything that differs, not {counts}")

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
        be (B, 3) for a batch, `fov` and `scale` (B).
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
        xp = library(distance, elevation, azimuth, target)
        r, e, a = (as_one(xp, v, distance, elevation, azimuth, target) for v in (distance, elevation, azimuth))
        e, a = e * (np.pi / 180), a * (np.pi / 180)
        parts = [r * xp.cos(e) * xp.sin(a), r * xp.sin(e) + 0 * a, r * xp.cos(e) * xp.cos(a)]
        offset = xp.stack(parts, -1)
        # At the poles y is no up direction: turn up with the camera, so that an orbit over the top stays smooth.
        up = xp.stack([-xp.sin(e) * xp.sin(a), xp.cos(e) + 0 * a, -xp.sin(e) * xp.cos(a)], -1)
        target = as_one(xp, target, distance, elevation, azimuth, target)
        return cls.look_at(target + offset, target, up, fov=fov, scale=scale)

    @classmethod
    def opencv(cls, K: Points, R: Points, t: Points, size: tuple[int, int], distortion: Points | None = None) -> Camera:
        """A calibrated camera: x_camera = R x + t with x right, y down, z forward, and pixels u = K x_camera / z.

        `K` is the 3 × 3 matrix for pictures of `size` (height, width), where pixel (i, j) covers [j, j + 1) ×
        [i, i + 1); if your K has pixel centres at whole numbers, as OpenCV's own calibration, add 0.5 to cx and cy, or
        use `Camera.from_opencv`. `distortion` is k1, k2, p1, p2, k3.
        """
        xp = library(K, R, t)
        K, R, t = (as_one(xp, v, K, R, t) for v in (K, R, t))
        check_shape("K", K, (3, 3), batch=True)
        check_shape("R", R, (3, 3), batch=True)
        check_shape("t", t, (3,), batch=True)
        _check_calibration(plain(K), plain(R))
        flip = as_one(xp, [[1.0, 0, 0], [0, -1, 0], [0, 0, -1]], R)
        eye = -(xp.swapaxes(R, -1, -2) @ t[..., None])[..., 0]
        numbers = tuple(K[..., i, j] for i, j in ((0, 0), (1, 1), (0, 2), (1, 2), (0, 1)))
        return cls(flip @ R, eye, intrinsics=numbers, calibrated=check_size(size), distortion=_numbers(distortion))

    @classmethod
    def from_opencv(
        cls, K: Points, R: Points | None = None, t: Points | None = None, size: tuple[int, int] | None = None,
        distortion: Points | None = None,
    ) -> Camera:  # fmt: skip
        """As OpenCV's calibration gives it: `Camera.opencv`, or a file that cv2.FileStorage wrote (.yml, .xml, .json).

        A file has `camera_matrix` (or K), and may have `distortion_coefficients`, `image_width` and `image_height`,
        and a pose: R or rvec, and t or tvec. What is given beside it goes before. OpenCV's pixel centres are whole
        numbers: half a pixel is added to cx and cy here, not in `Camera.opencv`.
        """
        from nablasim.render.camera_files import read_opencv

        found = read_opencv(K) if isinstance(K, (str, Path)) else {"K": K}
        given = {"R": R, "t": t, "size": size, "distortion": distortion}
        found |= {name: value for name, value in given.items() if value is not None}
        if "size" not in found:
            raise ValueError("the size of the picture is missing: Camera.from_opencv(…, size=(height, width))")
        xp = library(found["K"])
        half = as_one(xp, [[0.0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]], found["K"])
        matrix = as_one(xp, found["K"], found["K"]) + half
        return cls.opencv(
            matrix, found.get("R", np.eye(3)), found.get("t", np.zeros(3)), found["size"], found.get("distortion")
        )

    @classmethod
    def from_colmap(cls, folder: str | Path) -> dict[str, Camera]:
        """The cameras of COLMAP's cameras and images (.txt or .bin) in a folder, by the name of the picture."""
        from nablasim.render.camera_files import read_colmap

        return {name: cls.opencv(**values) for name, values in read_colmap(folder).items()}

    @classmethod
    def from_nerf(cls, path: str | Path, size: tuple[int, int] | None = None) -> dict[str, Camera]:
        """The cameras of NeRF's transforms.json (Blender's, Instant-NGP's, Nerfstudio's), by the path of the picture.

        `size` (height, width) is needed where the file does not say it; a file with `camera_angle_x` alone has the
        focal length that belongs to that width.
        """
        from nablasim.render.camera_files import read_nerf

        return {name: cls.opencv(**values) for name, values in read_nerf(path, size).items()}

    # -- what the renderer needs
    def _check_distortion(self) -> None:
        found = plain(self.distortion)
        if not self.perspective:
            raise ValueError("an orthographic camera has no lens distortion: leave it out, or give fov= or K")
        if found.ndim not in (1, 2) or not 1 <= found.shape[-1] <= 5 or found.dtype.kind not in "iuf":
            raise ValueError(
                f"distortion is k1, k2, p1, p2, k3, or the first of them, or (B, 5) for a batch, not of shape "
                f"{found.shape}. OpenCV's rational, thin prism and tilted models (more than five numbers) and fisheye "
                "lenses are others: undistort such pictures first, cv2.undistort"
            )
        check_finite("distortion", self.distortion)

    @property
    def bending(self) -> list[Number]:
        """k1, k2, p1, p2, k3, and the squared radius, at depth 1, up to which they hold; 0 for lenses without any."""
        if self.distortion is None:
            return [0.0] * 6
        numbers = [self.distortion[..., k] for k in range(np.shape(self.distortion)[-1])]
        numbers = numbers if is_tensor(self.distortion) else [np.asarray(v, float) for v in numbers]
        found = plain(self.distortion)
        rows = np.zeros((*found.shape[:-1], 5))
        rows[..., : found.shape[-1]] = found
        edges = np.array([_turning_point(row) for row in rows.reshape(-1, 5)]).reshape(rows.shape[:-1])
        return [*numbers, *[0.0] * (5 - len(numbers)), edges]

    @property
    def _batches(self) -> dict[str, int | None]:
        """How many there are of everything that may differ between cameras; None where it is one for all."""
        lens = (self.half_height,) if self.intrinsics is None else self.intrinsics
        sizes = {"rotation": np.shape(self.rotation)[:-2], "eye": np.shape(self.eye)[:-1],
                 "lens": max((np.shape(v) for v in lens), key=len),
                 "distortion": np.shape(self.distortion)[:-1] if self.distortion is not None else ()}  # fmt: skip
        return {name: int(shape[0]) if shape else None for name, shape in sizes.items()}

    @property
    def count(self) -> int:
        """How many cameras this is."""
        return max(n or 1 for n in self._batches.values())

    @property
    def is_batch(self) -> bool:
        return any(n is not None for n in self._batches.values())

    def lens(self, size: tuple[float, float]) -> list[Number]:
        """kx, ky, ox, oy, skew for a picture of `size` (height, width): NDC x = kx x + skew y + ox, y = ky y + oy,
        where x and y are of the view, divided by the depth by a perspective camera."""
        if self.intrinsics is None:
            half = self.half_height if is_tensor(self.half_height) else np.asarray(self.half_height, float)
            return [1 / (half * (size[1] / size[0])), 1 / half, 0.0, 0.0, 0.0]
        assert self.calibrated is not None
        fx, fy, cx, cy, skew = self.intrinsics
        height, width = self.calibrated
        return [2 * fx / width, 2 * fy / height, 2 * cx / width - 1, 1 - 2 * cy / height, -2 * skew / width]

    # -- points
    def to_view(self, points: Points) -> Points:
        """Points in the camera's own frame: x right, y up, -z forward."""
        points = _points(points)
        tensor = first_tensor((self.rotation, self.eye))
        if tensor is not None and not is_tensor(points):
            points = tensor.new_tensor(points)
        rotation, eye = like(self.rotation, points), like(self.eye, points)
        eye = eye[..., None, :] if eye.ndim == 2 else eye
        return (points - eye) @ _swap(rotation)

    def project(self, points: Points, *, aspect: float = 1.0) -> tuple[Points, Points]:
        """NDC (..., 2) and depth (...). `aspect` is width / height of the picture.

        Points at or behind a perspective camera have depth <= 0 and no picture: mask their NDC by the depth.
        """
        view = self.to_view(points)
        depth = -view[..., 2]
        x, y = view[..., 0], view[..., 1]
        if self.perspective:
            x, y = self._bent(x / depth, y / depth)
        kx, ky, ox, oy, skew = (_column(like(v, view)) for v in self.lens((1.0, aspect)))
        return _stack(kx * x + skew * y + ox, ky * y + oy), depth + 0 * kx

    def _bent(self, x: Points, y: Points) -> tuple[Points, Points]:
        """Where the lens shows points of the plane at depth 1: the same as kernels.triangles.bent."""
        if self.distortion is None:
            return x, y
        k1, k2, p1, p2, k3, edge = (_column(like(v, x)) for v in self.bending)
        xp = library(x)
        r2 = x * x + y * y
        outside = r2 > edge
        shrink = xp.where(outside, (edge / xp.where(outside, r2, edge + 0 * r2)) ** 0.5, 1 + 0 * r2)
        a, b = x * shrink, y * shrink
        s2 = a * a + b * b
        radial = 1 + s2 * (k1 + s2 * (k2 + s2 * k3)) * shrink
        across = 2 * a * b
        return (
            x * radial + p2 * (s2 + 2 * a * a) - p1 * across,
            y * radial - p1 * (s2 + 2 * b * b) + p2 * across,
        )

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
    return (ndc[..., [1, 0]] * like([-height, width], ndc) + like([height - 1, width - 1], ndc)) / 2


def pixels_to_ndc(pixels: Points, size: tuple[int, int]) -> Points:
    """Pixels (..., 2) as row, column to NDC (..., 2) as x, y: the inverse of `ndc_to_pixels`."""
    pixels = _points(pixels)
    height, width = size
    return (2 * pixels - like([height - 1, width - 1], pixels))[..., [1, 0]] / like([width, -height], pixels)


# -- making cameras
def _half_height(fov: Any, scale: Any) -> tuple[Number, bool]:
    if fov is not None and scale is not None:
        raise ValueError("give fov for a perspective camera or scale for an orthographic one, not both")
    if scale is not None:
        if not (_one_or_many("scale", scale) > 0).all():
            raise ValueError(f"scale must be positive, not {scale}")
        return scale if is_tensor(scale) else _number(np.asarray(scale, float)), False
    fov = 60.0 if fov is None else fov
    degrees = _one_or_many("fov", fov)
    if not ((degrees > 0) & (degrees < 180)).all():
        raise ValueError(f"fov is the vertical field of view in degrees, between 0 and 180, not {fov}")
    return ((fov * (np.pi / 360)).tan() if is_tensor(fov) else _number(np.tan(np.radians(degrees) / 2))), True


def _one_or_many(name: str, value: Any) -> Any:
    found = plain(value)
    if found.ndim > 1 or found.dtype.kind not in "iuf":
        raise ValueError(f"{name} is a number, or (B) of them for a batch, not {value!r}")
    return found


def _numbers(value: Points | None) -> Points | None:
    return value if value is None or is_tensor(value) else np.asarray(value, float)


def _turning_point(row: Any) -> float:
    """The squared radius at which r (1 + k1 r² + k2 r⁴ + k3 r⁶) stops to grow; far away if it never does."""
    k1, k2, _, _, k3 = row
    roots = np.roots([7 * k3, 5 * k2, 3 * k1, 1.0])
    real = roots.real[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0)]
    return float(min(real.min(initial=NEVER), NEVER))


def _number(value: Any) -> Number:
    return float(value) if value.ndim == 0 else value


def _check_calibration(K: Any, R: Any) -> None:
    # Not to the last bit: who compares gradients with differences moves every number a little.
    zero = np.abs(K[..., [1, 2, 2, 2], [0, 0, 1, 2]] - [0, 0, 0, 1]).max()
    if zero > 0.01 or not (K[..., [0, 1], [0, 1]] > 0).all():
        raise ValueError(f"K is ((fx, skew, cx), (0, fy, cy), (0, 0, 1)) with fx, fy above zero, not {K.tolist()}")
    off = float(np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max())
    if off > 0.05 or not (np.linalg.det(R) > 0).all():
        raise ValueError(
            f"R must be a rotation: R Rᵀ is off the identity by {off:.3g}, its determinant is "
            f"{np.linalg.det(R).round(3).tolist()}. A mirror image has -1: x right, y down, z forward is right-handed"
        )


def _axes(eye: Points, target: Points, up: Points) -> tuple[Points, Points]:
    xp = library(eye, target, up)
    position, aim, above = (
        _vector(as_one(xp, v, eye, target, up), name, v) for name, v in (("eye", eye), ("target", target), ("up", up))
    )
    backward = position - aim
    distance = _norm(backward)
    if not (plain(distance) > 0).all():
        raise ValueError("eye and target are the same point: the camera has no direction to look in")
    backward = backward / distance
    right = _cross(xp, above, backward)
    if not (plain(_norm(right)) > 1e-9 * plain(_norm(above))).all():
        raise ValueError("up is parallel to the line from eye to target: give another up, for instance (0, 0, 1)")
    right = right / _norm(right)
    return position + 0 * backward, xp.stack([right, _cross(xp, backward, right), backward], -2)


def _vector(vector: Points, name: str, value: Points) -> Points:
    found = plain(vector)
    if found.shape[-1:] != (3,) or found.ndim > 2 or not np.isfinite(found).all():
        raise ValueError(f"{name} is three finite numbers, or (B, 3) of them for a batch, not {value!r}")
    return vector


def _norm(vector: Points) -> Points:
    return (vector * vector).sum(-1)[..., None] ** 0.5


def _cross(xp: Any, a: Points, b: Points) -> Points:
    if xp is np:
        return np.cross(a, b)
    a, b = xp.broadcast_tensors(a, b)
    return xp.linalg.cross(a, b)


def _column(number: Number) -> Number:
    """One number for all points, or for those of each camera."""
    return number[:, None] if number.ndim else number


def _swap(matrix: Points) -> Points:
    return matrix.swapaxes(-1, -2)


def _stack(x: Points, y: Points) -> Points:
    return library(x, y).stack([x, y], -1)


def _points(points: Points) -> Points:
    if is_tensor(points):
        return points
    array = np.asarray(points)
    return array if array.dtype.kind == "f" else array.astype(np.float64)
