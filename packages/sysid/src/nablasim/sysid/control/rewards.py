"""What each step is worth: the goal of tasks without an end, by which loops are trained in windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from nablasim import physics as ph
from nablasim.sysid.control.goals import Measure
from nablasim.sysid.control.loop import States, each
from nablasim.sysid.problem import quantity


@dataclass(frozen=True, eq=False)
class Reward:
    """The loss is minus the mean worth of all steps.

    worth: of a step, a tensor of one number, by the state that it came to and by what policies said, both by name:
        `lambda state, action: state["robot.qd"][0] - 0.1 * action["robot.torque"].square().sum()`
    ends: by the state, whether the motion is over, such as of a robot that has fallen: steps after that are worth
        nothing
    Both are written for one model; of many steps and copies they are asked at once, by `torch.func.vmap`.
    """

    worth: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
    ends: Callable[[Mapping[str, Any]], Any] | None = None

    def bind(self, model: ph.Model, times: Any) -> Measure:
        names = [f"{thing}.{what}" for thing in model.state0 for what in model.state0[thing].names]

        def loss(motion: Any) -> torch.Tensor:
            states = {name: torch.as_tensor(quantity(motion, name))[1:] for name in names}
            worth, over = self.step(states, motion.said)
            before = torch.cat([torch.zeros_like(over[:1]), over[:-1]]).cummax(0).values
            return -torch.where(before, torch.zeros_like(worth), worth).mean()

        return loss

    def step(self, states: States, actions: States) -> tuple[torch.Tensor, torch.Tensor]:
        """Of many steps or copies, in front: what each is worth, and whether it is the last."""
        worth = each(self.worth, states, dict(actions))
        if worth.ndim != 1:
            raise ValueError(f"what a step is worth is one number, not of shape {tuple(worth.shape[1:])}")
        over = torch.zeros(len(worth), dtype=torch.bool) if self.ends is None else each(self.ends, states).bool()
        return worth.double(), over
