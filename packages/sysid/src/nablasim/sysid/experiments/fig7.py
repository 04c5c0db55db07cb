"""Fig. 7: the mass from a video in one colour, with shading, or with a texture: the error against iterations.

The same bodies are pushed and fly; what differs is how they look. Gradients are of one sweep back through pictures and
physics, as in the paper, and the rate of the descent is the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nablasim import render
from nablasim.sysid.experiments.answers import number
from nablasim.sysid.experiments.experiment import Chapter, Plate
from nablasim.sysid.experiments.rigid import Rules, camera
from nablasim.sysid.problem import Param, Pictures, Problem
from nablasim.sysid.report import Table
from nablasim.sysid.video import Video

LOOKS = ("one colour", "shading", "texture")
RATE, MOMENTUM = 3.0, 0.5
"""Of the descent on the mean of squares, in the logarithm of the mass."""
LONGEST = 0.3
"""No step of the descent is longer than this, in the logarithm: a first slope may be steep."""
RULES = Rules(bounds=(("body.density", (2.0, 12.0)),), flying=1.0, frames=15, seed=7)


@dataclass(frozen=True)
class Search:
    """The item of one search: a body, and how it looks."""

    rules: Rules
    index: int
    look: str
    steps: int

    def run(self) -> list[float]:
        """The relative error of the mass before each step, and at the end."""
        problem = film(self.rules, self.index, self.look)
        truth = self.rules.case(self.index).truth["body.density"]
        u = problem.space.draw(np.random.default_rng([self.index, 0]))
        return [abs(float(np.exp(v)) / truth - 1) for v in _descend(problem, u, self.steps)]


def film(rules: Rules, index: int, look: str) -> Problem:
    """The problem to find the density of a body from its video in colours."""
    case = rules.case(index)
    lights: list[Any] = [render.Ambient(0.3), render.Directional((1.0, 2.0, 1.5))]
    renderer = render.Renderer(
        camera(), lights, shading="color" if look == "one colour" else "phong", size=(rules.size, rules.size),
        material=render.Material(ka=1.0, kd=0.7, ks=0.3, shininess=20.0), sigma_pixels=0.5, composite=True,
    )  # fmt: skip
    corners, faces = case.motion.vertices("body").float(), case.model.surfaces["body"].faces
    paint = _paint(case.mesh.vertices, look)
    pictures = renderer(corners, faces, **paint).numpy()[..., :3]
    params = [Param(name, bounds) for name, bounds in rules.bounds]
    observe = Pictures(renderer, paint=paint)
    target = Video(pictures, case.motion.times).rounded()
    return Problem(case.model, target=target, observe=observe, dt=rules.dt, params=params)


def _paint(points: Any, look: str) -> dict[str, Any]:
    """One colour, or patches of many around the body."""
    if look != "texture":
        return {"colors": np.tile(np.array([0.8, 0.6, 0.4], np.float32), (len(points), 1))}
    x, y, z = (points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)).T
    uvs = np.stack([0.5 + np.arctan2(z, x) / (2 * np.pi), 0.5 + np.arcsin(np.clip(y, -1, 1)) / np.pi], axis=-1)
    patches = np.random.default_rng(0).uniform(0.15, 1.0, (8, 16, 3))
    return {"uvs": uvs.astype(np.float32), "texture": patches.astype(np.float32)}


def _descend(problem: Problem, u: Any, steps: int) -> list[float]:
    """Descent with momentum."""
    path, speed = [float(u[0])], 0.0
    for _ in range(steps):
        _, gradient = problem.gradient(np.array([path[-1]]))
        speed = float(np.clip(MOMENTUM * speed - RATE * gradient[0], -LONGEST, LONGEST))
        path.append(float(problem.space.clip(np.array([path[-1] + speed]))[0]))
    return path


SCALES = {"ci": (1, 3), "desk": (5, 60), "paper": (50, 200)}
"""Bodies and steps."""


@dataclass(frozen=True)
class Fig7:
    """The experiment."""

    name: str = "fig7"
    title: str = "Fig. 7: colour, shading and texture"

    def items(self, size: str) -> list[Any]:
        bodies, steps = SCALES[size]
        rules = RULES if size != "ci" else Rules(bounds=RULES.bounds, flying=1.0, frames=6, size=24, seed=7)
        return [Search(rules, k, look, steps) for look in LOOKS for k in range(bodies)]

    def chapter(self, size: str, items: Sequence[Any], results: Sequence[Any]) -> Chapter:
        paths: dict[str, list[list[float]]] = {}
        for item, path in zip(items, results):
            paths.setdefault(item.look, []).append(path)
        after = [k for k in (0, 5, 10, 20, SCALES[size][1]) if k <= SCALES[size][1]]
        rows = [(look, *(number(float(np.mean([e[k] for e in errors]))) for k in after))
                for look, errors in paths.items()]  # fmt: skip
        table = Table(("look", *(f"after {k} steps" for k in after)), tuple(rows),
                      f"mean relative error of the mass of {SCALES[size][0]} bodies")  # fmt: skip
        text = (
            "Bodies are pushed and fly for half a second; guesses of the mass are blind. Films are in 8-bit colours of "
            "64 × 64 pixels. The paper finds that shading and texture converge faster than one colour.",
        )
        data = {"searches": [{**asdict(i), "errors": r} for i, r in zip(items, results)]}
        caption = "The mean error of the mass against iterations."
        return Chapter(self.name, self.title, text, (table,), (), (Plate(_draw(paths), caption),), data)


def _draw(paths: dict[str, list[list[float]]]) -> Figure:
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for look, errors in paths.items():
        axes.semilogy(np.mean(errors, axis=0), label=look)
    axes.set(xlabel="iterations", ylabel="relative error of the mass")
    axes.grid(True, alpha=0.3)
    axes.legend()
    return figure


FIG7 = Fig7()
