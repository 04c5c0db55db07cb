"""Draws the pictures of these pages: `python docs/render/figures.py`."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from nablasim import render

HERE = Path(__file__).parent


def scene() -> render.Mesh:
    """A ball and a box on a ground."""
    ball = render.Mesh.sphere(3, radius=0.6).moved(by=(-0.55, 0.6, 0.2)).painted((0.9, 0.45, 0.2))
    box = render.Mesh.box((0.8, 0.8, 0.8)).moved(by=(0.6, 0.4, -0.3)).painted((0.25, 0.5, 0.85))
    return render.Mesh.join([ball, box, render.Mesh.plane(4.0, cells=4).painted((0.75, 0.75, 0.7))])


def gallery() -> None:
    """One scene in every mode and every output."""
    mesh = scene()
    camera = render.Camera.look_at((1.0, 2.0, 4.0), (0, 0.45, 0), fov=40)
    lights = [render.Ambient(0.35), render.Directional((1.0, 2.0, 1.5), color=0.7)]

    def draw(output="rgba", mesh=mesh, **settings):
        renderer = render.Renderer(camera, lights, size=(160, 200), background=1.0, smooth=False, **settings)
        return renderer(mesh, output=output)

    wide = {"sigma": 3e-3, "gamma": 3e-3}
    pictures = {
        "hard": draw(mode="hard", sampling=2),
        "SoftRas": draw(),
        "SoftRas, sigma 3e-3": draw(**wide),
        "SoftRas, sigma 3e-3, composite": draw(composite=True, **wide),
        "DIB-R: alpha": draw(mode="dibr", sigmainv=500.0)[..., 3],
        "silhouette, 6 pixels": draw("silhouette", sigma_pixels=6.0),
        "depth": draw("depth", mode="hard", far=8.0),
        "normals": 0.5 + 0.5 * draw("normals", mode="hard"),
        "object": draw("object", mode="hard"),
    }
    figure, axes = plt.subplots(3, 3, figsize=(9, 7.6))
    for axis, (name, image) in zip(axes.ravel(), pictures.items()):
        colors = "tab10" if name == "object" else "viridis"
        axis.imshow(image.numpy()[..., :3].clip(0, 1) if image.ndim == 3 else image.numpy(), cmap=colors)
        axis.set_title(name, fontsize=10)
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(HERE / "gallery.png", dpi=80)


def conventions() -> None:
    """The world and the picture, side by side."""
    figure, (world, picture) = plt.subplots(1, 2, figsize=(10, 4.6), width_ratios=[1, 1.25])
    camera = render.Camera.look_at((2.2, 1.6, 3.4), (0, 0.2, 0), fov=42)
    size, mesh = (360, 360), render.Mesh.box((0.6, 0.6, 0.6)).painted((0.8, 0.8, 0.85))
    lights = [render.Ambient(0.5), render.Directional((1, 2, 3), color=0.5)]
    world.imshow(
        render.Renderer(camera, lights, mode="hard", size=size, sampling=2, smooth=False, background=1.0)(mesh)
        .numpy()[..., :3]
        .clip(0, 1)
    )
    for tip, name, color in (
        ((1.1, 0, 0), "x", "tab:red"),
        ((0, 1.1, 0), "y (up)", "tab:green"),
        ((0, 0, 1.3), "z", "tab:blue"),
    ):
        (i0, j0), (i1, j1) = camera.to_pixels(np.array([(0, 0, 0), tip], float), size)[0]
        world.annotate("", (j1, i1), (j0, i0), arrowprops={"arrowstyle": "->", "color": color, "lw": 2})
        world.text(j1 + 6, i1 - 4, name, color=color, fontsize=12)
    world.set_title("world: right-handed; a camera looks along its own -z, y up", fontsize=9)
    world.set_axis_off()

    height, width = 4, 6
    for k in range(height + 1):
        picture.plot([0, width], [k, k], color="0.7", lw=0.8)
    for k in range(width + 1):
        picture.plot([k, k], [0, height], color="0.7", lw=0.8)
    for i in range(height):
        for j in range(width):
            picture.plot(j + 0.5, i + 0.5, ".", color="0.6")
            picture.text(j + 0.5, i + 0.42, f"({i}, {j})", ha="center", va="bottom", fontsize=7, color="0.35")
    picture.plot(3, 2, "+", color="k", ms=12)
    for x in (0, width / 2, width):
        y = height * (1 - x / width)
        for at, text in (
            ((x, y), f"({x / 3 - 1:g}, {1 - y / 2:g})"),
            ((x, height - y), f"({x / 3 - 1:g}, {y / 2 - 1:g})"),
        ):
            picture.annotate(text, at, textcoords="offset points", xytext=(4, 4), fontsize=9, color="tab:purple")
    picture.annotate("", (1.6, -0.35), (0, -0.35), arrowprops={"arrowstyle": "->"}, annotation_clip=False)
    picture.text(1.7, -0.3, "column, NDC x", fontsize=9)
    picture.annotate("", (-0.35, 1.6), (-0.35, 0), arrowprops={"arrowstyle": "->"}, annotation_clip=False)
    picture.text(-0.55, 1.7, "row", fontsize=9, rotation=90, va="top", ha="center")
    picture.annotate("", (-0.35, 2.4), (-0.35, 4), arrowprops={"arrowstyle": "->"}, annotation_clip=False)
    picture.text(-0.55, 4, "NDC y", fontsize=9, rotation=90, va="bottom", ha="center")
    picture.set(xlim=(-0.8, width + 0.9), ylim=(height + 0.5, -0.7), aspect="equal")
    picture.set_title("image[row, column] of 4 × 6 pixels, and NDC (purple)", fontsize=9)
    picture.set_axis_off()
    figure.tight_layout()
    figure.savefig(HERE / "conventions.png", dpi=90)


if __name__ == "__main__":
    conventions()
    gallery()
