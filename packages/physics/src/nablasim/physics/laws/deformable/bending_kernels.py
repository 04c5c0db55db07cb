"""Kernels of bending. A thread is a hinge: two triangles (i, j, a) and (j, i, b) that share the edge from i to j.

phi is the angle between their normals, positive where the surface is bulged towards its normals (a closed convex
surface has positive angles only). The force is the paper's, k_b sin(phi/2 + alpha) d: the directions d of Bridson et
al. are the gradient of phi by the four points, so that there is no net force and no net torque, whatever the shapes of
the triangles, and alpha = actuation - rest/2 puts the balance at phi = rest - 2 actuation.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.deformable.particles_kernels import Bounds, Particles, bound, four_of, push_four


@kc.struct
class Hinges:
    """Their points a, b, i, j; k_b (N m), rest angle and actuation (rad); what damps the rate of the angle (N m s)."""

    ends: kc.Array[int, 2]
    bend: kc.Array[float]
    rest_angle: kc.Array[float]
    actuation: kc.Array[float]
    damping: kc.Array[float] | None


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
def hinge(x: kc.Array[kc.float3], who: kc.int4):
    """(sin phi/2, cos phi/2, da, db, di, dj): half of the angle, and the gradient of the angle by the four points."""
    xa, xb, xi, xj = x[who.x], x[who.y], x[who.z], x[who.w]
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


@kc.func
def alpha(hinges: Hinges, h: int) -> float:
    """What is added to phi / 2."""
    return hinges.actuation[h] - 0.5 * hinges.rest_angle[h]


@kc.kernel
def rest_angles(points: kc.Array[kc.float3], ends: kc.Array[int, 2], angle: kc.Array[float]):
    """The angle of each hinge."""
    h = kc.tid()
    sh, ch, _, _, _, _ = hinge(points, four_of(ends, h))
    angle[h] = 2.0 * kc.atan2(sh, ch)


@kc.kernel
def hinge_forces(p: Particles, hinges: Hinges, f: kc.Array[kc.float3]):
    """Add -k_b sin(phi/2 + alpha) dphi/dx to the four points, and a moment against the rate of the angle: a cloth that
    moves or turns as a whole is not braked."""
    h = kc.tid()
    who = four_of(hinges.ends, h)
    sh, ch, da, db, di, dj = hinge(p.x, who)
    a = alpha(hinges, h)
    moment = -hinges.bend[h] * (sh * kc.cos(a) + ch * kc.sin(a))
    if hinges.damping is not None:
        rate = kc.dot(da, p.v[who.x]) + kc.dot(db, p.v[who.y]) + kc.dot(di, p.v[who.z]) + kc.dot(dj, p.v[who.w])
        moment -= hinges.damping[h] * rate
    push_four(f, who, da * moment, db * moment, di * moment, dj * moment)


@kc.kernel
def hinge_stiffness(points: kc.Array[kc.float3], rest_ends: kc.Array[int, 2], hinges: Hinges, bounds: Bounds):
    """Bounds of the blocks in each point's row, at rest: the moment grows by half of k_b per radian."""
    h = kc.tid()
    _, _, da, db, di, dj = hinge(points, four_of(rest_ends, h))
    slopes = kc.float4(kc.length(da), kc.length(db), kc.length(di), kc.length(dj))
    damping = hinges.damping[h] if hinges.damping is not None else 0.0
    bound(bounds, hinges.ends[h], slopes, 1.0, 0.5 * hinges.bend[h], damping)


@kc.kernel
def hinge_energies(x: kc.Array[kc.float3], hinges: Hinges, e: kc.Array[float]):
    """2 k_b (1 - cos(phi/2 + alpha)): the integral of the moment."""
    h = kc.tid()
    sh, ch, _, _, _, _ = hinge(x, four_of(hinges.ends, h))
    a = alpha(hinges, h)
    e[h] = 2.0 * hinges.bend[h] * (1.0 - ch * kc.cos(a) + sh * kc.sin(a))
