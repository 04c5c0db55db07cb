"""Pictures of a motion that one wants to look at: colour, shade, a chequered floor with shadows, a sky."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nablasim import render

ORANGE, BLUE = (0.92, 0.42, 0.20), (0.25, 0.50, 0.85)


def floor(size: float = 16.0, cells: int = 16, *, height: float = 0.0) -> render.Mesh:
    """A chequered floor."""
    plain = render.Mesh.plane(size, height=height, cells=cells)
    cell = np.arange(len(plain.faces)) // 2
    dark = (cell // cells + cell % cells) % 2
    return plain.replace(uvs=None, face_colors=np.where(dark[:, None] == 1, 0.45, 0.72) * np.ones(3))


def sky(size: tuple[int, int]) -> Any:
    """What is behind it all: bright at the horizon."""
    height, width = size
    return np.linspace([0.45, 0.62, 0.85], [0.94, 0.96, 0.98], height)[:, None] * np.ones((1, width, 1))


def film(
    frames: Any, faces: Any, camera: render.Camera, *, size: tuple[int, int] = (288, 384), color: Any = ORANGE,
    sampling: int = 2, chunk: int = 10,
) -> Any:  # fmt: skip
    """(frames, height, width, 3) of a body, vertices (frames, n, 3), on a floor at height 0."""
    lights: list[render.Ambient | render.Directional] = [
        render.Ambient(0.42), render.Directional((-1.0, 2.5, 1.5), color=0.65)
    ]  # fmt: skip
    renderer = render.Renderer(
        camera, lights, mode="hard", size=size, sampling=sampling, smooth=False, shadows=True, background=sky(size)
    )
    x, ground = torch.as_tensor(frames).float(), floor()
    still = torch.tensor(ground.vertices).float().expand(len(x), -1, -1)
    body = render.Mesh(x[0], faces, face_colors=np.broadcast_to(color, (len(faces), 3)))
    scene = render.Mesh.join([ground, body])
    both = torch.cat([still, x], 1)
    with torch.no_grad():
        drawn = [renderer(scene.replace(vertices=part))[..., :3] for part in both.split(chunk)]
    return torch.cat(drawn).clamp(0, 1).numpy()
