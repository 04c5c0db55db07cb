"""Rigid bodies that are pushed, fly and bounce: the cases of Tables 1 and 2.

A case is drawn from its number alone: every method sees the same body, and any number of processes draw the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.experiments.shapes import names, shape
from nablasim.sysid.problem import Loss, Param, Pictures, Problem, States
from nablasim.sysid.video import Video

FPS = 30
STAGE = 3.0
"""How far a body may go (m): those that slide off into the distance are a few pixels large."""
DRAWS = 200
"""Bodies that are drawn at most until one stays in view."""
GROUND = {"ground.ke": (1.0, 500.0), "ground.kd": (1.0, 500.0), "ground.kf": (1.0, 500.0), "ground.mu": (0.2, 1.0)}


@dataclass(frozen=True)
class Rules:
    """From which cases are drawn. `bounds` are those of the parameters that are searched for; the others are known."""

    bounds: tuple[tuple[str, tuple[float, float]], ...]
    ranges: tuple[tuple[str, tuple[float, float]], ...] = tuple(GROUND.items())
    frames: int = 60
    size: int = 64
    every: int = 32
    """Steps per frame. A hard damper on a light body needs more of them."""
    flying: float = 0.0
    """The part of cases without a ground."""
    seed: int = 0
    finer: int = 1
    """Steps of the data for each step of the fit: more than one where data come from other settings."""
    renderer: str = "soft"
    """Of the data: "soft" is that of the fit, "hard" a z-buffer with 64 samples per pixel."""

    @property
    def dt(self) -> float:
        return 1 / (FPS * self.every)

    def case(self, index: int) -> Case:
        return Case(self, index)


@dataclass(frozen=True)
class Case:
    """One body: what it is, how it starts, how it is pushed, and the numbers that are to be found."""

    rules: Rules
    index: int

    @cached_property
    def drawn(self) -> dict[str, Any]:
        """The first draw of this number that stays in view (who flies falls out of it, sooner or later), and whose
        contact is resolved by the step."""
        rng = np.random.default_rng([self.rules.seed, self.index])
        for _ in range(DRAWS):
            drawn = _draw(rng, self.rules)
            if drawn["flies"] or _on_stage(_build(drawn, drawn["truth"]), self.rules):
                return drawn
        raise RuntimeError(f"none of {DRAWS} bodies stays in view: the rules throw them out of it")

    @property
    def shape(self) -> str:
        return str(self.drawn["shape"])

    @property
    def mesh(self) -> ph.TriMesh:
        """The surface, before it is scaled."""
        return shape(self.shape)

    @property
    def truth(self) -> dict[str, float]:
        """What is searched for."""
        return {name: self.drawn["truth"][name] for name, _ in self.rules.bounds}

    def columns(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters as the tables have them: mass (kg) instead of density, and the ground's without its name."""
        made = {name.partition(".")[2]: float(v) for name, v in values.items()}
        return {"m": made.pop("density") * self.drawn["volume"], **made}

    @property
    def settings(self) -> dict[str, Any]:
        """Of the fit."""
        return {}

    @property
    def known(self) -> NDArray[np.float64]:
        """What is told to everybody: how large the body is, how it starts and how it is pushed."""
        d = self.drawn
        return np.concatenate([[d["volume"]], *(d[k] for k in ("scale", "pos", "rot", "vel", "omega", "push", "at"))])

    @cached_property
    def model(self) -> ph.Model:
        """The scene with what is known; what is not is in the middle of its bounds."""
        middle = {n: float(np.sqrt(b[0] * b[1])) for n, b in self.rules.bounds}
        return _build(self.drawn, {**self.drawn["truth"], **middle})

    @cached_property
    def motion(self) -> Any:
        """What happened."""
        return _motion(self.model.replace(self.truth), self.rules, self.rules.finer)

    @cached_property
    def silhouette(self) -> render.Silhouette:
        """The renderer of the fit. Soft edges make a shape half a pixel larger than it is: sharp ones are for pictures
        that somebody else took."""
        how = {"soft": {"sigma_pixels": 0.5}, "hard": {"sigma_pixels": 0.07, "sampling": 4}}[self.rules.renderer]
        return render.Silhouette(camera(), size=(self.rules.size, self.rules.size), **how)

    @cached_property
    def film(self) -> Video:
        """What was seen of it, in 8 bits."""
        corners, faces = self.motion.vertices("body").float(), self.model.surfaces["body"].faces
        if self.rules.renderer == "soft":
            pictures = self.silhouette(corners, faces).numpy()
        else:
            hard = render.Renderer(camera(), mode="hard", sampling=8, size=(self.rules.size, self.rules.size))
            pictures = hard(corners, faces).numpy()[..., 3]
        return Video(pictures, self.motion.times).rounded()

    def problem(self, kind: str = "video", loss: Loss | None = None) -> Problem:
        """To find the truth from the "video", or from the "states"."""
        params = [Param(name, bounds) for name, bounds in self.rules.bounds]
        if kind == "states":
            return Problem(self.model, target=self.motion, observe=States(), dt=self.rules.dt, params=params)
        return Problem(
            self.model, target=self.film, observe=Pictures(self.silhouette), dt=self.rules.dt, params=params, loss=loss
        )


def camera() -> render.Camera:
    return render.Camera.look_at(eye=(0.0, 3.0, 7.5), target=(0.0, 1.2, 0.0), fov=45)


def _draw(rng: np.random.Generator, rules: Rules) -> dict[str, Any]:
    """A body with everything that happens to it."""
    name = str(rng.choice(names()))
    volume, stretch = rng.uniform(1.5, 2.5), rng.uniform(0.8, 1.25, 3)
    turn = rng.normal(size=4)
    truth = {n: float(rng.uniform(*r)) for n, r in (("body.density", (2.0, 12.0)), *rules.ranges)}
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
        "push": push, "at": 0.2 * scale * rng.uniform(-1, 1, 3), "truth": truth, "volume": volume,
        "flies": bool(rng.uniform() < rules.flying),
    }  # fmt: skip


def _build(drawn: dict[str, Any], values: Mapping[str, float]) -> ph.Model:
    scene = ph.Scene()
    scene.add_rigid("body", shape(drawn["shape"]), density=5.0, scale=drawn["scale"], pos=drawn["pos"],
                    rot=drawn["rot"], vel=drawn["vel"], omega=drawn["omega"])  # fmt: skip
    if not drawn["flies"]:
        scene.add_ground("ground", ke=1e4, kd=1e2, kf=1e2)
    scene.add_impulse("body", drawn["push"], at=drawn["at"])
    model = scene.build(real="float64")
    return model.replace({n: v for n, v in values.items() if n in model})


def _motion(model: ph.Model, rules: Rules, finer: int = 1) -> Any:
    every = rules.every * finer
    return ph.rollout(model, dt=rules.dt / finer, steps=(rules.frames - 1) * every, every=every)


def _on_stage(model: ph.Model, rules: Rules) -> bool:
    """Whether no corner ever leaves the picture, and the body stays on the stage."""
    try:
        motion = _motion(model, rules)
    except ph.StepTooLarge:
        return False
    places, _ = camera().project(np.asarray(motion.vertices("body"), np.float64).reshape(-1, 3))
    return bool((np.abs(np.asarray(places)) < 1).all() and (np.abs(np.asarray(motion["body"].x)) < STAGE).all())


def _lowest(points: NDArray[np.float64], rot: NDArray[np.float64]) -> float:
    """The height of the lowest point after a rotation."""
    x, y, z, w = rot
    up = np.array([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)])
    return float((points @ up).min())
