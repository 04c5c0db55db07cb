"""A descent by windows: each step goes back through one, and now and then the whole motion is judged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from nablasim.sysid.control.descent import Descent
from nablasim.sysid.control.windows import Copies, Critic, Windows
from nablasim.sysid.problem import FAILURES


@dataclass
class Windowed(Descent):
    """See `windows`."""

    how: Windows = field(default_factory=Windows)

    def __post_init__(self) -> None:
        self.copies = Copies(self.task, self.how, self.run.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.run.seed + 1)
            self.critic = Critic(self.copies.features(self.copies.state).shape[1], self.how)

    def iterate(self, horizon: int, step: bool) -> None:
        if self.done % self.how.judge == 0 or not step:
            self.judge(self.task, True, slopes=False)
        if step:
            self.done += 1
            self._window()

    def _window(self) -> None:
        if self.optimiser is not None:
            self.optimiser.zero_grad()
        value, seen = math.nan, None
        try:
            loss, seen = self.copies.window(self.task, self.critic.slow)
            value = float(loss.detach())
            if math.isfinite(value):
                loss.backward()
        except FAILURES:
            seen = None
        self.run.windows.append(value)
        if self.go_on(value, slopes=True) and seen is not None:
            self.critic.learn(seen)
            self.copies.go_on(seen.over[-1])
        else:
            self.copies.begin(torch.ones(self.how.copies, dtype=torch.bool))

    def kept(self) -> dict[str, Any]:
        # The time is that of the last judgement, or later.
        return {**super().kept(), "copies": self.copies.kept(), "critic": self.critic.kept(), "seconds": self.seconds}

    def take(self, kept: Mapping[str, Any]) -> None:
        super().take(kept)
        self.copies.take(kept["copies"])
        self.critic.take(kept["critic"])
        self.began += self.seconds - kept["seconds"]
