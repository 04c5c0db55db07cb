"""Bundles: structs that hold arrays, in funcs and in each other, with members that may be absent."""

import numpy as np
from laws.bench import N, leaf, program, whole, zeros

import kernelc as kc


@kc.struct
class Grain:
    stiffness: float
    kind: int


@kc.struct
class Grains:
    x: kc.Array[kc.float3]
    v: kc.Array[kc.float3]
    mass: kc.Array[float]
    gravity: kc.float3
    wind: kc.Array[kc.float3] | None


@kc.struct
class Box:
    grains: Grains
    grain: Grain
    drag: float
    next: kc.Array[int]
    force: kc.Array[kc.float3]


@kc.func
def weight(g: Grains, i: int) -> kc.float3:
    total = g.gravity * g.mass[i]
    if g.wind is not None:
        total += kc.sin(g.wind[i]) * g.mass[i] * g.mass[i]
    return total


@kc.func
def pull(g: Grains, i: int, j: int, grain: Grain):
    d = g.x[j] - g.x[i]
    return d * (grain.stiffness * kc.length(d) * float(grain.kind))


@kc.kernel
def forces(box: Box):
    i = kc.tid()
    grains = box.grains
    f = pull(grains, i, box.next[i], box.grain)
    kc.atomic_add(box.force, i, f + weight(grains, i))
    box.force[box.next[i]] -= f
    for k in range(len(grains.x) % 3 + 1):
        box.force[i] -= grains.v[i] * (box.drag * float(k))


@kc.kernel
def move(box: Box, dt: float):
    i = kc.tid()
    g = box.grains
    g.v[i] = g.v[i] + box.force[i] * (dt / g.mass[i])
    g.x[i] += g.v[i] * dt
    if g.x[i].y < 0.9 and g.wind is not None:
        g.wind[i] *= 0.5 * g.x[i].y


def _box(x, v, mass, force, follows, wind=None, drag=0.3):
    grains = Grains(x=x, v=v, mass=mass, gravity=np.array([0.1, -9.8, 0.3]), wind=wind)
    return Box(grains=grains, grain=Grain(stiffness=0.7, kind=2), drag=drag, next=follows, force=force)


def _steps(run, box):
    for _ in range(2):
        run.zero(box.force)
        run(forces, run.n, [box])
        run(move, run.n, [box], [0.1])


def _calm(run, x, v, mass, force, follows):
    _steps(run, _box(x, v, mass, force, follows))


def _windy(run, x, v, mass, wind, drag, force, follows):
    _steps(run, _box(x, v, mass, force, follows, wind, drag))


_GRAINS = {"x": leaf(N, kc.float3), "v": leaf(N, kc.float3), "mass": leaf(N)}
program("bundles", _calm, **_GRAINS, force=zeros(N, kc.float3), follows=whole(N, N))
program("bundles with an optional member, and a number as an array", _windy, **_GRAINS, wind=leaf(N, kc.float3),
        drag=leaf(1), force=zeros(N, kc.float3), follows=whole(N, N))  # fmt: skip


@kc.struct
class Law:
    gain: float = 1.5
    power: int = 2
    axis: kc.float2 = (0.5, -2.0)


@kc.struct
class Series(Law):
    x: kc.Array[float]
    weight: kc.Array[float] | None = None


@kc.func
def term(s: Series, i: int):
    value = s.gain * s.x[i] ** s.axis.x
    if s.weight is not None:
        value *= s.weight[i]
    return value


@kc.kernel
def summed(s: Series, out: kc.Array[float]):
    i = kc.tid()
    law = Law(power=3)
    inner = Series(x=s.x, gain=s.x[i])
    total = term(s, i) + term(inner, i)
    for k, a in enumerate((0.3, 0.7, 1.1)):
        total = total * s.x[i] + a * float(k * law.power) * law.axis.y
    for a, b in zip((1.0, 2.0), reversed((0.1, 0.2, 0.3))):
        total += kc.sin(a * total) * b * law.gain
    out[i] = total


def _series(run, x, weight, gain, out):
    run(summed, run.n, [Series(x=x)], [out])
    run(summed, run.n, [Series(x=x, weight=weight, gain=gain)], [out])


program("fields with defaults, inherited fields, bundles made in kernels", _series, x=leaf(N), weight=leaf(N),
        gain=leaf(1), out=zeros(N))  # fmt: skip
