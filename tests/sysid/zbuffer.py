"""Another renderer: a plain z-buffer in NumPy, with light, a floor and a wall of its own, and nothing of ours.

For tests of what has to work on videos that somebody else made: `film` draws a motion, `encode` compresses it.
"""

import subprocess
from pathlib import Path

import imageio_ffmpeg
import numpy as np


class View:
    """A pinhole camera. Written from the definition: looks from `eye` to `target`, y up, `fov` degrees from top to
    bottom."""

    def __init__(self, eye, target, fov, size):
        self.eye, self.size = np.asarray(eye, float), size
        back = self.eye - np.asarray(target, float)
        back /= np.linalg.norm(back)
        right = np.cross([0.0, 1.0, 0.0], back)
        right /= np.linalg.norm(right)
        self.axes = np.stack([right, np.cross(back, right), back])
        self.focal = 0.5 * size[0] / np.tan(np.radians(fov) / 2)

    def project(self, points):
        """Pixels (x right, y down, from the upper left corner) and depths."""
        seen = (points - self.eye) @ self.axes.T
        depth = -seen[..., 2]
        height, width = self.size
        return np.stack([width / 2 + self.focal * seen[..., 0] / depth,
                         height / 2 - self.focal * seen[..., 1] / depth], -1), depth  # fmt: skip


def backdrop(size, rng):
    """A wall and a floor with a coarse pattern: bright, not even."""
    height, width = size
    y, x = np.mgrid[:height, :width]
    checks = ((x // (width // 8) + y // (height // 8)) % 2)[..., None]
    wall = np.array([0.78, 0.8, 0.84]) - 0.06 * checks
    floor = np.array([0.6, 0.58, 0.55]) - 0.05 * checks
    picture = np.where((y > 0.62 * height)[..., None], floor, wall)
    return picture + 0.01 * rng.normal(size=picture.shape)


def draw(vertices, faces, view, picture, *, color=(0.8, 0.25, 0.15), light=(0.4, 0.8, 0.5)):
    """Paint a mesh over a picture, each face in one shade."""
    picture, nearest = picture.copy(), np.full(view.size, np.inf)
    pixels, depth = view.project(vertices)
    light = np.asarray(light) / np.linalg.norm(light)
    for face in faces:
        a, b, c = vertices[face]
        normal = np.cross(b - a, c - a)
        normal /= max(np.linalg.norm(normal), 1e-12)
        shade = 0.35 + 0.65 * max(float(normal @ light), 0.0)
        (low_x, low_y), (high_x, high_y) = np.floor(pixels[face].min(0)), np.ceil(pixels[face].max(0))
        x0, x1 = int(max(low_x, 0)), int(min(high_x + 1, view.size[1]))
        y0, y1 = int(max(low_y, 0)), int(min(high_y + 1, view.size[0]))
        if x0 >= x1 or y0 >= y1:
            continue
        y, x = np.mgrid[y0:y1, x0:x1] + 0.5
        (ax, ay), (bx, by), (cx, cy) = pixels[face]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if abs(area) < 1e-12:
            continue
        u = ((x - ax) * (cy - ay) - (y - ay) * (cx - ax)) / area
        v = ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / area
        z = 1 / ((1 - u - v) / depth[face[0]] + u / depth[face[1]] + v / depth[face[2]])
        front = (u >= 0) & (v >= 0) & (u + v <= 1) & (z < nearest[y0:y1, x0:x1])
        nearest[y0:y1, x0:x1][front] = z[front]
        picture[y0:y1, x0:x1][front] = shade * np.asarray(color)
    return picture


def film(vertices, faces, *, eye, target, fov, size, noise=0.0, seed=0, sampling=2, color=(0.8, 0.25, 0.15)):
    """Frames (n, height, width, 3) in bytes of a motion (n, corners, 3)."""
    rng = np.random.default_rng(seed)
    view = View(eye, target, fov, (size[0] * sampling, size[1] * sampling))
    still = np.repeat(np.repeat(backdrop(size, rng), sampling, 0), sampling, 1)
    frames = []
    for corners in vertices:
        fine = draw(np.asarray(corners, float), faces, view, still, color=color)
        frames.append(fine.reshape(size[0], sampling, size[1], sampling, 3).mean((1, 3)))
    noisy = np.stack(frames) + noise * rng.normal(size=np.shape(frames))
    return np.rint(np.clip(noisy, 0, 1) * 255).astype(np.uint8)


def encode(path: Path, frames, *, fps=30, crf=23) -> Path:
    """Compress frames as people do: H.264, 4:2:0, by the command ffmpeg."""
    height, width = frames.shape[1:3]
    subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
         "-s", f"{width}x{height}", "-r", str(fps), "-i", "-", "-c:v", "libx264", "-crf", str(crf), "-pix_fmt",
         "yuv420p", str(path)],
        input=np.ascontiguousarray(frames).tobytes(), check=True,
    )  # fmt: skip
    return path
