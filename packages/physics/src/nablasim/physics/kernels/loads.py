"""Kernels of external forces on particles. A thread is a particle that a load acts on."""

import kernelc as kc


@kc.kernel
def load_forces(
    particle: kc.Array[int],
    force: kc.Array[kc.float3],
    share: kc.Array[float],
    start: kc.Array[float],
    stop: kc.Array[float],
    impulse: kc.Array[int],
    first: kc.Array[int],
    k: int,
    dt: float,
    f: kc.Array[kc.float3],
):
    """Add the particle's share of a force while it acts, or of an impulse in the step in which its time lies."""
    r = kc.tid()
    step = float(first[0] + k)
    if impulse[r] != 0:
        if kc.floor(start[r] / dt + 0.5) == step:
            kc.atomic_add(f, particle[r], force[r] * (share[r] / dt))
    elif start[r] <= (step + 0.5) * dt and (step + 0.5) * dt < stop[r]:
        kc.atomic_add(f, particle[r], force[r] * share[r])
