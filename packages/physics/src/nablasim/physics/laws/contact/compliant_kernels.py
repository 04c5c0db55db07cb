"""The law of compliant contact at one point: [ke, kd, kf, mu] to a force. Every kind of contact calls `contact_force`.

Normal force, gap C and penetration p = max(-C, 0), rate dC/dt:

    "linear"   ke p + kd max(-dC/dt, 0): the paper's, damping only while approaching; it jumps at touch
    "smooth"   p (ke - kd dC/dt / (p + touch)), never below zero: damping grows with the penetration (Hunt-Crossley),
               and is kd for p far beyond the length `touch`

Friction |f_t| = min(mu f_n, kf |u|), opposite to the slip velocity u, in any direction alike. A `smoothing` length
above zero rounds the kinks of p, of f_n and of min: the force is then C1 in positions and velocities ("smooth").

Dampers and friction may be taken at the end of a step: `pace` is then dt / mass, and the velocity is the one that the
step would end with without this contact. They are solved for in closed form, never take more than the momentum that is
there, and so limit no step, however light the particle. With pace = 0 it is the law itself.

Where many contacts share a mass, they cannot be solved for one by one. There dampers are `bounded`: what the step can
resolve is the law itself, and what is beyond takes about the momentum that is there.
"""
# mypy: ignore-errors

import kernelc as kc

SMOOTH, FIRM = 1, 3
"""`FIRM` is the law of bodies that have no numbers of their own, but by their mass: "smooth" where forces are looked
at; in a step they are found for all bodies together (rubbing_kernels.py)."""


@kc.struct
class Contact:
    """The law of each row of a table of contacts: `four` is [ke, kd, kf, mu]."""

    four: kc.Array[kc.float4]
    law: kc.Array[int]
    touch: kc.Array[float]
    smoothing: kc.Array[float]


@kc.struct
class HalfSpaces:
    """Pairs of something with a half-space n·x < offset, and the law of their contact."""

    normal: kc.Array[kc.float3]
    offset: kc.Array[float]
    ke: kc.Array[float]
    kd: kc.Array[float]
    kf: kc.Array[float]
    mu: kc.Array[float]
    law: kc.Array[int]
    touch: kc.Array[float]
    smoothing: kc.Array[float]


@kc.func
def hinge(s: float, width: float) -> float:
    """max(s, 0), with a parabola instead of the corner for |s| < width."""
    h = s
    if s <= -width:
        h = 0.0
    elif s < width:
        h = (s + width) * (s + width) / (4.0 * width)
    return h


@kc.func
def hinge_integral(s: float, width: float) -> float:
    """The integral of `hinge`: the energy of a contact spring of unit stiffness."""
    e = 0.5 * s * s + width * width / 6.0
    if s <= -width:
        e = 0.0
    elif s < width:
        e = (s + width) * (s + width) * (s + width) / (12.0 * width)
    return e


@kc.func
def bounded(c: float, pace: float) -> float:
    """A damper c that changes no velocity by more than all of it in a step: pace is dt times the inverse mass.

    It is never above 1 / pace, and differs from c only by the square of pace · c.
    """
    return c / kc.sqrt(1.0 + (pace * c) * (pace * c))


@kc.func
def normal_force(
    gap: float, rate: float, ke: float, kd: float, law: int, touch: float, smoothing: float, pace: float
) -> float:
    """How hard the surfaces push each other apart; `law` is 0 for "linear", 1 for "smooth"."""
    p = hinge(-gap, smoothing)
    fn = 0.0
    if p > 0.0:
        if law == 0:
            fn = ke * p
            if rate + pace * fn < 0.0:  # Still approaching at the end of the step.
                fn = (fn - kd * rate) / (1.0 + pace * kd)
        else:
            push = hinge(ke - kd * rate / (p + touch), ke * smoothing / (smoothing + p))
            fn = p * push / (1.0 + pace * kd * p / (p + touch))
    return fn


@kc.func
def friction_slopes(slip: float, cap: float, kf: float, width: float):
    """F / slip and dF / dslip: kf while sticking, mu f_n / slip and nothing while sliding, rounded between them."""
    across, slope, pull = kf, kf, kf * slip
    if pull >= cap * (1.0 + width):
        # At rest (slip = 0) this is reached only without any cap.
        across, slope = cap / slip if slip > 0.0 else 0.0, 0.0
    elif pull > cap * (1.0 - width):
        r = pull / cap - 1.0 - width
        across, slope = cap * (1.0 - r * r / (4.0 * width)) / slip, -kf * r / (2.0 * width)
    return across, slope


@kc.func
def friction_energy(slip: float, cap: float, kf: float, width: float) -> float:
    """The integral of F over the slip."""
    energy, pull = 0.0, kf * slip
    if cap > 0.0:
        q = pull / cap
        g = 0.5 * q * q
        if q > 1.0 - width:
            g = 0.5 * (1.0 - width) * (1.0 - width) + (q - 1.0 + width)
            if q < 1.0 + width:
                r = q - 1.0 - width
                g -= (r * r * r + 8.0 * width * width * width) / (12.0 * width)
            else:
                g -= 2.0 / 3.0 * width * width
        energy = cap * cap / kf * g
    return energy


@kc.func
def rounding(gap: float, smoothing: float) -> float:
    """Over which part of the cap the corner of the cone is rounded."""
    width = 0.0
    if smoothing > 0.0:
        width = 0.5 * smoothing / (smoothing + hinge(-gap, smoothing))
    return width


@kc.func
def contact_force(
    gap: float,
    velocity: kc.float3,
    normal: kc.float3,
    ke: float,
    kd: float,
    kf: float,
    mu: float,
    law: int,
    touch: float,
    smoothing: float,
    pace: float,
) -> kc.float3:
    """The force on the first of two bodies: `normal` points to it, `velocity` is its velocity against the other."""
    rate = kc.dot(velocity, normal)
    fn = normal_force(gap, rate, ke, kd, law, touch, smoothing, pace)
    force = kc.float3()
    if fn > 0.0:
        u = velocity - normal * rate
        rub = kf / (1.0 + pace * kf)
        across, _ = friction_slopes(kc.length(u), mu * fn, rub, rounding(gap, smoothing))
        force = normal * fn - u * across
    return force


@kc.func
def shared_force(
    c: Contact, r: int, part: float, gap: float, velocity: kc.float3, normal: kc.float3, pace: float, rub: float
) -> kc.float3:
    """The force of a part of contact r, whose dampers are bounded: along the normal by `pace`, across it by `rub`."""
    k = c.four[r]
    if pace > 0.0 and c.law[r] >= 2:  # What a step has to find: rubbing_kernels.py.
        k = kc.float4()
    kd, kf = bounded(k.y * part, pace), bounded(k.z * part, rub)
    return contact_force(gap, velocity, normal, k.x * part, kd, kf, k.w, c.law[r], c.touch[r], c.smoothing[r], 0.0)


@kc.func
def begun_force(
    c: Contact, r: int, part: float, gap: float, velocity: kc.float3, normal: kc.float3, pace: float
) -> kc.float3:
    """What of `shared_force` is there when a step begins: not friction, and no pressure that the step has to find."""
    k, force = c.four[r], kc.float3()
    if c.law[r] < 2:
        rate = kc.dot(velocity, normal)
        kd = bounded(k.y * part, pace)
        force = normal * normal_force(gap, rate, k.x * part, kd, c.law[r], c.touch[r], c.smoothing[r], 0.0)
    return force
