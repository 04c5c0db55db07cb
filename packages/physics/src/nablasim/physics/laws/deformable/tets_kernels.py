"""Kernels of stable neo-Hookean tetrahedra (Smith et al. 2018; letters as there). A thread is a tetrahedron.

Psi = mu/2 (Ic - 3) + lam/2 (J - alpha)² - mu/2 log(Ic + 1), with F = [edges] B, B the inverse of the rest edges,
Ic = tr(FᵀF), J = det F and alpha = 1 + 3 mu / (4 lam) - activation.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.deformable.particles_kernels import Bounds, Particles, bound, four_of, push_four


@kc.struct
class Tets:
    """Their corners, B and volume at rest; constants of the energy; what contracts them, and damps the strain rate."""

    corners: kc.Array[int, 2]
    inverse: kc.Array[kc.mat33]
    volume: kc.Array[float]
    mu: kc.Array[float]
    lam: kc.Array[float]
    activation: kc.Array[float] | None
    damping: kc.Array[float] | None


@kc.struct
class Moduli:
    """The constants of the energy as given, and Young's modulus and Poisson's ratio, where any are given so."""

    given_mu: kc.Array[float]
    given_lam: kc.Array[float]
    young: kc.Array[float] | None
    poisson: kc.Array[float]


@kc.func
def edges(x: kc.Array[kc.float3], who: kc.int4) -> kc.mat33:
    """From the first corner to the others, as columns; differences of their velocities for v."""
    x0 = x[who.x]
    return kc.mat33(x[who.y] - x0, x[who.z] - x0, x[who.w] - x0)


@kc.func
def contraction(tets: Tets, t: int) -> float:
    """What alpha is lowered by."""
    return tets.activation[t] if tets.activation is not None else 0.0


@kc.func
def stress(F: kc.mat33, mu: float, lam: float, activation: float) -> kc.mat33:
    """P = dPsi/dF = mu (1 - 1 / (Ic + 1)) F + lam (J - alpha) cof F."""
    alpha = 1.0 + 0.75 * mu / lam - activation
    return F * (mu * (1.0 - 1.0 / (kc.ddot(F, F) + 1.0))) + kc.cofactor(F) * (lam * (kc.determinant(F) - alpha))


@kc.func
def viscous_stress(F: kc.mat33, rate: kc.mat33, damping: float) -> kc.mat33:
    """F 2 c dE/dt, with the rate of Green's strain E = (FᵀF - 1) / 2: zero for any rigid motion.

    It takes the power 2 c |dE/dt|² out of the solid, whatever the motion.
    """
    A = kc.transpose(F) * rate
    return F * (A + kc.transpose(A)) * damping


@kc.kernel
def rest_tets(
    points: kc.Array[kc.float3], corners: kc.Array[int, 2], inverse: kc.Array[kc.mat33], volume: kc.Array[float]
):
    """The inverse of the rest edges and the volume."""
    t = kc.tid()
    D = edges(points, four_of(corners, t))
    inverse[t] = kc.inverse(D)
    volume[t] = kc.determinant(D) / 6.0


@kc.kernel
def tet_masses(volume: kc.Array[float], density: kc.Array[float], corners: kc.Array[int, 2], mass: kc.Array[float]):
    """A quarter of each tetrahedron's mass to each of its corners."""
    t = kc.tid()
    share = 0.25 * density[t] * volume[t]
    for c in range(4):
        kc.atomic_add(mass, corners[t, c], share)


@kc.kernel
def convert_moduli(moduli: Moduli, mu: kc.Array[float], lam: kc.Array[float]):
    """The constants of the energy: as given, or from Young's modulus and Poisson's ratio where those are not zero.

    mu_L = 3/4 mu, lam_L = lam - 5/8 mu are the Lamé parameters of small strain.
    """
    t = kc.tid()
    m, l = moduli.given_mu[t], moduli.given_lam[t]
    if moduli.young is not None:
        E, nu = moduli.young[t], moduli.poisson[t]
        shear = 0.5 * E / (1.0 + nu)
        m += 4.0 / 3.0 * shear
        l = l + E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)) + 5.0 / 6.0 * shear
    mu[t] = m
    lam[t] = l


@kc.kernel
def tet_forces(p: Particles, tets: Tets, f: kc.Array[kc.float3]):
    """Add the elastic and viscous forces to the four corners: the columns of -V P Bᵀ, and minus their sum."""
    t = kc.tid()
    who, B = four_of(tets.corners, t), tets.inverse[t]
    F = edges(p.x, who) * B
    P = stress(F, tets.mu[t], tets.lam[t], contraction(tets, t))
    if tets.damping is not None:
        P += viscous_stress(F, edges(p.v, who) * B, tets.damping[t])
    H = P * kc.transpose(B) * (-tets.volume[t])
    push_four(f, who, -(H[:, 0] + H[:, 1] + H[:, 2]), H[:, 0], H[:, 1], H[:, 2])


@kc.kernel
def tet_stiffness(tets: Tets, bounds: Bounds):
    """Bounds of the blocks in each corner's row, at rest.

    Rows of B are the gradients g of the shape functions of corners 1, 2, 3; corner 0 has minus their sum. A block of
    the stiffness is at most V M |g_i| |g_j|, with the modulus of pressure waves M = lam_L + 2 mu_L.
    """
    t = kc.tid()
    B = tets.inverse[t]
    slopes = kc.float4(kc.length(B[0] + B[1] + B[2]), kc.length(B[0]), kc.length(B[1]), kc.length(B[2]))
    damping = 2.0 * tets.damping[t] if tets.damping is not None else 0.0
    bound(bounds, tets.corners[t], slopes, tets.volume[t], tets.lam[t] + 0.875 * tets.mu[t], damping)


@kc.kernel
def tet_energies(x: kc.Array[kc.float3], tets: Tets, e: kc.Array[float]):
    """V (Psi(F) - Psi(1)): zero at rest without activation."""
    t = kc.tid()
    F = edges(x, four_of(tets.corners, t)) * tets.inverse[t]
    m, l = tets.mu[t], tets.lam[t]
    Ic, J = kc.ddot(F, F), kc.determinant(F)
    rest = 0.75 * m / l
    pull = J - 1.0 - rest + contraction(tets, t)
    psi = 0.5 * (m * (Ic - 3.0) + l * (pull * pull - rest * rest) - m * kc.log((Ic + 1.0) / 4.0))
    e[t] = tets.volume[t] * psi
