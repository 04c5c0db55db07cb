"""Where things touch in a state, and how hard, as a drawing shows it. Rollouts know nothing of this."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.model import Model, State
from nablasim.physics.time.contacts import contacts_of

LITTLE = 1e-9
"""The part of the largest force below which there is none."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """Points (k, 3) in m, and the forces (k, 3) in N on what is touched there."""

    points: NDArray[np.float64]
    forces: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.points)


def contacts(model: Model, state: State, dt: float = 1e-3) -> Contacts:
    """What touches in a state of a single scene: the forces on both of two, and those of planes.

    Contact without springs, `add_ground(hard=True)`, has the force of a step of length dt (s) that would begin here.
    What touches itself is left out.
    """
    found = contacts_of(model, state, dt)
    things = model.layout.things
    braced = np.array([name not in things or things[name].kind != "plane" for name in found.b], bool)
    points = np.concatenate([found.point, found.point[braced]])
    forces = np.concatenate([found.force, -found.force[braced]])
    size = np.linalg.norm(forces, axis=1)
    felt = size > LITTLE * size.max(initial=0.0)
    return Contacts(points[felt], forces[felt])
