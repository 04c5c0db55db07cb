"""How the contact numbers [ke, kd, kf, mu] of two things that touch become those of the contact.

A number below zero was not given. One that only one of the two has holds; if both have it, ke, kd and kf are those of
two layers one upon the other, a b / (a + b), and mu is the geometric mean, sqrt(a b). What neither has comes from the
scene: as it stands, or for masses m of any size from a rate w and a ratio z: ke = m w², kd = 2 z m w, kf = m w, with m
the reduced mass of the two.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.checks import STICK
from nablasim.physics.laws.contact.compliant_kernels import FIRM, SMOOTH
from nablasim.physics.laws.rigid.bodies_kernels import gives_way


@kc.struct
class Defaults:
    """The numbers of the scene, for what the two sides of a row do not say."""

    ke: kc.Array[float]
    kd: kc.Array[float]
    kf: kc.Array[float]
    mu: kc.Array[float]
    rate: kc.Array[float]
    ratio: kc.Array[float]


@kc.struct
class Partners:
    """Bodies as those that others touch: `four` is what they bring."""

    four: kc.Array[kc.float4]
    mass: kc.Array[float]
    motion: kc.Array[int]


@kc.func
def in_series(a: float, b: float) -> float:
    """Of two springs, or dampers, that carry the same force."""
    both = max(a, b)
    if a >= 0.0 and b >= 0.0:
        both = a * b / (a + b) if a + b > 0.0 else 0.0
    return both


@kc.func
def rubbing(a: float, b: float) -> float:
    """What sticks to something sticks, whatever that is."""
    both = in_series(a, b)
    if max(a, b) >= STICK:
        both = STICK
    return both


@kc.func
def mean_friction(a: float, b: float) -> float:
    both = max(a, b)
    if a >= 0.0 and b >= 0.0:
        both = kc.sqrt(a * b)
    return both


@kc.func
def paired(a: kc.float4, b: kc.float4) -> kc.float4:
    return kc.float4(in_series(a.x, b.x), in_series(a.y, b.y), rubbing(a.z, b.z), mean_friction(a.w, b.w))


@kc.kernel
def join_four(
    ke: kc.Array[float],
    kd: kc.Array[float],
    kf: kc.Array[float],
    mu: kc.Array[float],
    four: kc.Array[kc.float4],
):
    """What an object was given, side by side."""
    i = kc.tid()
    four[i] = kc.float4(ke[i], kd[i], kf[i], mu[i])


@kc.func
def by_mass(m: float, rate: float, ratio: float) -> kc.float3:
    """ke, kd and kf of a contact in which the mass m swings with this rate (1/s)."""
    return kc.float3(m * rate * rate, 2.0 * ratio * m * rate, m * rate)


@kc.func
def filled_up(own: kc.float4, scene: kc.float4, natural: kc.float3) -> kc.float4:
    """The numbers that the two have, those of the scene where they have none, and those by mass where it has none."""
    ke = own.x if own.x >= 0.0 else (scene.x if scene.x >= 0.0 else natural.x)
    kd = own.y if own.y >= 0.0 else (scene.y if scene.y >= 0.0 else natural.y)
    kf = own.z if own.z >= 0.0 else (scene.z if scene.z >= 0.0 else natural.z)
    mu = own.w if own.w >= 0.0 else scene.w
    return kc.float4(ke, kd, kf, mu)


@kc.func
def completed(own: kc.float4, scene: Defaults, r: int, m: float) -> kc.float4:
    """The numbers of a row whose two sides have `own`, and the reduced mass m."""
    given = kc.float4(scene.ke[r], scene.kd[r], scene.kf[r], scene.mu[r])
    return filled_up(own, given, by_mass(m, scene.rate[r], scene.ratio[r]))


@kc.func
def reduced(m: float, bodies: Partners, b: int) -> float:
    """The reduced mass of a mass m and a body; what forces do not move is as heavy as can be."""
    if gives_way(bodies.motion[b]):
        m = m * bodies.mass[b] / (m + bodies.mass[b])
    return m


@kc.kernel
def pair_with_plane(plane: Defaults, body: kc.Array[int], bodies: Partners, four: kc.Array[kc.float4]):
    """Of a body and a plane, whose numbers stand in the row; by mass, where neither of the two has them."""
    r = kc.tid()
    b = body[r]
    own = paired(kc.float4(plane.ke[r], plane.kd[r], plane.kf[r], plane.mu[r]), bodies.four[b])
    four[r] = filled_up(own, own, by_mass(bodies.mass[b], plane.rate[r], plane.ratio[r]))


@kc.kernel
def pair_of_bodies(
    scene: Defaults, one: kc.Array[int], other: kc.Array[int], bodies: Partners, four: kc.Array[kc.float4]
):
    """Of two bodies."""
    r = kc.tid()
    a, b = one[r], other[r]
    m = bodies.mass[b]
    if gives_way(bodies.motion[a]):
        m = reduced(bodies.mass[a], bodies, b)
    four[r] = completed(paired(bodies.four[a], bodies.four[b]), scene, r, m)


@kc.kernel
def pair_of_neighbours(
    given: kc.Array[int], scene: Defaults, soft_rate: kc.Array[float], one: kc.Array[int], other: kc.Array[int],
    bodies: Partners, four: kc.Array[kc.float4], law: kc.Array[int],
):  # fmt: skip
    """The same of two bodies that found each other, and their law: a step finds the pressure of those without a ke, and
    of what sticks. What has a ke swings with another rate, where it has no kd or kf."""
    r = kc.tid()
    a, b = one[r], other[r]
    own, l, m = paired(bodies.four[a], bodies.four[b]), given[r], bodies.mass[b]
    if gives_way(bodies.motion[a]):
        m = reduced(bodies.mass[a], bodies, b)
    if l == SMOOTH or l == FIRM:
        l = FIRM if max(own.z, scene.kf[r]) >= STICK or max(own.x, scene.ke[r]) < 0.0 else SMOOTH
    natural = by_mass(m, scene.rate[r], scene.ratio[r])
    if l != FIRM:
        natural = by_mass(m, soft_rate[r], scene.ratio[r])
    four[r] = filled_up(own, kc.float4(scene.ke[r], scene.kd[r], scene.kf[r], scene.mu[r]), natural)
    law[r] = l


@kc.kernel
def pair_with_particle(
    scene: Defaults,
    particle: kc.Array[int],
    body: kc.Array[int],
    bodies: Partners,
    particle_mass: kc.Array[float],
    four: kc.Array[kc.float4],
):
    """Of a particle and a body."""
    r = kc.tid()
    b = body[r]
    four[r] = completed(bodies.four[b], scene, r, reduced(particle_mass[particle[r]], bodies, b))


@kc.kernel
def pair_with_triangle(
    scene: Defaults,
    corners: kc.Array[int, 2],
    body: kc.Array[int],
    bodies: Partners,
    particle_mass: kc.Array[float],
    four: kc.Array[kc.float4],
):
    """Of a triangle and a body: those of a particle of the mean mass of its corners."""
    r = kc.tid()
    b = body[r]
    m = (particle_mass[corners[r, 0]] + particle_mass[corners[r, 1]] + particle_mass[corners[r, 2]]) / 3.0
    four[r] = completed(bodies.four[b], scene, r, reduced(m, bodies, b))
