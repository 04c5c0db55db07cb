"""Free rigid bodies in an implicit step: their velocities at its end are solved for like those of particles.

A body has two more rows of the unknowns, the velocity of its centre of mass and its angular velocity, the latter times
a length of the body: all unknowns are then speeds (m/s), and all residuals momenta.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.laws import bodies, bodies_kernels, lacking_momenta, place_bodies
from nablasim.physics.model import Array, Arrays, Step

Floats = NDArray[np.float64]
STATE = bodies.STATE
PUSHES = (bodies.F, bodies.TORQUE, bodies.CONTACT_F, bodies.CONTACT_TORQUE)


def any_free(step: Step) -> bool:
    """Whether forces move a body of the scene."""
    return bool(step.rows("bodies")) and bool((step.numpy(bodies.MOTION) == bodies_kernels.FREE).any())


class MovingBodies:
    """All bodies of a scene at the end of a step. What forces do not move is placed there as well."""

    def __init__(self, step: Step, arrays: Arrays):
        self._arrays, self.count = arrays, step.rows("bodies")
        self.start = {c.name: self._zeros(c.element, requires_grad=True) for c in STATE}
        self.state = {c.name: self._zeros(c.element) for c in STATE}
        for c in STATE:  # Recording runs the step once: from a state in which nothing divides by zero.
            self.start[c.name].numpy()[...] = step.numpy(c)
        self.speed, self.spin = (self._zeros(kc.float3, requires_grad=True) for _ in range(2))
        self.lacks = (self._zeros(kc.float3), self._zeros(kc.float3))
        """Of momentum and of angular momentum."""
        self.span = kc.array(step.dt.numpy().astype(np.float64))
        """The length of the step that is solved: Newton's method may begin with shorter ones."""
        self.free: NDArray[np.bool_] = step.numpy(bodies.MOTION) == bodies_kernels.FREE

    def _zeros(self, element: Any, requires_grad: bool = False) -> Array:
        return kc.zeros(self.count, dtype=element, real=kc.float64, requires_grad=requires_grad)

    # -- on the tape of the endpoint
    def place(self) -> None:
        """Launch what moves the bodies, before the forces are looked at."""
        after = bodies_kernels.State(*(self.state[c.name] for c in STATE))
        kc.launch(place_bodies, self.count, [self._at_start(), self.speed, self.spin, self.span], [after])

    def weigh(self, sums: Mapping[str, Array]) -> None:
        """Launch what the residuals are, after the forces."""
        pushes = [sums[c.name] for c in PUSHES if c.name in sums]
        forces, rub = (bodies_kernels.Forces(*two) if two else None for two in (pushes[:2], pushes[2:]))
        given = [self._at_start(), self.state[bodies.ROT.name], self.speed, self.spin, forces, rub, self.span]
        kc.launch(lacking_momenta, self.count, given, self.lacks)

    def _at_start(self) -> Any:
        return bodies.moving(self._arrays, **{name.partition(".")[2]: a for name, a in self.start.items()})

    # -- between steps
    def take(self, step: Step) -> None:
        """The start of a step; the parameters are in the arrays already."""
        for c in STATE:
            self.start[c.name].numpy()[...] = step.numpy(c)
        self.mass = self._arrays.numpy(bodies.MASS)
        moments = np.trace(self._arrays.numpy(bodies.INERTIA), axis1=1, axis2=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.sqrt(0.5 * moments / self.mass)
        self.reach: Floats = np.where(np.isfinite(reach) & (reach > 0), reach, 1.0)[:, None]
        """By which the angular velocities are multiplied (m): the radius of gyration."""

    def velocities(self, state: Mapping[str, Array]) -> Floats:
        """The unknowns of a state, (2 bodies, 3)."""
        rot, v, omega = (state[c.name].numpy().astype(np.float64) for c in (bodies.ROT, bodies.V, bodies.OMEGA))
        q, w = np.split(rot / np.linalg.norm(rot, axis=1, keepdims=True), [3], axis=1)
        com = self._arrays.numpy(bodies.COM)
        arm = com + 2 * np.cross(q, np.cross(q, com) + w * com)
        return np.concatenate([v + np.cross(omega, arm), omega * self.reach])

    def move(self, velocities: Floats, h: float) -> None:
        """Set the unknowns."""
        speed, turn = np.split(velocities, 2)
        self.speed.numpy()[...], self.spin.numpy()[...] = speed, turn / self.reach
        self.span.numpy()[0] = h

    def residual(self) -> Floats:
        """What the momenta lack, (2 bodies, 3)."""
        of_speed, of_spin = (a.numpy() for a in self.lacks)
        return np.concatenate([of_speed, of_spin / self.reach])

    def pushes(self, sums: Mapping[str, Array]) -> Floats:
        """The forces that were looked at last, (2 bodies, 3)."""
        pushed = [sums[c.name].numpy() for c in PUSHES if c.name in sums]
        return np.concatenate([sum(pushed[::2]), sum(pushed[1::2]) / self.reach])

    def seeds(self, way: Floats) -> dict[Array, Floats]:
        """What goes back through the residuals for λ = `way`."""
        of_speed, of_spin = np.split(way, 2)
        return {self.lacks[0]: -of_speed, self.lacks[1]: -of_spin / self.reach}

    def directions(self, way: Floats) -> dict[Array, Floats]:
        """What k directions of the unknowns, (k, 2 bodies, 3), are to the tape."""
        speed, turn = np.split(way, 2, axis=1)
        return {self.speed: speed, self.spin: turn / self.reach}

    def lacking(self, moved: Mapping[Array, Floats], k: int) -> Floats:
        """How the residuals move where `lacks` do, (k, 2 bodies, 3)."""
        of_speed, of_spin = (moved.get(a, np.zeros((k, self.count, 3))) for a in self.lacks)
        return np.concatenate([of_speed, of_spin / self.reach], axis=1)

    def pulled(self) -> Floats:
        """What has come back to the unknowns, (2 bodies, 3)."""
        return np.concatenate([self.speed.grad.numpy(), self.spin.grad.numpy() / self.reach])
