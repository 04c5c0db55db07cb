"""What `nablasim view` shows: a scene that is run, motions from a file, what was found, or what moves in a clip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nablasim import physics as ph
from nablasim.sysid.look import look
from nablasim.sysid.problem import Simulation
from nablasim.sysid.report import FILE, motion_of
from nablasim.sysid.scenes import Stage, read_scene, settled, watch

SLIDERS = 12
"""How many numbers can be moved, at most."""
WIDER = 5.0
"""Sliders go from a fifth of a number to five times as much."""
TALL = 270
"""Pixels: clips are shown no larger, since every picture is sent on its own."""


class CannotView(ValueError):
    """What cannot be shown; the message says what can."""


def view(path: str | Path, *, video: str | Path | None = None, seconds: float = 2.0, fps: float | None = None,
         port: int = 8080) -> ph.Viewer:  # fmt: skip
    """Show a scene file (.yaml), motions (.npz), the folder of a report or its page, or a clip.

    video: a clip beside a scene file, whose frames it is then run for, instead of `seconds` at `fps` (30).
    """
    path = Path(path)
    if not path.exists():
        raise CannotView(f"there is no {path}")
    if video is not None and path.suffix not in (".yaml", ".yml"):
        raise CannotView(f"a video is shown beside a scene file (.yaml), not beside {path.name}")
    if path.suffix in (".yaml", ".yml"):
        return _scene(path, video, seconds, fps, port)
    if path.suffix == ".npz":
        return ph.show(path, title=path.name, port=port)
    folder = path.parent if path.suffix == ".html" else path
    if (folder / FILE).is_file():
        return ph.show(folder / FILE, title=f"{folder.resolve().name}: what was found", port=port)
    if path.suffix == ".html" or (path.is_dir() and (path / "report.html").exists()):
        raise CannotView(f"there is no {FILE} in {folder}: identify and demo write it, where the scene has objects")
    return ph.show(_clip(path, fps), title=path.name, port=port, camera=((0.0, 0.5, 1.3), (0.0, 0.5, 0.0)))


def _scene(path: Path, video: str | Path | None, seconds: float, fps: float | None, port: int) -> ph.Viewer:
    """A scene file as it is run, again where a slider is moved."""
    script = read_scene(path)
    if script.entries.pendula:
        raise CannotView(f"{path} has pendula, which have no surfaces to be shown: nablasim identify tells of them")
    if script.entries.camera.open:
        raise CannotView(f"the camera of {path} is not known: give eye, target and fov to see from there")
    pictures = None
    if video is None:
        lacking = [name for name, entry in script.entries.objects.items() if entry.unknown]
        if lacking:
            raise CannotView(f"how {lacking[0]} begins is not known without its video: nablasim view {path} --video …")
        stage, rate = Stage(script), fps or 30.0
        dt, times = stage.time_step(rate), np.arange(max(round(seconds * rate), 1) + 1) / rate
    else:
        stage = Stage(settled(script, video, fps, look)[0])
        watched = watch(stage, video, fps=fps)
        dt, times, pictures = watched.dt, watched.whole.times, watched.whole.frames
    simulation = Simulation(stage.model, dt=dt, times=times)

    def run(values: dict[str, float]) -> ph.Motion:
        return motion_of(simulation, stage.model.replace(values), pictures)

    camera = stage.entries.camera
    return ph.show({"scene": run({})}, sliders=sliders(stage.model), run=run, title=path.name,
                   camera=(camera.eye, camera.target), port=port)  # fmt: skip


def sliders(model: ph.Model) -> dict[str, ph.Slider]:
    """The numbers of a model that can be moved: positive ones that are no lengths, which its surfaces are made of."""
    found = {}
    for parameter in model.parameters():
        value, (least, most) = np.asarray(parameter.value, float), parameter.bounds
        if value.size != 1 or parameter.unit == "m" or not value.item() > 0:
            continue
        low = max(value.item() / WIDER, 0.0 if least is None else least)
        high = min(value.item() * WIDER, np.inf if most is None else most)
        found[parameter.name] = ph.Slider(low, high, value.item(), parameter.unit)
    return dict(list(found.items())[:SLIDERS])


def _clip(path: Path, fps: float | None) -> dict[str, ph.Motion]:
    """What moves in a clip, as its outline on an upright sheet as high as one metre, beside the clip itself."""
    from nablasim import render

    seen = look(path, fps=fps)
    frames, height, width = seen.masks.shape
    shown = render.read_video(path, size=(min(TALL, height), round(width * min(TALL, height) / height)), fps=fps)
    outlines = [_outline(seen.masks[k]) for k in range(frames)]
    most = max(map(len, outlines), default=0)
    if not most:
        raise CannotView(f"nothing was followed in {path.name}: nablasim look {path} says what was seen")
    points = np.full((frames, most, 3), np.nan, np.float32)
    last = np.zeros((1, 2))
    for k, outline in enumerate(outlines):
        last = outline if len(outline) else last[:1]
        filled = last[np.arange(most) % len(last)]  # Points are as many in every frame.
        points[k] = np.stack([(filled[:, 1] - width / 2) / height, 1 - filled[:, 0] / height, 0 * filled[:, 0]], 1)
    motion = ph.Motion(seen.times, {"outline": ph.Thing(points)})
    return {"what moves": motion.beside(shown.frames[:frames])}


def _outline(mask: Any) -> Any:
    """Pixels (row, column) at the edge of a mask."""
    inside = np.asarray(mask) > 0.5
    edge = inside.copy()
    edge[1:-1, 1:-1] &= ~(inside[:-2, 1:-1] & inside[2:, 1:-1] & inside[1:-1, :-2] & inside[1:-1, 2:])
    return np.argwhere(edge)
