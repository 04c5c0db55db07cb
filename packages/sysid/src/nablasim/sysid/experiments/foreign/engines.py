"""MuJoCo and PyBullet move the bodies of a world; what they make of friction and bounces is measured from their states.

Both are extras that nobody needs who does not ask for `reproduce foreign`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nablasim.sysid.experiments.foreign.worlds import Body, Vector, World

ENGINES = ("mujoco", "pybullet")
FINE = {"mujoco": 4000, "pybullet": 2000}
"""Steps per second."""
STIFF = 3e5
"""1/s²: of MuJoCo's contact, which then lasts 6 ms."""


@dataclass(frozen=True, eq=False)
class States:
    """Of all bodies at all steps: `times` (n), `places` (n, bodies, 3), `turns` (n, bodies, 4) w x y z, `speeds`."""

    times: Vector
    places: Vector
    turns: Vector
    speeds: Vector

    def at(self, t: float) -> tuple[Vector, Vector]:
        k = int(np.clip(np.searchsorted(self.times, t), 0, len(self.times) - 1))
        return self.places[k], self.turns[k]


def simulate(engine: str, world: World) -> States:
    """Move them."""
    step = {"mujoco": _mujoco, "pybullet": _pybullet}[engine]
    rows = list(step(world))
    times = np.arange(len(rows)) / FINE[engine]
    places, turns, speeds = (np.array([r[c] for r in rows]) for c in range(3))
    return States(times, places, turns, speeds)


def _turn(angle: float) -> Vector:
    """w x y z, around y."""
    return np.array([np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0])


# -- MuJoCo
def mujoco_scene(world: World) -> str:
    s = world.string
    damping = -np.log(max(world.bounce, 1e-3))
    ratio = damping / np.hypot(np.pi, damping)
    solref = f"{-STIFF:g} {-2 * ratio * STIFF**0.5:g}" if world.bounce else "0.002 1"
    more = f'friction="{world.friction:g} 0 0" condim="3" solref="{solref}" solimp="0.99 0.99 0.001"'
    slope = " ".join(f"{v:.9g}" for v in _turn(world.slope))
    parts = [f'<geom type="plane" size="9 9 .1" quat="{slope}" {more}/>'] if world.ground else []
    for n, b in enumerate(world.bodies):
        shape = f'type="{"sphere" if b.ball else "box"}" size="{_text(b.size[:1] if b.ball else b.size)}"'
        weight = f'<inertial pos="0 0 0" mass="{b.mass:.9g}" diaginertia="{_text(b.inertia)}"/>'
        geom = f'<geom {shape} mass="0" fluidshape="{"ellipsoid" if world.air else "none"}" {more}/>'
        turned = " ".join(f"{v:.9g}" for v in _turn(b.turned))
        if s is None:
            parts.append(f'<body name="b{n}" pos="{_text(b.place)}" quat="{turned}"><freejoint/>{weight}{geom}</body>')
        else:
            rod = f'<geom type="capsule" size=".002" fromto="0 0 0 0 0 {-s.length}" mass="{s.rod * b.mass}"/>'
            bob = f'<body name="b{n}" pos="0 0 {-s.length}">{weight}{geom}</body>'
            joint = '<joint type="hinge" axis="0 1 0"/>'
            parts.append(f'<body pos="{_text(s.pivot)}">{joint}{rod if s.rod else ""}{bob}</body>')
    return (
        f'<mujoco><option timestep="{1 / FINE["mujoco"]}" gravity="0 0 {-world.gravity}" density="{world.air}" '
        f'cone="elliptic" impratio="10" integrator="implicitfast"/><compiler boundmass="1e-9" boundinertia="1e-12"/>'
        f"<worldbody>{''.join(parts)}</worldbody></mujoco>"
    )


def _text(values: Any) -> str:
    return " ".join(f"{float(v):.9g}" for v in values)


def mujoco_module() -> Any:
    """MuJoCo. It chooses how it draws when it is imported: without a window system, if nothing else is said."""
    os.environ.setdefault("MUJOCO_GL", "egl")
    import mujoco

    return mujoco


def _mujoco(world: World) -> Iterator[tuple[Vector, Vector, Vector]]:
    mujoco = mujoco_module()
    model = mujoco.MjModel.from_xml_string(mujoco_scene(world))
    data = mujoco.MjData(model)
    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, f"b{n}") for n in range(len(world.bodies))]
    if world.string is not None:
        # A positive turn around y moves what hangs towards smaller x.
        data.qpos[0] = -world.string.angle
    else:
        for n, b in enumerate(world.bodies):
            data.qvel[6 * n : 6 * n + 3] = b.velocity
            data.qvel[6 * n + 3 : 6 * n + 6] = b.spin
    for _ in range(round(world.seconds * FINE["mujoco"]) + 1):
        mujoco.mj_forward(model, data)
        speeds = np.zeros((len(ids), 3)) if world.string is not None else data.qvel.reshape(-1, 6)[:, :3].copy()
        yield data.xpos[ids].copy(), data.xquat[ids].copy(), speeds
        mujoco.mj_step(model, data)


# -- PyBullet
def _pybullet(world: World) -> Iterator[tuple[Vector, Vector, Vector]]:
    import pybullet as p

    client = p.connect(p.DIRECT)
    try:
        p.setGravity(0, 0, -world.gravity, physicsClientId=client)
        p.setPhysicsEngineParameter(fixedTimeStep=1 / FINE["pybullet"], restitutionVelocityThreshold=0.05,
                                    physicsClientId=client)  # fmt: skip
        if world.ground:
            normal = [np.sin(world.slope), 0, np.cos(world.slope)]
            plane = p.createCollisionShape(p.GEOM_PLANE, planeNormal=normal, physicsClientId=client)
            ground = p.createMultiBody(0, plane, physicsClientId=client)
            p.changeDynamics(ground, -1, lateralFriction=1.0, restitution=1.0, physicsClientId=client)
        made = [_add(p, client, world, b) for b in world.bodies]
        for _ in range(round(world.seconds * FINE["pybullet"]) + 1):
            yield tuple(np.array(v) for v in zip(*(_state(p, client, body, link) for body, link in made)))  # type: ignore[misc]
            p.stepSimulation(physicsClientId=client)
    finally:
        p.disconnect(client)


def _add(p: Any, client: int, world: World, b: Body) -> tuple[int, int]:
    where = {"physicsClientId": client}
    if b.ball:
        shape = p.createCollisionShape(p.GEOM_SPHERE, radius=b.size[0], **where)
    else:
        shape = p.createCollisionShape(p.GEOM_BOX, halfExtents=b.size, **where)
    s = world.string
    if s is None:
        w, x, y, z = _turn(b.turned)
        body, link = p.createMultiBody(b.mass, shape, -1, b.place, [x, y, z, w], **where), -1
        p.resetBaseVelocity(body, b.velocity, b.spin, **where)
    else:
        # The rod's share of the mass: half-way, as a point does not weigh like a rod, with the inertia of one.
        body = p.createMultiBody(0, -1, -1, s.pivot, linkMasses=[b.mass], linkCollisionShapeIndices=[shape],
                                 linkVisualShapeIndices=[-1], linkPositions=[[0, 0, 0]],
                                 linkOrientations=[[0, 0, 0, 1]],
                                 linkInertialFramePositions=[[0, 0, -s.length]],
                                 linkInertialFrameOrientations=[[0, 0, 0, 1]], linkParentIndices=[0],
                                 linkJointTypes=[p.JOINT_REVOLUTE], linkJointAxis=[[0, 1, 0]], **where)  # fmt: skip
        link = 0
        p.setJointMotorControl2(body, 0, p.VELOCITY_CONTROL, force=0, **where)
        p.resetJointState(body, 0, -s.angle, **where)
    p.changeDynamics(body, link, lateralFriction=world.friction, restitution=world.bounce, linearDamping=0,
                     angularDamping=0, jointDamping=0, localInertiaDiagonal=b.inertia, **where)  # fmt: skip
    return body, link


def _state(p: Any, client: int, body: int, link: int) -> tuple[Any, Any, Any]:
    if link < 0:
        place, (x, y, z, w) = p.getBasePositionAndOrientation(body, physicsClientId=client)
        return place, (w, x, y, z), p.getBaseVelocity(body, physicsClientId=client)[0]
    found = p.getLinkState(body, link, computeForwardKinematics=1, physicsClientId=client)
    (x, y, z, w) = found[1]
    return found[0], (w, x, y, z), (0.0, 0.0, 0.0)


# -- what they made of it
def restitution(states: States) -> float:
    """Speed after the first impact over speed before it."""
    up = states.speeds[:, 0, 2]
    hit = int(np.argmax(np.diff(up) > 0.02))
    before = -float(up[: hit + 2].min())
    fine = round(0.03 / (states.times[1] - states.times[0]))
    return float(up[hit : hit + fine].max()) / before


def friction(states: States, world: World) -> float:
    """Of something that slides: its deceleration over the normal one."""
    along = np.array([np.cos(world.slope), 0.0, -np.sin(world.slope)])
    speed = np.abs(states.speeds[:, 0] @ along)
    moving = speed > 0.15 * speed.max()
    moving[: len(moving) // 20] = False
    slower = -float(np.polyfit(states.times[moving], speed[moving], 1)[0])
    return (slower / world.gravity + np.sin(world.slope)) / float(np.cos(world.slope))
