"""Small scenes that several tests of sysid use: made in milliseconds, run in milliseconds."""

from functools import cache

import numpy as np

from nablasim import physics as ph
from nablasim import render, sysid

DT = 1 / 480


@cache
def beam(fixed: bool = True) -> ph.Model:
    """A soft beam that hangs from a wall, or falls."""
    scene = ph.Scene()
    mesh = ph.TetMesh.box((1, 0.3, 0.3), (3, 1, 1))
    scene.add_soft("beam", mesh, density=100.0, material=ph.NeoHookean.paper(mu=1e4, lam=1e4), damping=20.0)
    if fixed:
        scene.fix("beam", where=lambda x: x[:, 0] < 1e-6)
    return scene.build(real="float64")


@cache
def silhouette() -> render.Silhouette:
    camera = render.Camera.look_at(eye=(0.5, 0.3, 2.5), target=(0.5, -0.1, 0), fov=45)
    return render.Silhouette(camera, sigma_pixels=0.5)


def film(model: ph.Model, *, frames: int = 13, every: int = 24, size: int = 24, dt: float = DT) -> sysid.Video:
    """The silhouettes of a model."""
    trajectory = ph.rollout(model, dt=dt, steps=(frames - 1) * every, every=every)
    (name,) = model.surfaces
    drawn = silhouette()(trajectory.vertices(name).float(), model.surfaces[name].faces, size=(size, size))
    return sysid.Video(drawn.numpy(), trajectory.times)


def beam_problem(video: sysid.Video | None = None, **settings) -> sysid.Problem:
    """Find both moduli of the beam."""
    params = [sysid.Param("beam.mu", (1e3, 1e5)), sysid.Param("beam.lam", (1e3, 1e5))]
    settings = {"target": video or film(beam()), "observe": silhouette(), "dt": DT, "params": params, **settings}
    return sysid.Problem(beam(), **settings)


def pendulum_problem(noise: float = 0.0, seed: int = 0, *, truth=None, params=None, frames: int = 40) -> sysid.Problem:
    """Find length, damping and first angle of a pendulum from its angles."""
    truth = {"length": 1.3, "damping": 0.05, "angle": 2.0, **(truth or {})}
    trajectory = ph.rollout(ph.Pendulum(mass=0.5, **truth), dt=1 / 120, steps=8 * frames, every=8)
    angles = trajectory.angle.numpy() + noise * np.random.default_rng(seed).normal(size=len(trajectory))
    params = params or [
        sysid.Param("length", (0.3, 3)),
        sysid.Param("damping", (0.001, 1)),
        sysid.Param("angle", (-3.0, 3.0)),
    ]
    target = sysid.Track(trajectory.times, {"angle": angles})
    observe = sysid.States(noise=noise or None)
    return sysid.Problem(ph.Pendulum(mass=0.5), target=target, observe=observe, dt=1 / 120, params=params)
