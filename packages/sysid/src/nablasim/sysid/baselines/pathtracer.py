"""Masks of a moving object by Mitsuba 3, a path tracer that nobody here wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLES = 36
"""Rays per pixel."""
MISSING = "not run: pip install mitsuba"


def masks(corners: NDArray[np.float32], faces: NDArray[Any], camera: Any, size: int) -> NDArray[np.float64] | str:
    """(frames, size, size): how much of each pixel the object covers; or why there are none.

    corners: (frames, n, 3)
    """
    try:
        import mitsuba  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return MISSING
    mitsuba.set_variant("scalar_rgb")
    sensor = {"type": "perspective", "fov": float(np.degrees(2 * np.arctan(camera.half_height))), "fov_axis": "y",
              "to_world": _transform(mitsuba, camera),
              "film": {"type": "hdrfilm", "width": size, "height": size, "pixel_format": "rgba",
                       "rfilter": {"type": "box"}},
              "sampler": {"type": "multijitter", "sample_count": SAMPLES}}  # fmt: skip
    made: list[NDArray[np.float32]] = []
    for points in corners:
        body = _mesh(mitsuba, points, faces)
        scene = mitsuba.load_dict({"type": "scene", "integrator": {"type": "path", "hide_emitters": True},
                                   "sensor": sensor, "light": {"type": "constant"}, "body": body})  # fmt: skip
        made.append(np.array(mitsuba.render(scene, seed=len(made)))[..., 3])
    return np.clip(np.stack(made).astype(np.float64), 0.0, 1.0)


def _mesh(mitsuba: Any, points: NDArray[np.float32], faces: NDArray[Any]) -> Any:
    mesh = mitsuba.Mesh("body", vertex_count=len(points), face_count=len(faces))
    values = mitsuba.traverse(mesh)
    values["vertex_positions"] = np.ascontiguousarray(points, np.float32).ravel()
    values["faces"] = np.ascontiguousarray(faces, np.uint32).ravel()
    values.update()
    return mesh


def _transform(mitsuba: Any, camera: Any) -> Any:
    eye, (_, up, back) = np.asarray(camera.eye, float), np.asarray(camera.rotation, float)
    return mitsuba.ScalarTransform4f().look_at(origin=eye.tolist(), target=(eye - back).tolist(), up=up.tolist())
