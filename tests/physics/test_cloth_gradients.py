"""Gradients of cloth through a whole rollout with contact: every parameter against central differences."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

STEPS = 120


def scene(**ground):
    made = ph.Scene()
    cloth = ph.TriMesh.grid((0.3, 0.2), cells=(3, 2)).moved(rot=ph.quat((1, 0, 0), 1.8))
    made.add_cloth("flag", cloth, mass=0.1, stretch=40.0, shear=30.0, damping=0.02, bend=0.01, bend_damping=1e-4,
                   actuation=0.1, lift=0.5, drag=0.8, springs=True, spring_ke=5.0, spring_kd=0.01, pos=(0, 0.05, 0),
                   vel=(0.2, -1, 0.3))  # fmt: skip
    dome = ph.TriMesh.icosphere(0.1, subdivisions=0)
    made.add_cloth("dome", dome, density=0.5, stretch=60.0, shear=30.0, damping=0.01, bend=0.05, bend_damping=1e-4,
                   actuation=0.05, lift=0.2, drag=0.3, pos=(1, 0.11, 0), vel=(0.2, -1.5, 0.3))  # fmt: skip
    made.add_wind((1.0, 0.5, 0.3))
    made.add_ground("floor", ke=2e2, kd=0.5, kf=0.5, mu=0.5, **ground)
    return made


MODEL = scene().build("float64")


def loss(values, model=MODEL):
    """A random weighting of every frame of everything."""
    trajectory = ph.rollout(model.replace(values), dt=1e-3, steps=STEPS, every=10)
    random = torch.Generator().manual_seed(0)
    total = torch.zeros((), dtype=torch.float64)
    for name in trajectory:
        for frames in (trajectory[name].x, trajectory[name].v):
            total = total + (frames * torch.randn(frames.shape, generator=random, dtype=frames.dtype)).sum()
    return total


@pytest.mark.parametrize("names", [None, ["flag.density", "dome.mass"], ["flag.vertex_mass", "dome.vertex_mass"]])
def test_every_parameter_against_central_differences_through_contact(names):
    values = {n: torch.tensor(np.array(MODEL.layout.parameters[n].value), requires_grad=True)
              for n in names or MODEL.names()}  # fmt: skip
    loss(values).backward()
    fixed, rng = {n: v.detach() for n, v in values.items()}, np.random.default_rng(1)
    for name, value in values.items():
        way = torch.tensor(rng.normal(size=value.shape))
        size = float(value.detach().abs().max())
        h = 1e-5 * (size if size > 1e-9 else 0.1)
        two = [float(loss({**fixed, name: fixed[name] + s * h * way})) for s in (1, -1)]
        found = float((value.grad * way).sum())
        assert found == pytest.approx((two[0] - two[1]) / (2 * h), rel=2e-5, abs=1e-6), name
        assert found != 0.0, f"{name} has no effect"


def test_the_cloth_of_the_test_above_touches_the_ground():
    x = ph.rollout(MODEL, dt=1e-3, steps=STEPS)
    assert all((x[name].x[..., 1] < 0).any() for name in ("flag", "dome"))


def test_a_batch_is_its_copies_one_by_one():
    batch = scene().build("float64", batch=2)
    drag = np.array([0.8, 0.2])
    frames = ph.rollout(batch.replace({"flag.drag": drag}), dt=1e-3, steps=STEPS, every=STEPS)
    for k in range(2):
        one = ph.rollout(MODEL.replace({"flag.drag": drag[k]}), dt=1e-3, steps=STEPS, every=STEPS)
        for name in ("flag", "dome"):
            np.testing.assert_allclose(frames[name].x[k], one[name].x, rtol=0, atol=1e-13)
