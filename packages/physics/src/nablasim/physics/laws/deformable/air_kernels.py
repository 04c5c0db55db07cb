"""Kernels of the air around cloth. A thread is a triangle.

u is the velocity of its middle against the air, n its unit normal, A its area as it is now:

    drag   -drag A |n·u| u                          against the flow, with the area that the flow sees
    lift   -lift A (n·u) (|u| n - (n·u) u / |u|)    across the flow, as |u|² sin(angle) cos(angle) of a flat plate

Either side is the front: both forces stay the same when n is turned round.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws.deformable.particles_kernels import Particles, push_three, three_of


@kc.struct
class Air:
    """The wind (m/s) at each triangle, and how strongly it lifts and drags (kg/m³)."""

    wind: kc.Array[kc.float3]
    lift: kc.Array[float]
    drag: kc.Array[float]


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
def air_forces(p: Particles, corners: kc.Array[int, 2], air: Air, f: kc.Array[kc.float3]):
    """Add a third of the triangle's force to each corner."""
    t = kc.tid()
    who = three_of(corners, t)
    u = (p.v[who.x] + p.v[who.y] + p.v[who.z]) / 3.0 - air.wind[t]
    third = air_force(p.x[who.x], p.x[who.y], p.x[who.z], u, air.lift[t], air.drag[t]) / 3.0
    push_three(f, who, third, third, third)


@kc.kernel
def air_damping(corners: kc.Array[int, 2], area: kc.Array[float], air: Air, c: kc.Array[float]):
    """What the air adds to the damping of a cloth at rest in the wind: its slope is at most 2 (lift + drag) A |u|."""
    t = kc.tid()
    slope = 2.0 * (air.lift[t] + air.drag[t]) * area[t] * kc.length(air.wind[t]) / 3.0
    for i in range(3):
        kc.atomic_add(c, corners[t, i], slope)
