"""Kernels of external forces, impulses and torques on bodies. A thread is a load."""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces


@kc.struct
class Loads:
    """Forces, or impulses, at points of bodies or at their centres of mass; what turns is a torque."""

    body: kc.Array[int]
    value: kc.Array[kc.float3]
    at: kc.Array[kc.float3]
    central: kc.Array[int]
    turns: kc.Array[int]
    start: kc.Array[float]
    stop: kc.Array[float]
    impulse: kc.Array[int]


@kc.kernel
def body_load_forces(bodies: Bodies, loads: Loads, first: kc.Array[int], k: int, dt: float, forces: Forces):
    """Add a force while it acts, or an impulse in the step in which its time lies."""
    r = kc.tid()
    b = loads.body[r]
    step = float(first[0] + k)
    now, start = loads.value[r], loads.start[r]
    acts = start <= (step + 0.5) * dt and (step + 0.5) * dt < loads.stop[r]
    if loads.impulse[r] != 0:
        now = now / dt
        acts = kc.floor(start / dt + 0.5) == step
    if acts and loads.turns[r] != 0:
        kc.atomic_add(forces.torque, b, now)
    elif acts:
        kc.atomic_add(forces.f, b, now)
        if loads.central[r] == 0:
            arm = kc.quat_rotate(kc.normalize(bodies.rot[b]), loads.at[r] - bodies.com[b])
            kc.atomic_add(forces.torque, b, kc.cross(arm, now))
