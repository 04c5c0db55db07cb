"""A sphere becomes another shape: its vertices and colours are found from pictures of that shape.

    python examples/sphere_to_shape.py [--out out] [--rounds 300] [--views 12]

Cameras all around; the loss compares soft pictures, and keeps the surface smooth. Writes sphere_to_shape.png (target,
start and result from four sides) and sphere_to_shape.mp4 to the folder.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from nablasim import render

SIZE = (96, 96)


def target_shape() -> render.Mesh:
    """A bean with three bumps, painted by height."""
    mesh = render.Mesh.sphere(3)
    x, y, z = mesh.vertices.T
    bumps = 0.25 * np.sin(3 * np.arctan2(z, x)) * (1 - y * y)
    vertices = mesh.vertices * (0.75 + bumps[:, None]) * [1.0, 1.25, 1.0]
    vertices[:, 0] += 0.25 * vertices[:, 1] ** 2
    colors = 0.5 + 0.5 * np.stack([np.sin(3 * y), np.cos(2 * x + y), -np.sin(3 * y)], -1)
    return render.Mesh(vertices, mesh.faces, colors=colors)


def smoothness(vertices: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """How far vertices are from the mean of their neighbours, squared."""
    total, count = torch.zeros_like(vertices), torch.zeros(len(vertices), 1)
    for a, b in ((0, 1), (1, 0)):
        total = total.index_add(0, edges[:, a], vertices[edges[:, b]])
        count = count.index_add(0, edges[:, a], torch.ones(len(edges), 1))
    return ((vertices - total / count) ** 2).sum(1).mean()


def edges_of(faces: np.ndarray) -> torch.Tensor:
    pairs = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    return torch.tensor(np.unique(pairs, axis=0)).long()


def fit(target: render.Mesh, views: int, rounds: int, show):
    """Vertices and colours of a sphere whose pictures are those of the target."""
    start = render.Mesh.sphere(3, radius=0.8)
    azimuth = np.arange(views) * 137.5  # the golden angle: all around
    cameras = render.Camera.orbit(3.2, np.linspace(-60, 75, views), azimuth, fov=45)
    renderer = render.Renderer(cameras, size=SIZE, composite=True, gamma=1e-3, sigma=1e-4, background=1.0)
    seen = renderer(target.replace(vertices=target.vertices.astype(np.float32)))
    rest, edges = torch.tensor(start.vertices, dtype=torch.float32), edges_of(start.faces)
    offset = torch.zeros_like(rest, requires_grad=True)
    paint = torch.zeros_like(rest, requires_grad=True)
    adam = torch.optim.Adam([{"params": [offset], "lr": 1e-2}, {"params": [paint], "lr": 5e-2}])
    losses = []
    for k, renderer.sigma in enumerate(render.anneal(1e-3, 3e-5, rounds)):
        adam.zero_grad()
        image = renderer(rest + offset, start.faces, colors=torch.sigmoid(paint))
        loss = (image - seen).abs().mean()
        (loss + 2.0 * smoothness(rest + offset, edges)).backward()
        adam.step()
        losses.append(loss.item())
        show(k, render.Mesh((rest + offset).detach(), start.faces, colors=torch.sigmoid(paint).detach()))
    return start, render.Mesh((rest + offset).detach(), start.faces, colors=torch.sigmoid(paint).detach()), losses


def view(mesh: render.Mesh, azimuth) -> np.ndarray:
    """How it looks in the light."""
    camera = render.Camera.orbit(3.2, 15.0, np.atleast_1d(azimuth), fov=45)
    lights = [render.Ambient(0.45), render.Directional((1, 2, 2), color=0.6)]
    renderer = render.Renderer(camera, lights, mode="hard", size=(160, 160), sampling=2, background=1.0)
    return renderer(mesh).numpy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--views", type=int, default=12)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    target, frames = target_shape(), []

    def show(k, mesh):
        if k % max(1, options.rounds // 60) == 0:
            frames.append(np.concatenate([view(target, 6 * len(frames))[0], view(mesh, 6 * len(frames))[0]], 1))

    start, found, losses = fit(target, options.views, options.rounds, show)
    around = [0.0, 90.0, 180.0, 270.0]
    rows = np.concatenate([view(mesh, around) for mesh in (target, start.painted((0.5, 0.5, 0.5)), found)])
    captions = [f"{name}, from {a:.0f}°" for name in ("target", "at first", "found") for a in around]
    render.write_image(options.out / "sphere_to_shape.png", render.contact_sheet(rows, columns=4, captions=captions))
    print(f"mean difference of the pictures: {losses[0]:.4f} at first, {losses[-1]:.4f} in the end")
    print(render.write_video(options.out / "sphere_to_shape.mp4", frames, fps=20))
