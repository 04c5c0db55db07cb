"""`ph.show`: trajectories, motions or files in a browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from os import PathLike
from typing import Any

from nablasim.physics.errors import MissingPackage
from nablasim.physics.time import Motion, Trajectory, load_motions
from nablasim.physics.view.viewer import Slider, Viewer

Shown = Trajectory | Motion | str | PathLike[str]
MOST = 16
"""How many motions a page shows."""


def show(
    what: Shown | Mapping[str, Shown],
    *,
    beside: Shown | Mapping[str, Shown] | None = None,
    sliders: Mapping[str, Slider | tuple[float, float, float]] | None = None,
    run: Callable[[dict[str, float]], Trajectory | Motion] | None = None,
    pictures: Any = None,
    title: str = "nablasim",
    camera: tuple[Any, Any] | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
) -> Viewer:
    """Show a trajectory in the browser: play, scrub, orbit, where things touch and with what force.

    Gives a `Viewer`: a notebook shows it below the cell, and elsewhere `viewer.open()` opens the page at `viewer.url`,
    and `viewer.wait()` keeps it there.

    what: a trajectory, a file that `trajectory.save` wrote, or several by name; the scenes of a batch have numbers.
    beside: what it is compared with, such as the target of a fit: lets the first be seen through it.
    sliders, run: numbers by name, as (low, high, first value), and what is run with them when one is moved:
        `run=lambda values: ph.rollout(model.replace(values), dt=1e-3, steps=2000, every=20)`.
    pictures: a video (frames, height, width, 3) from 0 to 1 or in bytes, one picture per frame.
    camera: where it is at first, and what it looks at.
    port: or the next one that is free.
    """
    if find_spec("viser") is None:
        raise MissingPackage("viser", "showing motions in a browser", "view")
    if (sliders is None) != (run is None):
        raise ValueError("sliders and run belong together: what is run when a slider is moved")
    motions = {**_motions(what, "motion"), **({} if beside is None else _motions(beside, "beside"))}
    if len(motions) > MOST:
        raise ValueError(f"there are {len(motions)} motions, and a page shows {MOST}: choose some of trajectory.scenes")
    made = {name: s if isinstance(s, Slider) else Slider(*s) for name, s in (sliders or {}).items()}
    again = None if run is None else lambda values: _motion(run(values))
    if pictures is not None:
        name, first = next(iter(motions.items()))
        motions[name] = first.beside(pictures)
    return Viewer(motions, title=title, sliders=made, run=again, camera=camera, host=host, port=port)


def _motions(what: Shown | Mapping[str, Shown], name: str) -> dict[str, Motion]:
    """By name; of files and batches there may be several."""
    if isinstance(what, Mapping):
        found = {name: _motions(one, name) for name, one in what.items()}
        return {name if len(several) == 1 else f"{name} {own}": motion
                for name, several in found.items() for own, motion in several.items()}  # fmt: skip
    if isinstance(what, (str, PathLike)):
        return load_motions(what)
    if isinstance(what, Trajectory) and what.layout.scenes:
        return {str(k): Motion.of(scene) for k, scene in enumerate(what.scenes[: MOST + 1])}
    return {name: _motion(what)}


def _motion(what: Trajectory | Motion) -> Motion:
    return what if isinstance(what, Motion) else Motion.of(what)
