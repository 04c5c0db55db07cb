"""Soft bodies and cloth: the cases of Table 3.

Beams hang from a wall, balls fall on the ground, cloths fly. Searched for is the mass of every particle, or both
moduli, or the velocity with which a cloth is thrown; the rest is known. A case is drawn from its number alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.problem import Param, Pictures, Problem, States
from nablasim.sysid.video import Video

DT = 1 / 960
EVERY = 32
MASS = (0.02, 0.2)
"""Of a particle (kg)."""
MODULUS = (400.0, 4000.0)
"""mu and lambda (Pa)."""
SPEED = (-2.5, 2.5)
"""Of a cloth along each axis (m/s)."""


@dataclass(frozen=True)
class Softness:
    """From which cases are drawn. `things` take turns; `find` is "mass", "material" or "velocity"."""

    things: tuple[str, ...]
    find: str
    frames: int = 40
    size: int = 64
    seed: int = 3
    finer: int = 1
    """Steps of the data for each step of the fit."""

    def case(self, index: int) -> SoftCase:
        return SoftCase(self, index)


@dataclass(frozen=True)
class SoftCase:
    """One body: how it starts, what it is made of, and what is to be found."""

    rules: Softness
    index: int

    @property
    def thing(self) -> str:
        return self.rules.things[self.index % len(self.rules.things)]

    @cached_property
    def drawn(self) -> dict[str, Any]:
        rng = np.random.default_rng([self.rules.seed, self.index])
        mesh = MESHES[self.thing]()
        points = np.asarray(mesh.vertices) - np.asarray(mesh.vertices).mean(axis=0)
        # A known start that stretches, bends and turns the body, so that every particle takes part.
        start = points @ rng.normal(scale=0.8, size=(3, 3))
        return {
            "mesh": mesh, "start": start, "mass": _even(rng, MASS, len(points)), "moduli": _even(rng, MODULUS, 2),
            "velocity": rng.uniform(*SPEED, 3), "blind mass": _even(rng, MASS, len(points)),
            "blind velocity": rng.uniform(*SPEED, 3),
        }  # fmt: skip

    @cached_property
    def model(self) -> ph.Model:
        """The scene with what is known; what is not is in the middle of its bounds."""
        d, find = self.drawn, self.rules.find
        scene = ph.Scene()
        mu, lam = [float(np.sqrt(MODULUS[0] * MODULUS[1]))] * 2 if find == "material" else d["moduli"]
        mass = np.full(len(d["mass"]), 0.06) if find == "mass" else d["mass"]
        if self.thing == "cloth":
            scene.add_cloth("body", d["mesh"], vertex_mass=np.full(len(d["mass"]), 0.01), stretch=60.0, shear=40.0,
                            damping=0.02, bend=1e-3, lift=0.5, drag=0.3)  # fmt: skip
        else:
            material = ph.NeoHookean.paper(mu=mu, lam=lam)
            scene.add_soft("body", d["mesh"], mass=mass, material=material, damping=3.0, vel=self._first_velocity)
        if self.thing == "ball":
            scene.add_ground("ground", ke=400.0, kd=2.0, kf=20.0, mu=0.4)
        if self.thing == "beam":
            scene.fix("body", where=lambda x: x[:, 0] < 1e-6)
        return scene.build(real="float64")

    @property
    def _first_velocity(self) -> NDArray[np.float64]:
        start = self.drawn["start"].copy()
        start[~self._moves] = 0.0
        return start

    @property
    def _moves(self) -> NDArray[np.bool_]:
        """Which particles do: the mass of the others has no effect, and is not asked for."""
        x = np.asarray(self.drawn["mesh"].vertices)[:, 0]
        return x > 1e-6 if self.thing == "beam" else np.ones(len(x), bool)

    @property
    def truth(self) -> dict[str, Any]:
        d = self.drawn
        if self.rules.find == "mass":
            return {"body.mass": np.where(self._moves, d["mass"], 0.06)}
        if self.rules.find == "material":
            return dict(zip(("body.mu", "body.lam"), map(float, d["moduli"])))
        return {"body.v": np.tile(d["velocity"], (len(d["mass"]), 1))}

    def columns(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """As the table has them: m of every particle that moves, mu, lambda, v of every particle."""
        found = {name: np.asarray(v, np.float64) for name, v in values.items()}
        if self.rules.find == "mass":
            return {"m": found["body.mass"][self._moves]}
        if self.rules.find == "material":
            return {"mu": float(found["body.mu"]), "lambda": float(found["body.lam"])}
        return {"v": found["body.v"]}

    @property
    def settings(self) -> dict[str, Any]:
        """Of the fit: blind guesses where a param has several numbers, and the method for few numbers even so."""
        if self.rules.find == "mass":
            return {"method": "lm", "start": {"masses": self.drawn["blind mass"][self._moves]}}
        return {"start": {"velocity": self.drawn["blind velocity"]}} if self.rules.find == "velocity" else {}

    @cached_property
    def motion(self) -> Any:
        fine = self.rules.finer
        model = self.model.replace(self.truth)
        return ph.rollout(model, dt=DT / fine, steps=(self.rules.frames - 1) * EVERY * fine, every=EVERY * fine)

    @cached_property
    def silhouette(self) -> render.Silhouette:
        eye, target = VIEWS[self.thing]
        camera = render.Camera.look_at(eye=eye, target=target, fov=45)
        return render.Silhouette(camera, size=(self.rules.size, self.rules.size), sigma_pixels=0.5)

    @cached_property
    def film(self) -> Video:
        """What was seen of it, in 8 bits."""
        drawn = self.silhouette(self.motion.vertices("body").float(), self.model.surfaces["body"].faces)
        return Video(drawn.numpy(), self.motion.times).rounded()

    def problem(self, kind: str = "video") -> Problem:
        """To find the truth from the "video", or from the "states"."""
        params = self._params
        if kind == "states":
            return Problem(self.model, target=self.motion, observe=States(), dt=DT, params=params)
        return Problem(self.model, target=self.film, observe=Pictures(self.silhouette), dt=DT, params=params)

    @property
    def _params(self) -> list[Param]:
        if self.rules.find == "material":
            return [Param("body.mu", MODULUS), Param("body.lam", MODULUS)]
        count, moves = len(self.drawn["mass"]), self._moves
        if self.rules.find == "mass":
            into = _linear("body.mass", np.eye(count)[moves], np.where(moves, 0.0, 0.06))
            return [Param("masses", MASS, start=np.full(int(moves.sum()), 0.06), into=into, unit="kg")]
        throw = np.tile(np.eye(3), count)
        into = _linear("body.v", throw, np.zeros(3 * count), shape=(count, 3))
        return [Param("velocity", SPEED, start=np.zeros(3), into=into, unit="m/s")]


def _linear(name: str, matrix: Any, base: Any, shape: tuple[int, ...] | None = None) -> Callable[[Any], dict[str, Any]]:
    """The parameter of a model as a linear function of the numbers that are searched for; arrays or tensors."""

    def into(value: Any) -> dict[str, Any]:
        make = value.new_tensor if hasattr(value, "new_tensor") else np.asarray
        made = value @ make(matrix) + make(base)
        return {name: made.reshape((*made.shape[:-1], *(shape or made.shape[-1:])))}

    return into


def _even(rng: np.random.Generator, span: tuple[float, float], count: int) -> NDArray[np.float64]:
    """Evenly in the logarithm."""
    low, high = np.log(span)
    return np.exp(rng.uniform(low, high, count))


def _beam() -> ph.TetMesh:
    return ph.TetMesh.box((1.0, 0.25, 0.25), (4, 1, 1))


def _ball() -> ph.TetMesh:
    """A cube of 2 × 2 × 2 cells, pulled onto a sphere of half a metre."""
    cube = ph.TetMesh.box((2, 2, 2), 2)
    points = np.asarray(cube.vertices) - 1.0
    length = np.linalg.norm(points, axis=1, keepdims=True)
    round_ = points * np.abs(points).max(axis=1, keepdims=True) / np.maximum(length, 1e-9)
    return ph.TetMesh(0.5 * round_ + [0.0, 0.9, 0.0], cube.tets)


def _cloth() -> ph.TriMesh:
    tilt = ph.quat((1, 0.3, 0.2), -1.1)
    return ph.TriMesh.grid((1.0, 1.0), cells=(6, 6)).moved(pos=(-0.5, 0.0, 0.0), rot=tilt)


MESHES: dict[str, Callable[[], Any]] = {"beam": _beam, "ball": _ball, "cloth": _cloth}
VIEWS = {
    "beam": ((0.5, 0.6, 2.4), (0.5, -0.1, 0.1)),
    "ball": ((0.4, 1.4, 2.6), (0.0, 0.55, 0.0)),
    "cloth": ((0.5, 1.5, 7.5), (0.0, -1.0, 0.0)),
}
"""Where the camera stands and what it looks at."""
