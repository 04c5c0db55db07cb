"""PPO of stable-baselines3 on MuJoCo by gymnasium: robots that learn without gradients of physics. And MuJoCo alone.

Its settings are those that stable-baselines3 has by default. It ends by the clock, and the best of its policies counts,
judged as ours are: one motion from the robot's start, without noise.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = 'not run: pip install "gymnasium[mujoco]" stable-baselines3'
Act = Callable[[NDArray[np.float64]], Any]
"""From an observation to an action."""


@dataclass
class Motion:
    """One motion of a robot in MuJoCo: what a step is worth, of all steps that it was to have, and how fast it goes."""

    reward: float
    speed: float
    steps: int


@dataclass
class Practice:
    """How PPO went: judged after so many seconds and steps, and the best motion."""

    seconds: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    best: Motion | None = None


def assets() -> Path | None:
    """Where gymnasium has the files of its robots."""
    found = importlib.util.find_spec("gymnasium")
    ready = found is not None and found.origin is not None and importlib.util.find_spec("mujoco") is not None
    return Path(str(found.origin)).parent / "envs" / "mujoco" / "assets" if found is not None and ready else None


def can_practise() -> bool:
    return assets() is not None and importlib.util.find_spec("stable_baselines3") is not None


def world(name: str, steps: int, **options: Any) -> Any:
    """An environment of gymnasium, for motions of so many steps."""
    import gymnasium  # type: ignore[import-not-found,unused-ignore]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gymnasium.make(name, max_episode_steps=steps, **options)


def moved(name: str, steps: int, act: Act, **options: Any) -> Motion:
    """What a policy does from the robot's own start."""
    made = world(name, steps, reset_noise_scale=0.0, **options)
    seen, _ = made.reset(seed=0)
    start, total, count, over = float(made.unwrapped.data.qpos[0]), 0.0, 0, False
    while not over:
        seen, reward, fallen, late, _ = made.step(np.asarray(act(seen), np.float32))
        total, count, over = total + float(reward), count + 1, fallen or late
    far = float(made.unwrapped.data.qpos[0]) - start
    made.close()
    return Motion(total / steps, far / (count * float(made.unwrapped.dt)), count)


def practise(name: str, steps: int, seconds: float, seed: int, **options: Any) -> Practice:
    """PPO for some seconds."""
    from stable_baselines3 import PPO  # type: ignore[import-not-found,unused-ignore]
    from stable_baselines3.common.callbacks import BaseCallback  # type: ignore[import-not-found,unused-ignore]

    made, began = Practice(), perf_counter()

    class Judge(BaseCallback):  # type: ignore[misc,unused-ignore]
        def judge(self) -> None:
            motion = moved(name, steps, lambda seen: self.model.predict(seen, deterministic=True)[0], **options)
            made.seconds.append(perf_counter() - began)
            made.steps.append(int(self.num_timesteps))
            made.rewards.append(motion.reward)
            if made.best is None or motion.reward > made.best.reward:
                made.best = motion

        def _on_rollout_start(self) -> None:
            self.judge()

        def _on_step(self) -> bool:
            return perf_counter() - began < seconds

    agent, judge = PPO("MlpPolicy", world(name, steps, **options), seed=seed, device="cpu"), Judge()
    agent.learn(10**9, callback=judge)
    judge.judge()
    return made
