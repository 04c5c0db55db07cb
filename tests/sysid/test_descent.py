"""The descent on functions whose minimum is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablasim.sysid.descent import descend


@given(st.integers(0, 2**32 - 1))
def test_a_bowl_is_descended_to_its_bottom(seed):
    rng = np.random.default_rng(seed)
    bottom, stiffness = rng.normal(size=4), rng.uniform(0.5, 5.0, 4)

    def bowl(x):
        return float(stiffness @ (x - bottom) ** 2), 2 * stiffness * (x - bottom)

    fit = descend(bowl, np.zeros(4), iterations=200)
    assert fit.converged
    np.testing.assert_allclose(fit.value, bottom, atol=1e-6)


def test_a_curved_valley_is_followed():
    def rosenbrock(x):
        a, b = 1 - x[0], x[1] - x[0] ** 2
        return float(a**2 + 10 * b**2), np.array([-2 * a - 40 * x[0] * b, 20 * b])

    fit = descend(rosenbrock, [-1.2, 1.0], iterations=500)
    assert fit.converged
    np.testing.assert_allclose(fit.value, [1, 1], atol=1e-5)


def test_no_step_is_longer_than_allowed():
    fit = descend(lambda x: (float(x @ x), 2 * x), [100.0, 0.0], max_step=1.0, iterations=300)
    assert np.linalg.norm(np.diff(fit.values, axis=0), axis=1).max() <= 1.0 + 1e-12
    assert fit.converged


def test_it_starts_at_the_bottom_and_stays():
    fit = descend(lambda x: (0.0, np.zeros(2)), [1.0, 2.0])
    assert fit.converged and len(fit.losses) == 1
    np.testing.assert_array_equal(fit.value, [1.0, 2.0])


def test_a_wrong_gradient_is_said():
    fit = descend(lambda x: (float(x @ x), -2 * x), [1.0, 2.0])
    assert not fit.converged
    assert "is the gradient right?" in fit.message


def test_running_out_of_iterations_is_said():
    fit = descend(lambda x: (float(x @ x), 2 * x), [100.0], iterations=3, max_step=1.0)
    assert not fit.converged
    assert "3 iterations" in fit.message
    assert len(fit.losses) == 4


def test_steps_into_nothing_are_halved():
    # Not a number beyond 1.5: the first step of length 1 from 1 goes there and is taken back.
    def edge(x):
        return (float((x[0] - 1.2) ** 2) if x[0] < 1.5 else float("nan")), np.array([2 * (x[0] - 1.2)])

    assert descend(edge, [1.0]).value[0] == pytest.approx(1.2)


def test_a_start_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="start where both are finite"):
        descend(lambda x: (float("inf"), np.zeros(1)), [1.0])


def test_progress_is_told():
    told = []
    fit = descend(lambda x: (float(x @ x), 2 * x), [3.0], on_iteration=lambda i, loss: told.append((i, loss)))
    assert told == list(enumerate(fit.losses))[1:]
