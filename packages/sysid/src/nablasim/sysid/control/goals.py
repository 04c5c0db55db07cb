"""Goals: what a motion is to come to, as a number that is smaller the nearer it is.

Every goal is bound to a model by `Task`, which may refuse it, and then gives the loss of a `Trajectory`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.names import nearest
from nablasim.sysid.problem import Loss, Pictures, Pixels, Seen, quantity
from nablasim.sysid.video import Video as Frames

Measure = Callable[[Any], torch.Tensor]
"""From a trajectory to a loss."""


@dataclass(frozen=True, eq=False)
class Video:
    """The motion is to look like a video: the mean of squares over pixels and frames.

    view: a camera, for silhouettes, or a renderer. target: a `sysid.Video`; each of its times is that of a step.
    loss: what of the pictures is compared; `objects` and `paint` as of `sysid.Pictures`.
    """

    view: Any
    target: Frames
    loss: Loss = field(default_factory=Pixels)
    objects: tuple[str, ...] = ()
    paint: Mapping[str, Any] = field(default_factory=dict)

    @property
    def renderer(self) -> Any:
        return as_renderer(self.view)

    def bind(self, model: ph.Model, times: Any) -> Measure:
        steps = np.rint(self.target.times / (times[1] - times[0])).astype(int)
        if steps.min() < 0 or steps.max() >= len(times) or not np.allclose(times[steps], self.target.times, atol=1e-9):
            raise ValueError(f"the times of the target are not those of steps, which go from 0 to {times[-1]:g} s")
        return self._compare(model, self.target, steps)

    def until(self, time: float) -> Video:
        """The goal of a shorter motion: the frames up to a time."""
        kept = int((self.target.times <= time + 1e-9).sum())
        if not kept:
            raise ValueError(f"the target has no frame until {time:g} s: begin with a longer motion")
        return replace(self, target=Frames(self.target.frames[:kept], self.target.times[:kept]))

    def _compare(self, model: ph.Model, target: Frames, steps: Any) -> Measure:
        bound = Pictures(self.renderer, self.objects, self.loss, self.paint).bind(model, target)
        wanted = torch.as_tensor(bound.target)

        def loss(motion: Any) -> torch.Tensor:
            seen = Seen(motion, np.asarray(steps), single=True)
            rows = bound.rows(seen, range(len(steps)))[0]
            return ((rows - wanted.to(rows)) ** 2).mean()

        return loss


@dataclass(frozen=True, eq=False)
class Image(Video):
    """The motion is to end in one picture, the paper's goal: (height, width[, channels]), from 0 to 1."""

    target: Any = None
    at: int = -1
    """Of which frame it is."""

    def bind(self, model: ph.Model, times: Any) -> Measure:
        at = _frame(self.at, times)
        picture = np.asarray(self.target.detach() if hasattr(self.target, "detach") else self.target)
        if picture.ndim not in (2, 3):
            raise ValueError(f"the target is one picture, (height, width[, channels]), not of shape {picture.shape}")
        # A mask is a picture of zeros and ones.
        picture = picture.astype(np.float64) if picture.dtype == bool else picture
        return self._compare(model, Frames(picture[None], [times[at]]), [at])

    def until(self, time: float) -> Video:
        return self


@dataclass(frozen=True, eq=False)
class State:
    """Quantities of the last frame, or of frame `at`, are to have values: `State({"gear.x": (n, 3)})`."""

    values: Mapping[str, ArrayLike]
    at: int = -1

    def bind(self, model: ph.Model, times: Any) -> Measure:
        at = _frame(self.at, times)
        if not self.values:
            raise ValueError('no quantity is named: State({"gear.x": values})')
        wanted = {name: _wanted(model, name, v) for name, v in self.values.items()}

        def loss(motion: Any) -> torch.Tensor:
            parts = [(torch.as_tensor(quantity(motion, n))[at].double() - v).square().mean() for n, v in wanted.items()]
            return torch.stack(parts).mean()

        return loss


@dataclass(frozen=True, eq=False)
class CentreOfMass:
    """The centre of mass of an object is to be at a point (m): at the end, or `dense`: at all times, as the paper's.

    masses: of its particles, where the model has no parameter of them: `ph.vertex_masses(mesh, density)`.
    """

    name: str
    point: ArrayLike
    dense: bool = False
    masses: ArrayLike | None = None

    def bind(self, model: ph.Model, times: Any) -> Measure:
        _known(model, self.name)
        masses = particle_masses(model, self.name, self.masses)
        wanted = torch.as_tensor(_three(self.point, "a point"))

        def loss(motion: Any) -> torch.Tensor:
            centres = centre_of_mass(motion, self.name, masses)
            return ((centres[1:] if self.dense else centres[-1:]) - wanted).square().sum(-1).mean()

        return loss


@dataclass(frozen=True, eq=False)
class Distance:
    """An object is to come far: the loss is the way of its centre of mass along a direction, with a minus (m)."""

    name: str
    along: ArrayLike = (1.0, 0.0, 0.0)
    masses: ArrayLike | None = None

    def bind(self, model: ph.Model, times: Any) -> Measure:
        _known(model, self.name)
        way = _three(self.along, "a direction")
        if not np.linalg.norm(way) > 0:
            raise ValueError(f"`along` is a direction, not {self.along!r}")
        unit = torch.as_tensor(way / np.linalg.norm(way))
        masses = particle_masses(model, self.name, self.masses)

        def loss(motion: Any) -> torch.Tensor:
            centres = centre_of_mass(motion, self.name, masses)
            return -(centres[-1] - centres[0]) @ unit

        return loss


def centre_of_mass(motion: Any, name: str, masses: Any = None) -> torch.Tensor:
    """Of an object in every frame, (frames, 3), by the masses of its particles; a rigid body has none."""
    x = torch.as_tensor(motion[name].x).double()
    if masses is None:
        return x
    weights = torch.tensor(np.asarray(masses, np.float64))
    return (x * (weights / weights.sum())[:, None]).sum(1)


def particle_masses(model: ph.Model, name: str, given: ArrayLike | None = None) -> Any:
    """(n): those given, or those of the parameter "name.mass"; None for a rigid body, which is where its centre is."""
    rows = np.shape(model.state0[name].x)
    if len(rows) == 1:
        return None
    if given is None and f"{name}.mass" not in model:
        raise ValueError(
            f"the masses of the particles of {name!r} follow from its density: give masses=ph.vertex_masses(mesh, "
            "density), by which the centre of mass is taken"
        )
    masses = np.asarray(model[f"{name}.mass"] if given is None else given, np.float64)
    return np.broadcast_to(masses, rows[:1])


def _wanted(model: ph.Model, name: str, values: ArrayLike) -> torch.Tensor:
    """The values of a quantity: as many as it has, so that none stands for others."""
    thing, _, what = name.rpartition(".")
    _known(model, thing)
    given, shape = np.asarray(values, np.float64), np.shape(getattr(model.state0[thing], what))
    if given.shape != shape:
        raise ValueError(f"{name} is of shape {shape}, and the values that it is to have of {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(f"{name}: a value that it is to have is not finite")
    return torch.as_tensor(given)


def _three(values: ArrayLike, what: str) -> NDArray[np.float64]:
    given = np.asarray(values, np.float64)
    if given.shape != (3,) or not np.isfinite(given).all():
        raise ValueError(f"{what} is three finite numbers, not {values!r}")
    return given


def as_renderer(view: Any) -> Any:
    """A renderer, or that of silhouettes for a camera."""
    return render.Silhouette(view) if isinstance(view, render.Camera) else view


def _known(model: ph.Model, name: str) -> None:
    if name not in model.layout.things:
        raise KeyError(f"there is no object {name!r}: {nearest(name, model.layout.things)}")


def _frame(at: int, times: Any) -> int:
    if not -len(times) <= at < len(times):
        raise ValueError(f"there is no frame {at}: a motion of {len(times) - 1} steps has {len(times)} frames")
    return at % len(times)
