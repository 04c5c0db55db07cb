"""`nablasim demo`: how was this cloth thrown? Its velocity and spin are found again from a few tracked points.

One rollout is recorded on a tape. Every step of the descent then assigns the parameters, replays the tape and sweeps
it backward.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim import physics as ph
from nablasim.sysid.descent import Fit, descend
from nablasim.sysid.kernels import squared_distance, thrown

TRUTH = np.array([3.0, 4.0, -1.0, 0.8, -0.6, 3.0])
"""How the cloth is thrown: velocity (m/s), then spin (rad/s). What the descent has to find, starting from zero."""

NAMES = ("velocity x", "velocity y", "velocity z", "spin x", "spin y", "spin z")
UNITS = ("m/s",) * 3 + ("rad/s",) * 3


@dataclass(frozen=True)
class Cloth:
    """A square metre of mass-spring cloth in the air, and when and where it is looked at."""

    cells: int = 12
    mass: float = 0.2
    ke: float = 20.0
    kd: float = 0.01
    dt: float = 1 / 500
    steps: int = 400
    every: int = 40
    mark_every: int = 4
    model: ph.Model = field(init=False)
    points: NDArray[np.float64] = field(init=False)
    pairs: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        points, pairs = ph.spring_grid((1.0, 1.0), (self.cells, self.cells))
        scene = ph.Scene().add_springs("cloth", points, pairs, mass=self.mass / len(points), ke=self.ke, kd=self.kd)
        for name, value in (("model", scene.build(real="float64")), ("points", points), ("pairs", pairs)):
            object.__setattr__(self, name, value)

    @property
    def frames(self) -> range:
        """The steps that are looked at."""
        return range(self.every, self.steps + 1, self.every)

    @property
    def marks(self) -> NDArray[np.int32]:
        """The tracked particles: a coarse grid of them."""
        n = self.cells + 1
        return np.arange(n * n, dtype=np.int32).reshape(n, n)[:: self.mark_every, :: self.mark_every].ravel()


class Throw:
    """A rollout as a function of how the cloth is thrown, recorded once."""

    def __init__(self, cloth: Cloth):
        self.cloth = cloth
        x = kc.array(cloth.points, dtype=kc.float3)
        centre = kc.array(cloth.points.mean(axis=0, keepdims=True), dtype=kc.float3)
        self._vel = kc.array(np.zeros((1, 3)), dtype=kc.float3, requires_grad=True)
        self._spin = kc.array(np.zeros((1, 3)), dtype=kc.float3, requires_grad=True)
        self._loss = kc.zeros(1, dtype=float, real=kc.float64)
        self._seen = [kc.zeros(len(cloth.marks), dtype=kc.float3, real=kc.float64) for _ in cloth.frames]
        marks, weight = kc.array(cloth.marks), 1 / (len(cloth.frames) * len(cloth.marks))
        v = kc.zeros_like(x)
        with kc.Tape() as self.tape:
            kc.launch(thrown, len(x), [x, centre, self._vel, self._spin], [v])
            model = cloth.model.replace({"cloth.v": v})
            rollout = ph.rollout(model, dt=cloth.dt, steps=cloth.steps, every=cloth.every)
            self.frames = rollout["cloth"].x
            self._loss.zero_()
            for frame, seen in enumerate(self._seen, start=1):
                inputs = [self.frames[frame], marks, seen, weight]
                kc.launch(squared_distance, dim=len(cloth.marks), inputs=inputs, outputs=[self._loss])

    def watch(self, positions: NDArray[np.float64]) -> None:
        """From now on the loss compares with these positions of the marks: (frames, marks, 3)."""
        for seen, now in zip(self._seen, positions):
            seen.assign(now)

    def run(self, values: NDArray[np.float64]) -> float:
        """The loss of a throw: the mean squared distance of the marks, in m²."""
        self._vel.assign(np.array(values[:3]).reshape(1, 3))
        self._spin.assign(np.array(values[3:]).reshape(1, 3))
        self.tape.replay()
        return float(self._loss.numpy()[0])

    def evaluate(self, values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The loss and its gradient with respect to velocity and spin."""
        loss = self.run(values)
        self.tape.zero()
        self.tape.backward(self._loss)
        return loss, np.concatenate([_gradient(self._vel), _gradient(self._spin)])

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Every particle at time zero and at the frames: (1 + frames, particles, 3)."""
        self.run(values)
        return self.frames.numpy().copy()


@dataclass(frozen=True, eq=False)
class DemoResult:
    """Everything that the report shows."""

    cloth: Cloth
    fit: Fit
    truth: NDArray[np.float64]
    seen: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    gradient: NDArray[np.float64]
    differences: NDArray[np.float64]
    seconds: dict[str, float]

    @property
    def error(self) -> float:
        """The largest error of a recovered parameter."""
        return float(np.abs(self.fit.value - self.truth).max())

    @property
    def gradient_error(self) -> float:
        """How far the tape's gradient at the start is from central differences, relative to its length."""
        return float(np.linalg.norm(self.gradient - self.differences) / np.linalg.norm(self.differences))


def run_demo(
    *, cloth: Cloth | None = None, iterations: int = 60, on_iteration: Callable[[int, float], None] | None = None
) -> DemoResult:
    """Throw the cloth, watch it, and find out how it was thrown."""
    cloth = cloth or Cloth()
    seconds = {}
    started = time.perf_counter()
    throw = Throw(cloth)
    truth = throw.positions(TRUTH)
    throw.watch(truth[1:, cloth.marks])
    seconds["record"] = time.perf_counter() - started

    start = np.zeros(len(TRUTH))
    started = time.perf_counter()
    fit = descend(throw.evaluate, start, iterations=iterations, on_iteration=on_iteration)
    seconds["descend"] = time.perf_counter() - started
    seconds["replay"] = _seconds(throw.tape.replay)
    gradient = throw.evaluate(start)[1]
    return DemoResult(
        cloth=cloth,
        fit=fit,
        truth=TRUTH,
        seen=truth,
        before=throw.positions(start),
        after=throw.positions(fit.value),
        gradient=gradient,
        differences=_differences(throw.run, start),
        seconds=seconds,
    )


def _gradient(array: Any) -> NDArray[np.float64]:
    return np.ravel(array.grad.numpy())


def _differences(run: Callable[[NDArray[np.float64]], float], at: NDArray[np.float64]) -> NDArray[np.float64]:
    h = 1e-5
    return np.array([(run(at + h * e) - run(at - h * e)) / (2 * h) for e in np.eye(len(at))])


def _seconds(action: Callable[[], object], repeat: int = 5) -> float:
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)
