"""PyBullet with REINFORCE: gradients estimated by sampling, through an engine that has none. The paper's H.1.

The body, its start and its push are those of the case, and so are camera and renderer: with the right mass the flight
is the same. PyBullet rolls out at 240 Hz; a reward is minus the squared difference of a frame, normalised over the
samples and decayed. Contact is PyBullet's own, of the convex hull, with the case's stiffness, damping and friction.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim.sysid.experiments.answers import Answer, Missing, answer

SAMPLES, NOISE, DECAY = 5, 0.05, 0.925
"""The paper's Table 5 (its 125 steps are those of the sizes). The noise is that of the mass, as a part of it."""
RATE = 0.1
"""Of Adam on the logarithm of the mass: the paper does not say its rate."""
HERTZ = 240


@dataclass(frozen=True)
class Reinforced:
    """The item of one case."""

    arm: str
    case: Any
    steps: int

    def run(self) -> Answer | Missing:
        try:
            import pybullet
        except ImportError:
            return Missing(self.arm, self.case.index, 'not run: pip install "nablasim-sysid[bullet]"')
        began = time.perf_counter()
        with Engine(pybullet, self.case) as engine:
            (_, bounds), *_ = self.case.rules.bounds
            density = reinforce(engine, bounds, self.case.index, self.steps)
        return answer(self.arm, self.case, {"body.density": density}, time.perf_counter() - began)


def reinforce(engine: Engine, bounds: tuple[float, float], seed: int, steps: int) -> float:
    """The density that REINFORCE ends at, from a blind guess in the bounds."""
    import torch

    low, high = bounds
    rng = np.random.default_rng([seed, 0])
    mean = torch.tensor(rng.uniform(np.log(low), np.log(high)), dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([mean], lr=RATE)
    decay = 1.0
    for _ in range(steps):
        drawn = mean.detach() + NOISE * torch.as_tensor(rng.normal(size=SAMPLES))
        rewards = -np.stack([engine.misfit(float(d)) for d in drawn.exp()])
        normal = torch.as_tensor(normalised(rewards)).mean(dim=1)
        loss = (surprise(drawn, mean) * normal * decay).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        decay *= DECAY
    return float(np.clip(np.exp(mean.item()), low, high))


def normalised(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((rewards - rewards.mean()) / (rewards.std() + 1e-12))


def surprise(drawn: Any, mean: Any) -> Any:
    """Minus the logarithm of the likelihood of a drawn logarithm of the density, up to a constant."""
    return 0.5 * ((drawn - mean) / NOISE) ** 2


class Engine:
    """A case in PyBullet: `drawn` (how it starts), `mesh`, `film` and `silhouette` of it are used. The body's frame is
    that of its principal axes."""

    def __init__(self, bullet: Any, case: Any):
        from nablasim import physics as ph

        self.bullet, self.case = bullet, case
        drawn = case.drawn
        mesh = ph.TriMesh(case.mesh.vertices * drawn["scale"], case.mesh.faces)
        solid = ph.solid_mass_properties(mesh, 1.0)
        self.inertia, axes = np.linalg.eigh(np.asarray(solid.inertia, np.float64))
        axes = axes * np.sign(np.linalg.det(axes))
        self.volume, self.com = float(solid.mass), np.asarray(solid.com, np.float64)
        self.corners = (mesh.vertices - self.com) @ axes
        world = _matrix(drawn["rot"])
        self.turn, self.centre = world @ axes, drawn["pos"] + world @ self.com
        self.vel = drawn["vel"] + np.cross(drawn["omega"], world @ self.com)
        self.faces, self.target = case.mesh.faces, case.film.frames

    def __enter__(self) -> Engine:
        b = self.bullet
        self.client = b.connect(b.DIRECT)
        b.setGravity(0, -9.81, 0, physicsClientId=self.client)
        b.setTimeStep(1 / HERTZ, physicsClientId=self.client)
        if not self.case.drawn["flies"]:
            plane = b.createCollisionShape(b.GEOM_PLANE, planeNormal=(0, 1, 0), physicsClientId=self.client)
            self._touching(b.createMultiBody(0, plane, physicsClientId=self.client))
        shape = b.createCollisionShape(b.GEOM_MESH, vertices=self.corners.tolist(), physicsClientId=self.client)
        self.body = b.createMultiBody(1.0, shape, physicsClientId=self.client)
        self._touching(self.body)
        return self

    def __exit__(self, *_: object) -> None:
        self.bullet.disconnect(self.client)

    def _touching(self, body: int) -> None:
        ground = {n: v for n, v in self.case.drawn["truth"].items() if n.startswith("ground.")}
        if ground:
            self.bullet.changeDynamics(
                body, -1, contactStiffness=ground["ground.ke"], contactDamping=ground["ground.kd"],
                lateralFriction=np.sqrt(ground["ground.mu"]), linearDamping=0, angularDamping=0,
                physicsClientId=self.client,
            )  # fmt: skip

    def misfit(self, density: float) -> NDArray[np.float64]:
        """The squared difference of every frame."""
        import torch

        corners = torch.as_tensor(self.rollout(density)).float()
        pictures = self.case.silhouette(corners, self.faces).numpy()
        return ((pictures - self.target) ** 2).sum(axis=(1, 2)).astype(np.float64)

    def rollout(self, density: float) -> NDArray[np.float64]:
        """Corners of the surface in every frame, (frames, n, 3)."""
        b, to = self.bullet, {"physicsClientId": self.client}
        drawn, mass = self.case.drawn, density * self.volume
        inertia = density * self.inertia
        b.changeDynamics(self.body, -1, mass=mass, localInertiaDiagonal=inertia.tolist(), linearDamping=0,
                         angularDamping=0, **to)  # fmt: skip
        b.resetBasePositionAndOrientation(self.body, self.centre, _quaternion(self.turn), **to)
        # A push at a point of the body, at once.
        inverse = self.turn @ np.diag(1 / inertia) @ self.turn.T
        arm = _matrix(drawn["rot"]) @ (drawn["at"] - self.com)
        vel = self.vel + drawn["push"] / mass
        omega = drawn["omega"] + inverse @ np.cross(arm, drawn["push"])
        b.resetBaseVelocity(self.body, vel.tolist(), omega.tolist(), **to)
        made, every = [], HERTZ // 30
        for frame in range(len(self.target)):
            if frame:
                for _ in range(every):
                    b.stepSimulation(**to)
            x, q = b.getBasePositionAndOrientation(self.body, **to)
            made.append(self.corners @ _matrix(np.array(q)).T + np.array(x))
        return np.stack(made)


def _matrix(q: Any) -> NDArray[np.float64]:
    """The rotation of a quaternion (x, y, z, w)."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_quat(np.asarray(q)).as_matrix())


def _quaternion(rotation: NDArray[np.float64]) -> list[float]:
    from scipy.spatial.transform import Rotation

    return [float(v) for v in Rotation.from_matrix(rotation).as_quat()]
