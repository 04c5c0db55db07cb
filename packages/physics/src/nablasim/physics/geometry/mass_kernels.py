"""Kernels of mass: integrals over the inside of closed surfaces, and masses lumped to vertices.

A closed surface is a sum of tetrahedra, one from a reference point to each triangle, counted negative where the
triangle is seen from behind. What lies outside cancels, so the reference is free; a point of the body itself keeps the
sums accurate far from the origin.
"""
# mypy: ignore-errors

import kernelc as kc


@kc.kernel
def face_moments(
    x: kc.Array[kc.float3],
    faces: kc.Array[int, 2],
    body: kc.Array[int],
    reference: kc.Array[int],
    volume: kc.Array[float],
    first: kc.Array[kc.float3],
    second: kc.Array[kc.mat33],
):
    """Add face f's tetrahedron to the integrals of 1, r and r rᵀ over its body, with r from the reference vertex."""
    f = kc.tid()
    k = body[f]
    # The sum does not depend on where it is taken from: no gradient flows to this use of the vertex.
    o = kc.stop_grad(x[reference[k]])
    a, b, c = x[faces[f, 0]] - o, x[faces[f, 1]] - o, x[faces[f, 2]] - o
    v = kc.dot(kc.cross(a, b), c) / 6.0
    s = a + b + c
    kc.atomic_add(volume, k, v)
    kc.atomic_add(first, k, s * (v / 4.0))
    # Of a tetrahedron with corners r_i: V / 20 (Σ r_i r_iᵀ + (Σ r_i)(Σ r_i)ᵀ); one of them is zero here.
    kc.atomic_add(second, k, (kc.outer(a, a) + kc.outer(b, b) + kc.outer(c, c) + kc.outer(s, s)) * (v / 20.0))


@kc.kernel
def body_mass_properties(
    x: kc.Array[kc.float3],
    reference: kc.Array[int],
    volume: kc.Array[float],
    first: kc.Array[kc.float3],
    second: kc.Array[kc.mat33],
    density: kc.Array[float],
    mass: kc.Array[float],
    com: kc.Array[kc.float3],
    inertia: kc.Array[kc.mat33],
):
    """Mass, centre of mass and inertia about it from the integrals: I = ρ (tr(C) 1 - C), C = ∫ (r - c)(r - c)ᵀ dV."""
    k = kc.tid()
    r = first[k] / volume[k]
    C = second[k] - kc.outer(r, r) * volume[k]
    trace = kc.trace(C)
    mass[k] = density[k] * volume[k]
    com[k] = kc.stop_grad(x[reference[k]]) + r
    inertia[k] = (kc.diag(kc.float3(trace, trace, trace)) - C) * density[k]


@kc.kernel
def tet_volumes(x: kc.Array[kc.float3], tets: kc.Array[int, 2], volume: kc.Array[float]):
    """The volume of tetrahedron e; negative where it is inverted."""
    e = kc.tid()
    volume[e] = kc.tet_volume(x[tets[e, 0]], x[tets[e, 1]], x[tets[e, 2]], x[tets[e, 3]])


@kc.kernel
def triangle_areas(x: kc.Array[kc.float3], faces: kc.Array[int, 2], area: kc.Array[float]):
    """The area of triangle e."""
    e = kc.tid()
    area[e] = kc.triangle_area(x[faces[e, 0]], x[faces[e, 1]], x[faces[e, 2]])


@kc.kernel
def lump_masses(
    measure: kc.Array[float],
    density: kc.Array[float],
    start: kc.Array[int],
    item: kc.Array[int],
    corners: int,
    mass: kc.Array[float],
):
    """Vertex v gets its share, one corner's, of every element around it: Σ ρ_e |e| / corners.

    `measure` is the elements' volume or area, `start` and `item` their incidence.
    """
    v = kc.tid()
    m = 0.0
    for n in range(start[v], start[v + 1]):
        e = item[n] // corners
        m += density[e] * measure[e]
    mass[v] = m / float(corners)
