"""Restitution and damping are each other's inverse, and bodies bounce as they say."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nablasim import physics as ph
from nablasim.sysid.scenes.restitution import damping_of, restitution_of


@given(st.floats(0.02, 0.99), st.floats(1, 1e5), st.floats(0.01, 100), st.sampled_from(["linear", "smooth"]))
def test_there_and_back(e, stiffness, mass, law):
    damping = damping_of(e, stiffness=stiffness, mass=mass, law=law)
    assert restitution_of(damping, stiffness=stiffness, mass=mass, law=law) == pytest.approx(e, rel=1e-6)


def test_tensors_have_the_slope_of_differences():
    e = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    mass = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    slopes = torch.autograd.grad(damping_of(e, stiffness=500.0, mass=mass), (e, mass))
    h = 1e-6
    by_e = [damping_of(0.6 + s * h, stiffness=500.0, mass=2.0) for s in (1, -1)]
    by_mass = [damping_of(0.6, stiffness=500.0, mass=2.0 + s * h) for s in (1, -1)]
    assert float(slopes[0]) == pytest.approx((by_e[0] - by_e[1]) / (2 * h), rel=1e-6)
    assert float(slopes[1]) == pytest.approx((by_mass[0] - by_mass[1]) / (2 * h), rel=1e-6)


@pytest.mark.parametrize(("law", "tolerance"), [("linear", 5e-3), ("smooth", 2e-2)])
def test_a_ball_keeps_that_part_of_its_speed(law, tolerance):
    mass, stiffness = 2.0, 2000.0
    for wanted in (0.45, 0.8):
        scene = ph.Scene(gravity=(0, 0, 0))
        scene.add_rigid("ball", ph.Sphere(0.2), mass=mass, pos=(0, 0.21, 0), vel=(0, -4, 0))
        damping = float(damping_of(wanted, stiffness=stiffness, mass=mass, law=law))
        scene.add_ground("floor", ke=stiffness, kd=damping, damping=law, touch=1e-4)
        ball = ph.rollout(scene.build(real="float64"), dt=1e-4, steps=3000, every=3000)["ball"]
        assert float(ball.v[-1, 1]) / 4 == pytest.approx(wanted, rel=tolerance)
        assert np.isfinite(damping)
