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
    """Everything that has a direction."""
    layout = [["world"] * 2 + ["pixels"] * 4, ["cameras"] * 2 + ["texture"] * 2 + ["faces"] * 2]
    figure, axes = plt.subplot_mosaic(layout, figsize=(10.5, 7.8), height_ratios=[1.2, 1])
    for name, axis in axes.items():
        title = globals()[name](axis)
        axis.set_title(title, fontsize=9)
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(HERE / "conventions.png", dpi=90)


def arrow(axis, start, end, text="", color="k", at=(4, 4)) -> None:
    """From start to end; the text beside its tip."""
    style = {"arrowstyle": "->", "color": color, "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", end, start, arrowprops=style, annotation_clip=False)
    axis.annotate(text, end, textcoords="offset points", xytext=at, fontsize=9, color=color, annotation_clip=False)


def world(axis) -> str:
    camera = render.Camera.look_at((2.2, 1.6, 3.4), (0, 0.2, 0), fov=42)
    size, mesh = (360, 360), render.Mesh.box((0.6, 0.6, 0.6)).painted((0.8, 0.8, 0.85))
    lights = [render.Ambient(0.5), render.Directional((1, 2, 3), color=0.5)]
    renderer = render.Renderer(camera, lights, mode="hard", size=size, sampling=2, smooth=False, background=1.0)
    axis.imshow(renderer(mesh).numpy()[..., :3].clip(0, 1))
    for tip, name, color, at in (
        ((1.1, 0, 0), "x", "tab:red", (5, -3)),
        ((0, 1.1, 0), "y (up)", "tab:green", (5, -3)),
        ((0, 0, 1.3), "z", "tab:blue", (-4, -12)),
    ):
        (i0, j0), (i1, j1) = camera.to_pixels(np.array([(0, 0, 0), tip], float), size)[0]
        arrow(axis, (j0, i0), (j1, i1), name, color, at)
    return "the world is right-handed"


def pixels(axis) -> str:
    height, width = 4, 6
    grid(axis, height, width)
    for i, j in np.ndindex(height, width):
        axis.text(j + 0.5, i + 0.42, f"({i}, {j})", ha="center", va="bottom", fontsize=7, color="0.35")
    axis.plot(3, 2, "+", color="k", ms=12)
    for x, y in ((0, 0), (6, 0), (0, 4), (6, 4), (3, 2)):
        text = f"({x / 3 - 1:g}, {1 - y / 2:g})"
        axis.annotate(text, (x, y), textcoords="offset points", xytext=(4, 4), fontsize=9, color="tab:purple")
    arrow(axis, (0, -0.35), (1.6, -0.35), "column, NDC x", at=(4, -3))
    arrow(axis, (-0.35, 0), (-0.35, 1.2), "row", at=(-10, -14))
    arrow(axis, (-0.35, 4), (-0.35, 2.8), "NDC y", at=(-18, 6))
    axis.set(xlim=(-1.0, width + 1.0), ylim=(height + 0.4, -0.8), aspect="equal")
    return "image[row, column] of 4 × 6 pixels, their centres, and NDC (purple)"


def grid(axis, height, width) -> None:
    """Lines around pixels, and their centres."""
    for k in range(height + 1):
        axis.plot([0, width], [k, k], color="0.7", lw=0.8)
    for k in range(width + 1):
        axis.plot([k, k], [0, height], color="0.7", lw=0.8)
    j, i = np.meshgrid(np.arange(width), np.arange(height))
    axis.plot(j.ravel() + 0.5, i.ravel() + 0.5, ".", color="0.6")


def cameras(axis) -> str:
    """From the side: OpenGL's frame and OpenCV's, and what depth is."""
    for row, (name, frame) in enumerate((
        ("look_at, orbit (OpenGL)", (((0, 0.75), "y", (4, -4)), ((-0.75, 0), "z", (-10, 4)))),
        ("opencv", (((0, -0.75), "y", (4, -2)), ((0.75, 0), "z", (2, 5)))),
    )):  # fmt: skip
        y = 2.3 - 2.3 * row
        axis.fill([0.55, 0.0, 0.55], [y - 0.3, y, y + 0.3], color="0.85")
        for (dx, dy), text, at in frame:
            arrow(axis, (0, y), (dx, y + dy), text, "tab:green" if text == "y" else "tab:blue", at)
        axis.text(0.75, y + 0.45, f"{name}; x to you", fontsize=8)
        arrow(axis, (0.85, y), (2.4, y), "depth > 0", "0.4", (-50, -12))
    axis.set(xlim=(-1.1, 3.0), ylim=(-1.1, 3.4), aspect="equal")
    return "cameras from their right side"


def texture(axis) -> str:
    height, width = 3, 4
    axis.imshow(np.linspace(0.75, 0.95, height * width).reshape(height, width, 1).repeat(3, -1), extent=(0, 4, 3, 0))
    grid(axis, height, width)
    for (i, j), name in (((0, 0), "texture[0, 0]"), ((2, 0), "texture[2, 0]")):
        axis.text(j + 0.06, i + 0.32, name, fontsize=6.5, va="bottom")
    arrow(axis, (0, 3), (4.6, 3), "u", "tab:red")
    arrow(axis, (0, 3), (0, -0.6), "v", "tab:green")
    for x, y, at in ((0, 3, (-12, -12)), (4, 3, (-8, -12)), (0, 0, (-30, -3)), (4, 0, (-2, 4))):
        text = f"({x // 4}, {1 - y // 3})"
        axis.annotate(text, (x, y), textcoords="offset points", xytext=at, fontsize=9, color="tab:purple")
    axis.set(xlim=(-0.9, 5.0), ylim=(3.7, -0.9), aspect="equal")
    return "texture[row, column], uv (purple)"


def faces(axis) -> str:
    corners = np.array([(0.2, 0.1), (2.0, 0.4), (0.9, 1.7)])
    axis.fill(*corners.T, color="0.88")
    for k in range(3):
        a, b = corners[k], corners[(k + 1) % 3]
        arrow(axis, a + 0.1 * (b - a), a + 0.9 * (b - a), color="0.4")
        axis.text(*(a + 0.13 * (a - corners.mean(0))), str(k), fontsize=10, ha="center", va="center")
    arrow(axis, (2.9, 0.5), (2.9, 1.6), "normal", "tab:blue", (-34, 4))
    arrow(axis, (2.9, 0.5), (3.9, 1.4), "to_light", "tab:orange", (-30, 6))
    axis.plot([2.5, 3.7], [0.5, 0.5], color="0.5", lw=3)
    axis.text(3.1, 0.25, "surface", fontsize=8, ha="center")
    axis.set(xlim=(-0.2, 4.2), ylim=(-0.5, 2.4), aspect="equal")
    return "front of a face; direction to a light"


def chart(rows: int = 64) -> np.ndarray:
    """A texture whose way up can be seen: squares that get redder to the right and greener upwards."""
    i, j = np.indices((rows, rows))
    squares = 0.55 + 0.45 * ((i // 8 + j // 8) % 2)
    return np.stack([squares * (0.3 + 0.7 * j / rows), squares * (1 - 0.7 * i / rows), squares * 0.5], -1)


def leaves(rows: int = 128) -> np.ndarray:
    """A texture with holes."""
    y, x = (np.indices((rows, rows)) - rows / 2 + 0.5) / (rows / 2)
    petals = np.hypot(x, y) < 0.45 + 0.45 * np.abs(np.cos(2.5 * np.arctan2(y, x)))
    return np.stack([0.95 + 0 * x, 0.75 - 0.3 * np.hypot(x, y), 0.2 + 0 * x, petals.astype(float)], -1)


def surfaces() -> None:
    """Textures, opacity, materials and shadows in one scene."""
    around = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * 0.55
    uvs, sides = (around[:, :2] / 0.55 + 1) / 2, [[0, 1, 2], [0, 2, 3]]
    board = 0.55 + 0.35 * ((np.indices((64, 64)) // 32).sum(0) % 2)[..., None] * np.ones(3)
    lying = (around @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])) * 1.3
    shiny = render.Material(kd=0.8, ks=0.7, shininess=60.0)
    scene = render.Mesh.join([
        render.Mesh.plane(14.0, repeat=7.0).replace(texture=board, wrap="wrap"),
        render.Mesh.sphere(4, radius=0.55).moved(by=(-1.1, 0.55, 0.1)).painted((0.85, 0.25, 0.2))
        .replace(material=shiny),
        render.Mesh(lying, sides, uvs=uvs, texture=leaves()).moved(by=(0.2, 0.01, 0.7)),
        render.Mesh(around, sides, uvs=uvs, texture=chart()).moved(by=(1.3, 0.56, -0.4)),
    ])  # fmt: skip
    camera = render.Camera.look_at((0.6, 1.7, 5.0), (0.1, 0.45, 0), fov=34)
    lights = [render.Ambient(0.35), render.Directional((-1.0, 2.2, 1.6), color=0.65)]
    sky = np.linspace([0.45, 0.62, 0.85], [0.9, 0.94, 0.98], 300)[:, None] * np.ones((1, 480, 1))
    settings = {"shading": "phong", "two_sided": True, "mipmaps": True, "shadows": True, "shadow_width": 0.06}
    renderer = render.Renderer(
        camera, lights, mode="hard", size=(300, 480), sampling=3, background=sky, **settings
    )
    render.write_image(HERE / "surfaces.png", renderer(scene)[..., :3])


def seams() -> None:
    """What soft edges do to a square of two triangles, and to a ball."""
    camera = render.Camera.look_at((0, 0, 4), (0, 0, 0), scale=1.0)
    square = render.Mesh(
        np.array([[-0.6, -0.6, 0], [0.6, -0.6, 0], [0.6, 0.6, 0], [-0.6, 0.6, 0]]), [[0, 1, 2], [0, 2, 3]]
    )
    figure, axes = plt.subplots(2, 4, figsize=(10, 5.3))
    for row, mesh in zip(axes, (square, render.Mesh.sphere(2, radius=0.6))):
        outline = render.Renderer(camera, mode="hard", size=(64, 64))(mesh)[..., 3].numpy()
        for axis, (mode, width) in zip(row, (("hard", 1.0), ("softras", 1.0), ("softras", 4.0), ("dibr", 4.0))):
            image = render.Renderer(camera, mode=mode, size=(64, 64), sigma_pixels=width)(mesh)[..., 3].numpy()
            axis.imshow(image, cmap="gray", vmin=0, vmax=1)
            axis.contour(outline, [0.5], colors="tab:red", linewidths=1)
            grown = 100 * (image.sum() / outline.sum() - 1)
            name = {"hard": "hard", "softras": f"SoftRas, {width:g} px", "dibr": f"DIB-R, {width:g} px"}[mode]
            axis.set_title(f"{name}: {grown:+.0f} %", fontsize=10)
            axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(HERE / "seams.png", dpi=80)


if __name__ == "__main__":
    conventions()
    gallery()
    surfaces()
    seams()
