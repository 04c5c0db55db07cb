"""Intervals are earned: they hold the truth as often as they say, and are not given where they cannot."""

import numpy as np
import pytest
from small_scenes import DT, beam, beam_problem, film, pendulum_problem

from nablasim import physics as ph
from nablasim import sysid
from nablasim.sysid.uncertainty import inverses


def test_certified_intervals_of_states_hold_the_truth_nine_times_in_ten():
    inside, certified, rng = 0, 0, np.random.default_rng(0)
    for k in range(50):
        truth = {"length": rng.uniform(0.8, 2.0), "damping": rng.uniform(0.02, 0.2), "angle": rng.uniform(0.5, 2.5)}
        fit = pendulum_problem(noise=0.02, seed=k, truth=truth).fit(seed=k)
        for name, value in truth.items():
            if fit[name].certified:
                certified += 1
                inside += fit[name].low <= value <= fit[name].high
    assert certified > 120
    assert 0.80 <= inside / certified <= 0.98


def test_certified_intervals_of_noisy_pictures_hold_the_truth_nine_times_in_ten():
    inside, certified, rng = 0, 0, np.random.default_rng(1)
    for k in range(50):
        truth = {"beam.mu": rng.uniform(5e3, 2e4), "beam.lam": rng.uniform(5e3, 2e4)}
        video = film(beam().replace(truth), frames=7, every=32).with_noise(0.03, rng)
        fit = beam_problem(video).fit(seed=k, starts=3)
        for name, value in truth.items():
            if fit[name].certified:
                certified += 1
                inside += fit[name].low <= value <= fit[name].high
    assert certified > 60
    assert 0.80 <= inside / certified <= 0.98


def test_what_the_frames_cannot_tell_is_never_certified():
    # Mass and damping of a pendulum only matter by their ratio.
    params = [sysid.Param(name, bounds) for name, bounds in (
        ("length", (0.3, 3)), ("damping", (0.001, 1)), ("mass", (0.1, 3)), ("angle", (-3.0, 3.0)),
    )]  # fmt: skip
    for noise in (0.0, 0.01):
        problem = pendulum_problem(noise, params=params)
        fit = problem.fit()
        assert not fit["mass"].certified and not fit["damping"].certified
        said = problem.identifiability()
        assert any("damping and mass" in w or "mass" in w for w in said.warnings)


def test_the_mass_of_what_falls_freely_is_never_certified():
    model = beam(fixed=False)
    for target, observe in ((film(model, frames=6), None), (ph.rollout(model, dt=DT, steps=96, every=24), None)):
        observe = sysid.States() if isinstance(target, ph.Trajectory) else beam_problem().observe
        params = [sysid.Param("beam.density", (20, 500))]
        problem = sysid.Problem(model, target=target, observe=observe, dt=DT, params=params)
        fit = problem.fit()
        assert not fit["beam.density"].certified
        assert "cannot tell" in fit["beam.density"].why[0]
        said = problem.identifiability()
        assert "beam.density" in str(said) and said.warnings


def test_one_start_is_not_enough():
    fit = pendulum_problem(0.01).fit(starts=1)
    assert not fit["length"].certified and "only one start" in str(fit["length"])


def test_a_wrong_model_is_noticed_in_states():
    # A pendulum that is damped, fitted by one that is not.
    problem = pendulum_problem(0.01, params=[sysid.Param("length", (0.3, 3)), sysid.Param("angle", (-3.0, 3.0))])
    fit = problem.fit()
    assert any("noise" in w or "repeat" in w for w in fit["length"].why)
    blind = sysid.Problem(problem.model, target=problem.target, observe=sysid.States(), dt=1 / 120,
                          params=problem.space.params)  # fmt: skip
    assert any("repeat" in w for w in blind.fit()["length"].why), "without knowing the noise"


def test_a_wrong_model_is_noticed_in_pictures():
    # The beam swings in less gravity than is assumed.
    video = film(beam().replace({"gravity": np.array([0.0, -8.0, 0.0])}), frames=9).rounded()
    params = [sysid.Param("beam.lam", (1e3, 1e5))]
    fit = beam_problem(video, params=params).fit()
    assert any("pixels off" in w for w in fit["beam.lam"].why)
    assert fit.certificate.misfit.shift > 0.02


def test_a_bound_is_not_an_estimate():
    problem = pendulum_problem(0.01, params=[sysid.Param("length", (1.4, 3)), sysid.Param("angle", (-3.0, 3.0)),
                                             sysid.Param("damping", (0.001, 1))])  # fmt: skip
    assert "it ended at a bound" in problem.fit()["length"].why


def test_identifiability_at_a_point_is_the_std_of_a_fit_there():
    truth = {"length": 1.3, "damping": 0.05, "angle": 2.0}
    problem = pendulum_problem(0.02)
    said, fit = problem.identifiability(at=truth, noise=0.02), problem.fit()
    for name, std in zip(said.names[:2], said.std[:2]):
        assert std == pytest.approx(fit[name].std / fit[name].value, rel=0.5)


def test_inverses_where_directions_are_unknown():
    J = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1e-3]])
    known, blind = inverses(J.T @ J, np.full(3, 1e-20), 1e-13)
    assert blind[0, 0] > 1e18 and blind[0, 1] < -1e18 and abs(blind[2, 2]) < 1e-3
    assert known[2, 2] == pytest.approx(1e6) and known[0, 0] == pytest.approx(0.05)
    known, blind = inverses(np.diag([2.0, 4.0]), np.full(2, 1e-30), 1e-13)
    np.testing.assert_allclose(known + blind, np.diag([0.5, 0.25]))
    assert inverses(np.diag([2.0, 1e-9]), np.full(2, 1e-30), 1e-13, least=1e-6)[1][1, 1] > 1e29


def test_frames_that_show_something_else_are_noticed():
    video = film(beam(), frames=13, every=24).with_noise(0.02, np.random.default_rng(0))
    assert beam_problem(video).fit()["beam.mu"].certified
    # Somebody moved the camera: no edge is where another one was.
    frames = video.frames.copy()
    frames[9:] = np.roll(frames[9:], 11, axis=1)
    fit = beam_problem(sysid.Video(frames, video.times)).fit()
    assert not fit["beam.mu"].certified
    assert any("4 of 13 frames show something else, from number 9 on" in w for w in fit["beam.mu"].why)
