"""A block that is thrown, filmed by the renderer of `zbuffer`, and the scene file that describes it."""

from functools import cache
from pathlib import Path

import numpy as np
from zbuffer import encode, film

from nablasim import physics as ph
from nablasim.sysid.scenes import Stage, parse_scene
from nablasim.sysid.scenes.restitution import restitution_of

SCENE = """\
video:
  fps: 30 fps
  duration: 0.8 s
  height: 40
camera:
  eye: [0, 1.5, 6]
  target: [0, 1, 0]
  fov: 45 deg
objects:
  block:
    shape: {box: [80 cm, 60 cm, 1 m]}
    density: 5 kg/m^3
    position: [-1.2, 1.2, 0]
    rotation: {axis: [1, 2, 3], angle: 40 deg}
    velocity: [1.2, 0.2, -0.3]
    spin: [0.5, -1.0, 0.8]
    pushes:
      - {impulse: [3 N s, 0, 1 N s], at: [10 cm, 20 cm, 10 cm]}
floor:
  stiffness: 900 N/m
  damping: 30 N s/m
  friction: 0.35
time_step: 1/480 s
parameters:
  density: {range: [1 kg/m^3, 50 kg/m^3]}
  restitution: {range: [5 %, 95 %]}
"""
TRUTH = {"block.density": 7.0, "floor.kd": 14.0}
VIEW = {"eye": (0, 1.5, 6), "target": (0, 1, 0), "fov": 45}


def restitution(truth=TRUTH) -> float:
    mass = truth["block.density"] * 0.8 * 0.6 * 1.0
    return float(restitution_of(truth["floor.kd"], stiffness=900.0, mass=mass))


@cache
def frames(noise: float = 0.02, seed: int = 0, seconds: float = 0.8, truth=()) -> np.ndarray:
    """Bytes (n, 160, 200, 3), of a simulation with four times finer steps than the scene's."""
    model = Stage(parse_scene(SCENE)).model.replace({**TRUTH, **dict(truth)})
    motion = ph.rollout(model, dt=1 / 1920, steps=64 * round(30 * seconds), every=64)
    corners = motion.vertices("block").numpy()
    return film(corners, model.surfaces["block"].faces, size=(160, 200), noise=noise, seed=seed, **VIEW)


def write(folder: Path, text: str = SCENE, *, fps: int = 30, **settings) -> Path:
    """`throw.mp4` and `scene.yaml` in a folder."""
    encode(folder / "throw.mp4", frames(**settings), fps=fps)
    (folder / "scene.yaml").write_text(text, encoding="utf-8")
    return folder
