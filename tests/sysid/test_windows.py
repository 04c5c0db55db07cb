"""Closed loops are trained by short windows of many copies, with a learned value at their end."""

import numpy as np
import pytest
import torch
from torch import nn

from nablasim import physics as ph
from nablasim.sysid import control
from nablasim.sysid.control.windows import Copies, Critic, Seen

STEPS = 24


def cart():
    """A body on a rail, which is pushed."""
    robot = ph.Robot()
    robot.add_link("body", ph.Box(0.2, 0.2, 0.2), mass=1.0)
    robot.add_joint("rail", "prismatic", parent="world", child="body", axis=(1, 0, 0), damping=0.1)
    robot.add_motor("rail", limit=4.0)
    return ph.Scene(gravity=(0, 0, 0)).add_robot("cart", robot, q=[1.0]).build(real="float64")


def near(state, action):
    return -(state["cart.q"][0] ** 2) - 0.1 * state["cart.qd"][0] ** 2 - 0.001 * action["cart.torque"].square().sum()


def gone(state):
    return state["cart.q"][0].abs() > 3.0


def anywhere(random, copies):
    return {"cart.q": random.uniform(-1.5, 1.5, (copies, 1)), "cart.qd": random.uniform(-1, 1, (copies, 1))}


def task(goal=None, policy=None, steps=STEPS):
    policy = control.Feedback(2, hidden=(16,), scale=4.0) if policy is None else policy
    return control.Task(cart(), {"cart.torque": policy}, goal or control.Reward(near, gone), dt=0.05, steps=steps)


HOW = control.Windows(length=8, copies=16, start=anywhere, judge=5, noise=0.1)


def weights(run):
    return [p.detach().clone() for p in run.task.policies.parameters()]


def test_a_cart_learns_to_come_home_and_to_stay():
    run = task().train(iterations=60, rate=0.01, windows=HOW, clip=1.0)
    assert len(run.windows) == 60 and run.at == list(range(0, 61, 5))
    assert run.loss < 0.6 * run.losses[0]
    assert run.task.loss().item() == pytest.approx(run.loss, rel=1e-12)
    assert abs(float(run.motion()["cart"].q[-1, 0])) < 0.1


def test_windows_of_the_same_seed_have_the_same_bits_also_after_a_kill(tmp_path, monkeypatch):
    def train(**more):
        return task().train(iterations=7, rate=0.01, windows=HOW, seed=2, **more)

    whole, window, calls = train(), Copies.window, []

    def killed(self, *given):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return window(self, *given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Copies, "window", killed)
        train(folder=tmp_path)
    again = train(folder=tmp_path)
    assert again.windows == whole.windows and again.losses == whole.losses and again.at == whole.at
    assert all(torch.equal(x, y) for x, y in zip(weights(again), weights(whole)))
    with pytest.raises(ValueError, match="another training"):
        task().train(iterations=7, rate=0.01, windows=control.Windows(length=9), seed=2, folder=tmp_path)


def test_the_gradient_of_a_window_is_that_of_differences():
    """Through physics, rewards, the value at the end, and copies that fall on the way."""
    how = control.Windows(length=6, copies=8, start=anywhere, see=lambda state: torch.cat([*state.values()]))
    one = task(control.Reward(near, lambda state: state["cart.q"][0] > 0.5), control.Feedback(2, hidden=(8,)).double())
    torch.manual_seed(0)
    value = Critic(2, how).value
    copies = Copies(one, how, 0)
    start = {name: v.clone() for name, v in copies.state.items()}
    weight = one.policy("cart.torque").head.weight

    def loss():
        copies.state = start
        found, seen = copies.window(one, value)
        return found, seen

    found, seen = loss()
    found.backward()
    assert bool(seen.over[-1].any()) and not bool(seen.over[-1].all())
    way, h, at = torch.randn_like(weight), 1e-3, weight.detach().clone()
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            weight.copy_(at + sign * h * way)
            ends.append(float(loss()[0]))
    # The value is in single precision.
    assert float((weight.grad * way).sum()) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-3)


def test_a_batch_of_copies_does_what_single_models_do():
    one = task().train(iterations=0).task
    q = np.array([[1.0], [-0.5], [0.3]])
    many = one.motion(cart().batched(3).replace({"cart.q": q}))
    for k in range(3):
        alone = one.motion(cart().replace({"cart.q": q[k]}))
        assert many["cart"].q[k].detach().numpy() == pytest.approx(alone["cart"].q.detach().numpy(), abs=1e-6)


def test_targets_of_the_value_are_the_discounted_sum_where_windows_are_trusted():
    """By hand: 1 + 0.5 (2 + 0.5 (4 + 0.5 V)); of the copy that falls in the second step 1 + 0.5 · 2."""
    how = control.Windows(length=3, copies=2, discount=0.5, trace=1.0)
    critic = Critic(1, how)
    features = torch.ones(4, 2, 1)
    last = float(critic.slow(features)[-1, 0].detach())
    worth = [torch.tensor([w, w * (k < 2)]) for k, w in enumerate((1.0, 2.0, 4.0))]
    over = [torch.tensor([False, fallen]) for fallen in (False, False, True, True)]
    made = critic.targets(features, Seen([*features], worth, over))
    assert made[0].tolist() == pytest.approx([1 + 0.5 * (2 + 0.5 * (4 + 0.5 * last)), 2.0])


def test_a_reward_ends_where_the_motion_does():
    """A push of 4 N moves 1 kg; steps after the end are worth nothing."""

    class Push(nn.Module):
        def forward(self, time, state):
            return 4.0 * torch.ones_like(state["cart.q"])

    plain = task(control.Reward(lambda s, a: torch.ones(())), Push()).loss()
    ended = task(control.Reward(lambda s, a: torch.ones(()), lambda s: s["cart.q"][0] > 2.0), Push())
    x = ended.motion()["cart"].q[1:, 0]
    assert plain.item() == -1
    assert ended.loss().item() == pytest.approx(-(int((x <= 2.0).sum()) + 1) / STEPS)


def test_what_acts_on_copies_is_drawn_with_their_start():
    """A parameter that is not of the state: each copy has its own damping, and keeps it until it begins anew."""

    def start(random, copies):
        return {"cart.rail.damping": random.uniform(0.0, 5.0, copies)}

    copies = Copies(task(steps=16), control.Windows(length=8, copies=4, start=start), 0)
    first = copies.given["cart.rail.damping"].clone()
    copies.begin(torch.tensor([True, False, False, False]))
    now = copies.given["cart.rail.damping"]
    assert now[0] != first[0] and torch.equal(now[1:], first[1:])


def test_windows_are_refused_where_they_say_nothing():
    with pytest.raises(ValueError, match=r"control\.Reward"):
        task(control.State({"cart.q": [0.0]})).train(windows=HOW)
    with pytest.raises(ValueError, match="sees a state"):
        task(policy=control.Waves(2)).train(windows=HOW)
    with pytest.raises(ValueError, match="grow= or windows="):
        task().train(windows=HOW, grow=3)
    with pytest.raises(ValueError, match="discount"):
        control.Windows(discount=1.5)
    with pytest.raises(ValueError, match="16 copies stand in front"):
        task().train(windows=control.Windows(copies=16, start=lambda r, n: {"cart.q": np.zeros((3, 1))}))
    with pytest.raises(ValueError, match="one number"):
        task(control.Reward(lambda s, a: s["cart.q"])).loss()


def test_a_training_ends_when_its_time_is_over():
    run = task().train(iterations=10**6, seconds=0.5, windows=HOW)
    assert run.seconds[-1] < 30 and run.at[-1] == len(run.windows) < 10**6
