"""`Problem`: a model, what was seen of it, and what is not known. Everything else asks it for misfits and slopes.

    problem = sysid.Problem(model, target=video, observe=render.Silhouette(camera), dt=1/960,
                            params=[sysid.Param("cube.density", (1, 50)), sysid.Param("floor.mu", (0.05, 1.5))])
    problem.identifiability()
    fit = problem.fit()

Misfits are kept per frame: windows of time, intervals and the test of the model all need them so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim import physics as ph
from nablasim.sysid.names import nearest
from nablasim.sysid.problem.losses import Loss
from nablasim.sysid.problem.observations import Bound, bind
from nablasim.sysid.problem.parameters import Param, Space, Vector
from nablasim.sysid.problem.simulation import FAILURES, Seen, Simulation
from nablasim.sysid.problem.slopes import Slopes, Sums

if TYPE_CHECKING:
    from nablasim.sysid.fit import Fit
    from nablasim.sysid.trust import Identifiability

ROWS_AT_ONCE = 256
"""Rows of copies and frames that are in memory at once while slopes are summed."""
LARGEST = 2**26
"""Numbers of a Jacobian that is kept as it is."""


class Problem:
    """Find `params` of `model` such that what `observe` sees of it is `target`.

    target: a `Video`, or states (a trajectory of a rollout, a `Track`)
    observe: a renderer (`render.Silhouette(camera)`, `render.Renderer(...)`), `sysid.Pictures` or `sysid.States`
    dt: the step of the simulation (s); frames are looked at after whole steps
    loss: what of pictures is compared, see `losses`; pixels unless told otherwise
    options: for `ph.rollout`: substeps, integrator, control ...
    """

    def __init__(
        self,
        model: Any,
        *,
        target: Any,
        observe: Any,
        dt: float,
        params: Sequence[Param],
        loss: Loss | None = None,
        **options: Any,
    ):
        self.model, self.target, self.observe = model, target, observe
        self.bound: Bound = bind(observe, model, target, loss)
        self.simulation = Simulation(model, dt=dt, times=self.bound.times, **options)
        known = self.simulation.known
        for param in params:
            if not isinstance(param, Param):
                raise TypeError(f'params are sysid.Param("name", (low, high)), not {type(param).__name__}')
            for name in param.given if param.into is not None else (param.target,):
                if name not in known:
                    model[name]  # The model may know why: another quantity stands for it.
                    raise KeyError(f"there is no parameter {name!r}: {nearest(name, known)}")
        self.space = Space(params, known)

    @property
    def frames(self) -> int:
        return self.bound.frames

    @property
    def names(self) -> list[str]:
        return self.space.names

    def __content__(self) -> Any:
        """What tells this problem from others, without what was compiled or copied for it (content.py)."""
        values = {p.name: p.value for p in self.model.parameters()}
        model = (self.model.layout, self.model.real, values) if isinstance(self.model, ph.Model) else self.model
        return model, self.bound, self.simulation.dt, self.simulation.options, self.space.params

    def other(self, *, target: Any = None, observe: Any = None, loss: Loss | None = None) -> Problem:
        """The same problem with other data, another view of them, or another loss; what was compiled is shared."""
        made = object.__new__(Problem)
        made.__dict__.update(self.__dict__)
        made.target = self.target if target is None else target
        made.observe = self.observe if observe is None else observe
        made.bound = bind(made.observe, self.model, made.target, loss)
        if not np.array_equal(made.bound.times, self.bound.times):
            raise ValueError("the other target has other times: make a new Problem")
        return made

    # -- misfits
    def misfits(self, u: ArrayLike, frames: int | None = None) -> NDArray[np.float64]:
        """The sum of squares of each frame, (points, frames), at points u (points, n); infinite where a run fails."""
        points, frames = np.atleast_2d(np.asarray(u, np.float64)), frames or self.frames
        found = np.full((len(points), frames), np.inf)
        seen, works = self.simulation.run(self.space.values(points), frames)
        if seen is None:
            return found
        for some in self._chunks(frames, int(works.sum())):
            rows = self._numbers(seen, some)
            difference = rows - self.bound.target[some]
            found[np.ix_(works, np.array(some))] = np.einsum("bfm,bfm->bf", difference, difference, dtype=np.float64)
        return np.where(np.isfinite(found), found, np.inf)

    def loss(self, values: Mapping[str, ArrayLike] | ArrayLike, frames: int | None = None) -> float:
        """The mean of squares at values of the params (by name, or as a vector of the space)."""
        u = self.space.vector(values) if isinstance(values, Mapping) else np.asarray(values, np.float64)
        squares = self.misfits(u, frames)[0]
        return float(squares.sum() / (squares.size * self.bound.target.shape[1]))

    def differences(self, u: ArrayLike, frames: int | None = None) -> NDArray[np.floating[Any]]:
        """Rows minus target (points, frames, m), at few points u (points, n); infinite where a run fails."""
        points, frames = np.atleast_2d(np.asarray(u, np.float64)), frames or self.frames
        target = self.bound.target[:frames]
        seen, works = self.simulation.run(self.space.values(points), frames)
        found = np.full((len(points), *target.shape), np.inf, target.dtype)
        if seen is not None:
            for some in self._chunks(frames, int(works.sum())):
                found[np.ix_(works, np.array(some))] = self._numbers(seen, some) - target[some]
        return np.where(np.isfinite(found), found, np.inf)

    def slopes(
        self, u: Vector, frames: int | None = None, step: float | None = None, *, keep: bool = False,
        by: Literal["differences", "tangents"] | None = None, batched: bool = True,
    ) -> Slopes | None:  # fmt: skip
        """Misfit, gradient and normal matrix at a point; None if the point fails.

        keep: the Jacobian as well, unless it is large
        by: exact "tangents", pushed through physics and pictures in one sweep: the default wherever the model and the
            observation have them; or "differences" of a batch of runs beside the point, `step` apart
        batched: differences from one batch of all runs, which is made ready once; or from three runs at a time, as
            searches have them: for once, that is sooner
        """
        by = by or self.slopes_by
        if by == "tangents":
            return self._pushed_slopes(np.asarray(u, np.float64), frames or self.frames, keep)
        if by != "differences":
            raise ValueError(f'slopes are by "differences" or "tangents", not {by!r}')
        frames, n = frames or self.frames, self.space.size
        if not batched and 4 * n * frames * self.bound.target.shape[1] <= LARGEST:
            return self._slopes_of_threes(u, frames, step or self.bound.step, keep)
        points = self._beside(u, step or self.bound.step)
        seen, works = self.simulation.run(self.space.values(points), frames)
        if seen is None or not works[0]:
            return None
        # Where one side fails the other does; where both do, nothing is known of that direction.
        place = np.where(works, np.cumsum(works) - 1, 0)
        used = np.where(works[:, None], points, points[0])
        plus, minus = place[1 : n + 1], place[n + 1 :]
        width = np.array([used[1 + j, j] - used[1 + n + j, j] for j in range(n)])
        safe = np.where(width == 0, 1.0, width)
        m = self.bound.target.shape[1]
        sums = Sums(u, frames, n, m, self.bound.target.dtype if keep and n * frames * m <= LARGEST else None)
        for some in self._chunks(frames, len(points)):
            rows = self._numbers(seen, some)
            J = (rows[plus] - rows[minus]).astype(np.float64) / safe[:, None, None]
            sums.add(some, rows[0] - self.bound.target[some], J)
        return sums.slopes()

    def _slopes_of_threes(self, u: Vector, frames: int, step: float, keep: bool) -> Slopes | None:
        """By differences: the point, and one on each side of it in every direction, three runs at a time."""
        points, n, m = self._beside(u, step), self.space.size, self.bound.target.shape[1]
        filled = np.concatenate([points, np.repeat(points[:1], -len(points) % 3, axis=0)])
        rows = np.concatenate([self.differences(filled[k : k + 3], frames) for k in range(0, len(filled), 3)])
        works = np.isfinite(rows[:, 0, 0])
        if not works[0]:
            return None
        J = np.zeros((n, frames, m))
        for j in range(n):
            plus, minus = (k if works[k] else 0 for k in (1 + j, 1 + n + j))  # Where one side fails the other does.
            width = points[plus, j] - points[minus, j]
            J[j] = (rows[plus].astype(np.float64) - rows[minus]) / (width or 1.0)
        sums = Sums(u, frames, n, m, self.bound.target.dtype if keep else None)
        sums.add(range(frames), rows[0].astype(np.float64), J)
        return sums.slopes()

    def jacobian(
        self, u: Vector, frames: int | None = None, *, by: Literal["differences", "tangents"] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """r (frames, m) and J (n, frames, m) as they are, for few and small frames.

        by: exact "tangents" in one sweep, the default wherever the model and the observation have them, or
            "differences" of runs beside the point
        """
        frames = frames or self.frames
        if (by or self.slopes_by) == "tangents":
            pushed = self.bound.push(*self._push(np.asarray(u, np.float64), frames), range(frames))
            exact, J = (x.numpy().astype(np.float64) for x in pushed)
            return exact - self.bound.target[:frames], J
        points, n = self._beside(u, self.bound.step), self.space.size
        seen, works = self.simulation.run(self.space.values(points), frames)
        if seen is None or not works.all():
            raise ArithmeticError(f"a run near {dict(zip(self.names, self.space.numbers(u)))} fails")
        rows = self._numbers(seen, range(frames)).astype(np.float64)
        width = np.array([points[1 + j, j] - points[1 + n + j, j] for j in range(n)])
        return rows[0] - self.bound.target, (rows[1 : n + 1] - rows[n + 1 :]) / width[:, None, None]

    @property
    def slopes_by(self) -> Literal["differences", "tangents"]:
        """Where slopes come from unless told: tangents wherever there are some."""
        return "tangents" if self.pushes else "differences"

    @property
    def pushes(self) -> bool:
        """Whether slopes can be exact tangents: of scenes, seen as states or by our own renderers."""
        return self.simulation.pushes and self.bound.pushes

    def _push(self, u: Vector, frames: int) -> tuple[Seen, Seen]:
        """A run, and how it moves in every direction of the space."""
        if not self.pushes:
            raise ValueError("this model, or what is seen of it, has no tangents: slopes are by differences")
        values, along = self.space.push(u)
        return self.simulation.push(values, along, frames)

    def _pushed_slopes(self, u: Vector, frames: int, keep: bool) -> Slopes | None:
        n, m = self.space.size, self.bound.target.shape[1]
        try:
            seen, moved = self._push(u, frames)
        except FAILURES:
            return None
        sums = Sums(u, frames, n, m, self.bound.target.dtype if keep and n * frames * m <= LARGEST else None)
        for some in self._chunks(frames, n + 1):
            rows, J = (x.numpy() for x in self.bound.push(seen, moved, some))
            sums.add(some, rows - self.bound.target[some], J)
        return sums.slopes()

    def gradient(self, u: Vector, frames: int | None = None) -> tuple[float, Vector]:
        """The mean of squares and its gradient, by one sweep back through pictures and physics: for many params."""
        import torch

        frames = frames or self.frames
        at = torch.tensor(u, dtype=torch.float64, requires_grad=True)
        seen = self.simulation.track(self.space.values(at), frames)
        total: Any = 0.0
        for some in self._chunks(frames, 1):
            rows = self.bound.rows(seen, some)[0].to(torch.float64)
            total = total + ((rows - torch.as_tensor(self.bound.target[some])) ** 2).sum()
        loss = total / (frames * self.bound.target.shape[1])
        loss.backward()
        assert at.grad is not None
        return float(loss.detach()), at.grad.numpy()

    def seen(self, u: Vector, frames: int | None = None) -> Seen:
        """A run at a point; raises what the simulator raises."""
        frames = frames or self.frames
        return self.simulation.track({n: v[0] for n, v in self.space.values(np.asarray(u)[None]).items()}, frames)

    def explain(self, u: Vector, frames: int | None = None) -> str:
        """Why there are no slopes at a point, in the words of the simulator."""
        frames = frames or self.frames
        for point in self._beside(u, self.bound.step):
            why = self.simulation.explain(self.space.values(point[None]), frames)
            if why:
                return why
        return "what is seen of it is not a finite number"

    def residuals(self, u: Vector) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Target minus what is seen at a point (frames, m), and the pictures themselves, if that is what is seen."""
        import torch

        seen, every = self.seen(u), range(self.frames)
        with torch.no_grad():
            pictures = self.bound.pictures(seen, every)
        r = self.bound.target - self._numbers(seen, every)[0]
        return r.astype(np.float64), None if pictures is None else pictures[0].numpy().astype(np.float64)

    # -- answers
    def fit(self, **options: Any) -> Fit:
        """Find the params. See `sysid.fit.fit` for the options."""
        from nablasim.sysid.fit import fit

        return fit(self, **options)

    def identifiability(self, **options: Any) -> Identifiability:
        """What these frames can tell about the params, before any fit. See `sysid.uncertainty.identifiability`."""
        from nablasim.sysid.trust import identifiability

        return identifiability(self, **options)

    # -- inside
    def _beside(self, u: Vector, step: float) -> NDArray[np.float64]:
        """The point, then one on each side of it in every direction, all within the bounds."""
        n, room = self.space.size, self.space.high - self.space.low
        h = step * np.minimum(1.0, room)
        points = np.tile(np.asarray(u, np.float64), (2 * n + 1, 1))
        points[np.arange(1, n + 1), np.arange(n)] += h
        points[np.arange(n + 1, 2 * n + 1), np.arange(n)] -= h
        return np.concatenate([points[:1], self.space.clip(points[1:])])

    def _chunks(self, frames: int, copies: int) -> list[list[int]]:
        size = max(1, ROWS_AT_ONCE // copies)
        return [list(range(k, min(frames, k + size))) for k in range(0, frames, size)]

    def _numbers(self, seen: Seen, frames: Sequence[int]) -> NDArray[np.floating[Any]]:
        import torch

        with torch.no_grad():
            return self.bound.rows(seen, frames).numpy()
