"""A problem's misfits and slopes: batches, differences and the sweep back agree. What cannot be is refused."""

import numpy as np
import pytest
from small_scenes import DT, beam, beam_problem, film, pendulum_problem, silhouette

from nablasim import physics as ph
from nablasim import render, sysid
from nablasim.sysid.demo import Bounce


@pytest.mark.parametrize("make", [pendulum_problem, beam_problem], ids=["states", "pictures"])
def test_slopes_of_a_batch_are_those_of_the_sweep_back(make):
    problem = make()
    u = problem.space.draw(np.random.default_rng(3))
    slopes, (loss, gradient) = problem.slopes(u), problem.gradient(u)
    assert slopes.loss == pytest.approx(loss, rel=1e-6)
    total = 2 * slopes.gradient.sum(0) / slopes.count / problem.frames
    # Pictures are of single precision: differences of them have three digits.
    np.testing.assert_allclose(total, gradient, rtol=2e-3 if problem.bound.floor > 1e-6 else 1e-6)


@pytest.mark.parametrize("by", ["differences", "tangents"])
def test_sums_per_frame_are_those_of_the_jacobian(by):
    problem = beam_problem()
    u = problem.space.draw(np.random.default_rng(1))
    slopes, (r, J) = problem.slopes(u, by=by), problem.jacobian(u, by=by)
    np.testing.assert_allclose(slopes.squares, (r**2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(slopes.gradient, np.einsum("nfm,fm->fn", J, r), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(slopes.normal, np.einsum("nfm,kfm->fnk", J, J), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(slopes.spread, np.einsum("nfm,fm,kfm->fnk", J, r**2, J), rtol=1e-3, atol=1e-6)


def test_differences_three_runs_at_a_time_are_those_of_a_batch():
    problem = beam_problem(params=[sysid.Param("beam.mu", (1e3, 1e12)), sysid.Param("beam.lam", (1e3, 1e5))])
    u = np.array([np.log(2e4), problem.space.low[1]])  # At a bound, too: one side of it is the point itself.
    batch, threes = (problem.slopes(u, by="differences", keep=True, batched=b) for b in (True, False))
    np.testing.assert_allclose(threes.J, batch.J, rtol=1e-3, atol=1e-4 * np.abs(batch.J).max())
    np.testing.assert_allclose(threes.squares, batch.squares, rtol=1e-6)
    assert problem.slopes(np.log([1e11, 1e4]), by="differences", batched=False) is None


def test_misfits_of_a_batch_are_those_of_each():
    problem = beam_problem()
    points = np.stack([problem.space.draw(np.random.default_rng(k)) for k in range(3)])
    together = problem.misfits(points)
    for point, squares in zip(points, together):
        np.testing.assert_allclose(problem.misfits(point)[0], squares, rtol=1e-6)
    np.testing.assert_allclose(problem.misfits(points, 5), together[:, :5], rtol=1e-6)


def test_the_truth_has_no_misfit():
    assert beam_problem().loss({"beam.mu": 1e4, "beam.lam": 1e4}) < 1e-12
    assert pendulum_problem().loss({"length": 1.3, "damping": 0.05, "angle": 2.0}) == 0


def test_a_run_that_blows_up_is_infinitely_bad_and_the_others_are_not():
    problem = beam_problem(params=[sysid.Param("beam.mu", (1e3, 1e12)), sysid.Param("beam.lam", (1e3, 1e12))])
    points = np.log([[1e4, 1e4], [1e11, 1e11], [2e4, 1e4]])
    squares = problem.misfits(points).sum(1)
    assert squares[0] < 1e-6 and squares[1] == np.inf and 0 < squares[2] < 1e3
    assert problem.slopes(points[1]) is None
    assert "dt" in problem.simulation.explain(problem.space.values(points[1:2]), problem.frames)


def test_pictures_at_given_times_need_not_be_regular():
    video = film(beam())
    chosen = [0, 3, 4, 12]
    problem = beam_problem(sysid.Video(video.frames[chosen], video.times[chosen]))
    np.testing.assert_allclose(
        problem.misfits(np.log([2e4, 1e4]))[0], beam_problem().misfits(np.log([2e4, 1e4]))[0][chosen], rtol=1e-6
    )


def test_quaternions_of_both_signs_are_the_same_rotation():
    bound = sysid.States("cube.rot").bind(
        beam(), sysid.Track([0.0, 1.0], {"cube.rot": np.array([[0, 0, 0, 1.0], [0, 0.6, 0, -0.8]])})
    )
    seen = {"cube.rot": np.array([[[0, 0, 0, -1.0], [0, -0.6, 0, 0.8]]])}
    np.testing.assert_allclose(bound.rows(seen, [0, 1]).numpy()[0], bound.target)


def test_colours_are_compared_with_colours():
    model = beam()
    renderer = render.Renderer(silhouette().camera, [render.Ambient(0.5), render.Directional((0, -1, -1))])
    trajectory = ph.rollout(model, dt=DT, steps=48, every=24)
    drawn = renderer(trajectory.vertices("beam").float(), model.surfaces["beam"].faces, size=(24, 24))
    video = sysid.Video(drawn.numpy()[..., :3], trajectory.times)
    problem = beam_problem(video, observe=renderer)
    assert problem.bound.target.shape == (3, 24 * 24 * 3)
    assert problem.loss({"beam.mu": 1e4, "beam.lam": 1e4}) < 1e-12
    assert problem.loss({"beam.mu": 2e4, "beam.lam": 1e4}) > 1e-6


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"params": [sysid.Param("beam.my", (1, 2))]}, KeyError, "beam.mu"),
        ({"params": [sysid.Param("beam.E", (1, 2))]}, KeyError, "not in force"),
        ({"params": ["beam.mu"]}, TypeError, "sysid.Param"),
        ({"dt": 0.0123}, ValueError, "whole number of steps.*dt="),
        ({"target": np.zeros((3, 8, 8))}, TypeError, "sysid.Video"),
        ({"observe": 3}, TypeError, "render.Silhouette"),
        ({"observe": sysid.Pictures(silhouette(), objects=("ball",))}, KeyError, "beam"),
        ({"observe": render.Renderer(silhouette().camera)}, ValueError, "grey"),
        ({"observe": sysid.States("beam.x")}, TypeError, "Track"),
        ({"target": sysid.Video(np.random.default_rng(0).random((3, 8, 8, 3)), fps=20)}, ValueError, "sysid.masks"),
    ],
)
def test_what_cannot_be_is_refused(change, error, says):
    with pytest.raises(error, match=says):
        beam_problem(**change)


def test_videos_say_what_is_wrong_with_them():
    for frames, settings, says in (
        (np.zeros((2, 3)), {"fps": 30}, "height, width"),
        (np.zeros((2, 3, 3), np.int32), {"fps": 30}, "uint8"),
        (np.full((2, 3, 3), np.nan), {"fps": 30}, "frame 0"),
        (np.zeros((2, 3, 3)), {}, "fps"),
        (np.zeros((2, 3, 3)), {"times": [0, 1, 2]}, "2 frames and 3 times"),
        (np.full((2, 3, 3), 254.0), {"fps": 30}, "divide by 255"),
        (np.ma.array(np.zeros((2, 3, 3)), mask=True), {"fps": 30}, "masked"),
        (np.zeros((2, 3, 3)), {"fps": -30}, "above zero"),
        (np.zeros((2, 3, 3)), {"fps": np.nan}, "above zero"),
        (np.zeros((2, 3, 3)), {"times": [1, 0]}, "in order"),
        (np.zeros((2, 3, 3)), {"times": [0, np.nan]}, "finite"),
        (np.zeros((2, 3, 3)), {"fps": 30, "noise": np.nan}, "standard deviation"),
    ):
        with pytest.raises((ValueError, TypeError), match=says):
            sysid.Video(frames, **settings)


@pytest.mark.parametrize(
    ("times", "angles", "says"),
    [
        ([0.0, 0.1], [1.0, np.nan], "not finite at 0.1 s"),
        ([0.1, 0.0], [1.0, 2.0], "in order"),
        ([0.0, np.nan], [1.0, 2.0], "finite"),
        ([0.0, 0.1], np.ma.array([1.0, 2.0], mask=[0, 1]), "masked"),
        ([0.0, 0.1], [1.0], "2 times"),
    ],
)
def test_tracks_say_what_is_wrong_with_them(times, angles, says):
    with pytest.raises(ValueError, match=says):
        sysid.Track(times, {"angle": angles})


@pytest.mark.parametrize("noise", [-1.0, np.nan, np.inf])
def test_noise_is_a_standard_deviation(noise):
    """With NaN any residual would pass for noise, and a wrong fit be certified."""
    for make in (sysid.States, lambda noise: sysid.Pictures(silhouette(), noise=noise)):
        with pytest.raises(ValueError, match="standard deviation"):
            make(noise=noise)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"iterations": 5}, TypeError, "iterations"),  # of another package: here it is steps=
        ({"rate": 0.1}, TypeError, "rate"),
        ({"starts": 2.5}, ValueError, "starts"),
        ({"start": {"length": np.nan, "damping": 0.1, "angle": 1.0}}, ValueError, "outside of the bounds"),
        ({"start": {"length": 1.0, "damping": 0.1, "angle": 1.0, "lenght": 2.0}}, KeyError, "length"),
    ],
)
def test_options_of_a_fit_that_mean_nothing_are_refused(options, error, says):
    with pytest.raises(error, match=says):
        pendulum_problem().fit(**options)


def test_the_loss_is_asked_for_at_params_alone():
    for values in ({"length": 1.3, "damping": 0.05}, {"length": 1.3, "damping": 0.05, "angle": 2.0, "mass": 3.0}):
        with pytest.raises(KeyError, match=r"angle|mass"):
            pendulum_problem().loss(values)


def test_exact_slopes_are_those_of_the_reverse_sweep_and_of_differences():
    bounce = Bounce(frames=14, size=32)
    problem = bounce.problem(bounce.film())
    u = problem.space.vector({"cube.density": 8.3, "floor.ke": 1400.0, "floor.kd": 13.0, "floor.mu": 0.33})
    exact, near = problem.slopes(u, by="tangents", keep=True), problem.slopes(u, step=1e-5, keep=True, by="differences")
    r, J = problem.jacobian(u)
    assert np.array_equal(r, problem.jacobian(u, by="differences")[0]) and np.allclose(J, exact.J, atol=1e-6)
    loss, gradient = problem.gradient(u)
    scale = r.size / 2
    assert np.isclose(exact.loss, loss) and np.allclose(exact.gradient.sum(0) / scale, gradient, rtol=1e-4)
    assert np.allclose(exact.normal.sum(0), near.normal.sum(0), rtol=0.05), "pictures are in single precision"
    assert np.linalg.norm(exact.J - near.J) < 0.05 * np.linalg.norm(near.J)


def test_exact_slopes_of_states_and_of_other_losses():
    bounce = Bounce(frames=10, size=32)
    video, model = bounce.film(), bounce.model()
    truth = ph.rollout(model.replace(bounce.truth), dt=bounce.dt, steps=9 * bounce.every, every=bounce.every)
    bounds = {"cube.density": (1, 50), "cube.v": (-3.0, 3.0), "floor.mu": (0.05, 1.5)}
    params = [sysid.Param(*one) for one in bounds.items()]
    states = sysid.Problem(model, target=truth, observe=sysid.States("cube.x", "cube.rot"), dt=bounce.dt, params=params)
    u = states.space.vector({"cube.density": 7.0, "cube.v": [1.0, 0.4, -0.2], "floor.mu": 0.4})
    _, J = states.jacobian(u)
    assert np.allclose(J, states.jacobian(u, by="differences")[1], rtol=1e-4, atol=1e-6)
    for loss in (sysid.Pyramid(3), sysid.Blur(2.0), sysid.Moments()):
        seen = sysid.Problem(model, target=video, dt=bounce.dt, params=params, loss=loss,
                             observe=sysid.Pictures(bounce.silhouette(), real="float64"))  # fmt: skip
        _, J = seen.jacobian(u)
        assert np.allclose(J, seen.jacobian(u, by="differences")[1], rtol=1e-3, atol=1e-4 * np.abs(J).max()), loss
    with pytest.raises(ValueError, match='"differences" or "tangents"'):
        states.slopes(u, by="guess")
