"""A task: a model, policies that move it, and a goal. Makes motions of it, and losses with gradients by the weights."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from nablasim import physics as ph
from nablasim.sysid.control.goals import Video, as_renderer
from nablasim.sysid.control.loop import asked, walked
from nablasim.sysid.control.policies import sees

if TYPE_CHECKING:
    from nablasim.sysid.control.run import Run
    from nablasim.sysid.control.windows import Windows


class Task:
    """Move `model` for `steps` steps of `dt` seconds so that it comes near to `goal`.

    actuate: policies by the name of the parameter that they drive, such as {"gear.activation": Waves(8)}. See
        `policies` for what a policy is; without a `state` or a `picture` the whole motion is one operation.
    look: a camera or renderer for policies that are shown a picture; that of the goal, if it has one
    options: go to `ph.rollout`, such as substeps and integrator
    """

    def __init__(self, model: ph.Model, actuate: Mapping[str, nn.Module], goal: Any, *, dt: float, steps: int,
                 look: Any = None, **options: Any):  # fmt: skip
        if model.batch is not None:
            raise ValueError("the model is a batch: give a single one")
        if not (float(dt) > 0 and int(steps) == steps and steps >= 1):
            raise ValueError(f"a motion has whole steps of some time, not {steps!r} of {dt!r} s")
        if not callable(getattr(goal, "bind", None)):
            raise TypeError(f"a goal is such as control.Image(camera, target), not {type(goal).__name__}")
        if not actuate:
            raise ValueError("nothing is actuated: give policies by the name of the parameter that they drive")
        self.model, self.goal, self.dt, self.steps, self.options = model, goal, float(dt), int(steps), options
        look = goal.view if look is None and isinstance(goal, Video) else look
        self.look = None if look is None else as_renderer(look)
        self.policies = nn.ModuleDict()
        # What each policy is shown.
        self.sees: dict[str, tuple[str, ...]] = {}
        for name, policy in actuate.items():
            self._add(name, policy)
        if any("picture" in s for s in self.sees.values()) and self.look is None:
            raise ValueError("a policy is shown a picture: give look=, a camera or a renderer")
        self.times = np.arange(self.steps + 1, dtype=np.float64) * self.dt
        self.measure = goal.bind(model, self.times)

    def _add(self, name: str, policy: nn.Module) -> None:
        parameter = self.model.parameter(name)
        self.model[name]  # In force, or this says what is instead.
        if not isinstance(policy, nn.Module):
            raise TypeError(f"{name}: a policy is a torch module, not {type(policy).__name__}")
        shape_to = getattr(policy, "shape_to", None)
        if callable(shape_to):
            shape_to(tuple(parameter.full))
        # torch names modules without dots.
        self.policies[_key(name)] = policy
        self.sees[name] = sees(policy)

    @property
    def closed(self) -> bool:
        """Whether a policy sees what it does."""
        return any(set(s) - {"time"} for s in self.sees.values())

    def policy(self, name: str) -> nn.Module:
        return self.policies[_key(name)]

    def motion(self, model: ph.Model | None = None) -> Any:
        """What the policies do with the model, or with another of the same scene: a `Trajectory`."""
        model = self.model if model is None else model
        held = {name: self.policy(name)() for name, s in self.sees.items() if not s}
        model = model.replace(held) if held else model
        return walked(self, model) if self.closed else self._at_once(model)

    def loss(self, motion: Any = None) -> torch.Tensor:
        """How far a motion, by default that of the policies, is from the goal."""
        return self.measure(self.motion() if motion is None else motion)

    def _at_once(self, model: ph.Model) -> Any:
        time = torch.as_tensor(self.times[:-1])
        control = {name: asked(self.policy(name), s, {"time": time}) for name, s in self.sees.items() if s}
        motion: Any = ph.rollout(model, dt=self.dt, steps=self.steps, control=control or None, **self.options)
        motion.said = control
        return motion

    def shortened(self, steps: int) -> Task:
        """The same task, with the same policies, for its first steps; goals of the end are those of its own end."""
        if not 1 <= steps <= self.steps:
            raise ValueError(f"a part of {self.steps} steps has 1 to {self.steps} of them, not {steps}")
        part = copy.copy(self)
        part.steps, part.times = steps, self.times[: steps + 1]
        goal = self.goal.until(part.times[-1]) if isinstance(self.goal, Video) else self.goal
        part.measure = goal.bind(self.model, part.times)
        return part

    def train(
        self,
        *,
        optimiser: str = "adam",
        iterations: int = 50,
        seed: int = 0,
        rate: float = 0.01,
        clip: float | None = None,
        grow: int | None = None,
        folder: str | Path | None = None,
        progress: bool | None = None,
        watch: Callable[[Any], Any] | None = None,
        decay: bool = False,
        seconds: float | None = None,
        windows: Windows | None = None,
    ) -> Run:
        """Train the policies from first weights that the seed decides. See `training.train`."""
        from nablasim.sysid.control.training import train

        return train(self, optimiser=optimiser, iterations=iterations, seed=seed, rate=rate, clip=clip, grow=grow,
                     folder=folder, progress=progress, watch=watch, decay=decay, seconds=seconds,
                     windows=windows)  # fmt: skip


def _key(name: str) -> str:
    return name.replace(".", "/")
