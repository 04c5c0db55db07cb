"""Kernels of magnetic dipoles in rigid bodies. A thread is a pair of magnets.

A dipole m, in the body's frame, sits at the body's centre of mass. With r from one to the other and s² = r² + a² + b²,
where a and b are the radii of the two, the energy of a pair is

    U = μ0 / 4π (m₁·m₂ / s³ - 3 (m₁·r) (m₂·r) / s⁵),

that of two point dipoles where r is large. Force and torques are its exact derivatives: the momenta are kept.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.rigid.bodies_kernels import Bodies, Forces

VACUUM = 1e-7
"""μ0 / 4π (N/A²)."""


@kc.struct
class Magnets:
    """Dipoles of bodies (A m²), each in the frame of its body, and the radii (m) that soften them."""

    body: kc.Array[int]
    moment: kc.Array[kc.float3]
    softening: kc.Array[float]


@kc.struct
class Pairs:
    """Which magnets act on each other."""

    one: kc.Array[int]
    other: kc.Array[int]


@kc.func
def in_world(bodies: Bodies, magnets: Magnets, i: int):
    """The body of a magnet, where its dipole is, and the dipole in world axes."""
    b = magnets.body[i]
    q = kc.normalize(bodies.rot[b])
    return b, bodies.x[b] + kc.quat_rotate(q, bodies.com[b]), kc.quat_rotate(q, magnets.moment[i])


@kc.func
def inverse_distance(magnets: Magnets, i: int, j: int, r: kc.float3) -> float:
    """1 / s: of the softened distance."""
    a, b = magnets.softening[i], magnets.softening[j]
    return 1.0 / kc.sqrt(kc.length_sq(r) + a * a + b * b)


@kc.func
def field(m: kc.float3, r: kc.float3, inverse: float) -> kc.float3:
    """The field (T) of a dipole at r from it, or at -r."""
    cube = VACUUM * inverse**3
    return r * (3.0 * cube * inverse**2 * kc.dot(m, r)) - m * cube


@kc.kernel
def magnet_forces(bodies: Bodies, magnets: Magnets, pairs: Pairs, forces: Forces):
    """Add the force -dU/dr and its opposite, and the torques m × B."""
    p = kc.tid()
    i, j = pairs.one[p], pairs.other[p]
    b1, x1, m1 = in_world(bodies, magnets, i)
    b2, x2, m2 = in_world(bodies, magnets, j)
    r = x2 - x1
    inverse = inverse_distance(magnets, i, j, r)
    along1, along2 = kc.dot(m1, r), kc.dot(m2, r)
    radial = kc.dot(m1, m2) - 5.0 * along1 * along2 * inverse**2
    f = (r * radial + m1 * along2 + m2 * along1) * (3.0 * VACUUM * inverse**5)
    kc.atomic_sub(forces.f, b1, f)
    kc.atomic_add(forces.f, b2, f)
    kc.atomic_add(forces.torque, b1, kc.cross(m1, field(m2, r, inverse)))
    kc.atomic_add(forces.torque, b2, kc.cross(m2, field(m1, r, inverse)))


@kc.kernel
def magnet_energies(bodies: Bodies, magnets: Magnets, pairs: Pairs, e: kc.Array[float]):
    """U of each pair (J): -m₁·B₂."""
    p = kc.tid()
    i, j = pairs.one[p], pairs.other[p]
    _b1, x1, m1 = in_world(bodies, magnets, i)
    _b2, x2, m2 = in_world(bodies, magnets, j)
    r = x2 - x1
    e[p] = -kc.dot(m1, field(m2, r, inverse_distance(magnets, i, j, r)))
