"""Kernels of external forces on particles. A thread is a particle that a load acts on."""
# mypy: ignore-errors

import kernelc as kc


@kc.struct
class Loads:
    """The particle that each acts on, with its share of a force (N) or an impulse (N s), and when (s)."""

    particle: kc.Array[int]
    force: kc.Array[kc.float3]
    share: kc.Array[float]
    start: kc.Array[float]
    stop: kc.Array[float]
    impulse: kc.Array[int]


@kc.kernel
def load_forces(loads: Loads, first: kc.Array[int], k: int, dt: float, f: kc.Array[kc.float3]):
    """Add the particle's share of a force while it acts, or of an impulse in the step in which its time lies."""
    r = kc.tid()
    step = float(first[0] + k)
    if loads.impulse[r] != 0:
        if kc.floor(loads.start[r] / dt + 0.5) == step:
            kc.atomic_add(f, loads.particle[r], loads.force[r] * (loads.share[r] / dt))
    elif loads.start[r] <= (step + 0.5) * dt and (step + 0.5) * dt < loads.stop[r]:
        kc.atomic_add(f, loads.particle[r], loads.force[r] * loads.share[r])
