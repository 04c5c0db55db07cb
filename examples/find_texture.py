"""What is painted on it? The texture of a globe is found from pictures, in spite of light and shadow.

    python examples/find_texture.py [--out out] [--rounds 150] [--views 12]

Shape, lights and cameras are known. The texture starts grey; each of its texels gets a gradient from every pixel that
shows it. Writes find_texture.png (the texture and two views: true, at first, found) and find_texture.mp4 to the folder.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from nablasim import render

SIZE = (128, 128)
LIGHTS = [render.Ambient(0.35), render.Directional((2, 2, 1), color=0.65)]


def globe(rows: int = 24, columns: int = 48) -> render.Mesh:
    """A sphere by latitude and longitude: u goes around, v from the south to the north."""
    v, u = np.meshgrid(np.linspace(0, 1, rows + 1), np.linspace(0, 1, columns + 1), indexing="ij")
    around, height = 2 * np.pi * u, np.pi * (v - 0.5)
    x = np.stack([np.cos(height) * np.sin(around), np.sin(height), np.cos(height) * np.cos(around)], -1)
    a = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)).ravel()
    b, c, d = a + 1, a + columns + 2, a + columns + 1
    faces = np.stack([a, b, c, a, c, d], -1).reshape(-1, 3)
    return render.Mesh(x.reshape(-1, 3), faces, uvs=np.stack([u, v], -1).reshape(-1, 2))


def painted(height: int = 64, width: int = 128) -> np.ndarray:
    """Bands of colour, a net of lines, and letters."""
    y, x = np.mgrid[:height, :width] / [[[height]], [[width]]]
    image = 0.55 + 0.35 * np.stack([np.sin(9 * y + 1), np.sin(5 * y + 12.6 * x), np.cos(7 * y - 6.3 * x)], -1)
    image[(np.arange(height) % 16 == 0), :] = image[:, (np.arange(width) % 16 == 0)] = 0.15
    picture = Image.fromarray(np.uint8(255 * image))
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(size=26)
    for k, letter in enumerate("GRAD"):
        pen.text((width * (k + 0.3) / 4, height * 0.28), letter, fill=(250, 245, 230), font=font)
    return np.asarray(picture) / 255.0


def fit(mesh: render.Mesh, truth: np.ndarray, views: int, rounds: int, show) -> torch.Tensor:
    """A texture with which the pictures are those of the true one."""
    # One above the other and all around: the golden angle leaves no side out.
    cameras = render.Camera.orbit(3.0, np.linspace(-65, 65, views), np.arange(views) * 137.5, fov=42)
    renderer = render.Renderer(cameras, LIGHTS, mode="hard", size=SIZE)
    mesh = mesh.replace(vertices=mesh.vertices.astype(np.float32), texture=truth)
    seen = renderer(mesh)
    paint = torch.zeros(truth.shape, requires_grad=True)
    adam = torch.optim.Adam([paint], lr=0.1)
    for k in range(rounds):
        adam.zero_grad()
        texture = torch.sigmoid(paint)
        (renderer(mesh.replace(texture=texture)) - seen).square().sum().backward()
        adam.step()
        show(k, torch.sigmoid(paint).detach())
    return torch.sigmoid(paint).detach()


def views_of(mesh: render.Mesh, texture) -> list[np.ndarray]:
    cameras = render.Camera.orbit(3.0, 15.0, np.array([70.0, 250.0]), fov=42)
    renderer = render.Renderer(cameras, LIGHTS, mode="hard", size=(180, 180), sampling=2, background=1.0)
    return [picture[..., :3] for picture in renderer(mesh.replace(texture=texture)).numpy()]


def enlarged(texture, size: tuple[int, int] = (180, 360)) -> np.ndarray:
    """As it is, texel by texel, on a sheet of that size."""
    picture = Image.fromarray(np.uint8(255 * np.asarray(texture)))
    return np.asarray(picture.resize((size[1], size[0]), Image.Resampling.NEAREST)) / 255.0


def row(mesh: render.Mesh, texture) -> np.ndarray:
    return np.concatenate([enlarged(texture), *views_of(mesh, texture)], 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--views", type=int, default=12)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    mesh, truth, frames = globe(), painted(), []

    def show(k, texture):
        if k % max(1, options.rounds // 60) == 0:
            frames.append(row(mesh, texture))

    start = torch.full(truth.shape, 0.5)
    found = fit(mesh, truth, options.views, options.rounds, show)
    sheet = render.contact_sheet(
        [row(mesh, t) for t in (truth, start, found)], columns=1, captions=["true", "at first", "found"]
    )
    render.write_image(options.out / "find_texture.png", sheet)
    off = [np.abs(np.asarray(t) - truth).mean() for t in (start, found)]
    print(f"mean difference of the textures: {off[0]:.3f} at first, {off[1]:.3f} in the end")
    print(render.write_video(options.out / "find_texture.mp4", frames, fps=20))
