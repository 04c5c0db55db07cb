"""Kernels of external forces, impulses and torques on bodies. A thread is a load."""

import kernelc as kc


@kc.kernel
def body_load_forces(
    rot: kc.Array[kc.quat],
    com: kc.Array[kc.float3],
    body: kc.Array[int],
    value: kc.Array[kc.float3],
    at: kc.Array[kc.float3],
    central: kc.Array[int],
    turns: kc.Array[int],
    start: kc.Array[float],
    stop: kc.Array[float],
    impulse: kc.Array[int],
    first: kc.Array[int],
    k: int,
    dt: float,
    f: kc.Array[kc.float3],
    torque: kc.Array[kc.float3],
):
    """Add a force while it acts, or an impulse in the step in which its time lies.

    It acts at the point `at` of the body's frame, or at the centre of mass; what turns is a torque.
    """
    r = kc.tid()
    b = body[r]
    step = float(first[0] + k)
    now = value[r] / dt if impulse[r] != 0 else value[r]
    acts = start[r] <= (step + 0.5) * dt and (step + 0.5) * dt < stop[r]
    if impulse[r] != 0:
        acts = kc.floor(start[r] / dt + 0.5) == step
    if acts:
        if turns[r] != 0:
            kc.atomic_add(torque, b, now)
        else:
            kc.atomic_add(f, b, now)
            if central[r] == 0:
                kc.atomic_add(torque, b, kc.cross(kc.quat_rotate(kc.normalize(rot[b]), at[r] - com[b]), now))
