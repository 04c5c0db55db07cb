"""The simple and the double pendulum as ordinary differential equations of their own, with a method of order eight.

    pendulum = ph.Pendulum(length=1.0, mass=0.5, angle=2.0, damping=0.01)
    frames = pendulum.rollout(dt=1/60, steps=600)
    frames.angle, frames.rate, frames.x, frames.times

Every quantity can be a torch tensor that requires a gradient. With a leading axis of n on any of them there are n
pendula, which run at the same time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.checks import check_counts
from nablasim.physics.model import Frames, Quantity, Standalone, plain
from nablasim.physics.standalone.pendula_kernels import DoublePendula, Pendula, double_rollout, simple_rollout

# The smallest length and mass: below, the equations of motion divide by zero.
LEAST = 1e-9


class _Pendula(Standalone):
    """What both kinds share; `links` is how many masses hang on each other, None for a single number."""

    element: tuple[int, ...]
    batch: int | None

    def __init__(
        self,
        length: Any = 1.0,
        mass: Any = 1.0,
        angle: Any = 0.0,
        rate: Any = 0.0,
        *,
        gravity: Any = 9.81,
        damping: Any = 0.0,
        real: str = "float64",
    ) -> None:
        given = {"length": length, "mass": mass, "angle": angle, "rate": rate, "gravity": gravity, "damping": damping}
        facts: dict[str, tuple[str, tuple[float | None, float | None], str]] = {
            "length": ("m", (LEAST, None), "of each rod"),
            "mass": ("kg", (LEAST, None), "at the end of each rod"),
            "angle": ("rad", (None, None), "at the start, from the hanging position"),
            "rate": ("rad/s", (None, None), "at the start"),
            "gravity": ("m/s²", (None, None), "downwards"),
            "damping": ("N m s/rad", (0.0, None), "of each joint"),
        }
        self.batch = self._count(given)
        lead = () if self.batch is None else (self.batch,)
        made = {}
        for name, (unit, bounds, about) in facts.items():
            full = lead if name == "gravity" else (*lead, *self.element)
            made[name] = Quantity(name, given[name], unit, bounds, full, about)
        self._set_up(made, real)

    def rollout(
        self, *, dt: float, steps: int, every: int = 1, substeps: int = 1, checkpoint: Any = "auto", **other: Any
    ) -> Frames:
        """Run for `steps` steps of `dt` seconds and look every `every` steps, from the start on.

        The error of a step is of order dt^9; `substeps` makes steps shorter. Gives `angle`, `rate`, and `x`, where the
        masses are in the plane z = 0, hung at the origin. All that the gradient needs is one state per step, which is
        kept: `checkpoint` is there for other models.
        """
        if other:
            raise TypeError(f"a pendulum has no {', '.join(other)}")
        check_counts(dt, steps, every, substeps)
        frames, n = steps // every + 1, self.batch or 1
        real = getattr(kc, self.real)
        vector = float if not self.element else kc.float2
        kernel, kind = (double_rollout, DoublePendula) if self.element else (simple_rollout, Pendula)

        def work(arrays: dict[str, Any]) -> dict[str, Any]:
            found = {
                "angle": kc.zeros((n, frames), dtype=vector, real=real),
                "rate": kc.zeros((n, frames), dtype=vector, real=real),
                "x": kc.zeros((n, frames, *self.element), dtype=kc.float3, real=real),
            }
            kc.launch(
                kernel,
                dim=n,
                inputs=[kind(**arrays), dt / substeps, every * substeps],
                outputs=list(found.values()),
            )
            return found

        found = self._run(work)
        times = np.arange(frames, dtype=np.float64) * (dt * every)
        return Frames(times, found if self.batch is not None else {name: a[0] for name, a in found.items()})

    def _inner(self, quantity: Quantity) -> tuple[int, ...]:
        return quantity.full if self.batch is not None else (1, *quantity.full)

    def _count(self, given: dict[str, Any]) -> int | None:
        """How many pendula there are: what the leading axes say."""
        found = {}
        for name, value in given.items():
            shape, element = plain(value).shape, () if name == "gravity" else self.element
            if len(shape) > len(element):
                found[name] = shape[0]
        counts = set(found.values())
        if len(counts) > 1:
            said = ", ".join(f"{name} for {count}" for name, count in found.items())
            raise ValueError(f"how many pendula are there? {said}")
        return counts.pop() if counts else None


class Pendulum(_Pendula):
    """A point mass on a massless rod: m l² θ'' = -m g l sin θ - c θ'. Angles are from the hanging position."""

    element = ()

    def energy(self, angle: ArrayLike, rate: ArrayLike) -> NDArray[np.float64]:
        """Kinetic and potential energy (J), zero in rest at the bottom; for a single pendulum."""
        l, m, g = (float(plain(self[name])) for name in ("length", "mass", "gravity"))
        return 0.5 * m * l**2 * plain(rate) ** 2 + m * g * l * (1 - np.cos(plain(angle)))


class DoublePendulum(_Pendula):
    """Two point masses on massless rods, one hung on the other. Both angles are from the vertical.

    Quantities with two values, first that of the upper rod; the joints brake the rate of the first, and the difference
    of the two.
    """

    element = (2,)

    def energy(self, angle: ArrayLike, rate: ArrayLike) -> NDArray[np.float64]:
        """Kinetic and potential energy (J), zero in rest at the bottom; for a single pendulum."""
        (l1, l2), (m1, m2) = (np.broadcast_to(plain(self[name]), 2) for name in ("length", "mass"))
        g = float(plain(self["gravity"]))
        (a, b), (u, w) = np.moveaxis(plain(angle), -1, 0), np.moveaxis(plain(rate), -1, 0)
        upper, lower = l1 * u, l2 * w
        kinetic = 0.5 * m1 * upper**2 + 0.5 * m2 * (upper**2 + lower**2 + 2 * upper * lower * np.cos(a - b))
        return kinetic + (m1 + m2) * g * l1 * (1 - np.cos(a)) + m2 * g * l2 * (1 - np.cos(b))
