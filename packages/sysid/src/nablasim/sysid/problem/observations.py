"""What is compared with the data: pictures of the objects, or their states. Turns a simulation into rows of numbers.

An observation is bound to a model and a target by `Problem`; from then on it has the target as rows (frames, m), and
`rows(seen, frames)` gives those of a simulation, (copies, frames, m).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim import physics as ph
from nablasim.sysid.problem.losses import Loss, Pixels
from nablasim.sysid.problem.simulation import Seen, quantity
from nablasim.sysid.video import Track, Video, check_noise

CHUNK = 128
"""Pictures drawn at once: more take more memory and are not faster."""


@dataclass(frozen=True, eq=False)
class Bound(ABC):
    """An observation of one model with its target."""

    times: NDArray[np.float64]
    target: NDArray[np.floating[Any]]
    """(frames, m)"""
    pace: NDArray[np.float64]
    """The misfit of each frame that counts as one pixel off: decides how fast a window grows."""
    step: float
    """For differences of rows, in the space of the parameters: large where rows are in single precision."""
    noise: float | None
    floor: float
    """What rounding alone makes of a number of a row."""
    slack: float
    """The part of Jᵀ J that differences do not resolve, in a direction beside others."""
    blur: float
    """What rounding makes of a number of J."""

    @property
    def alike(self) -> int:
        """Frames whose errors hang together: so many of them tell as much as one."""
        return 1

    @property
    def usual_noise(self) -> float:
        """The noise that was stated, or that is to be expected."""
        return self.noise if self.noise is not None else 100 * self.floor

    @property
    def frames(self) -> int:
        return len(self.times)

    @abstractmethod
    def rows(self, seen: Seen, frames: Sequence[int]) -> Any:
        """(copies, frames, m) as a tensor."""

    @property
    def pushes(self) -> bool:
        """Whether `push` works."""
        return True

    @abstractmethod
    def push(self, seen: Seen, moved: Seen, frames: Sequence[int]) -> tuple[Any, Any]:
        """The rows of a run, (frames, m), and how they move, (k, frames, m), where its states do."""

    def pictures(self, seen: Seen, frames: Sequence[int]) -> Any:
        """(copies, frames, height, width[, channels]) as a tensor; None where states are observed."""
        return None


# -- states
@dataclass(frozen=True)
class States:
    """3-D states: `States("cube.x", "cube.rot")`, or all that the target has. The privileged view.

    noise: standard deviation of the measurements, if it is known
    """

    names: tuple[str, ...] = ()
    noise: float | None = None

    def __init__(self, *names: str, noise: float | None = None):
        check_noise(noise)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "noise", noise)

    def bind(self, model: Any, target: Any) -> Bound:
        if isinstance(target, Track):
            values: dict[str, Any] = dict(target.values)
        elif hasattr(target, "times") and hasattr(target, "numpy"):
            values = {name: _plain(quantity(target, name)) for name in self.names or _quantities(target)}
        else:
            raise TypeError(
                f"the target of States is a trajectory of a rollout, or sysid.Track(times, values), not "
                f"{type(target).__name__}"
            )
        names = self.names or tuple(values)
        for name in names:
            if name not in values:
                raise KeyError(f"the target has no {name!r}; it has {', '.join(map(repr, values))}")
        parts = [np.asarray(values[n], np.float64).reshape(len(target), -1) for n in names]
        rows = np.concatenate(parts, axis=1)
        # A hundredth of the way that each quantity goes is taken for a pixel.
        spread = np.concatenate([np.full(p.shape[1], max(float((p - p[0]).std()), 1e-9)) for p in parts], axis=0)
        pace = np.full(len(rows), float(((0.01 * spread) ** 2).sum()))
        step, digits, slack = (1e-6, 1e-10, 1e-13) if model.real == "float64" else (3e-3, 1e-5, 1e-5)
        floor = digits * float(np.sqrt((spread**2).mean()))
        return _BoundStates(
            np.asarray(target.times), rows, pace, step, self.noise, floor, slack, 1e-5 * floor / step, names
        )


@dataclass(frozen=True, eq=False)
class _BoundStates(Bound):
    names: tuple[str, ...]

    def rows(self, seen: Seen, frames: Sequence[int]) -> Any:
        import torch

        parts, at = [], 0
        for name in self.names:
            part = torch.as_tensor(seen[name])[:, list(frames)].to(torch.float64)
            part = part.reshape(*part.shape[:2], -1)
            if name.endswith(".rot"):
                # q and -q are the same rotation: take the one on the target's side.
                wanted = part.new_tensor(self.target[list(frames), at : at + part.shape[2]])
                part = part * torch.where((part * wanted).sum(-1, keepdim=True) < 0, -1.0, 1.0)
            parts.append(part)
            at += part.shape[2]
        return torch.cat(parts, dim=2)

    def push(self, seen: Seen, moved: Seen, frames: Sequence[int]) -> tuple[Any, Any]:
        import torch

        # Rows are the numbers themselves, with the sign of a quaternion that the run decides.
        rows, signs, at = self.rows(seen, frames)[0], [], 0
        for name in self.names:
            part = torch.as_tensor(seen[name])[0, list(frames)].to(torch.float64).reshape(len(frames), -1)
            same = (part * rows[:, at : at + part.shape[1]]).sum(-1, keepdim=True) >= 0
            signs.append(torch.where(same, 1.0, -1.0).expand_as(part))
            at += part.shape[1]
        ways = [torch.as_tensor(moved[name])[:, list(frames)].to(torch.float64) for name in self.names]
        flat = torch.cat([way.reshape(*way.shape[:2], -1) for way in ways], dim=2)
        return rows, flat * torch.cat(signs, dim=1)


# -- pictures
@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures by a renderer: what `observe=render.Silhouette(camera)` stands for, with more to say.

    objects: the names of what is drawn; everything that has a surface
    loss: what of the pictures is compared
    paint: passed to the renderer, such as colors, uvs and texture: of all vertices of the objects in their order
    alike: frames whose errors hang together, so that as many of them tell as much as one; makes intervals wider
    bob: of a pendulum balls of these radii (m) are drawn, from the upper one on
    pivot: (m) what the pendulum hangs on
    """

    renderer: Any
    objects: tuple[str, ...] = ()
    loss: Loss = field(default_factory=Pixels)
    paint: Mapping[str, Any] = field(default_factory=dict)
    noise: float | None = None
    real: str = "float32"
    alike: int = 1
    bob: tuple[float, ...] = ()
    pivot: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        check_noise(self.noise)

    def bind(self, model: Any, target: Any) -> Bound:
        if not isinstance(target, Video):
            raise TypeError(
                f"the target of pictures is a video, such as sysid.load_video(file) or sysid.Video(frames, fps=30), "
                f"not {type(target).__name__}"
            )
        if not isinstance(model, ph.Model) and self.bob:
            return self._bound(target, (), balls(self.bob)[1])
        if not isinstance(model, ph.Model) or not model.surfaces:
            raise ValueError("nothing of this model can be drawn: it has no surfaces; observe States instead")
        names = self.objects or tuple(model.surfaces)
        for name in names:
            if name not in model.surfaces:
                raise KeyError(f"there is no object {name!r} to draw; there are {', '.join(model.surfaces)}")
        faces, first = [], 0
        for name in names:
            surface = model.surfaces[name]
            faces.append(surface.faces + first)
            first += len(model[f"{name}.x"]) if surface.points is None else len(surface.points)
        return self._bound(target, names, np.concatenate(faces))

    def drawn(self, motion: Any) -> NDArray[np.floating[Any]]:
        """The pictures of a pendulum's motion: (frames, height, width[, channels])."""
        import torch

        corners = self.around(torch.as_tensor(motion["x"])[None])[0].to(getattr(torch, self.real))
        return np.asarray(self.renderer(corners, balls(self.bob)[1], **self.paint))

    def around(self, x: Any) -> Any:
        """Corners of balls at bobs (copies, frames[, bobs], 3)."""
        ball = x.new_tensor(balls(self.bob)[0] + np.array(self.pivot))
        return (x.reshape(*x.shape[:2], -1, 1, 3) + ball).flatten(2, 3)

    def _bound(self, target: Video, names: tuple[str, ...], faces: NDArray[np.int32]) -> Bound:
        pictures, noise = self._like_ours(target), target.noise if self.noise is None else self.noise
        step, floor, slack = (1e-3, 1e-5, 1e-6) if self.real == "float32" else (1e-5, 1e-9, 1e-10)
        bound = _BoundPictures(
            target.times, np.zeros(0), np.zeros(0), step, noise, floor, slack, 0.01 * floor / step,
            self, names, faces, target.size, pictures.shape[3] if pictures.ndim == 4 else 0,
        )  # fmt: skip
        rows, pace = bound.measure(pictures)
        object.__setattr__(bound, "target", rows)
        object.__setattr__(bound, "pace", pace)
        return bound

    def _like_ours(self, target: Video) -> NDArray[np.floating[Any]]:
        """The target's pictures with the channels that the renderer makes."""
        pictures = target.frames
        if type(self.renderer).__name__ != "Silhouette":
            if pictures.ndim == 3:
                raise ValueError("the video is grey and the renderer makes colours: observe render.Silhouette(camera)")
            return pictures
        if pictures.ndim == 4:
            if np.ptp(pictures[..., :3], axis=-1).max() > 0.02:
                raise ValueError(
                    "the video has colours, and silhouettes are observed: sysid.masks(video) separates the moving "
                    "object from what stands behind it"
                )
            pictures = pictures[..., :3].mean(axis=-1)
        return pictures


@dataclass(frozen=True, eq=False)
class _BoundPictures(Bound):
    given: Pictures
    names: tuple[str, ...]
    faces: NDArray[np.int32]
    size: tuple[int, int]
    channels: int

    @property
    def alike(self) -> int:
        return self.given.alike

    def rows(self, seen: Seen, frames: Sequence[int]) -> Any:
        pictures = self.pictures(seen, frames)
        rows = self.given.loss(pictures.reshape(-1, *pictures.shape[2:]))
        return rows.reshape(*pictures.shape[:2], -1)

    def pictures(self, seen: Seen, frames: Sequence[int]) -> Any:
        """(copies, frames, height, width[, channels])"""
        import torch

        if not self.given.bob:
            parts = [torch.as_tensor(seen.vertices(name))[:, list(frames)] for name in self.names]
        else:
            parts = [self.given.around(torch.as_tensor(seen["x"])[:, list(frames)])]
        corners = _joined(parts, dim=2).to(getattr(torch, self.given.real))
        flat = corners.reshape(-1, *corners.shape[2:])
        drawn = _joined([self._draw(flat[k : k + CHUNK]) for k in range(0, len(flat), CHUNK)])
        return drawn.reshape(*corners.shape[:2], *drawn.shape[1:])

    @property
    def pushes(self) -> bool:
        return hasattr(self.given.renderer, "jvp")

    def push(self, seen: Seen, moved: Seen, frames: Sequence[int]) -> tuple[Any, Any]:
        import torch

        real, some = getattr(torch, self.given.real), list(frames)
        corners = _joined([torch.as_tensor(seen.vertices(name))[0, some] for name in self.names], dim=1).to(real)
        ways = _joined([torch.as_tensor(moved.vertices(name))[:, some] for name in self.names], dim=2).to(real)
        drawn = [
            self.given.renderer.jvp(corners[k : k + CHUNK], self.faces, tangents={"vertices": ways[:, k : k + CHUNK]},
                                    size=self.size, **self.given.paint)
            for k in range(0, len(corners), CHUNK)
        ]  # fmt: skip
        pictures, pushed = _joined([p for p, _ in drawn]), _joined([t for _, t in drawn], dim=1)
        if self.channels:
            pictures, pushed = pictures[..., : self.channels], pushed[..., : self.channels]
        if isinstance(self.given.loss, Pixels):
            return self.given.loss(pictures), pushed.reshape(*pushed.shape[:2], -1)
        each = [torch.func.jvp(self.given.loss, (pictures,), (way,))[1] for way in pushed]
        return self.given.loss(pictures), torch.stack(each)

    def _draw(self, corners: Any) -> Any:
        image = self.given.renderer(corners, self.faces, size=self.size, **self.given.paint)
        return image[..., : self.channels] if self.channels else image

    def measure(self, pictures: NDArray[np.floating[Any]]) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64]]:
        """The rows of pictures, and how much they change by one pixel: the mean of four directions."""
        import torch

        images = torch.as_tensor(np.ascontiguousarray(pictures)).to(getattr(torch, self.given.real))
        rows = self.given.loss(images)
        pace = sum(
            ((self.given.loss(torch.roll(images, shift, dims=axis)) - rows) ** 2).sum(1)
            for axis in (1, 2)
            for shift in (-1, 1)
        )
        return rows.numpy(), np.maximum(np.asarray(pace, np.float64) / 4, 1e-12)


def balls(radii: tuple[float, ...]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """The corners of each ball about its middle, and the triangles of all."""
    ball = ph.TriMesh.icosphere(subdivisions=1)
    faces = [ball.faces + k * len(ball.vertices) for k in range(len(radii))]
    return ball.vertices * np.reshape(radii, (-1, 1, 1)), np.concatenate(faces).astype(np.int32)


def bind(observe: Any, model: Any, target: Any, loss: Loss | None) -> Bound:
    """Bind whatever a user calls an observation."""
    if isinstance(observe, States):
        return observe.bind(model, target)
    if not isinstance(observe, Pictures):
        if not callable(observe):
            raise TypeError(
                f"observe is a renderer such as render.Silhouette(camera), sysid.Pictures or sysid.States, not "
                f"{type(observe).__name__}"
            )
        observe = Pictures(observe)
    if loss is not None:
        observe = Pictures(**{**vars(observe), "loss": loss})
    return observe.bind(model, target)


def _joined(parts: Sequence[Any], dim: int = 0) -> Any:
    """Tensors one after the other. One by itself is not copied: that costs more than to draw it."""
    import torch

    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=dim)


def _plain(value: Any) -> NDArray[np.float64]:
    return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value, np.float64)


def _quantities(trajectory: Any) -> list[str]:
    """Where things are, in a trajectory: positions and orientations."""
    if isinstance(trajectory, ph.Trajectory):
        return [f"{name}.{what}" for name in trajectory for what in trajectory[name].names if what in ("x", "rot")]
    return [name for name in trajectory if name == "angle" or (name == "x" and "angle" not in list(trajectory))]
