"""Policies are trained by gradients that equal differences, to the same bits by the same seed, also after a kill."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from nablasim import physics as ph
from nablasim import render, sysid
from nablasim.sysid import control

MESH = ph.TetMesh.box((0.4, 0.2, 0.2), cells=(2, 1, 1))
MASSES = ph.vertex_masses(MESH, 200.0)
CAMERA = render.Camera.look_at(eye=(0.3, 0.3, 2.0), target=(0.3, 0.2, 0), fov=45)

SCALE = 0.3
"""Of activations: larger ones tear this soft block apart."""


def block(real="float64"):
    scene = ph.Scene()
    scene.add_soft("block", MESH, density=200.0, material=ph.NeoHookean(E=5e3, nu=0.3), damping=2.0, activation=True,
                   pos=(0, 0.01, -0.1))  # fmt: skip
    scene.add_ground("floor", ke=200.0, kd=0.5, kf=2.0, mu=0.8)
    return scene.build(real=real)


def task(goal, policy=None, steps=6, **more):
    policy = control.Waves(3, scale=SCALE, spread=0.3) if policy is None else policy
    return control.Task(block(), {"block.activation": policy}, goal, dt=1 / 60, steps=steps, substeps=20, **more)


def weights(run):
    return [p.detach().clone() for p in run.task.policies.parameters()]


FAR = control.Distance("block", masses=MASSES)


@pytest.mark.parametrize("goal", [
    FAR,
    control.CentreOfMass("block", (0.5, 0.2, 0), dense=True, masses=MASSES),
    control.State({"block.x": MESH.vertices + 0.1}),
], ids=["distance", "centre of mass", "state"])  # fmt: skip
def test_the_gradient_of_the_return_by_weights_is_that_of_differences(goal):
    one = task(goal)
    torch.manual_seed(0)
    weight = one.policy("block.activation").weight
    nn.init.normal_(weight, std=0.3)
    one.loss().backward()
    way = torch.randn_like(weight)
    slope, h, start = float((weight.grad * way).sum()), 1e-5, weight.detach().clone()
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            weight.copy_(start + sign * h * way)
            ends.append(float(one.loss()))
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-10)
    assert abs(slope) > 1e-6


def test_the_same_seed_gives_the_same_bits_and_another_one_others():
    a, b, c = (task(FAR).train(iterations=3, seed=s) for s in (1, 1, 2))
    assert a.losses == b.losses and all(torch.equal(x, y) for x, y in zip(weights(a), weights(b)))
    assert a.losses != c.losses and a.loss < a.losses[0]


def test_a_killed_training_goes_on_with_the_bits_of_one_that_was_not(tmp_path, monkeypatch):
    whole = task(FAR).train(iterations=4, seed=3)
    loss, calls = control.Task.loss, []

    def killed(self, *given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return loss(self, *given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(control.Task, "loss", killed)
        task(FAR).train(iterations=4, seed=3, folder=tmp_path)
    again = task(FAR).train(iterations=4, seed=3, folder=tmp_path)
    assert again.losses == whole.losses and all(torch.equal(x, y) for x, y in zip(weights(again), weights(whole)))
    with pytest.raises(ValueError, match="another training"):
        task(FAR).train(iterations=4, seed=4, folder=tmp_path)


class Fed(nn.Module):
    """Contracts by how high the block is."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(SCALE, dtype=torch.float64))

    def forward(self, time, state):
        return self.gain * state["block.x"][:, 1].mean() * torch.ones(len(MESH.tets), dtype=torch.float64)


class Open(Fed):
    def forward(self, time):
        return self.gain * torch.sin(9 * time)[:, None] * torch.ones(len(MESH.tets), dtype=torch.float64)


class Stepped(Fed):
    def forward(self, time, state):
        return self.gain * torch.sin(9 * time) * torch.ones(len(MESH.tets), dtype=torch.float64)


def test_a_loop_that_is_closed_step_by_step_is_the_motion_at_once():
    whole, parts = task(FAR, Open()), task(FAR, Stepped())
    assert not whole.closed and parts.closed
    a, b = whole.loss(), parts.loss()
    a.backward(), b.backward()
    assert a.item() == pytest.approx(b.item(), rel=1e-10)
    assert float(whole.policy("block.activation").gain.grad) == pytest.approx(
        float(parts.policy("block.activation").gain.grad), rel=1e-8
    )


def test_feedback_has_the_gradient_of_differences():
    one = task(FAR, Fed())
    gain = one.policy("block.activation").gain
    one.loss().backward()
    ends = []
    for h in (1e-5, -1e-5):
        with torch.no_grad():
            gain.copy_(torch.tensor(SCALE + h, dtype=torch.float64))
            ends.append(float(one.loss()))
    assert float(gain.grad) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


class Watching(nn.Module):
    """Of single precision, with names of its own: the time, the state and the picture by their order."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(1 + 64, len(MESH.tets))

    def forward(self, t, seen, frame):
        assert t.dtype == seen["block.x"].dtype == frame.dtype == torch.float32
        return SCALE * torch.tanh(self.net(torch.cat([t[None], frame.reshape(-1)])))


def test_any_module_may_be_a_policy_and_see_pictures():
    one = task(FAR, Watching(), steps=3, look=render.Silhouette(CAMERA, size=(8, 8)))
    run = one.train(iterations=2, seed=1)
    assert one.closed and run.loss < run.losses[0]
    run.task.loss().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in run.task.policies.parameters())
    with pytest.raises(ValueError, match="look="):
        task(FAR, Watching())


def test_on_a_growing_horizon_the_best_is_of_the_whole_motion(tmp_path):
    run = task(FAR, steps=8).train(iterations=4, seed=1, grow=2, folder=tmp_path)
    whole = task(FAR, steps=8)
    whole.policies.load_state_dict(run.task.policies.state_dict())
    assert run.best >= 2 and whole.loss().item() == run.loss == min(run.losses[2:])
    first = task(FAR, steps=8).train(iterations=0, seed=1).task
    assert first.shortened(2).loss().item() == run.losses[0]
    with pytest.raises(ValueError, match="another training"):
        task(FAR, steps=8).train(iterations=4, seed=1, folder=tmp_path)
    with pytest.raises(ValueError, match="1 to 8"):
        task(FAR, steps=8).train(grow=9)


def test_a_video_is_a_goal_and_its_own_motion_is_nearest():
    one = task(FAR, steps=4)
    see = render.Silhouette(CAMERA, size=(24, 24))
    moved = one.train(iterations=0, seed=2).motion()
    shown = see(torch.as_tensor(moved.vertices("block")).float(), one.model.surfaces["block"].faces)
    film = sysid.Video(shown.numpy(), moved.times)
    same = task(control.Video(see, film), steps=4).train(iterations=0, seed=2)
    other = task(control.Video(see, film), steps=4).train(iterations=3, seed=3, grow=2)
    assert same.loss < 1e-12 and 0 < other.loss <= other.losses[-1]
    with pytest.raises(ValueError, match="times of the target"):
        task(control.Video(see, film), steps=3)


def test_one_picture_brings_a_thrown_block_to_where_it_was_taken(tmp_path):
    """The initial velocity is found from the last picture alone: what the goal was made with is known."""
    truth = np.array([2.0, 1.0, 0.0])
    model = block("float32")
    thrown = ph.rollout(model.replace({"block.v": truth}), dt=1 / 60, steps=6, substeps=20)
    see = render.Silhouette(CAMERA, size=(32, 32))
    target = see(thrown.vertices("block")[-1].float(), model.surfaces["block"].faces)
    throw = control.Held([1.5, 1.3, 0.0])
    one = control.Task(model, {"block.v": throw}, control.Image(see, target), dt=1 / 60, steps=6, substeps=20)
    run = one.train(iterations=40, rate=0.1)
    assert run.loss < 0.01 * run.losses[0]
    assert run.task.policy("block.v")().detach().numpy()[:2] == pytest.approx(truth[:2], abs=0.05)
    page = run.report(tmp_path).read_text(encoding="utf-8")
    assert "Before and after" in page and not re.search(r"<script|<link|https?://|src=\"(?!data:)", page)
    assert run.video(tmp_path / "block.mp4").stat().st_size > 1000


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="vertex_masses"):
        task(control.Distance("block"))
    with pytest.raises(KeyError, match="blok"):
        task(control.Distance("blok"))
    with pytest.raises(KeyError, match=r"block\.activatio"):
        control.Task(block(), {"block.activatio": control.Waves(2)}, FAR, dt=0.1, steps=1)
    with pytest.raises(ValueError, match="adam"):
        task(FAR).train(optimiser="adm")


@pytest.mark.parametrize(("given", "error", "reason"), [
    (lambda: task(control.CentreOfMass("block", (0.4, 0.1), masses=MASSES)), ValueError, "three finite numbers"),
    (lambda: task(control.CentreOfMass("block", 0.4, masses=MASSES)), ValueError, "three finite numbers"),
    (lambda: task(control.CentreOfMass("block", (0.4, 0.1, np.nan), masses=MASSES)), ValueError, "three finite"),
    (lambda: task(control.State({"block.x": (0.1, 0.2, 0.3)})), ValueError, r"shape \(12, 3\).*\(3,\)"),
    (lambda: task(control.State({"block.x": np.full((12, 3), np.inf)})), ValueError, "not finite"),
    (lambda: task(control.State({})), ValueError, "no quantity"),
    (lambda: task("block"), TypeError, "not str"),
    (lambda: task(FAR, steps=0), ValueError, "not 0 of"),
    (lambda: task(FAR, steps=2.5), ValueError, "not 2.5 of"),
    (lambda: task(FAR).train(iterations=-1), ValueError, r"iterations \(-1\)"),
    (lambda: task(FAR).train(clip=0.0), ValueError, r"clip \(0.0\)"),
])  # fmt: skip
def test_wrong_goals_and_trainings_are_refused_by_name(given, error, reason):
    with pytest.raises(error, match=reason):
        given()


def test_a_mask_is_a_picture():
    see = render.Silhouette(CAMERA, size=(16, 16))
    mask = np.zeros((16, 16), bool)
    mask[4:10, 3:9] = True
    a, b = (task(control.Image(see, picture)).train(iterations=0).loss for picture in (mask, mask.astype(float)))
    assert a == b > 0


def test_what_acts_at_a_certain_time_is_refused_by_closed_loops():
    """Each of their steps begins at time zero: an impulse came in every step, or in none."""
    scene = ph.Scene()
    scene.add_soft("block", MESH, density=200.0, material=ph.NeoHookean(E=5e3, nu=0.3), activation=True)
    scene.add_impulse("block", (1.0, 0, 0), t=0.05)
    one = control.Task(scene.build(), {"block.activation": Fed()}, FAR, dt=1 / 60, steps=4, substeps=20)
    with pytest.raises(ValueError, match="acts at a certain time"):
        one.loss()


def test_a_saved_training_is_known_by_all_that_it_depends_on(tmp_path):
    task(FAR).train(iterations=1, folder=tmp_path)
    task(FAR).train(iterations=1, folder=tmp_path)
    others = [
        task(FAR, control.Waves(3, scale=SCALE, spread=0.3, frequency=2.0)),
        task(control.Distance("block", along=(0, 0, 1), masses=MASSES)),
        task(FAR, look=CAMERA),
    ]
    for other in others:
        with pytest.raises(ValueError, match="another training"):
            other.train(iterations=1, folder=tmp_path)


def test_a_longer_training_goes_on_from_a_shorter_one_with_the_same_bits(tmp_path):
    whole = task(FAR).train(iterations=4, seed=1)
    task(FAR).train(iterations=2, seed=1, folder=tmp_path)
    again = task(FAR).train(iterations=4, seed=1, folder=tmp_path)
    assert again.losses == whole.losses and all(torch.equal(x, y) for x, y in zip(weights(again), weights(whole)))
