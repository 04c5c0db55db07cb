"""`ph.Bounce`: a ball or a box that bounces by impulses, each at its own time, with exact gradients.

    ball = ph.Bounce(size=0.04, velocity=(1, 0, 0), position=(0, 1, 0), restitution=0.8, friction=0.3)
    frames = ball.rollout(dt=1/120, steps=240)
    frames.x, frames.rot, frames.v, frames.omega, frames.times

Compliant contact takes time, and what it gives back depends on its stiffness, its damping and the step; here it is the
restitution. Every quantity can be a torch tensor that requires a gradient.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.checks import check_counts
from nablasim.physics.model import Frames, Quantity, Standalone, plain
from nablasim.physics.standalone.bounces_kernels import Bouncers, bounce_rollout

LEAST = 1e-12
"""The smallest mass and moment of inertia: nothing divides by zero."""


class Bounce(Standalone):
    """A rigid body over a floor: free flight, and at each impact an impulse.

    size: the diameter of a ball, or the three sides of a box (m).
    rounded: the radius of a box's corners (m), part of its size.
    mass (kg); inertia (kg m², along the body's axes): of a solid of even density, unless it is given.
    position, velocity, spin: of the centre of mass at the start, in world axes; rotation: (x, y, z, w).
    restitution: speed after over speed before, of the point that hits, along the normal (Newton's).
    friction: Coulomb's, of impulses; what it can hold does not slip.
    normal: of the floor, which is fixed; floor: its height along the normal (m).
    gravity (m/s²): a vector.

    A leading axis of n on any quantity makes n bodies, which move at the same time.
    """

    batch: int | None

    def __init__(
        self,
        size: Any = 0.1,
        *,
        rounded: float = 0.0,
        mass: Any = 1.0,
        inertia: Any = None,
        position: Any = (0.0, 1.0, 0.0),
        rotation: Any = (0.0, 0.0, 0.0, 1.0),
        velocity: Any = (0.0, 0.0, 0.0),
        spin: Any = (0.0, 0.0, 0.0),
        restitution: Any = 0.5,
        friction: Any = 0.5,
        gravity: Any = (0.0, -9.81, 0.0),
        floor: Any = 0.0,
        normal: tuple[float, float, float] = (0.0, 1.0, 0.0),
        real: str = "float64",
    ) -> None:
        points, radius, moments = _shape(size, rounded)
        up = np.asarray(normal, np.float64)
        if up.shape != (3,) or not np.linalg.norm(up) > 0:
            raise ValueError(f"normal is a direction (x, y, z), not {normal!r}")
        self.up = up / np.linalg.norm(up)
        if inertia is None:
            inertia = plain(mass)[..., None] * moments
        given = {"mass": mass, "inertia": inertia, "position": position, "rotation": rotation, "velocity": velocity,
                 "spin": spin, "restitution": restitution, "friction": friction, "gravity": gravity, "floor": floor,
                 "radius": radius, "points": points}  # fmt: skip
        facts: dict[str, tuple[str, float | None, tuple[int, ...], str]] = {
            "mass": ("kg", LEAST, (), "of the body"),
            "inertia": ("kg m²", LEAST, (3,), "along its axes"),
            "position": ("m", None, (3,), "of the centre of mass at the start"),
            "rotation": ("1", None, (4,), "quaternion at the start"),
            "velocity": ("m/s", None, (3,), "at the start"),
            "spin": ("rad/s", None, (3,), "angular velocity at the start, in world axes"),
            "restitution": ("1", 0.0, (), "speed after over speed before"),
            "friction": ("1", 0.0, (), "Coulomb's"),
            "gravity": ("m/s²", None, (3,), "acceleration"),
            "floor": ("m", None, (), "height of the floor along its normal"),
            "radius": ("m", 0.0, (), "of the balls that touch"),
            "points": ("m", None, points.shape, "their middles, from the centre of mass"),
        }
        self.batch = _count(given, {name: len(full) for name, (_, _, full, _) in facts.items()})
        lead = () if self.batch is None else (self.batch,)
        self._set_up({name: Quantity(name, given[name], unit, (low, None), (*lead, *full), about)
                      for name, (unit, low, full, about) in facts.items()}, real)  # fmt: skip

    def rollout(
        self, *, dt: float, steps: int, every: int = 1, substeps: int = 1, checkpoint: Any = "auto", **other: Any
    ) -> Frames:
        """Run for `steps` steps of `dt` seconds and look every `every` steps, from the start on.

        Steps find impacts: a point must be below the floor at the end of one. Flight and impacts are exact, whatever
        the step, but for the rotation of a body with three different moments (of fourth order), and for what rests,
        which bounces once in each step, too low to be seen. Gives `x`, `rot`, `v` and `omega`.
        """
        if other:
            raise TypeError(f"a bounce has no {', '.join(other)}")
        check_counts(dt, steps, every, substeps)
        frames, n = steps // every + 1, self.batch or 1
        real = getattr(kc, self.real)

        def work(arrays: dict[str, Any]) -> dict[str, Any]:
            kinds = {"x": kc.float3, "rot": kc.quat, "v": kc.float3, "omega": kc.float3}
            found = {name: kc.zeros((n, frames), dtype=kind, real=real) for name, kind in kinds.items()}
            kc.launch(
                bounce_rollout,
                dim=n,
                inputs=[Bouncers(**arrays), kc.float3(*self.up), dt / substeps, every * substeps],
                outputs=list(found.values()),
            )
            return found

        found = self._run(work)
        times = np.arange(frames, dtype=np.float64) * (dt * every)
        return Frames(times, found if self.batch is not None else {name: a[0] for name, a in found.items()})

    def _inner(self, quantity: Quantity) -> tuple[int, ...]:
        return quantity.full if self.batch is not None else (1, *quantity.full)


def _shape(size: Any, rounded: float) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Points and the radius about them, and the moments of inertia of one kilogram."""
    sides = np.asarray(size, np.float64)
    if sides.shape not in ((), (3,)) or not (sides > 0).all():
        raise ValueError(f"size is the diameter of a ball or the three sides of a box, above zero, not {size!r}")
    if sides.shape == ():
        return np.zeros((1, 3)), float(sides) / 2, np.full(3, 0.1 * float(sides) ** 2)
    if not 0 <= rounded <= sides.min() / 2:
        raise ValueError(f"rounded is from 0 to half of the shortest side, {sides.min() / 2:g} m, not {rounded:g}")
    corners = np.array(list(product((-0.5, 0.5), repeat=3))) * (sides - 2 * rounded)
    return corners, float(rounded), (sides @ sides - sides**2) / 12


def _count(given: dict[str, Any], ranks: dict[str, int]) -> int | None:
    """How many bodies there are: what the leading axes say."""
    found = {name: plain(value).shape[0] for name, value in given.items() if plain(value).ndim > ranks[name]}
    counts = set(found.values())
    if len(counts) > 1:
        said = ", ".join(f"{name} for {count}" for name, count in found.items())
        raise ValueError(f"how many bodies are there? {said}")
    return counts.pop() if counts else None
