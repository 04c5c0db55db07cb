"""Fits of problems whose answer is known."""

import json

import numpy as np
import pytest
from small_scenes import beam, beam_problem, film, pendulum_problem

from nablasim import physics as ph
from nablasim import sysid
from nablasim.sysid.experiments.soft import Softness
from nablasim.sysid.search.gradients import Smooth
from nablasim.sysid.search.lm import lowest, refine


def test_a_pendulum_is_found_from_its_angles_to_the_last_digits():
    fit = pendulum_problem().fit(seed=1)
    assert fit.converged
    for name, value in (("length", 1.3), ("damping", 0.05), ("angle", 2.0)):
        assert fit[name].value == pytest.approx(value, rel=1e-9)
        assert fit[name].certified and fit[name].low <= value <= fit[name].high
    assert fit.model["length"] == pytest.approx(1.3)


def test_a_beam_is_found_from_eight_bit_silhouettes():
    fit = beam_problem(film(beam(), size=32).rounded()).fit(seed=0)
    for name in ("beam.mu", "beam.lam"):
        assert fit[name].value == pytest.approx(1e4, rel=5e-3)
        assert fit[name].certified
    assert "beam.mu" in str(fit.table()) and "[" in str(fit.table())


def test_the_window_grows_and_ends_with_all_frames():
    problem = pendulum_problem(frames=80)
    windows = []
    problem.fit(seed=2, starts=1, on_window=lambda k, start: windows.append(start.path[-1]["frames"]))
    assert len(windows) > 1 and windows == sorted(set(windows)) and windows[-1] == problem.frames


def test_a_killed_fit_goes_on_where_it_stood(tmp_path):
    problem, file = pendulum_problem(frames=80), tmp_path / "fit.json"

    class Killed(Exception):
        pass

    def kill(k, start):
        if k == 1:
            raise Killed

    with pytest.raises(Killed):
        problem.fit(save=file, on_window=kill)
    kept = json.loads(file.read_text())
    assert kept["starts"][0]["done"] and not kept["starts"][1]["done"]
    windows = []
    fit = problem.fit(save=file, on_window=lambda k, start: windows.append(k))
    assert 0 not in windows, "the finished start ran again"
    whole = problem.fit()
    np.testing.assert_allclose(fit.u, whole.u, rtol=1e-9)
    with pytest.raises(ValueError, match="another problem"):
        problem.fit(save=file, seed=5)
    file.write_text("{}")
    with pytest.raises(ValueError, match="not a fit"):
        problem.fit(save=file)


def test_a_fit_that_cannot_run_says_why():
    problem = beam_problem(params=[sysid.Param("beam.mu", (1e11, 1e12))])
    with pytest.raises(sysid.FitFailed, match=r"start 1: .*dt"):
        problem.fit(starts=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "newton"}, "lm"),
        ({"horizon": "all"}, "grow"),
        ({"starts": 0}, "from 1 on"),
        ({"start": {"length": 1.0}}, "damping"),
        ({"start": {"length": 9.0, "damping": 0.1, "angle": 1.0}}, "outside of the bounds"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, says):
    with pytest.raises((ValueError, KeyError), match=says):
        pendulum_problem().fit(**options)


def test_an_estimate_that_was_not_searched_for():
    with pytest.raises(KeyError, match="length"):
        pendulum_problem().fit(starts=1)["lenght"]


@pytest.mark.parametrize(("method", "options"), [("lbfgs", {}), ("adam", {"steps": 150, "rate": 0.1})])
def test_methods_for_many_numbers_find_few_as_well(method, options):
    start = {"beam.mu": 2e4, "beam.lam": 2e4}
    fit = beam_problem().fit(method=method, starts=1, start=start, **options)
    assert fit.loss < 1e-3 * beam_problem().loss(start)
    assert fit["beam.mu"].value == pytest.approx(1e4, rel=0.1)


@pytest.mark.nightly
def test_a_field_is_found_and_a_prior_makes_it_smooth():
    model = beam()
    mesh = ph.TetMesh.box((1, 0.3, 0.3), (3, 1, 1))
    middle = mesh.vertices[mesh.tets].mean(1)[:, 0]
    truth = 1e4 * (1 + 0.5 * middle)
    trajectory = ph.rollout(model.replace({"beam.mu": truth}), dt=1 / 480, steps=240, every=24)
    made = {}
    for smooth in (0.0, 1e-6):
        params = [sysid.Param("beam.mu", (3e3, 1e5), each=True, smooth=smooth)]
        problem = sysid.Problem(model, target=trajectory, observe=sysid.States(), dt=1 / 480, params=params)
        fit = problem.fit(method="lbfgs", starts=1, horizon="full", start={"beam.mu": 1e4}, steps=40)
        made[smooth] = fit.values["beam.mu"], Smooth(sysid.Problem(
            model, target=trajectory, observe=sysid.States(), dt=1 / 480,
            params=[sysid.Param("beam.mu", (3e3, 1e5), each=True, smooth=1.0)],
        ))(fit.u)[0]  # fmt: skip
    assert np.abs(made[0.0][0] / truth - 1).mean() < 0.05
    assert made[1e-6][1] < made[0.0][1] * 1.001
    assert np.abs(made[1e-6][0] / truth - 1).mean() < 0.25


def test_a_step_is_the_lowest_point_within_the_bounds():
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.normal(size=(4, 4)) * [1.0, 1.0, 1e-3, 1e-3]
        H, g = A.T @ A + 1e-8 * np.eye(4), A.T @ rng.normal(size=4)
        low, high = -rng.uniform(0, 0.5, 4), rng.uniform(0, 0.5, 4)
        step = lowest(H, g, low, high)
        assert (step >= low).all() and (step <= high).all()
        others = rng.uniform(low, high, (1000, 4))
        heights = others @ g + 0.5 * np.einsum("ij,jk,ik->i", others, H, others)
        assert g @ step + 0.5 * step @ H @ step <= heights.min() + 1e-12


def test_masses_of_all_particles_are_found_along_a_valley_that_is_not_straight():
    # What tells the sum of two masses tells their difference a thousand times less; bounds are met on the way.
    case = Softness(("beam",), "mass", frames=20, size=32).case(0)
    problem = case.problem("video")
    blind = case.drawn["blind mass"][case._moves]
    refined = refine(problem, problem.space.vector({"masses": blind}), steps=25)
    masses = case.columns(problem.space.values(refined.u))["m"]
    true = case.columns(case.truth)["m"]
    assert np.abs(masses - true).mean() < 0.01 * true.mean()
