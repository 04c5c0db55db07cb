"""Kernels of stable neo-Hookean tetrahedra (Smith et al. 2018; letters as there). A thread is a tetrahedron.

Psi = mu/2 (Ic - 3) + lam/2 (J - alpha)² - mu/2 log(Ic + 1), with F = [edges] B, B the inverse of the rest edges,
Ic = tr(FᵀF), J = det F and alpha = 1 + 3 mu / (4 lam) - activation.
"""

import kernelc as kc


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


@kc.func
def corner_forces(P: kc.mat33, B: kc.mat33, volume: float):
    """The forces on corners 1, 2, 3: the columns of -V P Bᵀ. Corner 0 has minus their sum."""
    H = P * kc.transpose(B) * (-volume)
    return (
        kc.float3(H[0, 0], H[1, 0], H[2, 0]),
        kc.float3(H[0, 1], H[1, 1], H[2, 1]),
        kc.float3(H[0, 2], H[1, 2], H[2, 2]),
    )


@kc.kernel
def rest_tets(
    points: kc.Array[kc.float3], corners: kc.Array[int, 2], inverse: kc.Array[kc.mat33], volume: kc.Array[float]
):
    """The inverse of the rest edges and the volume."""
    t = kc.tid()
    p = points[corners[t, 0]]
    edges = kc.mat33(points[corners[t, 1]] - p, points[corners[t, 2]] - p, points[corners[t, 3]] - p)
    inverse[t] = kc.inverse(edges)
    volume[t] = kc.determinant(edges) / 6.0


@kc.kernel
def tet_masses(volume: kc.Array[float], density: kc.Array[float], corners: kc.Array[int, 2], mass: kc.Array[float]):
    """A quarter of each tetrahedron's mass to each of its corners."""
    t = kc.tid()
    share = 0.25 * density[t] * volume[t]
    for c in range(4):
        kc.atomic_add(mass, corners[t, c], share)


@kc.kernel
def copy_moduli(given_mu: kc.Array[float], given_lam: kc.Array[float], mu: kc.Array[float], lam: kc.Array[float]):
    """The constants of the energy, where all were given as such."""
    t = kc.tid()
    mu[t] = given_mu[t]
    lam[t] = given_lam[t]


@kc.kernel
def convert_moduli(
    given_mu: kc.Array[float],
    given_lam: kc.Array[float],
    young: kc.Array[float],
    poisson: kc.Array[float],
    mu: kc.Array[float],
    lam: kc.Array[float],
):
    """The constants of the energy from Young's modulus and Poisson's ratio, or as given where those are zero.

    mu_L = 3/4 mu, lam_L = lam - 5/8 mu are the Lamé parameters of small strain.
    """
    t = kc.tid()
    E, nu = young[t], poisson[t]
    shear = 0.5 * E / (1.0 + nu)
    mu[t] = given_mu[t] + 4.0 / 3.0 * shear
    lam[t] = given_lam[t] + E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)) + 5.0 / 6.0 * shear


@kc.kernel
def tet_forces(
    x: kc.Array[kc.float3],
    corners: kc.Array[int, 2],
    inverse: kc.Array[kc.mat33],
    volume: kc.Array[float],
    mu: kc.Array[float],
    lam: kc.Array[float],
    f: kc.Array[kc.float3],
):
    """Add the elastic forces to the four corners."""
    t = kc.tid()
    a, b, c, d = corners[t, 0], corners[t, 1], corners[t, 2], corners[t, 3]
    x0, B = x[a], inverse[t]
    F = kc.mat33(x[b] - x0, x[c] - x0, x[d] - x0) * B
    f1, f2, f3 = corner_forces(stress(F, mu[t], lam[t], 0.0), B, volume[t])
    kc.atomic_add(f, b, f1)
    kc.atomic_add(f, c, f2)
    kc.atomic_add(f, d, f3)
    kc.atomic_sub(f, a, f1 + f2 + f3)


@kc.kernel
def activated_tet_forces(
    x: kc.Array[kc.float3],
    corners: kc.Array[int, 2],
    inverse: kc.Array[kc.mat33],
    volume: kc.Array[float],
    mu: kc.Array[float],
    lam: kc.Array[float],
    activation: kc.Array[float],
    f: kc.Array[kc.float3],
):
    """The same for solids that contract by activation."""
    t = kc.tid()
    a, b, c, d = corners[t, 0], corners[t, 1], corners[t, 2], corners[t, 3]
    x0, B = x[a], inverse[t]
    F = kc.mat33(x[b] - x0, x[c] - x0, x[d] - x0) * B
    f1, f2, f3 = corner_forces(stress(F, mu[t], lam[t], activation[t]), B, volume[t])
    kc.atomic_add(f, b, f1)
    kc.atomic_add(f, c, f2)
    kc.atomic_add(f, d, f3)
    kc.atomic_sub(f, a, f1 + f2 + f3)


@kc.kernel
def damped_tet_forces(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    corners: kc.Array[int, 2],
    inverse: kc.Array[kc.mat33],
    volume: kc.Array[float],
    mu: kc.Array[float],
    lam: kc.Array[float],
    activation: kc.Array[float],
    damping: kc.Array[float],
    f: kc.Array[kc.float3],
):
    """The same with damping of the strain rate."""
    t = kc.tid()
    a, b, c, d = corners[t, 0], corners[t, 1], corners[t, 2], corners[t, 3]
    x0, v0, B = x[a], v[a], inverse[t]
    F = kc.mat33(x[b] - x0, x[c] - x0, x[d] - x0) * B
    rate = kc.mat33(v[b] - v0, v[c] - v0, v[d] - v0) * B
    P = stress(F, mu[t], lam[t], activation[t]) + viscous_stress(F, rate, damping[t])
    f1, f2, f3 = corner_forces(P, B, volume[t])
    kc.atomic_add(f, b, f1)
    kc.atomic_add(f, c, f2)
    kc.atomic_add(f, d, f3)
    kc.atomic_sub(f, a, f1 + f2 + f3)


@kc.kernel
def tet_stiffness(
    corners: kc.Array[int, 2],
    inverse: kc.Array[kc.mat33],
    volume: kc.Array[float],
    mu: kc.Array[float],
    lam: kc.Array[float],
    damping: kc.Array[float],
    k: kc.Array[float],
    c: kc.Array[float],
):
    """Bounds of the blocks in each corner's row, at rest.

    Rows of B are the gradients g of the shape functions of corners 1, 2, 3; corner 0 has minus their sum. A block of
    the stiffness is at most V M |g_i| |g_j|, with the modulus of pressure waves M = lam_L + 2 mu_L.
    """
    t = kc.tid()
    B = inverse[t]
    g1, g2, g3 = B[0], B[1], B[2]
    lengths = kc.float4(kc.length(g1 + g2 + g3), kc.length(g1), kc.length(g2), kc.length(g3))
    around = volume[t] * (lengths[0] + lengths[1] + lengths[2] + lengths[3])
    modulus = lam[t] + 0.875 * mu[t]
    for i in range(4):
        kc.atomic_add(k, corners[t, i], around * lengths[i] * modulus)
        kc.atomic_add(c, corners[t, i], around * lengths[i] * 2.0 * damping[t])


@kc.kernel
def tet_energies(
    x: kc.Array[kc.float3],
    corners: kc.Array[int, 2],
    inverse: kc.Array[kc.mat33],
    volume: kc.Array[float],
    mu: kc.Array[float],
    lam: kc.Array[float],
    activation: kc.Array[float],
    e: kc.Array[float],
):
    """V (Psi(F) - Psi(1)): zero at rest without activation."""
    t = kc.tid()
    x0 = x[corners[t, 0]]
    F = kc.mat33(x[corners[t, 1]] - x0, x[corners[t, 2]] - x0, x[corners[t, 3]] - x0) * inverse[t]
    m, l = mu[t], lam[t]
    Ic, J = kc.ddot(F, F), kc.determinant(F)
    rest = 0.75 * m / l
    pull = J - 1.0 - rest + activation[t]
    psi = 0.5 * (m * (Ic - 3.0) + l * (pull * pull - rest * rest) - m * kc.log((Ic + 1.0) / 4.0))
    e[t] = volume[t] * psi
