"""Runs a model for many values of its parameters at once, and says which of the runs failed.

Scenes run as a batch of copies; a pendulum takes its values with an axis in front. Either way `Simulation.run` gives a
`Seen`: every quantity as (copies, frames, ...).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim import physics as ph

FAILURES = (ph.Diverged, ph.NotConverged, ph.StepTooLarge)
"""What can happen for some values and not for others."""


class Seen:
    """Frames of a batch of runs: `seen["cube.x"]` is (copies, frames, ...), NumPy arrays or tensors."""

    def __init__(self, trajectory: Any, frames: NDArray[np.int64], single: bool):
        self._trajectory, self._frames, self._single = trajectory, frames, single
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._cut(quantity(self._trajectory, name))
        return self._known[name]

    def vertices(self, name: str) -> Any:
        """The corners of an object's triangles, (copies, frames, n, 3)."""
        if name not in self._known:
            self._known[name] = self._cut(self._trajectory.vertices(name))
        return self._known[name]

    def _cut(self, values: Any) -> Any:
        return (values[None] if self._single else values)[:, self._frames]


def quantity(trajectory: Any, name: str) -> Any:
    """A quantity of a trajectory by name: "cube.x" of a scene, "angle" of a pendulum."""
    thing, _, what = name.rpartition(".")
    return getattr(trajectory[thing], what) if thing else trajectory[what]


class Simulation:
    """A model, seen at some times. `steps` are the numbers of the steps after which it is looked at."""

    def __init__(self, model: Any, *, dt: float, times: NDArray[np.float64], **options: Any):
        """`options` go to `ph.rollout`."""
        if isinstance(model, ph.Model) and model.batch is not None:
            raise ValueError("the model is a batch: give a single one, copies are made here")
        if not isinstance(model, ph.Model) and not hasattr(model, "quantities"):
            raise TypeError(f"the model is what Scene.build gives, or a pendulum, not {type(model).__name__}")
        self.model, self.dt, self.options = model, float(dt), options
        self.times = np.asarray(times, np.float64)
        self.steps = _steps(self.times, self.dt)
        self.every = max(1, gcd(*(int(n) for n in self.steps)))
        self._batches: dict[int, Any] = {1: model}

    @property
    def known(self) -> dict[str, Any]:
        """What can be found, by name."""
        return {p.name: p for p in self.model.parameters()}

    def run(self, values: Mapping[str, NDArray[np.float64]], frames: int) -> tuple[Seen | None, NDArray[np.bool_]]:
        """Run copies with values (copies, ...), up to a number of frames.

        Gives what is seen of those that worked, in their order, and which they are.
        """
        count = len(next(iter(values.values())))
        try:
            return self._attempt(values, count, frames), np.ones(count, bool)
        except FAILURES:
            if count == 1:
                return None, np.zeros(1, bool)
        # One that fails stops a batch: the others again, by themselves.
        works = np.array([self._works({n: v[k : k + 1] for n, v in values.items()}, frames) for k in range(count)])
        if not works.any():
            return None, works
        return self._attempt({n: v[works] for n, v in values.items()}, int(works.sum()), frames), works

    @property
    def pushes(self) -> bool:
        """Whether tangents of the model can be computed: those of scenes can."""
        return isinstance(self.model, ph.Model)

    def push(self, values: Mapping[str, Any], tangents: Mapping[str, Any], frames: int) -> tuple[Seen, Seen]:
        """Run once, and see how it moves where values do, (k, ...) each; failures are raised."""
        steps = int(self.steps[frames - 1])
        options = self._until(steps)
        if options.pop("checkpoint", None) is None and options.get("substeps") == "auto":
            del options["substeps"]
        run, moved = ph.jvp(self.model.replace(values), tangents, dt=self.dt, steps=steps, every=self.every,
                            check=False, primal=True, **options)
        return Seen(run, self._frames(frames), True), Seen(moved, self._frames(frames), False)

    def track(self, values: Mapping[str, Any], frames: int) -> Seen:
        """Run once with tensors that may require gradients; failures are raised."""
        return Seen(self._rollout(self.model.replace(values), frames), self._frames(frames), True)

    def explain(self, values: Mapping[str, NDArray[np.float64]], frames: int) -> str:
        """Why values (1, ...) do not work, in the words of the simulator; empty if they do."""
        try:
            self._rollout(self.model.replace({n: v[0] for n, v in values.items()}), frames, check=True)
        except FAILURES as error:
            return str(error)
        return ""

    def _works(self, values: Mapping[str, NDArray[np.float64]], frames: int) -> bool:
        try:
            self._attempt(values, 1, frames)
        except FAILURES:
            return False
        return True

    def _attempt(self, values: Mapping[str, NDArray[np.float64]], count: int, frames: int) -> Seen:
        if count == 1:
            model = self.model.replace({name: v[0] for name, v in values.items()})
        elif isinstance(self.model, ph.Model):
            if count not in self._batches:
                self._batches[count] = self.model.batched(count)
            model = self._batches[count].replace(values)
        else:
            model = _several(self.model, values)
        return Seen(self._rollout(model, frames), self._frames(frames), count == 1)

    def _rollout(self, model: Any, frames: int, check: bool = False) -> Any:
        steps = int(self.steps[frames - 1])
        scene = {"check": check} if isinstance(model, ph.Model) else {}
        return ph.rollout(model, dt=self.dt, steps=steps, every=self.every, **{**scene, **self._until(steps)})

    def _until(self, steps: int) -> dict[str, Any]:
        """The options of a run of so many steps: a fit looks at the first frames first, and control goes as far."""
        control = self.options.get("control")
        if control is None:
            return {**self.options}
        return {**self.options, "control": {name: value[:steps] for name, value in control.items()}}

    def _frames(self, frames: int) -> NDArray[np.int64]:
        return self.steps[:frames] // self.every


def _several(model: Any, values: Mapping[str, NDArray[np.float64]]) -> Any:
    """A pendulum for each of the values."""
    return type(model)(**{**{q.name: q.value for q in model.parameters()}, **values}, real=model.real)


def _steps(times: NDArray[np.float64], dt: float) -> NDArray[np.int64]:
    """The number of steps until each time."""
    if not dt > 0:
        raise ValueError(f"dt must be positive, and is {dt}")
    if times.ndim != 1 or not len(times):
        raise ValueError(f"times are a list of seconds, one per frame, not of shape {times.shape}")
    if times[0] < 0 or (np.diff(times) <= 0).any():
        raise ValueError("the times of frames start at zero or later, and grow")
    steps = np.rint(times / dt).astype(np.int64)
    off = np.abs(steps * dt - times)
    # Time stamps of files are rounded to microseconds and less.
    if off.max() > max(0.02 * dt, 2e-6):
        worst = int(off.argmax())
        gaps = np.diff(times) if len(times) > 1 else times
        spacing = float(np.median(gaps))
        per_frame = max(1, round(spacing / dt))
        if np.ptp(np.rint(gaps / spacing) * spacing - gaps) > 0.02 * spacing:
            advice = f"are {gaps.min():.6g} to {gaps.max():.6g} s apart: video.on_steps({dt:.6g}) has the nearest steps"
        else:
            advice = f"are {spacing:.6g} s apart: dt={spacing / per_frame:.9g} makes {per_frame} steps of each"
        raise ValueError(
            f"frame {worst} is seen at {times[worst]:.6g} s, which is not a whole number of steps of {dt:.6g} s. "
            f"Frames {advice}"
        )
    return steps
