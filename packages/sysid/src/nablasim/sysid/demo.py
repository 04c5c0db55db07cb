"""`nablasim demo`: a cube is thrown and bounces; its density, the ground's elasticity and friction are found again.

What the search gets is the video, 8-bit silhouettes, and how the cube was thrown; guesses are drawn blind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid import scenery
from nablasim.sysid.fit import Fit
from nablasim.sysid.problem import Param, Problem
from nablasim.sysid.search import Start
from nablasim.sysid.video import Video

TRUTH = {"cube.density": 8.0, "floor.ke": 1500.0, "floor.kd": 12.0, "floor.mu": 0.35}
"""What the search has to find: density (mass), stiffness and damping of the bounce (elasticity), friction."""

BOUNDS = {"cube.density": (1.0, 50.0), "floor.ke": (200.0, 2e4), "floor.kd": (0.5, 200.0), "floor.mu": (0.05, 1.5)}


@dataclass(frozen=True)
class Bounce:
    """A cube of one metre that is pushed, flies and bounces, and how it is filmed."""

    frames: int = 60
    every: int = 32
    dt: float = 1 / 960
    size: int = 64
    truth: dict[str, float] = field(default_factory=lambda: dict(TRUTH))

    def model(self) -> ph.Model:
        """The scene. What is searched for has values here that the fit replaces."""
        scene = ph.Scene()
        scene.add_rigid("cube", ph.Box(1, 1, 1), density=5.0, pos=(-1.6, 1.9, 0), rot=ph.quat((1, 2, 3), 0.7),
                        vel=(1.2, 0.5, -0.3), omega=(0.5, -1.0, 0.8))  # fmt: skip
        scene.add_ground("floor", ke=1e4, kd=1e2, kf=200.0)
        scene.add_impulse("cube", (6.0, 4.0, 2.0), at=(0.2, 0.3, 0.1))
        return scene.build(real="float64")

    def silhouette(self) -> render.Silhouette:
        camera = render.Camera.look_at(eye=(0, 3, 8), target=(0, 1, 0), fov=45)
        return render.Silhouette(camera, size=(self.size, self.size), sigma_pixels=0.5)

    def film(self) -> Video:
        """The video, rounded to 8 bits."""
        model = self.model().replace(self.truth)
        motion = ph.rollout(model, dt=self.dt, steps=(self.frames - 1) * self.every, every=self.every)
        drawn = self.silhouette()(motion.vertices("cube").float(), model.surfaces["cube"].faces)
        return Video(drawn.numpy(), motion.times).rounded()

    def problem(self, video: Video) -> Problem:
        params = [Param(name, bounds) for name, bounds in BOUNDS.items()]
        return Problem(self.model(), target=video, observe=self.silhouette(), dt=self.dt, params=params)


@dataclass(frozen=True, eq=False)
class Demo:
    """The video and what was found in it."""

    video: Video
    fit: Fit
    truth: dict[str, float]
    bounce: Bounce = field(default_factory=Bounce)

    @property
    def errors(self) -> dict[str, float]:
        """Relative, by name."""
        return {name: abs(self.fit[name].value / value - 1) for name, value in self.truth.items()}

    @property
    def found(self) -> bool:
        """Whether everything was found, to a hundredth."""
        return self.fit.converged and max(self.errors.values()) < 0.01

    def film(self) -> Any:
        """How the cube flies with what was found, in colour, on a floor with its shadow."""
        bounce = self.bounce
        model = bounce.model().replace({name: self.fit[name].value for name in self.truth})
        steps = (bounce.frames - 1) * bounce.every
        motion = ph.rollout(model, dt=bounce.dt, steps=steps, every=bounce.every)
        camera = render.Camera.look_at(eye=(1.4, 2.4, 7.5), target=(0, 0.95, 0), fov=33)
        return scenery.film(motion.vertices("cube")[::2], model.surfaces["cube"].faces, camera, size=(256, 320))

    def write(self, out: Path) -> Path:
        """The video, a film of what was found, and the report; gives the page."""
        out.mkdir(parents=True, exist_ok=True)
        larger = np.repeat(np.repeat(self.video.frames, 4, axis=1), 4, axis=2)
        render.write_video(out / "bounce.mp4", larger, fps=30)
        render.write_video(out / "film.mp4", self.film(), fps=15)
        title = "A bouncing cube: its mass, elasticity and friction from its video"
        return self.fit.report(out, title=title, others={"filmed": self.bounce.model().replace(self.truth)})


def run_demo(
    *, bounce: Bounce | None = None, on_window: Callable[[int, Start], None] | None = None, **options: Any
) -> Demo:
    """Film the cube, and find out what it and the ground are made of."""
    bounce = bounce or Bounce()
    video = bounce.film()
    fit = bounce.problem(video).fit(on_window=on_window, **{"starts": 4, **options})
    return Demo(video, fit, bounce.truth, bounce)
