"""The paper's tasks of control: their meshes, their trainings at the smallest size, and the command."""

import re

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from nablasim import physics as ph
from nablasim.sysid import control
from nablasim.sysid.baselines import ppo
from nablasim.sysid.cli import app
from nablasim.sysid.control.optimisers import QuasiNewton
from nablasim.sysid.experiments import imperfect, pendula, rates, smoke
from nablasim.sysid.experiments.answers import Fitted, Missing
from nablasim.sysid.experiments.closed_loop import CHEETAH, RUNNERS
from nablasim.sysid.experiments.control_cloth import CONTROL_CLOTH, Throw
from nablasim.sysid.experiments.control_fem import gear
from nablasim.sysid.experiments.control_walker import Walker, walker
from nablasim.sysid.experiments.controls import TASKS
from nablasim.sysid.experiments.jellyfish import bell, kinds_of_edges
from nablasim.sysid.experiments.reproduce import reproduce
from nablasim.sysid.experiments.steering import CENTRE, PICTURE, RANDOM, Trained, train


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def volumes(mesh):
    sides = mesh.vertices[mesh.tets[:, 1:]] - mesh.vertices[mesh.tets[:, :1]]
    return np.linalg.det(sides) / 6


def test_the_gear_has_the_papers_tetrahedra_and_fills_its_outline():
    mesh = gear()
    assert len(mesh.tets) == 1152 and (volumes(mesh) > 0).all()
    # A ring and teeth between regular polygons of 32 corners, whose teeth are half of it.
    area = 16 * np.sin(2 * np.pi / 32) * ((0.36**2 - 0.2**2) + (0.5**2 - 0.36**2) / 2)
    assert volumes(mesh).sum() == pytest.approx(0.2 * area)
    assert mesh.surface.is_closed


def test_the_walker_stays_in_its_plane():
    mesh = walker()
    half = len(mesh.tets) // 2
    middles = mesh.vertices[mesh.tets].mean(axis=1)
    assert (volumes(mesh) > 0).all() and np.allclose(middles[:half] * [1, 1, -1], middles[half:])
    stage = Walker(steps=3)
    motion = stage.task(0, PICTURE).train(iterations=0, seed=0).motion()
    x = motion["walker"].x.numpy()
    assert np.abs(stage.masses @ x[-1])[2] < 1e-5 and np.ptp(x[-1] - x[0], axis=0)[0] > 1e-3


def test_edges_that_a_turn_takes_to_each_other_are_of_one_kind():
    mesh = bell(12, 4)
    kinds = kinds_of_edges(mesh)
    assert len(kinds) == len(mesh.hinges.vertices) and set(np.bincount(kinds)) == {12}


def test_a_throw_is_a_velocity_and_a_spin():
    throw = Throw([[1.0, 0, 0], [-1.0, 0, 0]])
    with torch.no_grad():
        throw.velocity.copy_(torch.tensor([0.0, 0.0, 1.0]))
        throw.spin.copy_(torch.tensor([0.0, 0.0, 2.0]))
    assert throw().detach().numpy() == pytest.approx(np.array([[0, 2, 1], [0, -2, 1]]))


def test_the_quasi_newton_method_finds_the_end_of_a_bent_valley():
    x = torch.nn.Parameter(torch.tensor([-1.2, 1.0], dtype=torch.float64))
    search, losses = QuasiNewton([x], lr=0.5), []
    for _ in range(120):
        search.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        losses.append(loss.item())
        search.step(lambda loss=loss: loss)
    assert min(losses) < 1e-10
    with pytest.raises(TypeError, match="loss"):
        search.step()


@pytest.mark.parametrize("name", TASKS)
def test_every_task_trains_at_the_smallest_size(name):
    task = TASKS[name]
    stage, count = task.staged("ci"), task.scale("ci").iterations
    runs = {told: train(stage, told, 0, count, progress=False) for told in (PICTURE, CENTRE, RANDOM)}
    for told in (PICTURE, CENTRE):
        assert runs[told].loss < runs[told].losses[0] and len(runs[told].watched) == count + 1
    assert len(runs[RANDOM].losses) == 1
    again = train(stage, PICTURE, 0, count, progress=False)
    assert again.losses == runs[PICTURE].losses and again.watched == runs[PICTURE].watched


def test_a_throw_of_cloth_has_the_gradient_of_differences():
    task = CONTROL_CLOTH.staged("ci").task(0, CENTRE)
    velocity = task.policy("cloth.v").velocity
    ends = []
    for step in (0.02, -0.02, 0.0):
        with torch.no_grad():
            velocity.copy_(torch.tensor([1.0 + step, 0.5, 0.2]))
        loss = task.loss()
        ends.append(loss.item())
    loss.backward()
    # The model is in single precision.
    assert float(velocity.grad[0]) == pytest.approx((ends[0] - ends[1]) / 0.04, rel=2e-3)


def test_a_rate_that_decays_goes_on_after_a_kill_with_the_same_bits(tmp_path, monkeypatch):
    stage = TASKS["walker"].staged("ci")

    def run(folder=None, iterations=3):
        return stage.task(0, PICTURE).train(iterations=iterations, rate=0.1, decay=True, seed=0, folder=folder,
                                            watch=lambda motion: stage.misses(0, motion))  # fmt: skip

    whole, loss, calls = run(), control.Task.loss, []

    def killed(self, *given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return loss(self, *given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(control.Task, "loss", killed)
        run(tmp_path)
    again = run(tmp_path)
    assert again.losses == whole.losses and again.watched == whole.watched
    with pytest.raises(ValueError, match="another training"):
        run(tmp_path, iterations=4)


def test_the_command_trains_and_writes_a_page_and_a_film(tmp_path):
    result = CliRunner().invoke(app, ["control", "walker", "--size", "ci", "--out", str(tmp_path)])
    # Two iterations of six steps do not get there, which the exit code says.
    assert result.exit_code == 1 and "m from the goal" in result.output
    assert "Before and after" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "walker.mp4").stat().st_size > 1000
    wrong = CliRunner().invoke(app, ["control", "gear", "--out", str(tmp_path)])
    assert wrong.exit_code == 2 and "fem" in wrong.output


@pytest.mark.nightly
def test_the_chapter_stands_beside_the_paper(tmp_path):
    (chapter,) = reproduce("control-walker", "ci", tmp_path, backend="serial")
    assert [row[0] for row in chapter.tables[0].rows] == [
        "∇Sim, one picture", "DiffPhysics, 3-D centre of mass", "random",
    ]  # fmt: skip
    assert len(chapter.plates) == 1 and len(chapter.data["trainings"]) == 3


def test_pendula_are_found_from_their_bobs():
    case = pendula.Swings(1, frames=12, size=24).case(1)
    found = Fitted("video", case, "video", starts=4).run()
    assert found.error("length") < 1e-3 and found.error("angle") < 1e-3
    double = Fitted("states", pendula.Swings(2, frames=12).case(0), "states", starts=4).run()
    assert double.error("length") < 1e-9 and np.shape(double.found["length"]) == (2,)


def test_smoke_comes_nearer_to_the_pattern():
    result = smoke.Blown(16, 6, 0).run()
    assert result["end"] < 0.5 * result["still"] and len(result["losses"]) <= 8


@pytest.mark.nightly
def test_a_soft_body_that_is_taken_for_a_rigid_one_is_not_certified():
    body = imperfect.Body("soft", 0, frames=16, size=24)
    wrong = imperfect.Judged(imperfect.AS_RIGID, body).run()
    right = imperfect.Judged(imperfect.PERFECT, body).run()
    assert right["error"] < 0.01 < wrong["error"]
    assert not wrong["certified"] and wrong["why"]


def test_pictures_of_a_path_tracer_lie_on_ours():
    body = imperfect.Body("rigid", 0, frames=2, size=48)
    theirs = body.film(imperfect.REALISTIC)
    if isinstance(theirs, str):
        assert re.search("mitsuba", theirs)
        assert isinstance(imperfect.Judged(imperfect.REALISTIC, body).run(), Missing)
        pytest.skip("Mitsuba is not installed")
    see = body.problem(imperfect.REALISTIC, theirs).bound.given.renderer
    model = body.model("rigid")
    surface, state = model.surfaces["body"], [torch.as_tensor(np.array(model[f"body.{w}"])) for w in ("x", "rot")]
    ours = np.asarray(see(surface.vertices(*state).float(), surface.faces))
    assert np.minimum(ours, theirs.frames[0]).sum() / np.maximum(ours, theirs.frames[0]).sum() > 0.97


def test_steps_are_timed_forward_and_backward():
    result = rates.Timed(100, 1).run()
    assert result["tets"] == 96 and len(result["rates"]) == 4
    physics, _, back, both = result["rates"]
    assert physics > both > 0 and back > both


def test_a_motion_that_diverged_leaves_a_gap_in_the_curves(monkeypatch):
    task = TASKS["walker"]
    stage = task.staged("ci")
    whole, calls = control.Task.motion, []

    def diverging(self, *given):
        calls.append(1)
        if len(calls) == 2:
            raise ph.Diverged("diverged", "walker", 1)
        return whole(self, *given)

    monkeypatch.setattr(control.Task, "motion", diverging)
    item = Trained(stage, PICTURE, 0, 2)
    result = item.run()
    assert np.isnan(result["misses"][1][0]) and len(result["misses"]) == 3
    chapter = task.chapter("ci", [item], [result])
    assert len(chapter.tables[0].rows) >= 1 and len(chapter.plates) == 1


@pytest.mark.nightly
def test_robots_of_the_field_learn_to_run_in_windows():
    """Few windows of few copies: what counts is that they descend; carried over, the policy runs in MuJoCo as well."""
    if ppo.assets() is None:
        pytest.skip("gymnasium and MuJoCo are not installed")
    run = CHEETAH.train(0.1, 0, progress=False)
    assert run.at[-1] == len(run.windows) >= 1 and run.loss <= run.losses[0]
    assert np.isfinite(run.windows).all()
    there = CHEETAH.carried(run.task)
    assert there.steps == CHEETAH.steps and np.isfinite([there.reward, there.speed]).all()


@pytest.mark.parametrize("runner", RUNNERS.values(), ids=lambda runner: runner.name)
def test_a_step_of_a_robot_is_worth_what_it_is_in_gymnasium(runner):
    """The same state and action: both say the speed, less the effort, and 1 for one that stands."""
    if ppo.assets() is None:
        pytest.skip("gymnasium and MuJoCo are not installed")
    world = ppo.world(runner.world, 5, reset_noise_scale=0.0, **dict(runner.options))
    world.reset(seed=0)
    action = np.linspace(-0.5, 0.5, len(runner.gears)).astype(np.float32)
    _, reward, fallen, *_ = world.step(action)
    data = world.unwrapped.data
    state = {"it.q": torch.tensor(data.qpos.copy()), "it.qd": torch.tensor(data.qvel.copy())}
    torque = torch.cat([torch.zeros(3), torch.tensor(action * np.array(runner.gears))])
    # There the speed is the mean of the step, here that at its end.
    mean = data.qpos[0] / world.unwrapped.dt
    worth = float(runner.worth(state, {"it.torque": torque})) - float(data.qvel[0]) + mean
    assert worth == pytest.approx(float(reward), abs=1e-6) and bool(runner.fallen(state)) == fallen
    assert world.unwrapped.dt == pytest.approx(runner.dt)
    model = runner.model()
    assert model["it.q"] == pytest.approx(world.unwrapped.init_qpos)
    world.close()
