"""Slopes of bodies that slide, spin and stick, by reverse sweeps, by tangents and by differences."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

DT = 2e-3
WEIGHTS = torch.tensor([[3.0, -1.0, 0.5], [0.3, 0.9, -0.2], [0.1, 0.05, -0.08]], dtype=torch.float64)


def slider(kind, shape=None, *, tilt=0.1, spin=1.0, vel=(0.5, 0.0, 0.2), **law):
    """A body of 8 kg, pressed a little into a slope that it slides on: a plane, or another body."""
    up, q = np.array([np.sin(tilt), np.cos(tilt), 0.0]), ph.quat((0, 0, 1), -tilt)
    v = np.array(vel) - up * (up @ vel)
    scene = ph.Scene()
    scene.add_rigid("a", shape or ph.Box(0.2, 0.2, 0.2), mass=8.0, pos=(0.1 - 1e-5) * up, rot=q, vel=v, omega=spin * up)
    law = {"mu": 0.3, **law}
    if kind == "plane":
        scene.add_plane("g", normal=up, **law)
    elif kind == "obstacle":
        scene.add_obstacle("g", ph.Box(20, 1, 6), pos=-0.5 * up, rot=q, **law)
    else:
        scene.add_rigid("g", ph.Box(20, 1, 6), mass=20.0, pos=-0.5 * up, rot=q, **law)
        if kind == "held":
            scene.fix("g")
    return scene.build("float64")


def end_of(model, values, steps):
    end = ph.rollout(model.replace(values), dt=DT, steps=steps, every=steps)["a"]
    return (torch.stack([end.x[-1], end.v[-1], end.omega[-1]]) * WEIGHTS).sum()


SIZES = (1e-4, 1e-5, 1e-6, 1e-7)


def check_slopes(model, names, steps, rel=2e-5):
    """Reverse sweeps against central differences, and against tangents.

    A difference must not reach over a kink, such as a touch, nor be so small that it is rounding.
    """
    values = {n: torch.tensor(np.array(model[n]), dtype=torch.float64, requires_grad=True) for n in names}
    end_of(model, values, steps).backward()
    plain, rng = {n: v.detach() for n, v in values.items()}, np.random.default_rng(0)
    for name in names:
        way, found = torch.tensor(rng.normal(size=plain[name].shape)), []
        slope = float((values[name].grad * way).sum())
        for h in SIZES:
            two = (float(end_of(model, {**plain, name: plain[name] + s * h * way}, steps)) for s in (1, -1))
            found.append(np.subtract(*two) / (2 * h))
            if found[-1] == pytest.approx(slope, rel=rel, abs=1e-8):
                break
        else:
            pytest.fail(f"{name}: {slope} by the reverse sweep, and by differences {found}")
        moved = ph.jvp(model, {name: way.numpy()}, dt=DT, steps=steps, every=steps)["a"]
        parts = (moved.x, moved.v, moved.omega)
        tangent = sum(float((np.asarray(p)[0, -1] * w.numpy()).sum()) for p, w in zip(parts, WEIGHTS))
        assert slope == pytest.approx(tangent, rel=1e-10, abs=1e-12), name


@pytest.mark.parametrize("hard", [True, False], ids=["hard", "compliant"])
@pytest.mark.parametrize("kind", ["plane", "obstacle", "held", "body"])
def test_slopes_of_a_box_that_slides_and_spins(kind, hard):
    check_slopes(slider(kind, hard=hard), ["a.v", "a.omega", "a.x", "a.mass", "g.mu"], 5)
