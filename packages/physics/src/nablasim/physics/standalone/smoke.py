"""`ph.Smoke`: smoke in a rectangle, with the same rollout as scenes.

    smoke = ph.Smoke(size=(1, 1), cells=(64, 64), density=puff, velocity=wind, buoyancy=2.0)
    frames = ph.rollout(smoke, dt=0.02, steps=100, every=10)
    frames.density, frames.velocity, frames.times

Arrays are (cells along x, cells along y), y up. Every quantity can be a torch tensor that requires a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.laws import PROJECTIONS, Projection, Staggered, add_smoke, in_use
from nablasim.physics.model import Draft, Frames, Model, Quantity, Standalone, finish, is_kernelc, is_torch
from nablasim.physics.standalone import linear
from nablasim.physics.time import simulator

Obstacle = Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike] | ArrayLike | None


class Smoke(Standalone):
    """Smoke in a rectangle from (0, 0) to `size` (m).

    boundary: "closed" (walls all around), "periodic", or one word for each direction.
    obstacle: solid cells, as a mask (cells) or a function of the places x, y of their middles.
    velocity (m/s, in the middle of cells) and density: at the start. The velocity is made free of divergence first.
    force (m/s²) and source (1/s): of every cell, all the time; `control` of a rollout varies them.
    buoyancy (m/s²): how strongly smoke of density one rises. decay (1/s): how fast it fades.
    batch: so many copies, with a leading axis in all quantities, or the same for all.
    """

    def __init__(
        self,
        size: tuple[float, float] = (1.0, 1.0),
        cells: tuple[int, int] = (64, 64),
        *,
        velocity: Any = 0.0,
        density: Any = 0.0,
        force: Any = 0.0,
        source: Any = 0.0,
        buoyancy: Any = 0.0,
        decay: Any = 0.0,
        boundary: str | tuple[str, str] = "closed",
        obstacle: Obstacle = None,
        batch: int | None = None,
        real: str = "float32",
    ) -> None:
        self.grid = _grid(size, cells, boundary, obstacle)
        self.batch = batch
        lead = () if batch is None else (batch,)
        given = {"velocity": velocity, "density": density, "force": force, "source": source, "buoyancy": buoyancy,
                 "decay": decay}  # fmt: skip
        facts: dict[str, tuple[str, float | None, tuple[int, ...], str]] = {
            "velocity": ("m/s", None, (*cells, 2), "of the air at the start, in the middle of the cells"),
            "density": ("1", None, cells, "of the smoke at the start"),
            "force": ("m/s²", None, (*cells, 2), "acceleration of the air"),
            "source": ("1/s", None, cells, "smoke that is fed"),
            "buoyancy": ("m/s²", None, (), "acceleration upwards of smoke of density one"),
            "decay": ("1/s", 0.0, (), "rate at which smoke fades"),
        }
        made = {
            name: Quantity(name, given[name], unit, (low, None), (*lead, *shape), about)
            for name, (unit, low, shape, about) in facts.items()
        }
        self._set_up(made, real)
        self._projection = Projection(self.grid)
        self._to_faces, self._to_cells = self.grid.to_faces(), self.grid.to_cells()
        self._model = self._built()

    def rollout(
        self,
        *,
        dt: float,
        steps: int,
        every: int = 1,
        substeps: int = 1,
        control: Mapping[str, Any] | None = None,
        checkpoint: str | int = "auto",
        **other: Any,
    ) -> Frames:
        """Run for `steps` steps of `dt` seconds and look every `every` steps; see `ph.rollout`.

        control: {"force": (steps, *cells, 2), "source": (steps, *cells)}. Any step is stable; one that carries smoke
        through more than a few cells is not accurate.
        Gives `density` (frames, *cells), `velocity` (frames, *cells, 2) in the middle of cells, and `u` and `v`, the
        speeds across the faces, with the copies in front in a batch.
        """
        lowered = {f"smoke.{name}": self._flat(name, self._wide(q)) for name, q in self.quantities.items()}
        start = lowered.pop("smoke.velocity")
        lowered["smoke.speed"] = linear.apply(start, self._started, self._started_adjoint)
        trajectory = simulator.rollout(
            self._model.replace(lowered),
            dt=dt,
            steps=steps,
            every=every,
            substeps=substeps,
            control={f"smoke.{name}": self._varied(name, value, steps) for name, value in (control or {}).items()},
            checkpoint=checkpoint,
            **other,
        )
        found = trajectory["smoke"]
        return Frames(trajectory.times, self._raised(found.density, found.speed))

    # ------------------------------------------------------------------------------------- to the engine, and back
    def _built(self) -> Model:
        draft = Draft()
        add_smoke(draft, "smoke", self.grid)
        layout = finish(draft, in_use(draft.count))
        one = Model(layout, self.real, {name: p.value for name, p in layout.parameters.items()}, frozenset())
        made = one if self.batch is None else one.batched(self.batch)
        PROJECTIONS[made.layout] = self._projection
        return made

    def _wide(self, quantity: Quantity) -> Any:
        """A value in its full shape and in our precision."""
        value = quantity.value
        if is_kernelc(value):
            return self._array(quantity)
        if is_torch(value):
            import torch

            return value.to(getattr(torch, self.real)).expand(quantity.full)
        return np.broadcast_to(value, quantity.full)

    def _flat(self, name: str, value: Any) -> Any:
        """All rows of the engine's table in one axis, behind those of time and copies."""
        rank = len(self.quantities[name].full) - (self.batch is not None)
        if is_kernelc(value) and not rank:
            return value
        lead = tuple(value.shape)[: len(value.shape) - rank]
        return value.reshape(*lead, int(np.prod(value.shape[len(lead) :], dtype=int)))

    def _inner(self, quantity: Quantity) -> tuple[int, ...]:
        return quantity.full or (1,)

    def _varied(self, name: str, value: Any, steps: int) -> Any:
        if name not in ("force", "source"):
            raise ValueError(f"control varies force or source, not {name!r}")
        value = value if is_torch(value) or is_kernelc(value) else np.asarray(value, dtype=self.real)
        full = self.quantities[name].full
        wanted = [(steps, *full), (steps, *full[self.batch is not None :])]
        if tuple(value.shape) not in wanted:
            raise ValueError(f"control of {name!r} has shape {tuple(value.shape)}; expected {wanted[-1]}")
        return self._flat(name, value)

    def _started(self, velocity: NDArray) -> NDArray:
        """Speeds across the faces, without divergence, from velocities in the cells."""
        return self._projection((self._to_faces @ velocity.T).T).astype(self.real)

    def _started_adjoint(self, speed: NDArray) -> NDArray:
        return (self._to_faces.T @ self._projection(speed).T).T.astype(self.real)

    def _raised(self, density: Any, speed: Any) -> dict[str, Any]:
        """Our quantities from the engine's frames."""
        lead, cells = tuple(density.shape)[:-1], self.grid.cells
        (mx, ny), (nx, my) = self.grid.shapes
        velocity = linear.apply(speed, _along_last(self._to_cells), _along_last(self._to_cells.T))
        return {
            "density": density.reshape(*lead, *cells),
            "velocity": velocity.reshape(*lead, *cells, 2),
            "u": linear.apply(speed, *_part(slice(None, mx * ny), len(self.grid.open))).reshape(*lead, mx, ny),
            "v": linear.apply(speed, *_part(slice(mx * ny, None), len(self.grid.open))).reshape(*lead, nx, my),
        }


def _part(some: slice, count: int) -> tuple[linear.Map, linear.Map]:
    """Some of `count` entries along the last axis, and back with zeros."""

    def back(x: NDArray) -> NDArray:
        full = np.zeros((*x.shape[:-1], count), x.dtype)
        full[..., some] = x
        return full

    return lambda x: x[..., some], back


def _along_last(matrix: Any) -> linear.Map:
    """The product with a matrix along the last axis."""

    def product(x: NDArray) -> NDArray:
        return (matrix @ x.reshape(-1, x.shape[-1]).T).T.reshape(*x.shape[:-1], -1).astype(x.dtype)

    return product


def _grid(
    size: tuple[float, float], cells: tuple[int, int], boundary: str | tuple[str, str], obstacle: Obstacle
) -> Staggered:
    if len(cells) != 2 or any(not isinstance(n, (int, np.integer)) or n < 2 for n in cells):
        raise ValueError(f"cells are two whole numbers from 2 on, along x and y, not {cells!r}")
    if len(size) != 2 or not all(np.isfinite(length) and length > 0 for length in size):
        raise ValueError(f"size is two lengths (m) along x and y, not {size!r}")
    words = (boundary, boundary) if isinstance(boundary, str) else tuple(boundary)
    if len(words) != 2 or not set(words) <= {"closed", "periodic"}:
        raise ValueError(f'boundary is "closed" or "periodic", or one of them for x and one for y, not {boundary!r}')
    h = float(size[0]) / cells[0], float(size[1]) / cells[1]
    if callable(obstacle):
        x, y = np.meshgrid(*((np.arange(n) + 0.5) * side for n, side in zip(cells, h)), indexing="ij")
        obstacle = obstacle(x, y)
    solid = np.zeros(cells, dtype=bool) if obstacle is None else np.array(obstacle)
    if solid.shape != tuple(cells) or solid.dtype != bool:
        raise ValueError(f"obstacle is a mask of shape {tuple(cells)}, not {solid.dtype} in shape {solid.shape}")
    if solid.all():
        raise ValueError("obstacle fills all cells: there is no air")
    return Staggered((int(cells[0]), int(cells[1])), h, (words[0] == "periodic", words[1] == "periodic"), solid)
