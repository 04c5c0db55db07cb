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
from nablasim.physics.kernels.bodies import FREE
from nablasim.physics.kernels.implicit_bodies import lacking_momenta, place_bodies
from nablasim.physics.program import Array, Arrays, Step
from nablasim.physics.systems.bodies import (
    COM,
    CONTACT_F,
    CONTACT_TORQUE,
    GRAVITY,
    INERTIA,
    MASS,
    MOTION,
    OMEGA,
    ROT,
    TORQUE,
    F,
    V,
    X,
)

Floats = NDArray[np.float64]
STATE = (X, ROT, V, OMEGA)


def any_free(step: Step) -> bool:
    """Whether forces move a body of the scene."""
    return bool(step.rows("bodies")) and bool((step.numpy(MOTION) == FREE).any())


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
        self._nothing = self._zeros(kc.float3)
        self.span = kc.array(step.dt.numpy().astype(np.float64))
        """The length of the step that is solved: Newton's method may begin with shorter ones."""
        self.free: NDArray[np.bool_] = step.numpy(MOTION) == FREE

    def _zeros(self, element: Any, requires_grad: bool = False) -> Array:
        return kc.zeros(self.count, dtype=element, real=kc.float64, requires_grad=requires_grad)

    # -- on the tape of the endpoint
    def place(self) -> None:
        """Launch what moves the bodies, before the forces are looked at."""
        a = self._arrays
        given = [*(self.start[c.name] for c in STATE), a[COM], a[MOTION], self.speed, self.spin, self.span]
        kc.launch(place_bodies, self.count, given, [self.state[c.name] for c in STATE])

    def weigh(self, sums: Mapping[str, Array]) -> None:
        """Launch what the residuals are, after the forces."""
        a, before = self._arrays, [self.start[c.name] for c in (ROT, V, OMEGA)]
        made_of = [a[c] for c in (GRAVITY, MASS, COM, INERTIA, MOTION)]
        pushes = [sums.get(c.name, self._nothing) for c in (F, TORQUE, CONTACT_F, CONTACT_TORQUE)]
        given = [*before, *made_of, self.state[ROT.name], self.speed, self.spin, *pushes]
        kc.launch(lacking_momenta, self.count, [*given, self.span], self.lacks)

    # -- between steps
    def take(self, step: Step) -> None:
        """The start of a step; the parameters are in the arrays already."""
        for c in STATE:
            self.start[c.name].numpy()[...] = step.numpy(c)
        self.mass = self._arrays.numpy(MASS)
        moments = np.trace(self._arrays.numpy(INERTIA), axis1=1, axis2=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.sqrt(0.5 * moments / self.mass)
        self.reach: Floats = np.where(np.isfinite(reach) & (reach > 0), reach, 1.0)[:, None]
        """By which the angular velocities are multiplied (m): the radius of gyration."""

    def velocities(self, state: Mapping[str, Array]) -> Floats:
        """The unknowns of a state, (2 bodies, 3)."""
        rot, v, omega = (state[c.name].numpy().astype(np.float64) for c in (ROT, V, OMEGA))
        q, w = np.split(rot / np.linalg.norm(rot, axis=1, keepdims=True), [3], axis=1)
        com = self._arrays.numpy(COM)
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
        f, torque, *rubs = (sums.get(c.name, self._nothing).numpy() for c in (F, TORQUE, CONTACT_F, CONTACT_TORQUE))
        return np.concatenate([f + rubs[0], (torque + rubs[1]) / self.reach])

    def seeds(self, way: Floats) -> dict[Array, Floats]:
        """What goes back through the residuals for λ = `way`."""
        of_speed, of_spin = np.split(way, 2)
        return {self.lacks[0]: -of_speed, self.lacks[1]: -of_spin / self.reach}

    def pulled(self) -> Floats:
        """What has come back to the unknowns, (2 bodies, 3)."""
        return np.concatenate([self.speed.grad.numpy(), self.spin.grad.numpy() / self.reach])
