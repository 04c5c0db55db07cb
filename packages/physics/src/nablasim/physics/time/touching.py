"""Where things touch in a state, and how hard: for those who look. Rollouts know nothing of this."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.laws import PRESS, FaceHits, GridPairs, Hits, MeshPairs, ShapePairs
from nablasim.physics.laws import bodies as b
from nablasim.physics.laws import body_planes as planes
from nablasim.physics.laws import particles as p
from nablasim.physics.model import Model, Real, State, Step
from nablasim.physics.time.programs import looking

BETWEEN_BODIES = (ShapePairs, MeshPairs, GridPairs, Hits, FaceHits)
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
    """What touches in a state of a single scene.

    Particles have the force of all planes and bodies on them. Points of bodies on planes have the pressure alone.
    Bodies that touch other things have the sum of it, at the point of their surface that it acts through. Contact
    without springs, `add_ground(hard=True)`, has the force of a step of length dt (s) that would begin here. Links of
    robots, and what touches itself, are left out.
    """
    program = looking(model)

    def see(step: Step) -> list[tuple[Real, Real]]:
        found: list[tuple[Real, Real]] = []
        for system in program.systems:
            system.place(step)
        for system in program.systems:
            if not isinstance(system, BETWEEN_BODIES):
                system.forces(step)
                continue
            before = [step.numpy(c).copy() for c in (b.F, b.TORQUE)]
            system.forces(step)
            found.append(_through(step, *(step.numpy(c) - old for c, old in zip((b.F, b.TORQUE), before))))
        sums = {c.name for c in program.sum_columns}
        if PRESS.name in sums:
            found.append(_pressed(step))
        if p.CONTACT_F.name in sums:
            found.append((step.numpy(p.X), step.numpy(p.CONTACT_F)))
        return found

    with program.lock:
        program.load(None, model.columns, dt)
        found = program.look(state.columns, see)
    points = np.concatenate([np.zeros((0, 3)), *(at for at, _ in found)])
    forces = np.concatenate([np.zeros((0, 3)), *(force for _, force in found)])
    size = np.linalg.norm(forces, axis=1)
    felt = size > LITTLE * size.max(initial=0.0)
    return Contacts(points[felt], forces[felt])


def _pressed(step: Step) -> tuple[Real, Real]:
    """Points of bodies on planes."""
    press, body = step.numpy(PRESS), step.numpy(planes.BODY)
    return _centres(step)[body] + press[:, :3], step.numpy(planes.NORMAL) * press[:, 3:]


def _through(step: Step, force: Real, torque: Real) -> tuple[Real, Real]:
    """Where forces on bodies with these torques about their centres of mass come in.

    Along its line a force may be moved: it is where the line comes to the outermost of the body, against the force.
    """
    size = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-300)
    along, owner = force / size, step.numpy(b.OF_BODY)
    # The torque about the line itself is none that a force could have.
    arm = np.cross(along, torque / size)
    away = _turn(step.numpy(b.ROT)[owner], step.numpy(b.LOCAL) - step.numpy(b.COM)[owner])
    depth = np.zeros(len(force))
    np.minimum.at(depth, owner, np.einsum("ij,ij->i", away, along[owner]) - step.numpy(b.BALL))
    return _centres(step) + arm + depth[:, None] * along, force


def _centres(step: Step) -> Real:
    """Centres of mass of all bodies in the world."""
    q = step.numpy(b.ROT)
    return np.asarray(step.numpy(b.X) + _turn(q, step.numpy(b.COM)))


def _turn(q: Real, v: Real) -> Real:
    """Rodrigues, by quaternions (x, y, z, w)."""
    t = 2 * np.cross(q[:, :3], v)
    return np.asarray(v + q[:, 3:] * t + np.cross(q[:, :3], t))
