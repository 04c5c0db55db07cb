"""Kernels of the air around cloth. A thread is a triangle.

u is the velocity of its middle against the air, n its unit normal, A its area as it is now:

    drag   -drag A |n·u| u                          against the flow, with the area that the flow sees
    lift   -lift A (n·u) (|u| n - (n·u) u / |u|)    across the flow, as |u|² sin(angle) cos(angle) of a flat plate

Either side is the front: both forces stay the same when n is turned round.
"""

import kernelc as kc


@kc.func
def air_force(xa: kc.float3, xb: kc.float3, xc: kc.float3, u: kc.float3, lift: float, drag: float) -> kc.float3:
    """The force on the whole triangle."""
    twice = kc.cross(xb - xa, xc - xa)
    through = 0.5 * kc.dot(twice, u)  # A n·u
    force = u * (-drag * kc.abs(through))
    speed = kc.length(u)
    if speed > 0.0:
        n = kc.normalize(twice)
        force -= (n * speed - u * (kc.dot(n, u) / speed)) * (lift * through)
    return force


@kc.kernel
def air_forces(
    x: kc.Array[kc.float3],
    v: kc.Array[kc.float3],
    corners: kc.Array[int, 2],
    wind: kc.Array[kc.float3],
    lift: kc.Array[float],
    drag: kc.Array[float],
    f: kc.Array[kc.float3],
):
    """Add a third of the triangle's force to each corner."""
    t = kc.tid()
    a, b, c = corners[t, 0], corners[t, 1], corners[t, 2]
    u = (v[a] + v[b] + v[c]) / 3.0 - wind[t]
    third = air_force(x[a], x[b], x[c], u, lift[t], drag[t]) / 3.0
    kc.atomic_add(f, a, third)
    kc.atomic_add(f, b, third)
    kc.atomic_add(f, c, third)


@kc.kernel
def air_damping(
    corners: kc.Array[int, 2],
    area: kc.Array[float],
    wind: kc.Array[kc.float3],
    lift: kc.Array[float],
    drag: kc.Array[float],
    c: kc.Array[float],
):
    """What the air adds to the damping of a cloth at rest in the wind: its slope is at most 2 (lift + drag) A |u|."""
    t = kc.tid()
    slope = 2.0 * (lift[t] + drag[t]) * area[t] * kc.length(wind[t]) / 3.0
    for i in range(3):
        kc.atomic_add(c, corners[t, i], slope)
