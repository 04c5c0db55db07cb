"""Kernels of damped springs between particles. A thread is a spring."""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.deformable.particles_kernels import Bounds, Particles, push_apart


@kc.struct
class Springs:
    """Their two ends, rest lengths (m), stiffness (N/m) and damping (N s/m); by which part actuation shortens them."""

    pairs: kc.Array[int, 2]
    rest: kc.Array[float]
    ke: kc.Array[float]
    kd: kc.Array[float]
    actuation: kc.Array[float] | None


@kc.func
def rest_length(springs: Springs, s: int) -> float:
    """The length without force."""
    rest = springs.rest[s]
    if springs.actuation is not None:
        rest *= 1.0 - springs.actuation[s]
    return rest


@kc.kernel
def spring_forces(p: Particles, springs: Springs, f: kc.Array[kc.float3]):
    """Add ke (|d| - rest) + kd d|d|/dt, along d = xj - xi, to both ends of spring s, opposite and equal.

    Damping acts on the rate of the length only, so that a spring that moves or turns as a whole is not braked.
    """
    s = kc.tid()
    i, j = springs.pairs[s, 0], springs.pairs[s, 1]
    d = p.x[j] - p.x[i]
    along = kc.normalize(d)
    stretch, rate = kc.length(d) - rest_length(springs, s), kc.dot(p.v[j] - p.v[i], along)
    push_apart(f, i, j, along * (springs.ke[s] * stretch + springs.kd[s] * rate))


@kc.kernel
def spring_stiffness(springs: Springs, bounds: Bounds):
    """Gershgorin: the row of a particle has each spring once on the diagonal and once beside it."""
    s = kc.tid()
    for end in range(2):
        kc.atomic_add(bounds.k, springs.pairs[s, end], 2.0 * springs.ke[s])
        kc.atomic_add(bounds.c, springs.pairs[s, end], 2.0 * springs.kd[s])


@kc.kernel
def spring_energies(x: kc.Array[kc.float3], springs: Springs, e: kc.Array[float]):
    """ke (|d| - rest)² / 2."""
    s = kc.tid()
    stretch = kc.length(x[springs.pairs[s, 1]] - x[springs.pairs[s, 0]]) - rest_length(springs, s)
    e[s] = 0.5 * springs.ke[s] * stretch * stretch
