"""Kernels of bending. A thread is a hinge: two triangles (i, j, a) and (j, i, b) that share the edge from i to j.

phi is the angle between their normals, positive where the surface is bulged towards its normals (a closed convex
surface has positive angles only). The force is the paper's, k_b sin(phi/2 + alpha) d: the directions d of Bridson et
al. are the gradient of phi by the four points, so that there is no net force and no net torque, whatever the shapes of
the triangles, and alpha = actuation - rest/2 puts the balance at phi = rest - 2 actuation.
"""

import kernelc as kc


@kc.func
def half_angle(s: float, c: float):
    """(sin, cos) of half of an angle in (-pi, pi], from its sine and cosine.

    Each branch divides by the larger of the two: smooth when flat, where an acos has no slope, and when folded.
    """
    sh, ch = 0.0, 0.0
    if c >= 0.0:
        ch = kc.sqrt(0.5 * (1.0 + c))
        sh = 0.5 * s / ch
    else:
        sh = kc.copysign(kc.sqrt(0.5 * (1.0 - c)), s)
        ch = 0.5 * s / sh
    return sh, ch


@kc.func
def hinge(xa: kc.float3, xb: kc.float3, xi: kc.float3, xj: kc.float3):
    """(sin phi/2, cos phi/2, da, db, di, dj): half of the angle, and the gradient of the angle by the four points."""
    e = xj - xi
    n1, n2 = kc.cross(e, xa - xi), kc.cross(xb - xi, e)
    along, twice1, twice2 = kc.length(e), kc.length(n1), kc.length(n2)
    u1, u2, way = kc.normalize(n1), kc.normalize(n2), kc.normalize(e)
    sh, ch = half_angle(kc.dot(kc.cross(u1, u2), way), kc.dot(u1, u2))
    # Raising a point by one height turns its triangle by one radian. One without area has no height, and no moment.
    da = u1 * (-along / twice1 if twice1 > 0.0 else 0.0)
    db = u2 * (-along / twice2 if twice2 > 0.0 else 0.0)
    # The feet of the heights on the edge share the reaction between its ends.
    foot1 = kc.dot(xa - xi, way) / along if along > 0.0 else 0.0
    foot2 = kc.dot(xb - xi, way) / along if along > 0.0 else 0.0
    dj = -(da * foot1 + db * foot2)
    return sh, ch, da, db, -(da + db + dj), dj


@kc.kernel
def rest_angles(points: kc.Array[kc.float3], ends: kc.Array[int, 2], angle: kc.Array[float]):
    """The angle of each hinge."""
    h = kc.tid()
    sh, ch, _, _, _, _ = hinge(points[ends[h, 0]], points[ends[h, 1]], points[ends[h, 2]], points[ends[h, 3]])
    angle[h] = 2.0 * kc.atan2(sh, ch)


@kc.kernel
def hinge_forces(
    x: kc.Array[kc.float3],
    ends: kc.Array[int, 2],
    bend: kc.Array[float],
    rest: kc.Array[float],
    actuation: kc.Array[float],
    f: kc.Array[kc.float3],
):
    """Add -k_b sin(phi/2 + alpha) dphi/dx to the four points."""
    h = kc.tid()
    a, b, i, j = ends[h, 0], ends[h, 1], ends[h, 2], ends[h, 3]
    sh, ch, da, db, di, dj = hinge(x[a], x[b], x[i], x[j])
    alpha = actuation[h] - 0.5 * rest[h]
    moment = -bend[h] * (sh * kc.cos(alpha) + ch * kc.sin(alpha))
    kc.atomic_add(f, a, da * moment)
    kc.atomic_add(f, b, db * moment)
    kc.atomic_add(f, i, di * moment)
    kc.atomic_add(f, j, dj * moment)


@kc.kernel
def damped_hinge_forces(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    ends: kc.Array[int, 2],
    bend: kc.Array[float],
    rest: kc.Array[float],
    actuation: kc.Array[float],
    damping: kc.Array[float],
    f: kc.Array[kc.float3],
):
    """The same with a moment against the rate of the angle: a cloth that moves or turns as a whole is not braked."""
    h = kc.tid()
    a, b, i, j = ends[h, 0], ends[h, 1], ends[h, 2], ends[h, 3]
    sh, ch, da, db, di, dj = hinge(x[a], x[b], x[i], x[j])
    alpha = actuation[h] - 0.5 * rest[h]
    rate = kc.dot(da, v[a]) + kc.dot(db, v[b]) + kc.dot(di, v[i]) + kc.dot(dj, v[j])
    moment = -bend[h] * (sh * kc.cos(alpha) + ch * kc.sin(alpha)) - damping[h] * rate
    kc.atomic_add(f, a, da * moment)
    kc.atomic_add(f, b, db * moment)
    kc.atomic_add(f, i, di * moment)
    kc.atomic_add(f, j, dj * moment)


@kc.kernel
def hinge_stiffness(
    points: kc.Array[kc.float3],
    rest_ends: kc.Array[int, 2],
    ends: kc.Array[int, 2],
    bend: kc.Array[float],
    damping: kc.Array[float],
    k: kc.Array[float],
    c: kc.Array[float],
):
    """Bounds of the blocks in each point's row, at rest: the moment grows by half of k_b per radian."""
    h = kc.tid()
    _, _, da, db, di, dj = hinge(
        points[rest_ends[h, 0]], points[rest_ends[h, 1]], points[rest_ends[h, 2]], points[rest_ends[h, 3]]
    )
    lengths = kc.float4(kc.length(da), kc.length(db), kc.length(di), kc.length(dj))
    around = lengths[0] + lengths[1] + lengths[2] + lengths[3]
    for n in range(4):
        kc.atomic_add(k, ends[h, n], around * lengths[n] * 0.5 * bend[h])
        kc.atomic_add(c, ends[h, n], around * lengths[n] * damping[h])


@kc.kernel
def hinge_energies(
    x: kc.Array[kc.float3],
    ends: kc.Array[int, 2],
    bend: kc.Array[float],
    rest: kc.Array[float],
    actuation: kc.Array[float],
    e: kc.Array[float],
):
    """2 k_b (1 - cos(phi/2 + alpha)): the integral of the moment."""
    h = kc.tid()
    sh, ch, _, _, _, _ = hinge(x[ends[h, 0]], x[ends[h, 1]], x[ends[h, 2]], x[ends[h, 3]])
    alpha = actuation[h] - 0.5 * rest[h]
    e[h] = 2.0 * bend[h] * (1.0 - ch * kc.cos(alpha) + sh * kc.sin(alpha))
