"""Rigid bodies that are pushed, fly and bounce: the cases of Tables 1 and 2.

A case is drawn from its number alone: every method sees the same body, and any number of processes draw the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.experiments.shapes import names, shape
from nablasim.sysid.losses import Loss
from nablasim.sysid.observations import Pictures, States
from nablasim.sysid.parameters import Param
from nablasim.sysid.problem import Problem
from nablasim.sysid.video import Video

DT = 1 / 960
EVERY = 32
GROUND = {"ground.ke": (1.0, 500.0), "ground.kd": (1.0, 500.0), "ground.kf": (1.0, 500.0), "ground.mu": (0.2, 1.0)}


@dataclass(frozen=True)
class Rules:
    """From which cases are drawn. `bounds` are those of the parameters that are searched for; the others are known."""

    bounds: tuple[tuple[str, tuple[float, float]], ...]
    ranges: tuple[tuple[str, tuple[float, float]], ...] = tuple(GROUND.items())
    frames: int = 60
    size: int = 64
    flying: float = 0.0
    """The part of cases without a ground."""
    seed: int = 0
    finer: int = 1
    """Steps of the data for each step of the fit: more than one where data come from other settings."""
    renderer: str = "soft"
    """Of the data: "soft" is that of the fit, "hard" a z-buffer with nine samples per pixel."""


@dataclass(frozen=True)
class Case:
    """One body: what it is, how it starts, how it is pushed, and the numbers that are to be found."""

    rules: Rules
    index: int

    @cached_property
    def _drawn(self) -> dict[str, Any]:
        rng = np.random.default_rng([self.rules.seed, self.index])
        name = str(rng.choice(names()))
        volume, stretch = rng.uniform(1.5, 2.5), rng.uniform(0.8, 1.25, 3)
        turn = rng.normal(size=4)
        truth = {n: float(rng.uniform(*r)) for n, r in (("body.density", (2.0, 12.0)), *self.rules.ranges)}
        mesh = shape(name)
        solid = ph.solid_mass_properties(mesh, 1.0)
        scale = (volume / solid.mass / float(np.prod(stretch))) ** (1 / 3) * stretch
        rot = turn / np.linalg.norm(turn)
        height = rng.uniform(0.1, 1.2) - _lowest(mesh.vertices * scale, rot)
        pos = np.array([rng.uniform(-1.5, 1.5), height, rng.uniform(-1.5, 1.5)])
        vel = rng.uniform([-1.5, -1.0, -1.5], [1.5, 1.5, 1.5])
        push = rng.normal(size=3)
        push *= 7 * volume * rng.uniform(1.0, 2.5) / np.linalg.norm(push)
        return {
            "shape": name, "scale": scale, "pos": pos, "rot": rot, "vel": vel, "omega": rng.uniform(-2, 2, 3),
            "push": push, "at": 0.2 * scale * rng.uniform(-1, 1, 3), "truth": truth,
            "flies": bool(rng.uniform() < self.rules.flying),
        }  # fmt: skip

    @property
    def shape(self) -> str:
        return str(self._drawn["shape"])

    @property
    def truth(self) -> dict[str, float]:
        """What is searched for."""
        return {name: self._drawn["truth"][name] for name, _ in self.rules.bounds}

    @cached_property
    def model(self) -> ph.Model:
        """The scene with what is known; what is not is in the middle of its bounds."""
        d = self._drawn
        scene = ph.Scene()
        scene.add_rigid("body", shape(d["shape"]), density=5.0, scale=d["scale"], pos=d["pos"], rot=d["rot"],
                        vel=d["vel"], omega=d["omega"])  # fmt: skip
        if not d["flies"]:
            scene.add_ground("ground")
        scene.add_impulse("body", d["push"], at=d["at"])
        model = scene.build(real="float64")
        known = {n: v for n, v in d["truth"].items() if n in model}
        middle = {n: float(np.sqrt(b[0] * b[1])) for n, b in self.rules.bounds}
        return model.replace({**known, **middle})

    @cached_property
    def motion(self) -> Any:
        """What happened."""
        fine = self.rules.finer
        return ph.rollout(self.model.replace(self.truth), dt=DT / fine, steps=(self.rules.frames - 1) * EVERY * fine,
                          every=EVERY * fine)  # fmt: skip

    @cached_property
    def silhouette(self) -> render.Silhouette:
        return render.Silhouette(camera(), size=(self.rules.size, self.rules.size), sigma_pixels=0.5)

    @cached_property
    def film(self) -> Video:
        """What was seen of it, in 8 bits."""
        corners, faces = self.motion.vertices("body").float(), self.model.surfaces["body"].faces
        if self.rules.renderer == "soft":
            pictures = self.silhouette(corners, faces).numpy()
        else:
            hard = render.Renderer(camera(), mode="hard", sampling=3, size=(self.rules.size, self.rules.size))
            pictures = hard(corners, faces).numpy()[..., 3]
        return Video(pictures, self.motion.times).rounded()

    def problem(self, kind: str = "video", loss: Loss | None = None) -> Problem:
        """To find the truth from the "video", or from the "states"."""
        params = [Param(name, bounds) for name, bounds in self.rules.bounds]
        if kind == "states":
            return Problem(self.model, target=self.motion, observe=States(), dt=DT, params=params)
        return Problem(self.model, target=self.film, observe=Pictures(self.silhouette), dt=DT, params=params, loss=loss)


def camera() -> render.Camera:
    return render.Camera.look_at(eye=(0.0, 3.5, 9.0), target=(0.0, 1.2, 0.0), fov=45)


def _lowest(points: NDArray[np.float64], rot: NDArray[np.float64]) -> float:
    """The height of the lowest point after a rotation."""
    x, y, z, w = rot
    up = np.array([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)])
    return float((points @ up).min())
