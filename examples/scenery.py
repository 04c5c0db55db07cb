"""Draws scenes: shaded triangles, lines and points, far ones first; as a film and as a sheet of pictures."""

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import video
from matplotlib.animation import FuncAnimation
from matplotlib.collections import LineCollection, PolyCollection


@dataclass
class Prop:
    """What is drawn of one object: positions (frames, n, 3), and the triangles, lines or points among them."""

    x: np.ndarray
    faces: np.ndarray | None = None
    lines: np.ndarray | None = None
    colour: str = "tab:blue"


@dataclass
class View:
    """Looks at `target` from the side `azimuth`, raised by `elevation` (degrees); `width` (m) is what is seen."""

    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    azimuth: float = 30.0
    elevation: float = 15.0
    width: float = 2.0

    def project(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places on the picture, depth, and the direction to the eye."""
        a, e = np.radians([self.azimuth, self.elevation])
        eye = np.array([np.sin(a) * np.cos(e), np.sin(e), np.cos(a) * np.cos(e)])
        right = np.array([np.cos(a), 0, -np.sin(a)])
        seen = np.asarray(x) - self.target
        return np.stack([seen @ right, seen @ np.cross(eye, right)], axis=-1), seen @ eye, eye


def film(props: list[Prop], times: np.ndarray, path: Path, *, view: View, ground: float | None = 0.0, fps: int = 30):
    """Write path.mp4 (or .gif) and path.png, a sheet of eight of its frames; returns the film's path."""
    figure, axis = plt.subplots(figsize=(6, 4))
    made = FuncAnimation(figure, lambda k: draw(axis, props, k, times[k], view, ground), frames=len(times))
    film = video.save(made, path, fps)
    plt.close(figure)
    sheet, axes = plt.subplots(2, 4, figsize=(14, 5), layout="constrained")
    for axis, k in zip(axes.flat, np.linspace(0, len(times) - 1, 8).round().astype(int)):
        draw(axis, props, k, times[k], view, ground)
    sheet.savefig(path.with_suffix(".png"), dpi=80)
    plt.close(sheet)
    return film


def draw(axis, props, frame, time, view, ground):
    """One picture."""
    axis.clear()
    w = view.width / 2
    axis.set(xlim=(-w, w), ylim=(-w / 1.5, w / 1.5), aspect="equal", xticks=[], yticks=[], title=f"{time:.2f} s")
    if ground is not None:
        turn = np.linspace(0, 2 * np.pi, 90)
        rim = 0.6 * view.width * np.stack([np.cos(turn), 0 * turn, np.sin(turn)], axis=1) + view.target
        rim[:, 1] = ground
        axis.add_collection(PolyCollection([view.project(rim)[0]], facecolors="0.9"))
    for prop in props:
        places, depth, eye = view.project(prop.x[frame])
        if prop.faces is not None:
            order = np.argsort(depth[prop.faces].mean(axis=1))
            corners = prop.x[frame][prop.faces[order]]
            normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            normals /= np.linalg.norm(normals, axis=1, keepdims=True) + 1e-12
            lamp = eye + np.array([0.3, 0.6, 0])
            light = 0.45 + 0.55 * np.abs(normals @ lamp / np.linalg.norm(lamp))
            shades = light[:, None] * matplotlib.colors.to_rgb(prop.colour)
            shades = shades.clip(0, 1)
            axis.add_collection(PolyCollection(places[prop.faces[order]], facecolors=shades, edgecolors=shades, lw=0.3))
        if prop.lines is not None:
            axis.add_collection(LineCollection(places[prop.lines], colors=prop.colour, lw=1.2))
        if prop.faces is None and prop.lines is None:
            axis.scatter(*places.T, s=14, color=prop.colour)
    return axis.collections
