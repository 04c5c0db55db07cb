"""Kernels of bodies that bounce by impulses: free flight between impacts, and at each the time at which it happens.

One thread runs one body from start to end. The body touches the floor with balls of one radius about some of its points
(a ball: one, its middle; a box: its corners). The time of an impact is a root of a height; the last steps of the search
are Newton's, whose slope at a root is that of the root, so that adjoints know how the time moves.
"""
# mypy: ignore-errors

import kernelc as kc
from nablasim.physics.laws import free_turn

HALVINGS = 10
NEWTONS = 4
MOST = 32
"""Impacts within one step, after which the rest of it is flown."""
SHORT = 1e-6
"""Of a step: what is left of it, after which an impact belongs to the next one."""
SINKS = 0.2
"""Of its depth: what a point that is below the floor rises in a step."""
JAMMED = 1e-3
"""Of the lightness along the normal: what friction leaves of it at least."""


@kc.struct
class Bouncers:
    """Masses (kg), moments of inertia (kg m², body axes), states at the start, contact, gravity (m/s²)."""

    mass: kc.Array[float]
    inertia: kc.Array[kc.float3]
    position: kc.Array[kc.float3]
    rotation: kc.Array[kc.quat]
    velocity: kc.Array[kc.float3]
    spin: kc.Array[kc.float3]
    restitution: kc.Array[float]
    friction: kc.Array[float]
    gravity: kc.Array[kc.float3]
    floor: kc.Array[float]
    radius: kc.Array[float]
    points: kc.Array[kc.float3, 2]


@kc.struct
class Moving:
    """Place of the centre of mass, how it is turned, velocity, and angular velocity in world axes."""

    x: kc.float3
    q: kc.quat
    v: kc.float3
    w: kc.float3


@kc.func
def flown(m: Moving, inertia: kc.float3, gravity: kc.float3, t: float) -> Moving:
    """Where it is after t seconds of free flight."""
    I = kc.mat33(inertia.x, 0.0, 0.0, 0.0, inertia.y, 0.0, 0.0, 0.0, inertia.z)
    inverse = kc.mat33(1.0 / inertia.x, 0.0, 0.0, 0.0, 1.0 / inertia.y, 0.0, 0.0, 0.0, 1.0 / inertia.z)
    w = kc.quat_rotate_inv(m.q, m.w)
    turn = kc.quat_from_rotvec(free_turn(w, I, inverse, t))
    q = kc.normalize(kc.quat_multiply(m.q, turn))
    to_w = kc.quat_rotate(q, inverse * kc.quat_rotate_inv(turn, I * w))
    return Moving(x=m.x + m.v * t + gravity * (0.5 * t * t), q=q, v=m.v + gravity * t, w=to_w)


@kc.func
def above(m: Moving, point: kc.float3, up: kc.float3, clear: float) -> float:
    """Height of a point of the body over the floor."""
    return kc.dot(up, m.x + kc.quat_rotate(m.q, point)) - clear


@kc.func
def rising(m: Moving, point: kc.float3, up: kc.float3) -> float:
    return kc.dot(up, m.v + kc.cross(m.w, kc.quat_rotate(m.q, point)))


@kc.func
def touches(m: Moving, inertia: kc.float3, gravity: kc.float3, point: kc.float3, up: kc.float3, clear: float, h: float):
    """When the point, which is over the floor now and below it after h seconds, reaches it."""
    low, high = 0.0, h
    for _ in range(HALVINGS):
        t = 0.5 * (low + high)
        if above(flown(m, inertia, gravity, t), point, up, clear) > 0.0:
            low = t
        else:
            high = t
    at = high
    for _ in range(NEWTONS):
        then = flown(m, inertia, gravity, at)
        speed = rising(then, point, up)
        if speed < 0.0:
            at = kc.clamp(at - above(then, point, up, clear) / speed, 0.0, h)
    return at


@kc.func
def spread(d: kc.float3, q: kc.quat, arm: kc.float3, inertia: kc.float3, mass: float) -> kc.float3:
    """Change of the velocity of a point by an impulse d there."""
    turned = kc.quat_rotate_inv(q, kc.cross(arm, d))
    return d / mass + kc.cross(kc.quat_rotate(q, kc.cw_div(turned, inertia)), arm)


@kc.func
def hit(m: Moving, b: Bouncers, i: int, point: kc.float3, up: kc.float3, left: float, h: float) -> Moving:
    """An impulse at a point: Newton's restitution along the normal, Coulomb's friction across it.

    What would fly for less than the rest of the step is lifted so that it does: what rests bounces once in each step,
    too low to be seen.
    """
    mass, inertia, mu = b.mass[i], b.inertia[i], b.friction[i]
    arm = kc.quat_rotate(m.q, point) - up * b.radius[i]
    u = m.v + kc.cross(m.w, arm)
    down = -kc.dot(up, u)
    depth = kc.max(-above(m, point, up, b.floor[i] + b.radius[i]), 0.0)
    rest = kc.min(-0.5 * kc.dot(up, b.gravity[i]) * left, down) + SINKS * depth / h
    out = kc.max(b.restitution[i] * down, rest)
    along = u + up * down
    K = kc.mat33(spread(kc.float3(1.0, 0.0, 0.0), m.q, arm, inertia, mass),
                 spread(kc.float3(0.0, 1.0, 0.0), m.q, arm, inertia, mass),
                 spread(kc.float3(0.0, 0.0, 1.0), m.q, arm, inertia, mass))  # fmt: skip
    J = kc.inverse(K) * (up * out - u)
    push = kc.dot(up, J)
    across = J - up * push
    if kc.dot(across, across) > mu * mu * push * push:
        slip = kc.length(along)
        way = up
        if slip > 1e-9:
            way = up - along * (mu / slip)
        else:
            way = up + kc.normalize(across) * mu
        least = JAMMED * kc.dot(up, spread(up, m.q, arm, inertia, mass))
        J = way * ((out + down) / kc.max(kc.dot(up, spread(way, m.q, arm, inertia, mass)), least))
    turned = kc.quat_rotate_inv(m.q, kc.cross(arm, J))
    return Moving(x=m.x, q=m.q, v=m.v + J / mass, w=m.w + kc.quat_rotate(m.q, kc.cw_div(turned, inertia)))


@kc.kernel
def bounce_rollout(
    b: Bouncers,
    up: kc.float3,
    h: float,
    substeps: int,
    x: kc.Array[kc.float3, 2],
    rot: kc.Array[kc.quat, 2],
    v: kc.Array[kc.float3, 2],
    omega: kc.Array[kc.float3, 2],
):
    """Frames of body i, the start first."""
    i = kc.tid()
    m = Moving(x=b.position[i], q=kc.normalize(b.rotation[i]), v=b.velocity[i], w=b.spin[i])
    inertia, gravity = b.inertia[i], b.gravity[i]
    clear = b.floor[i] + b.radius[i]
    for frame in range(x.shape[1]):
        if frame > 0:
            for _ in range(substeps):
                left = h
                impacts = 0
                while left > 0.0:
                    after = flown(m, inertia, gravity, left)
                    first, which = left, -1
                    if impacts < MOST:
                        for k in range(b.points.shape[1]):
                            p = b.points[i, k]
                            if above(m, p, up, clear) <= 0.0 and rising(m, p, up) < 0.0:
                                if which < 0 or first > 0.0:
                                    first, which = 0.0, k
                            elif above(after, p, up, clear) < 0.0:
                                t = touches(m, inertia, gravity, p, up, clear, left)
                                if t < first and rising(flown(m, inertia, gravity, t), p, up) < 0.0:
                                    first, which = t, k
                    if which < 0 or left - first <= SHORT * h:
                        m = after
                        left = 0.0
                    else:
                        m = flown(m, inertia, gravity, first)
                        left = left - first
                        p = b.points[i, which]
                        m = hit(m, b, i, p, up, left, h)
                        impacts += 1
        x[i, frame] = m.x
        rot[i, frame] = m.q
        v[i, frame] = m.v
        omega[i, frame] = m.w
