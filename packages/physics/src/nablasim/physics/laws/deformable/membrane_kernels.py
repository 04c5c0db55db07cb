"""Kernels of neo-Hookean triangles: cloth and shells in their own plane. A thread is a triangle.

Psi = mu/2 (Ic - 2) + lam/2 (J - alpha)² - mu/2 log(Ic + 1) per area at rest, with the two columns F1, F2 of F (3 x 2),
Ic = tr(FᵀF), J = |F1 x F2| the ratio of areas and alpha = 1 + 2 mu / (3 lam), which makes the rest shape free of force.

F = [x1 - x0, x2 - x0] B. In the frame that has its first axis along the first edge at rest, B is an upper triangle:
its entries (B11, B12, B22) are kept as one vector.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.deformable.particles_kernels import Bounds, Particles, bound, push_three, three_of


@kc.struct
class Triangles:
    """Their corners, B and area at rest; constants of the energy; what damps the strain rate."""

    corners: kc.Array[int, 2]
    inverse: kc.Array[kc.float3]
    area: kc.Array[float]
    mu: kc.Array[float]
    lam: kc.Array[float]
    damping: kc.Array[float] | None


@kc.struct
class Weighing:
    """What triangles weigh by: their own density (kg/m²), and the total (kg) of the cloth that each belongs to."""

    density: kc.Array[float]
    total: kc.Array[float]
    cloth: kc.Array[int]


@kc.func
def edges(x: kc.Array[kc.float3], who: kc.int3):
    """From the first corner to the others; differences of their velocities for v."""
    return x[who.y] - x[who.x], x[who.z] - x[who.x]


@kc.func
def deformation(x: kc.Array[kc.float3], who: kc.int3, B: kc.float3):
    """The columns of F; those of its rate for v."""
    d1, d2 = edges(x, who)
    return d1 * B.x, d1 * B.y + d2 * B.z


@kc.func
def membrane_stress(F1: kc.float3, F2: kc.float3, mu: float, lam: float):
    """The columns of P = dPsi/dF = mu (1 - 1 / (Ic + 1)) F + lam (J - alpha) dJ/dF."""
    n = kc.cross(F1, F2)
    J = kc.length(n)
    out = kc.normalize(n)  # Zero for a triangle without area: any side is as good as the other.
    pull = mu * (1.0 - 1.0 / (kc.length_sq(F1) + kc.length_sq(F2) + 1.0))
    swell = lam * (J - 1.0) - mu * (2.0 / 3.0)  # lam (J - alpha), also for lam = 0
    return F1 * pull + kc.cross(F2, out) * swell, F2 * pull + kc.cross(out, F1) * swell


@kc.func
def membrane_damping(F1: kc.float3, F2: kc.float3, R1: kc.float3, R2: kc.float3, damping: float):
    """The columns of F 2 c dE/dt, with the rate of Green's strain E = (FᵀF - 1) / 2: zero for any rigid motion."""
    e11, e22 = 2.0 * kc.dot(F1, R1), 2.0 * kc.dot(F2, R2)
    e12 = kc.dot(F1, R2) + kc.dot(F2, R1)
    return (F1 * e11 + F2 * e12) * damping, (F1 * e12 + F2 * e22) * damping


@kc.kernel
def rest_triangles(
    points: kc.Array[kc.float3], corners: kc.Array[int, 2], inverse: kc.Array[kc.float3], area: kc.Array[float]
):
    """B and the area at rest."""
    t = kc.tid()
    e1, e2 = edges(points, three_of(corners, t))
    along = kc.length(e1)
    twice = kc.length(kc.cross(e1, e2))
    inverse[t] = kc.float3(1.0 / along, -kc.dot(e1, e2) / (along * twice), along / twice)
    area[t] = 0.5 * twice


@kc.kernel
def cloth_areas(area: kc.Array[float], weighing: Weighing, whole: kc.Array[float]):
    """The area of each cloth."""
    t = kc.tid()
    kc.atomic_add(whole, weighing.cloth[t], area[t])


@kc.kernel
def cloth_masses(
    area: kc.Array[float],
    weighing: Weighing,
    whole: kc.Array[float],
    corners: kc.Array[int, 2],
    mass: kc.Array[float],
):
    """A third of each triangle's mass to each of its corners: its own density, and its part of a total."""
    t = kc.tid()
    share = area[t] * (weighing.density[t] + weighing.total[t] / whole[weighing.cloth[t]]) / 3.0
    for c in range(3):
        kc.atomic_add(mass, corners[t, c], share)


@kc.kernel
def membrane_forces(p: Particles, triangles: Triangles, f: kc.Array[kc.float3]):
    """Add the elastic and viscous forces to the three corners: the columns of -A P Bᵀ, and minus their sum."""
    t = kc.tid()
    who, B, area = three_of(triangles.corners, t), triangles.inverse[t], triangles.area[t]
    F1, F2 = deformation(p.x, who, B)
    P1, P2 = membrane_stress(F1, F2, triangles.mu[t], triangles.lam[t])
    if triangles.damping is not None:
        R1, R2 = deformation(p.v, who, B)
        D1, D2 = membrane_damping(F1, F2, R1, R2, triangles.damping[t])
        P1, P2 = P1 + D1, P2 + D2
    f1, f2 = (P1 * B.x + P2 * B.y) * (-area), P2 * (-area * B.z)
    push_three(f, who, -(f1 + f2), f1, f2)


@kc.kernel
def membrane_stiffness(triangles: Triangles, bounds: Bounds):
    """Bounds of the blocks in each corner's row, at rest.

    Rows of B are the gradients g of the shape functions of corners 1, 2; corner 0 has minus their sum. A block of the
    stiffness is at most A M |g_i| |g_j|, with the modulus of pressure waves M = lam_L + 2 mu_L = lam + 8/9 mu.
    """
    t = kc.tid()
    B = triangles.inverse[t]
    g1, g2 = kc.float2(B.x, B.y), kc.float2(0.0, B.z)
    slopes = kc.float3(kc.length(g1 + g2), kc.length(g1), kc.length(g2))
    modulus = triangles.lam[t] + 8.0 / 9.0 * triangles.mu[t]
    damping = 2.0 * triangles.damping[t] if triangles.damping is not None else 0.0
    bound(bounds, triangles.corners[t], slopes, triangles.area[t], modulus, damping)


@kc.kernel
def membrane_energies(x: kc.Array[kc.float3], triangles: Triangles, e: kc.Array[float]):
    """A (Psi(F) - Psi(rest))."""
    t = kc.tid()
    m, l = triangles.mu[t], triangles.lam[t]
    F1, F2 = deformation(x, three_of(triangles.corners, t), triangles.inverse[t])
    Ic, dJ = kc.length_sq(F1) + kc.length_sq(F2), kc.length(kc.cross(F1, F2)) - 1.0
    # lam/2 ((J - alpha)² - (1 - alpha)²), without a division by lam
    swell = 0.5 * l * dJ * dJ - 2.0 / 3.0 * m * dJ
    e[t] = triangles.area[t] * (0.5 * m * (Ic - 2.0 - kc.log((Ic + 1.0) / 3.0)) + swell)
