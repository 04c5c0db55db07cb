"""A scene in which everything touches the ground, a loss that looks at all of it, and its central differences."""

import numpy as np
import torch

from nablasim import physics as ph

STEPS = 100


def scene(**ground):
    made = ph.Scene()
    mesh = ph.TetMesh.box((0.2, 0.1, 0.1), cells=(2, 1, 1))
    made.add_soft("block", mesh, density=1000.0, material=ph.NeoHookean(E=2e4, nu=0.3), damping=5.0,
                  activation=0.05, pos=(0, 0.02, 0), vel=(0.5, -1, 0.2))  # fmt: skip
    points, pairs = ph.spring_grid((0.3, 0.3), (2, 2))
    made.add_springs("net", points + [0, 0.01, 0.5], pairs, ke=50.0, kd=0.1, mass=0.01, actuation=0.1,
                     vel=(0.3, 0, 0.1))  # fmt: skip
    made.add_particles("grain", [[0.5, 0.005, 0], [0.7, 0.01, 0]], mass=0.1, vel=(0.2, -0.3, 0.1))
    made.add_force("block", (0.5, 0.2, 0.1), where=lambda x: x[:, 0] > 0.05, t=(0.01, 0.06))
    made.add_force("net", (0.0, 0.05, 0.02))
    made.add_impulse("grain", (0.01, 0.0, 0.02), t=0.05)
    made.add_ground("floor", ke=2e2, kd=1.0, kf=1.0, mu=0.5, **ground)
    return made


MODEL = scene().build("float64")


def loss(values, model=MODEL, weights=0, steps=STEPS, **settings):
    """A random weighting of every frame of everything."""
    settings = {"dt": 1e-3, "steps": steps, "every": 10, **settings}
    trajectory = ph.rollout(model.replace(values), **settings)
    random = torch.Generator().manual_seed(weights)
    total = torch.zeros((), dtype=torch.float64)
    for name in trajectory:
        for frames in (trajectory[name].x, trajectory[name].v):
            total = total + (frames * torch.randn(frames.shape, generator=random, dtype=frames.dtype)).sum()
    return total


def leaves(names, model=MODEL):
    return {n: torch.tensor(np.array(model.layout.parameters[n].value), requires_grad=True) for n in names}


def central(values, name, way, h, **settings):
    fixed = {n: v.detach() for n, v in values.items()}
    two = [float(loss({**fixed, name: fixed[name] + s * h * way}, **settings)) for s in (1, -1)]
    return (two[0] - two[1]) / (2 * h)
