"""control-cloth (Fig. 5 and 6b): a cloth is thrown through air that lifts and drags it, to end as in one picture.

Searched for is the velocity that it starts with; with `spins` a spin as well, which a centre of mass does not tell:
where that ends are three numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid import control
from nablasim.sysid.experiments.steering import CENTRE, PICTURE, RANDOM, Scale, Steering
from nablasim.sysid.problem import Pyramid

CELLS = ((4, 8), (8, 16), (16, 16), (16, 32), (32, 32))
"""Of the cloths: 64, 256, 512, 1024 and 2048 triangles."""
DENSITY = 0.15
"""kg/m²."""
SPEED, SPIN = 2.0, 1.0
"""How fast throws are (m/s, rad/s)."""


class Throw(nn.Module):
    """The velocities with which a rigid throw begins, (points, 3), of a velocity and a spin about the middle."""

    arms: torch.Tensor

    def __init__(self, points: ArrayLike, *, spins: bool = True, spread: float = 0.5):
        super().__init__()
        self.spins, self.spread = spins, spread
        points = torch.tensor(np.asarray(points, np.float64))
        self.register_buffer("arms", points - points.mean(0))
        self.velocity = nn.Parameter(torch.zeros(3, dtype=torch.float64))
        self.spin = nn.Parameter(torch.zeros(3, dtype=torch.float64), requires_grad=spins)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.velocity, std=self.spread)
        if self.spins:
            nn.init.normal_(self.spin, std=self.spread)

    def forward(self) -> torch.Tensor:
        return self.velocity + torch.linalg.cross(self.spin.expand_as(self.arms), self.arms)


@dataclass(frozen=True)
class Cloth:
    """The stage: a seed decides how large and how fine the cloth is, how it lies, and the throw that made the goal."""

    spins: bool = False
    steps: int = 15
    size: int = 64
    cells: tuple[tuple[int, int], ...] = CELLS

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"optimiser": "quasi-newton", "rate": 0.5}

    def drawn(self, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng([5, seed])
        width, height = rng.uniform(0.8, 1.2, 2)
        rest = ph.TriMesh.grid((width, height), cells=self.cells[seed % len(self.cells)])
        mesh = rest.moved(pos=(-width / 2, 0, -height / 2)).moved(rot=ph.quat((1, 0, 0), np.pi / 2))
        mesh = mesh.moved(rot=ph.quat(rng.normal(size=3), rng.uniform(0.3, 0.6)))
        way, about = rng.normal(size=(2, 3))
        way[1] = abs(way[1])
        return {
            "mesh": mesh, "rest": rest.vertices, "velocity": SPEED * way / np.linalg.norm(way),
            "spin": SPIN * about / np.linalg.norm(about) * self.spins,
        }  # fmt: skip

    def model(self, seed: int) -> ph.Model:
        scene = ph.Scene()
        scene.add_cloth("cloth", self.drawn(seed)["mesh"], density=DENSITY, stretch=40.0, shear=25.0, damping=0.01,
                        bend=2e-3, bend_damping=1e-5, lift=0.4, drag=0.3, pos=(0, 1, 0))  # fmt: skip
        return scene.build()

    def thrown(self, seed: int) -> Any:
        """The motion that made the goal."""
        d = self.drawn(seed)
        velocity = d["velocity"] + np.cross(d["spin"], d["mesh"].vertices - d["mesh"].vertices.mean(axis=0))
        model = self.model(seed).replace({"cloth.v": velocity})
        return ph.rollout(model, dt=1 / 30, steps=self.steps, substeps=_substeps(model)).numpy()

    def task(self, seed: int, told: str) -> control.Task:
        model, points = self.model(seed), self.drawn(seed)["mesh"].vertices
        throw = Throw(points, spins=self.spins, spread=SPEED if told == RANDOM else 0.5)
        return control.Task(model, {"cloth.v": throw}, self._told(seed, told), dt=1 / 30, steps=self.steps,
                            substeps=_substeps(model))  # fmt: skip

    def _told(self, seed: int, told: str) -> Any:
        end = self.thrown(seed)["cloth"].x[-1]
        if told == CENTRE:
            masses = self._masses(seed)
            return control.CentreOfMass("cloth", masses @ end / masses.sum(), masses=masses)
        camera = render.Camera.look_at(eye=(0.0, 3.6, 2.6), target=(0.0, 0.9, 0.0), fov=65)
        lights: list[Any] = [render.Ambient(0.3), render.Directional((0.7, 1.0, 0.6))]
        view = render.Renderer(camera, lights, size=(self.size, self.size), shading="lambert", composite=True)
        paint = {"colors": _dyed(self.drawn(seed)["rest"])}
        target = view(np.float32(end), self.drawn(seed)["mesh"].faces, **paint)[..., :3]
        return control.Image(view, target, loss=Pyramid(5), paint=paint)

    def _masses(self, seed: int) -> NDArray[np.float64]:
        mesh = self.drawn(seed)["mesh"]
        return np.asarray(np.bincount(mesh.faces.ravel(), np.repeat(mesh.areas, 3), len(mesh.vertices)), np.float64)

    def misses(self, seed: int, motion: Any) -> tuple[float, ...]:
        """Of the centre of mass, and of every point: how the cloth lies."""
        end, masses = torch.as_tensor(motion["cloth"].x).detach().numpy()[-1].astype(np.float64), self._masses(seed)
        away = end - self.thrown(seed)["cloth"].x[-1]
        return float(np.linalg.norm(masses @ away / masses.sum())), float(np.linalg.norm(away, axis=1).mean())


def _dyed(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Colours that say which part of the cloth is where."""
    low, wide = points.min(axis=0), np.maximum(np.ptp(points, axis=0), 1e-9)
    u, _, v = ((points - low) / wide).T
    return np.stack([0.2 + 0.8 * u, 0.2 + 0.8 * v, 1.0 - 0.4 * (u + v)], axis=-1).astype(np.float32)


def _substeps(model: ph.Model) -> int:
    return math.ceil(1 / 30 / (0.5 * ph.stable_dt(model)))


CONTROL_CLOTH = Steering(
    name="control-cloth",
    title="Fig. 6b: a cloth is thrown to end as in a picture",
    text=(
        "A dyed cloth of 64 to 2,048 triangles (another one for each seed) is thrown through air that lifts and drags "
        "it, half a second long. Its velocity is searched for, so that it ends as in one picture of 64 × 64 pixels, "
        "drawn of the true throw; or so that its centre of mass ends where that of the true throw does; random throws "
        "are the third. The search is L-BFGS, one motion per iteration, from slow random throws.",
        "The paper says of DiffPhysics that a centre of mass does not tell how a cloth lies. With one velocity for all "
        "points it does tell the throw; where a spin is searched for as well (`Cloth(spins=True)`), it does not.",
    ),
    stage=Cloth(),
    scales=(
        ("ci", Scale(1, 2, (("steps", 5), ("size", 24)))),
        ("desk", Scale(5, 60)),
        ("paper", Scale(5, 150)),
    ),
    near=0.027,
    measures=("centre of mass", "every point"),
    paper=((PICTURE, "0.027 (median)"),),
)
