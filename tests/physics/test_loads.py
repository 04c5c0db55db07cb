"""External forces and impulses: Newton's law for what they do."""

import numpy as np
import pytest
import torch

from nablasim import physics as ph

POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]])


def scene():
    return ph.Scene(gravity=(0, 0, 0)).add_particles("dust", POINTS, mass=[1.0, 2.0, 1.0, 2.0])


def end(model, **settings):
    settings = {"dt": 0.01, "steps": 100, **settings}
    return ph.rollout(model, every=settings["steps"], **settings).state()["dust"].v


def test_a_force_is_shared_by_the_chosen_particles_while_it_acts():
    model = scene().add_force("dust", (3.0, 0, 0), where=lambda x: x[:, 0] > 1.5, t=(0.2, 0.7)).build("float64")
    np.testing.assert_allclose(end(model)[:, 0], [0, 0, 0.5 * 1.5, 0.5 * 1.5 / 2], atol=1e-13)


@pytest.mark.parametrize("substeps", [1, 4])
def test_an_impulse_changes_the_momentum_by_itself(substeps):
    model = scene().add_impulse("dust", (0, 8.0, 0), t=0.33).build("float64")
    np.testing.assert_allclose(end(model, substeps=substeps)[:, 1], [2, 1, 2, 1], rtol=1e-13)
    before = end(model, steps=33, substeps=substeps)
    np.testing.assert_array_equal(before, 0.0)


def test_forces_vary_in_time_by_control():
    model = scene().add_force("dust", (1.0, 0, 0)).add_force("dust", (0, 1.0, 0)).build("float64")
    assert [n for n in model.names() if "force" in n] == ["dust.force", "dust.force2"]
    push = torch.zeros(100, 3, dtype=torch.float64)
    push[:50, 2] = 4.0
    push.requires_grad_()
    v = ph.rollout(model, dt=0.01, steps=100, every=100, control={"dust.force": push})["dust"].v[-1]
    np.testing.assert_allclose(v.detach()[:, 2], [0.5, 0.25, 0.5, 0.25], rtol=1e-12)
    np.testing.assert_allclose(v.detach()[:, 1], [0.25, 0.125, 0.25, 0.125], rtol=1e-12)
    v[0, 2].backward()
    np.testing.assert_allclose(push.grad[:, 2], 0.01 / 4, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.add_force("dist", (1, 0, 0)), KeyError, "no object 'dist' with particles: did you mean 'dust'"),
        (lambda s: s.add_force("dust", (1, 0)), ValueError, r"dust.force has shape \(2,\); expected \(3\)"),
        (lambda s: s.add_force("dust", (1, 0, 0), t=(2, 1)), ValueError, "acts from 2 s to 1 s"),
        (lambda s: s.add_impulse("dust", (1, 0, 0), t=-1), ValueError, "acts from -1 s"),
        (lambda s: s.add_force("dust", (1, 0, 0), where=lambda x: x[:, 0] > 9), ValueError, "chooses none of its 4"),
        (lambda s: s.fix("dust", where=[0, 4]), ValueError, "names particle 4, but there are 4"),
        (lambda s: s.fix("dust", where=[True]), ValueError, r"mask has shape \(1,\); expected \(4,\)"),
    ],
)
def test_wrong_loads_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(scene())
