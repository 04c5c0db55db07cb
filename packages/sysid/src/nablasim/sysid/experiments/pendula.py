"""Pendula, simple and double: lengths of their rods and angles at the start, from the video of their bobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.experiments.contest import Arm, Contest, Group, Scale
from nablasim.sysid.problem import Param, Pictures, Problem, Pyramid, States
from nablasim.sysid.video import Video

LENGTH = (0.4, 1.2)
ANGLE = (-2.0, 2.0)
BOBS = (0.13, 0.08)
"""Radii (m), so that one is not taken for the other."""
DT = 1 / 60


@dataclass(frozen=True)
class Swings:
    """From which pendula are drawn: with one rod or with two."""

    rods: int
    frames: int = 30
    size: int = 40
    seed: int = 4
    finer: int = 1
    """Steps of the data for each step of the fit."""

    def case(self, index: int) -> Swing:
        return Swing(self, index)


@dataclass(frozen=True)
class Swing:
    """One pendulum that is let go."""

    rules: Swings
    index: int

    @cached_property
    def truth(self) -> dict[str, Any]:
        rng = np.random.default_rng([self.rules.seed, self.rules.rods, self.index])
        drawn = {"length": rng.uniform(*LENGTH, self.rules.rods), "angle": rng.uniform(*ANGLE, self.rules.rods)}
        return {n: v if self.rules.rods > 1 else float(v[0]) for n, v in drawn.items()}

    def columns(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: np.asarray(v, np.float64) for name, v in values.items()}

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    @cached_property
    def model(self) -> Any:
        if self.rules.rods == 1:
            return ph.Pendulum(length=0.8, mass=1.0, angle=0.5)
        return ph.DoublePendulum(length=(0.8, 0.8), mass=(1.0, 1.0), angle=(0.5, 0.5))

    @cached_property
    def motion(self) -> Any:
        fine = self.rules.finer
        model = type(self.model)(**self.truth, mass=np.ones(self.rules.rods) if self.rules.rods > 1 else 1.0)
        return ph.rollout(model, dt=DT / fine, steps=(self.rules.frames - 1) * 2 * fine, every=2 * fine)

    @cached_property
    def observe(self) -> Pictures:
        reach = LENGTH[1] * self.rules.rods + BOBS[0]
        camera = render.Camera.look_at(eye=(0, 0, 2.6 * reach), target=(0, 0, 0), fov=45)
        size = (self.rules.size, self.rules.size)
        return Pictures(
            render.Silhouette(camera, size=size, sigma_pixels=0.5), bob=BOBS[: self.rules.rods], loss=Pyramid(5)
        )

    @cached_property
    def film(self) -> Video:
        """What was seen of it, in 8 bits."""
        return Video(self.observe.drawn(self.motion), self.motion.times).rounded()

    def problem(self, kind: str = "video") -> Problem:
        each = self.rules.rods > 1
        params = [Param("length", LENGTH, each=each), Param("angle", ANGLE, each=each)]
        if kind == "states":
            return Problem(self.model, target=self.motion, observe=States("angle"), dt=DT, params=params)
        return Problem(self.model, target=self.film, observe=self.observe, dt=DT, params=params)


VIDEO, STATES = "∇Sim, from the video", "DiffPhysics, from the angles"
ARMS = (
    Arm("average", "average"),
    Arm("random", "random"),
    Arm(STATES, "states", starts=6),
    Arm(VIDEO, "video", starts=6),
)

PENDULA = Contest(
    name="pendula",
    title="Pendula: lengths and angles from a video",
    text=(
        "A pendulum with one rod, or two that hang on each other, is let go from an angle of up to 2 rad and filmed "
        "for a second: silhouettes of its bobs, 40 × 40 pixels in 8 bits, 30 per second. Lengths of 0.4 to "
        "1.2 m and angles are searched for from blind guesses. The paper says that it does so, and gives no figures.",
    ),
    groups=(
        Group("simple pendulum", Swings(1), ARMS, goals=((VIDEO, "median", "length", 0.01),)),
        Group("double pendulum", Swings(2), ARMS, goals=((VIDEO, "median", "length", 0.01),)),
    ),
    scales=(
        ("ci", Scale(1, 4, 0, changes=(("frames", 12), ("size", 24)))),
        ("desk", Scale(10, 100, 0)),
        ("paper", Scale(50, 100, 0)),
    ),
)
