"""Kernels of the simple and the double pendulum: point masses on massless rods, viscous torque in every joint.

One thread runs one pendulum from start to end. Angles (rad) are from the hanging position, counterclockwise seen from
+z; those of the double pendulum are both from the vertical, and its joints brake the difference of the rates.
"""
# mypy: ignore-errors

import kernelc as kc

S = 21.0**0.5


@kc.func
def simple_rates(y, p):
    """m l² θ'' = -m g l sin θ - c θ' for y = (θ, θ') and p = (length, mass, gravity, damping)."""
    length, mass, gravity, damping = p[0], p[1], p[2], p[3]
    torque = -mass * gravity * length * kc.sin(y[0]) - damping * y[1]
    return kc.float2(y[1], torque / (mass * length * length))


@kc.func
def double_rates(y, p):
    """Lagrange's equations for y = (θ1, θ2, θ1', θ2') and p = (l1, l2, m1, m2, gravity, c1, c2): M θ'' = torque."""
    l1, l2, m1, m2, g, c1, c2 = p[0], p[1], p[2], p[3], p[4], p[5], p[6]
    sine, cosine = kc.sin(y[0] - y[1]), kc.cos(y[0] - y[1])
    joint = c2 * (y[3] - y[2])
    torque = kc.float2(
        -m2 * l1 * l2 * sine * y[3] * y[3] - (m1 + m2) * g * l1 * kc.sin(y[0]) - c1 * y[2] + joint,
        m2 * l1 * l2 * sine * y[2] * y[2] - m2 * g * l2 * kc.sin(y[1]) - joint,
    )
    a, b, d = (m1 + m2) * l1 * l1, m2 * l1 * l2 * cosine, m2 * l2 * l2
    det = a * d - b * b  # m2 l1² l2² (m1 + m2 sin²(θ1 - θ2)): never zero
    return kc.float4(y[2], y[3], (d * torque.x - b * torque.y) / det, (a * torque.y - b * torque.x) / det)


def step_by(rates):
    """A step of the explicit Runge-Kutta method of order 8 of Cooper and Verner (1972), for y' = rates(y, p)."""

    @kc.func
    def step(y, h, p):
        k1 = rates(y, p)
        k2 = rates(y + k1 * (h / 2.0), p)
        k3 = rates(y + (k1 + k2) * (h / 4.0), p)
        k4 = rates(y + (k1 / 7.0 - k2 * ((7.0 + 3.0 * S) / 98.0) + k3 * ((21.0 + 5.0 * S) / 49.0)) * h, p)
        k5 = rates(y + (k1 * ((11.0 + S) / 84.0) + k3 * ((18.0 + 4.0 * S) / 63.0) + k4 * ((21.0 - S) / 252.0)) * h, p)
        k6 = rates(
            y
            + (
                k1 * ((5.0 + S) / 48.0)
                + k3 * ((9.0 + S) / 36.0)
                + k4 * ((-231.0 + 14.0 * S) / 360.0)
                + k5 * ((63.0 - 7.0 * S) / 80.0)
            )
            * h,
            p,
        )
        k7 = rates(
            y
            + (
                k1 * ((10.0 - S) / 42.0)
                + k3 * ((-432.0 + 92.0 * S) / 315.0)
                + k4 * ((633.0 - 145.0 * S) / 90.0)
                + k5 * ((-504.0 + 115.0 * S) / 70.0)
                + k6 * ((63.0 - 13.0 * S) / 35.0)
            )
            * h,
            p,
        )
        k8 = rates(y + (k1 / 14.0 + k5 * ((14.0 - 3.0 * S) / 126.0) + k6 * ((13.0 - 3.0 * S) / 63.0) + k7 / 9.0) * h, p)
        k9 = rates(
            y
            + (
                k1 / 32.0
                + k5 * ((91.0 - 21.0 * S) / 576.0)
                + k6 * (11.0 / 72.0)
                + k7 * ((-385.0 - 75.0 * S) / 1152.0)
                + k8 * ((63.0 + 13.0 * S) / 128.0)
            )
            * h,
            p,
        )
        k10 = rates(
            y
            + (
                k1 / 14.0
                + k5 / 9.0
                + k6 * ((-733.0 - 147.0 * S) / 2205.0)
                + k7 * ((515.0 + 111.0 * S) / 504.0)
                + k8 * ((-51.0 - 11.0 * S) / 56.0)
                + k9 * ((132.0 + 28.0 * S) / 245.0)
            )
            * h,
            p,
        )
        k11 = rates(
            y
            + (
                k5 * ((-42.0 + 7.0 * S) / 18.0)
                + k6 * ((-18.0 + 28.0 * S) / 45.0)
                + k7 * ((-273.0 - 53.0 * S) / 72.0)
                + k8 * ((301.0 + 53.0 * S) / 72.0)
                + k9 * ((28.0 - 28.0 * S) / 45.0)
                + k10 * ((49.0 - 7.0 * S) / 18.0)
            )
            * h,
            p,
        )
        return y + (k1 * 9.0 + k8 * 49.0 + k9 * 64.0 + k10 * 49.0 + k11 * 9.0) * (h / 180.0)

    return step


simple_step = step_by(simple_rates)
double_step = step_by(double_rates)


@kc.struct
class Pendula:
    """Rods (m), masses (kg), angles (rad) and rates (rad/s) at the start, gravity (m/s²), damping (N m s/rad)."""

    length: kc.Array[float]
    mass: kc.Array[float]
    angle: kc.Array[float]
    rate: kc.Array[float]
    gravity: kc.Array[float]
    damping: kc.Array[float]


@kc.struct
class DoublePendula:
    """The same for two rods each, the upper one first."""

    length: kc.Array[kc.float2]
    mass: kc.Array[kc.float2]
    angle: kc.Array[kc.float2]
    rate: kc.Array[kc.float2]
    gravity: kc.Array[float]
    damping: kc.Array[kc.float2]


@kc.func
def hung(angle: float, length: float) -> kc.float3:
    """Where the end of a rod is that hangs at the origin."""
    return kc.float3(kc.sin(angle), -kc.cos(angle), 0.0) * length


@kc.kernel
def simple_rollout(
    pendula: Pendula,
    h: float,
    substeps: int,
    angles: kc.Array[float, 2],
    rates: kc.Array[float, 2],
    x: kc.Array[kc.float3, 2],
):
    """Frames of pendulum i, the start first: angle, rate, and where the mass is."""
    i = kc.tid()
    p = kc.float4(pendula.length[i], pendula.mass[i], pendula.gravity[i], pendula.damping[i])
    y = kc.float2(pendula.angle[i], pendula.rate[i])
    for frame in range(angles.shape[1]):
        if frame > 0:
            for _ in range(substeps):
                y = simple_step(y, h, p)
        angles[i, frame] = y[0]
        rates[i, frame] = y[1]
        x[i, frame] = hung(y[0], p[0])


@kc.kernel
def double_rollout(
    pendula: DoublePendula,
    h: float,
    substeps: int,
    angles: kc.Array[kc.float2, 2],
    rates: kc.Array[kc.float2, 2],
    x: kc.Array[kc.float3, 3],
):
    """Frames of double pendulum i, the start first: both angles and rates, and where the masses are."""
    i = kc.tid()
    l, m, c = pendula.length[i], pendula.mass[i], pendula.damping[i]
    p = kc.vec(7)(l.x, l.y, m.x, m.y, pendula.gravity[i], c.x, c.y)
    y = kc.float4(pendula.angle[i], pendula.rate[i])
    for frame in range(angles.shape[1]):
        if frame > 0:
            for _ in range(substeps):
                y = double_step(y, h, p)
        angles[i, frame] = y[0:2]
        rates[i, frame] = y[2:4]
        first = hung(y[0], l.x)
        x[i, frame, 0] = first
        x[i, frame, 1] = first + hung(y[1], l.y)
