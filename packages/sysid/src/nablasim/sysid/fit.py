"""`fit`: several blind starts on growing windows, the best of them, and what it is worth.

Saves as it goes, if asked to: a fit that was killed goes on where it stood.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nablasim.sysid.names import nearest
from nablasim.sysid.problem import Problem, Vector
from nablasim.sysid.progress import Shown, shown
from nablasim.sysid.search import Start, follow
from nablasim.sysid.trust import LEVEL, Certificate, Estimate, certify, examine, uncertified

METHODS = ("lm", "lbfgs", "adam")
HORIZONS = ("grow", "full")
MANY = 20
"""Parameters beyond which a Jacobian costs more than a sweep back."""


class FitFailed(ArithmeticError):
    """Every start of a fit failed; the message says what happened to each."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The result. `fit["cube.density"]` is an `Estimate`; `fit.values` has the numbers, `fit.model` the model."""

    problem: Problem
    starts: tuple[Start, ...]
    best: int
    certificate: Certificate
    seconds: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def u(self) -> Vector:
        return self.starts[self.best].u

    @property
    def loss(self) -> float:
        """The mean of squares at the end."""
        return self.starts[self.best].loss

    @property
    def converged(self) -> bool:
        return self.starts[self.best].converged

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of the model that were found, by name."""
        return self.problem.space.values(self.u)

    @property
    def model(self) -> Any:
        """The model with what was found."""
        return self.problem.model.replace(self.values)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return self.certificate.estimates

    @property
    def warnings(self) -> list[str]:
        """What the user should know before the numbers are used."""
        return list(dict.fromkeys(f"{e.name}: {w}" for e in self.estimates for w in e.why))

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.name == name:
                return estimate
        raise KeyError(f"{name!r} was not searched for: {nearest(name, [e.name for e in self.estimates])}")

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def table(self) -> Any:
        """The estimates, to print."""
        from nablasim.sysid.report import estimates_table

        return estimates_table(self.estimates)

    def report(self, folder: str | Path = "out", **options: Any) -> Path:
        """Write `report.html` in a folder: one page that needs nothing else."""
        from nablasim.sysid.report import write_report

        return write_report(self, folder, **options)

    def __repr__(self) -> str:
        return f"<Fit: {', '.join(f'{e.name} = {e.value:.5g}' for e in self.estimates)}; loss {self.loss:.3g}>"


def fit(
    problem: Problem,
    *,
    method: str | None = None,
    horizon: str = "grow",
    starts: int = 3,
    seed: int = 0,
    agree: int = 2,
    start: Mapping[str, ArrayLike] | None = None,
    steps: int = 60,
    tolerance: float = 1e-3,
    level: float = LEVEL,
    save: str | Path | None = None,
    mark: str = "",
    progress: bool | None = None,
    on_window: Callable[[int, Start], None] | None = None,
    **options: Any,
) -> Fit:
    """Find the params of a problem.

    method: "lm" (Levenberg and Marquardt, for up to about 20 numbers), "lbfgs" or "adam" (for many)
    horizon: "grow" fits the first frames first and goes on as far as they predict; "full" all frames at once
    starts: how many blind starts there may be at most; `agree` of them that end at the same best point are enough, or
        one whose residuals are noise if `agree` is 1. Intervals need two.
    start: values to begin with, instead of the first blind ones
    steps: of the last fit, of all frames; tolerance: how near the minimum it goes, in standard deviations
    save: a file; what has been done is kept there, and a later call goes on from it
    mark: anything else that tells this fit from others, so that what is kept is not taken for another one's
    progress: show it; by default where somebody watches a terminal
    options: rate=, of "adam"
    """
    method = method or ("lm" if problem.space.size <= MANY else "lbfgs")
    _check(method, horizon, starts, start, problem)
    if options.keys() - ({"rate"} if method == "adam" else set()):
        raise TypeError(f"fit() got options that {method!r} does not have: {', '.join(map(repr, options))}")
    settings = {"method": method, "horizon": horizon, "starts": starts, "seed": seed, "steps": steps,
                "tolerance": tolerance, "agree": agree}  # fmt: skip
    began = time.perf_counter()
    points = _points(problem, starts, seed, start)
    kept = _Kept(save, problem, {**settings, "points": [p.tolist() for p in points], "mark": mark})
    done: list[Start] = kept.starts
    with shown(f"start 1 of {starts}", progress, total=starts * problem.frames) as bar:
        for k, point in enumerate(points):
            if k < len(done) and done[k].done:
                continue
            if k >= len(done):
                if len(_agreeing(problem, done)) >= agree and (agree > 1 or _is_noise(problem, done)):
                    break
                done.append(Start(point, point.copy()))
            _run(problem, done, k, method, horizon, steps, tolerance, kept, bar, on_window, options)
    return _finish(problem, done, settings, level, time.perf_counter() - began)


def _run(
    problem: Problem, done: list[Start], k: int, method: str, horizon: str, steps: int, tolerance: float,
    kept: _Kept, bar: Shown, on_window: Callable[[int, Start], None] | None, options: Mapping[str, Any],
) -> None:  # fmt: skip
    def report(now: Start) -> None:
        kept.write(done)
        bar.to(k * problem.frames + now.frames, f"start {k + 1}: {now.frames} frames, loss {now.loss:.2e}")
        if on_window is not None:
            on_window(k, now)

    if method == "lm":
        follow(problem, done[k], grow=horizon == "grow", steps=steps, tolerance=tolerance, on_window=report)
    else:
        from nablasim.sysid.search import descend

        descend(problem, done[k], method=method, grow=horizon == "grow", steps=steps, on_window=report, **options)
    kept.write(done)


def _finish(problem: Problem, done: list[Start], settings: Mapping[str, Any], level: float, seconds: float) -> Fit:
    ended = [k for k, s in enumerate(done) if np.isfinite(s.loss) and s.frames >= problem.frames]
    if not ended:
        said = "\n".join(f"  start {k + 1}: {s.message}" for k, s in enumerate(done))
        raise FitFailed(
            f"no start came to an end:\n{said}\nCheck dt, the bounds and the scene; problem.identifiability() looks at "
            "the bounds, and more starts may help"
        )
    best = min(ended, key=lambda k: done[k].loss)
    if problem.space.size > MANY:
        made = uncertified(problem, done[best].u, f"intervals are made for up to {MANY} numbers", level=level)
        return Fit(problem, tuple(done), best, made, seconds, settings)
    if done[best].slopes is None:
        done[best].slopes = problem.slopes(done[best].u)
    slopes = done[best].slopes
    if slopes is None:
        why = problem.explain(done[best].u)
        raise FitFailed(f"the simulation fails at the best point, or beside it: {why} ({done[best].message})")
    others = [done[k].u for k in _agreeing(problem, done) if k != best]
    made = certify(problem, slopes, others, converged=done[best].converged, level=level)
    return Fit(problem, tuple(done), best, made, seconds, settings)


def _agreeing(problem: Problem, done: list[Start]) -> list[int]:
    """The starts that ended as low as the best one, up to what noise could change."""
    ended = [k for k, s in enumerate(done) if s.done and s.converged and np.isfinite(s.loss)]
    if not ended:
        return []
    lowest = min(done[k].loss for k in ended)
    numbers = problem.frames * problem.bound.target.shape[1]
    room = max(lowest / numbers, problem.bound.floor**2)
    return [k for k in ended if done[k].loss <= lowest + room]


def _is_noise(problem: Problem, done: list[Start]) -> bool:
    """Whether the residuals of the best start look like noise. Then it is not worth to look for a better one."""
    best = min(done, key=lambda s: s.loss)
    return best.slopes is not None and not examine(problem, best.slopes).reasons


def _points(problem: Problem, starts: int, seed: int, start: Mapping[str, ArrayLike] | None) -> list[Vector]:
    """Where to start: what was given, then blind guesses. Each has its own numbers, whatever came before."""
    given = problem.space.vector(start) if start is not None else problem.space.first()
    points = [] if given is None else [problem.space.clip(given)]
    return points + [problem.space.draw(np.random.default_rng([seed, k])) for k in range(len(points), starts)]


def _check(method: str, horizon: str, starts: int, start: Mapping[str, ArrayLike] | None, problem: Problem) -> None:
    for what, value, known in (("method", method, METHODS), ("horizon", horizon, HORIZONS)):
        if value not in known:
            raise ValueError(f"{what} is one of {', '.join(map(repr, known))}, not {value!r}")
    if method == "lm" and any(p.smooth for p in problem.space.params):
        raise ValueError('smooth is for method="lbfgs" or "adam"')
    if not isinstance(starts, Integral) or starts < 1:
        raise ValueError(f"starts is how many starts there are, from 1 on, not {starts}")
    for param in problem.space.params:
        if start is not None and param.name not in start:
            raise KeyError(f"start has no value of {param.name!r}: give one for each of the params")
        if start is not None and param.bounds is not None:
            guess = np.asarray(start[param.name], np.float64)
            if not ((guess >= param.bounds[0]) & (guess <= param.bounds[1])).all():
                raise ValueError(f"{param.name}: the guess {guess} is outside of the bounds {param.bounds}")


class _Kept:
    """The file where a fit is kept as it goes. It belongs to one problem with its settings, and is renamed into place:
    a kill leaves the old one or the new one."""

    def __init__(self, path: str | Path | None, problem: Problem, settings: Mapping[str, Any]):
        self.path = None if path is None else Path(path)
        self.mark = fingerprint(problem, settings)
        self.starts: list[Start] = []
        if self.path is not None and self.path.exists():
            try:
                content = json.loads(self.path.read_text(encoding="utf-8"))
                mark, starts = content["problem"], [Start.from_dict(s) for s in content["starts"]]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.path} is not a fit that was kept: {error!r}; choose another file") from error
            if mark != self.mark:
                raise ValueError(f"{self.path} keeps a fit of another problem, or with other settings")
            self.starts = starts

    def write(self, starts: list[Start]) -> None:
        if self.path is None or not any(start.path for start in starts):
            return  # Nothing has been done yet.
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {"problem": self.mark, "starts": [s.to_dict() for s in starts]}
        aside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        aside.write_text(json.dumps(content), encoding="utf-8")
        aside.replace(self.path)


def fingerprint(problem: Problem, settings: Mapping[str, Any]) -> str:
    """What tells this problem and these settings from others."""
    digest = hashlib.sha256(json.dumps(dict(settings), sort_keys=True).encode())
    for part in (problem.bound.target, problem.bound.times, problem.space.low, problem.space.high):
        digest.update(np.ascontiguousarray(part).tobytes())
    for name, known in sorted(problem.simulation.known.items()):
        value = known.value.detach().numpy() if hasattr(known.value, "detach") else known.value
        digest.update(name.encode() + np.ascontiguousarray(value, np.float64).tobytes())
    digest.update(repr((problem.names, problem.simulation.dt)).encode())
    return digest.hexdigest()
