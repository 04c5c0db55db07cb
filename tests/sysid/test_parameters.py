"""The space of a search: there and back, bounds, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nablasim.sysid import Param
from nablasim.sysid.problem.parameters import Space

KNOWN = {
    "cube.density": SimpleNamespace(value=np.array(5.0), full=(), unit="kg/m³"),
    "cube.v": SimpleNamespace(value=np.zeros(3), full=(3,), unit="m/s"),
    "cube.rot": SimpleNamespace(value=np.array([0.0, 0, 0, 1]), full=(4,), unit="1"),
    "beam.mu": SimpleNamespace(value=np.array(1e3), full=(7,), unit="Pa"),
}
PARAMS = [
    Param("cube.density", (1, 50)),
    Param("cube.v", (-4.0, 4.0)),
    Param("cube.rot", transform="sphere"),
    Param("beam.mu", (10, 1e5), each=True),
]


@given(st.integers(0, 2**32 - 1))
def test_values_and_coordinates_are_each_others_inverse(seed):
    space = Space(PARAMS, KNOWN)
    u = space.draw(np.random.default_rng(seed))
    values = space.values(u)
    np.testing.assert_allclose(space.vector(values), u, atol=1e-9)
    assert np.linalg.norm(values["cube.rot"]) == pytest.approx(1)
    assert 1 <= values["cube.density"] <= 50 and np.abs(values["cube.v"]).max() <= 4
    assert values["beam.mu"].shape == (7,) and np.ptp(values["beam.mu"]) == 0


@given(st.integers(0, 2**32 - 1))
def test_tensors_have_the_same_values_and_the_slope_of_differences(seed):
    space = Space(PARAMS, KNOWN)
    u = space.draw(np.random.default_rng(seed))
    at = torch.tensor(u, requires_grad=True)
    tensors = space.values(at)
    for name, value in space.values(u).items():
        np.testing.assert_allclose(tensors[name].detach().numpy(), value, rtol=1e-12, atol=1e-14)
    slope = torch.autograd.functional.jacobian(
        lambda x: torch.cat([v.reshape(-1) for v in space.values(x).values()]), at.detach()
    ).numpy()
    np.testing.assert_allclose(space.slope(u), slope, rtol=1e-6, atol=1e-8)


def test_a_batch_has_its_axis_in_front():
    space = Space(PARAMS, KNOWN)
    values = space.values(np.stack([space.draw(np.random.default_rng(k)) for k in range(5)]))
    assert {n: v.shape for n, v in values.items()} == {
        "cube.density": (5,), "cube.v": (5, 3), "cube.rot": (5, 4), "beam.mu": (5, 7),
    }  # fmt: skip


def test_numbers_have_names_and_units():
    space = Space(PARAMS[:3], KNOWN)
    assert space.names[:4] == ["cube.density", "cube.v.x", "cube.v.y", "cube.v.z"]
    assert space.units[0] == "kg/m³" and len(space.units) == len(space.names) == 8
    assert space.size == 7


def test_blind_guesses_fill_the_whole_range():
    space = Space([Param("cube.density", (1, 100))], KNOWN)
    drawn = np.array([space.draw(np.random.default_rng(k))[0] for k in range(400)])
    # Uniform in the logarithm: a third of them in each factor of 4.64.
    assert np.abs(np.histogram(np.exp(drawn), [1, 4.64, 21.5, 100])[0] - 133).max() < 40


def test_a_param_can_mean_several_of_the_model():
    both = Param("stiffness", (1, 10), into=lambda k: {"floor.ke": 1e3 * k, "floor.kd": 10 * k})
    values = Space([both], {}).values(np.array([np.log(2.0)]))
    assert values["floor.ke"] == pytest.approx(2e3) and values["floor.kd"] == pytest.approx(20)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Param("a", (5, 1)), "the lower first"),
        (lambda: Param("a"), "give bounds"),
        (lambda: Param("a", (0, 1), transform="log"), "positive bounds"),
        (lambda: Param("a", (1, 2), transform="square"), "log, linear, sphere"),
        (lambda: Param("a", (1, 2), start=3), "outside of the bounds"),
        (lambda: Space([], KNOWN), "nothing to find"),
        (lambda: Space([Param("a", (1, 2)), Param("a", (1, 2))], KNOWN), "twice"),
        (lambda: Space([Param("cube.density", transform="sphere")], KNOWN), "directions and quaternions"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_values_are_pushed_along_every_coordinate():
    """Also through functions that leave torch, as restitution does, and through those that move nothing."""
    from nablasim.sysid.scenes.restitution import damping_of

    known = {"b.vel": SimpleNamespace(value=np.zeros(3), full=(3,), unit="m/s")}
    space = Space([
        Param("b.vel", (-1, 1)),
        Param("bounce", (0.1, 0.9), start=0.5, into=lambda e: {"g.kd": damping_of(e, stiffness=1e4, mass=2.0)}),
        Param("idle", (0, 1), start=0.5, into=lambda v: {"g.mu": v.detach() if hasattr(v, "detach") else v}),
    ], known)  # fmt: skip
    u = np.array([0.1, -0.2, 0.3, np.log(0.4), 0.5])
    values, along = space.push(u)
    for name, value in values.items():
        np.testing.assert_allclose(value, space.values(u)[name], rtol=1e-12)
        assert along[name].shape == (5, *np.shape(value))
    h = 1e-6
    for k, e in enumerate(np.eye(5)):
        for name in ("b.vel", "g.kd"):
            wide = (space.values(u + h * e)[name] - space.values(u - h * e)[name]) / (2 * h)
            np.testing.assert_allclose(along[name][k], wide, rtol=1e-7, atol=1e-7)
    assert not along["g.mu"].any()
