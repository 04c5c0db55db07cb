"""Draws scenes with `nablasim.render`: triangles, lines as rods and points as balls, on a chequered floor.

A scene becomes a film and a sheet of pictures.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nablasim import render

SIZE = (300, 450)
RED, BLUE, GOLD, GREEN, GREY = (0.84, 0.25, 0.2), (0.2, 0.45, 0.75), (0.87, 0.66, 0.2), (0.25, 0.6, 0.35), (0.35,) * 3
LAMP = np.array([0.45, 1.0, 0.35]) / np.linalg.norm([0.45, 1.0, 0.35])


@dataclass
class Prop:
    """What is drawn of one object: positions (frames, n, 3), and the triangles, lines or points among them."""

    x: np.ndarray
    faces: np.ndarray | None = None
    lines: np.ndarray | None = None
    colour: tuple[float, ...] = BLUE
    thick: float = 0.012
    """The radius (m) of rods and balls."""

    def triangles(self, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and faces; the same faces in every frame."""
        x = np.asarray(self.x[frame], float)
        if self.faces is not None:
            return x, self.faces
        return rods(x[self.lines], self.thick) if self.lines is not None else balls(x, self.thick)


@dataclass
class View:
    """Looks at `target` from the side `azimuth`, raised by `elevation` (degrees); `width` (m) is what is seen there."""

    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    azimuth: float = 30.0
    elevation: float = 15.0
    width: float = 2.0

    def camera(self) -> render.Camera:
        distance = 2.4 * self.width
        fov = 2 * np.degrees(np.arctan(self.width * SIZE[0] / SIZE[1] / 2 / distance))
        return render.Camera.orbit(distance, self.elevation, self.azimuth, target=self.target, fov=fov)


def film(props: list[Prop], times: np.ndarray, path: Path, *, view: View, ground: float | None = 0.0, fps: int = 30):
    """Write path.mp4 and path.png, a sheet of eight of its frames; returns the film's path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    renderer = render.Renderer(view.camera(), mode="hard", size=SIZE, sampling=2, background=(0.93, 0.95, 0.98),
                               near=0.1 * view.width, far=20 * view.width)  # fmt: skip
    frames = np.stack([renderer(scene(props, k, view, ground)).numpy()[..., :3] for k in range(len(times))])
    shown = np.linspace(0, len(times) - 1, 8).round().astype(int)
    render.write_image(path.with_suffix(".png"), render.contact_sheet(frames[shown], columns=4))
    return render.write_video(path.with_suffix(".mp4"), frames, fps=fps)


def scene(props: list[Prop], frame: int, view: View, ground: float | None) -> render.Mesh:
    """All of one picture: the props, lit from both sides, and their shadows on the floor."""
    meshes = []
    for prop in props:
        x, faces = prop.triangles(frame)
        corners = x[faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.linalg.norm(normals, axis=1, keepdims=True) + 1e-12
        light = 0.4 + 0.6 * np.abs(normals @ LAMP)
        meshes.append(render.Mesh(x, faces, face_colors=light[:, None] * prop.colour))
        if ground is not None:
            flat = x - (x[:, 1:2] - ground) * (LAMP / LAMP[1])[None]
            flat[:, 1] = ground - 1.5e-3 * view.width
            meshes.append(render.Mesh(flat, faces, face_colors=np.full((len(faces), 3), 0.6)))
    if ground is not None:
        meshes.append(floor(view, ground - 3e-3 * view.width))  # What lies on the floor sinks in a little.
    return render.Mesh.join(meshes)


def floor(view: View, height: float) -> render.Mesh:
    """A chequered square."""
    cells = 24
    plane = render.Mesh.plane(4 * view.width, cells=cells).moved(by=(view.target[0], height, view.target[2]))
    i, j = np.divmod(np.repeat(np.arange(cells * cells), 2), cells)
    shade = np.where((i + j) % 2, 0.9, 0.82)[:, None] * np.ones(3)
    return plane.replace(face_colors=shade, uvs=None)


def rods(ends: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Prisms with four sides from end to end."""
    along = ends[:, 1] - ends[:, 0]
    along = along / (np.linalg.norm(along, axis=1, keepdims=True) + 1e-12)
    aside = np.cross(along, np.eye(3)[np.abs(along).argmin(axis=1)])
    aside /= np.linalg.norm(aside, axis=1, keepdims=True) + 1e-12
    up = np.cross(along, aside)
    around = radius * np.stack([aside, up, -aside, -up], axis=1)
    x = ends[:, :, None] + around[:, None]  # (rods, ends, corners, 3)
    k = np.arange(4)
    sides = np.concatenate([np.stack([k, (k + 1) % 4, 4 + k], 1), np.stack([(k + 1) % 4, 4 + (k + 1) % 4, 4 + k], 1)])
    return x.reshape(-1, 3), (8 * np.arange(len(ends))[:, None, None] + sides).reshape(-1, 3).astype(np.int32)


def balls(centres: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """A small sphere at every point."""
    one = render.Mesh.sphere(1, radius)
    x = centres[:, None] + one.vertices
    faces = len(one.vertices) * np.arange(len(centres))[:, None, None] + one.faces
    return x.reshape(-1, 3), faces.reshape(-1, 3).astype(np.int32)
