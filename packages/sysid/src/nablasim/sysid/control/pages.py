"""What people see of a training: a page with films before and after, and a film by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nablasim import render
from nablasim.sysid.control.goals import Image, Video
from nablasim.sysid.report import animation, blend, filled, made_by, png, strip, svg, write_page

if TYPE_CHECKING:
    from nablasim.sysid.control.run import Run
    from nablasim.sysid.control.task import Task

HEIGHT = 240
"""Pixels of a film."""


def write_report(run: Run, folder: str | Path, title: str) -> Path:
    """Write report.html into a folder, and give its path."""
    films = {"before": film(run.task, run.motion(first=True)), "after": film(run.task, run.motion())}
    pictures = {f"{name}, in one picture": png(blend(shown)) for name, shown in films.items()}
    goal = run.task.goal
    if isinstance(goal, Image):
        pictures["the picture asked for"] = png(np.asarray(goal.target, np.float64))
    page = filled(
        "control.html.j2",
        title=title,
        text=f"{', '.join(run.task.policies).replace('/', '.')} for {run.task.steps} steps of {run.task.dt:g} s; goal: "
        f"{type(goal).__name__}; seed {run.seed}. The loss went from {run.losses[0]:.4g} to {run.loss:.4g} in "
        f"{run.at[run.best]} iterations; {run.at[-1]} took {run.seconds[-1]:.1f} s.",
        animation=animation(films, 1000 * run.task.dt),
        strips={name: png(strip(shown), wide=720) for name, shown in films.items()},
        pictures=pictures,
        curve=svg(_curve(run)),
        made_by=made_by(),
    )
    return write_page(Path(folder) / "report.html", page)


def write_film(run: Run, file: str | Path) -> Path:
    """A film of the best motion."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    shown = film(run.task, run.motion())
    return render.write_video(file, np.repeat(shown[..., None], 3, axis=3) if shown.ndim == 3 else shown,
                              fps=1 / run.task.dt)  # fmt: skip


def film(task: Task, motion: Any, height: int = HEIGHT) -> NDArray[np.float64]:
    """(frames, height, width, 3): lit surfaces as the goal's camera sees them, or one that sees all of the motion."""
    names = list(task.model.surfaces)
    if not names:
        raise ValueError("nothing of this model can be drawn: it has no surfaces")
    corners = [np.asarray(motion.vertices(name)) for name in names]
    first = np.cumsum([0, *(c.shape[1] for c in corners)])
    faces = np.concatenate([task.model.surfaces[name].faces + k for name, k in zip(names, first)])
    points = np.concatenate(corners, axis=1).astype(np.float32)
    view, size = _view(task.goal, points, height)
    lights: list[Any] = [render.Ambient(0.45), render.Directional((0.4, 1.0, 0.8))]
    renderer = render.Renderer(view, lights, size=size, shading="lambert", background=(1.0, 1.0, 1.0), composite=True)
    paint = np.tile(np.array([0.85, 0.55, 0.2], np.float32), (points.shape[1], 1))
    return np.asarray(renderer(points, faces, colors=paint)[..., :3], np.float64)


def _view(goal: Any, points: NDArray[np.float32], height: int) -> tuple[Any, tuple[int, int]]:
    if isinstance(goal, Video):
        picture = np.shape(goal.target)[:2] if isinstance(goal, Image) else goal.target.size
        return goal.renderer.camera, (height, round(height * picture[1] / picture[0]))
    low, high = points.min((0, 1)), points.max((0, 1))
    middle, far = (low + high) / 2, 1.6 * float(np.linalg.norm(high - low))
    return render.Camera.look_at(eye=middle + np.array([0.1, 0.25, 1.0]) * far, target=middle, fov=45), (height, height)


def _curve(run: Run) -> Figure:
    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(run.at, run.losses, color="tab:blue")
    axes.plot(run.at[run.best], run.loss, "o", color="tab:orange")
    if min(x for x in run.losses if x == x) > 0:
        axes.set_yscale("log")
    axes.set(xlabel="iterations", ylabel="loss")
    axes.grid(True, alpha=0.3)
    return figure
