"""Functions, choices, and rules of the user's own."""

import numpy as np
from laws.bench import N, case, const, leaf, whole, zeros

import kernelc as kc

STIFFNESS = 3.0
TABLE = (0.5, 1.5, 2.5)


@kc.func
def wave(a, b=2.0, *, shift=0.0):
    return kc.sin(a * b + shift)


@kc.func
def polar(v):
    r = kc.sqrt(v.x * v.x + v.y * v.y)
    return r, kc.atan2(v.y, v.x)


@kc.func
def clipped(a: float, low: float, high: float) -> float:
    if a < low:
        return low
    if a > high:
        return high
    return a


@kc.kernel
def calls(x: kc.Array[kc.float2], out: kc.Array[float]):
    i = kc.tid()
    r, angle = polar(x[i])
    out[i] = wave(r) * wave(angle, shift=0.5) + wave(b=r, a=angle) + clipped(r, 0.7, 1.3) + clipped(angle, -9.0, 9.0)


case("functions with several results, defaults and keywords", calls, N, x=leaf(N, kc.float2), out=zeros(N))


@kc.kernel
def choices(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    a = kc.sqrt(x[i] - 0.8) if x[i] > 0.8 else x[i] * x[i]
    b = kc.where(x[i] > 1.0, kc.log(x[i]), 0.5 * x[i])
    c = 1.0 / (x[i] - 1.0) if x[i] > 1.2 and kc.log(x[i] - 1.0) < 5.0 else a
    d = a if 0.5 < x[i] < 1.1 else b
    out[i] = a * b + c * d


case("only the side that is taken is formed", choices, 6, x=leaf([0.5, 0.7, 0.9, 1.0, 1.1, 1.5]), out=zeros(6))


@kc.kernel
def undefined_sides(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    safe = x[i] > 0.0
    a = kc.sqrt(x[i]) if safe else 0.0
    out[i] = a + kc.where(safe, kc.log(x[i]), 2.0 * x[i]) + (1.0 / x[i] if safe else x[i])


case("the other side is not a number", undefined_sides, 3, x=leaf([-0.5, 0.7, -1.5]), out=zeros(3))


@kc.kernel
def bounded(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.clamp(x[i], 0.7, 1.2) * kc.max(x[i], 0.9) + kc.min(x[i] * x[i], kc.abs(x[i] - 1.0)) + abs(x[i] - 2.0)


case("min, max, clamp, abs", bounded, N, x=leaf(N), out=zeros(N))


@kc.kernel
def shared_factors(x: kc.Array[kc.float4], m: kc.Array[kc.float4], k: kc.Array[kc.float4], out: kc.Array[kc.float4]):
    i = kc.tid()
    a, b, c = x[i], m[i], k[i]
    # Gradients by x and m share a reciprocal, those by x and k a product.
    out[i] = kc.float4(a.x / b.x, a.y / b.y, (a.z + c.z) * b.z + kc.sqrt(a.z), (a.w + c.w) * b.w + kc.sqrt(a.w))


case("quotients and products that several gradients share", shared_factors, N, x=leaf(N, kc.float4),
     m=const(N, kc.float4), k=const(N, kc.float4), out=zeros(N, kc.float4))  # fmt: skip
case("the same with more leaves", shared_factors, N, x=leaf(N, kc.float4), m=leaf(N, kc.float4), k=leaf(N, kc.float4),
     out=zeros(N, kc.float4))  # fmt: skip


@kc.kernel
def interpolated(table: kc.Array[float], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    k = int(x[i] * 2.0)
    f = x[i] * 2.0 - float(k)
    out[i] = table[k] * (1.0 - f) + table[k + 1] * f + kc.frac(x[i] + 0.05) * (x[i] % 0.7)


case("a real becomes an index", interpolated, N, table=leaf(6), x=leaf(N), out=zeros(N))


@kc.func
def cubed(a: float, v: kc.float3) -> kc.float3:
    return v * (a * a * a)


@cubed.adjoint
def _(a, v, adj_out):
    return 3.0 * a * a * kc.dot(v, adj_out), adj_out * (a * a * a)


@kc.kernel
def own_rule(x: kc.Array[float], v: kc.Array[kc.float3], n: int, out: kc.Array[kc.float3]):
    i = kc.tid()
    w = v[i]
    a = x[i]
    for k in range(n):
        w = cubed(a, w) if k % 2 == 0 else 0.5 * w
        a = kc.sin(a + w.x)
    out[i] = w


case("a rule of one's own, in a loop", own_rule, N, x=leaf(N), v=leaf(N, kc.float3), n=4, out=zeros(N, kc.float3))


@kc.func
def energy(a: float, b: float) -> float:
    return kc.sin(a * b) * a + b * b * b / a


@kc.func
def rolled(a: float, n: int) -> float:
    r = 1.0
    for _ in range(n):
        r = r * a + kc.sin(a * r)
    return r


@kc.kernel
def forces(x: kc.Array[float], y: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    fa, fb = kc.grad(energy)(x[i], y[i])
    out[i] = energy(x[i], y[i]) * fa - fb


case("kc.grad, and its gradient", forces, N, x=leaf(N), y=leaf(N), out=zeros(N))


@kc.kernel
def slope_of_loop(x: kc.Array[float], c: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.grad(rolled)(c[i], n) * x[i]


case("kc.grad of a loop", slope_of_loop, N, x=leaf(N), c=const(N), n=5, out=zeros(N))


@kc.func
def damped_sum(a: float, n: int) -> float:
    r = 0.0
    for k in range(n):
        r = 0.5 * r + kc.sin(a * float(k))
    return r


@kc.kernel
def slope_of_sum(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.grad(damped_sum)(x[i], n) * x[i]


case("kc.grad of a loop that keeps nothing, and its gradient", slope_of_sum, N, x=leaf(N), n=5, out=zeros(N))


@kc.kernel
def boxed(x: kc.Array[float], k: float, offset: kc.float3, out: kc.Array[kc.float3]):
    i = kc.tid()
    out[i] = (offset * k + kc.float3(x[i], 0.0, 1.0)) * k


case("numbers and vectors that require a gradient", boxed, N, x=leaf(N), k=leaf(1), offset=leaf(1, kc.float3),
     out=zeros(N, kc.float3))  # fmt: skip


@kc.kernel
def constants(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = x[i] * STIFFNESS * TABLE[1] + kc.static(len(TABLE)) * x[i] * x[i] + x[i] / kc.static(np.pi)


case("captured constants", constants, N, x=leaf(N), out=zeros(N))


@kc.kernel
def whole_numbers(x: kc.Array[float], seed: kc.Array[kc.uint32], big: kc.Array[kc.int64], out: kc.Array[float]):
    i = kc.tid()
    h = seed[i]
    for _ in range(4):
        h = (h ^ (h >> 3)) * 2654435761
    k = -7 // (i % 3 + 2) + -7 % 3
    big[i] += 4000000000
    flag = h % 2 == 0
    out[i] = x[int(h % 3)] * float(k) + (x[i] if flag else x[i] * x[i]) + float(big[i] % 10)


case("whole numbers of every kind", whole_numbers, N, x=leaf(N), seed=whole(N, 1000, dtype=kc.uint32),
     big=whole(N, 1000, dtype=kc.int64), out=zeros(N))  # fmt: skip


@kc.kernel
def pinned(x: kc.Array[float], sums: kc.Array[kc.float64]):
    i = kc.tid()
    a = kc.float64(x[i])
    kc.atomic_add(sums, i % 2, a * a)


case("sums in double precision", pinned, N, x=leaf(N), sums=zeros(2, kc.float64))


@kc.kernel
def linear_algebra(A: kc.Array[kc.mat33], b: kc.Array[kc.float3], out: kc.Array[float]):
    i = kc.tid()
    M = A[i] + 3.0 * kc.diag(kc.float3(1.0, 1.2, 1.4))
    R, S = kc.polar3(M)
    x = kc.solve(M, b[i])
    out[i] = kc.dot(x, kc.inverse(M) * b[i]) + kc.trace(S) + kc.determinant(M) * kc.length(kc.cross(x, b[i])) + R[0, 1]


case("linear algebra", linear_algebra, N, A=leaf(N, kc.mat33), b=leaf(N, kc.float3), out=zeros(N))


@kc.kernel
def cut_by_rounding(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = x[i] * kc.stop_grad(kc.floor(3.0 * x[i])) + float(int(2.0 * x[i]))


case("rounding does not carry a gradient", cut_by_rounding, N, x=leaf(N), out=zeros(N))


@kc.kernel
def parameters(x: kc.Array[float], on: bool, mode: int, out: kc.Array[float]):
    i = kc.tid()
    a = x[i]
    if on and mode > 1:
        a = kc.sin(a)
    out[i] = a * a if not on or mode == 2 else a


case("flags and modes", parameters, N, x=leaf(N), on=True, mode=2, out=zeros(N))
case("flags and modes, off", parameters, N, x=leaf(N), on=False, mode=1, out=zeros(N))
case("nothing depends on the leaf", cut_by_rounding, N, x=const(N), out=leaf(N), differences=True)
case("an unused leaf", parameters, N, x=leaf(N), on=True, mode=1, out=zeros(N))


@kc.func
def two_draws(state):
    a = kc.randf(state)
    return a * kc.randn(state), state


@kc.kernel
def drawing(x: kc.Array[float], n: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    state = kc.rng(n[i], i)
    s = x[i]
    for _ in range(n[i] + 2):
        if kc.randf(state) < 0.6:
            s = kc.sin(s) + 0.3 * kc.randn(state) * x[i]
        draw, state = two_draws(state)
        s += draw * s * 0.2
    out[i] = s


case("numbers drawn from a state", drawing, N, x=leaf(N), n=whole(N, 5), out=zeros(N))


@kc.kernel
def by_components(v: kc.Array[kc.int3], m: kc.Array[kc.mat22], out: kc.Array[kc.mat22]):
    i = kc.tid()
    k = kc.clamp(kc.abs(v[i] - kc.int3(2)), kc.int3(0), kc.int3(1, 2, 3)) + kc.sign(v[i]) * 2
    a = m[i]
    b = kc.sin(a) + kc.cw_mul(a, kc.exp(-a)) - kc.min(a, kc.mat22(1.0, 1.1, 0.9, 1.0)) * float(k.x + k.y)
    out[i] = kc.lerp(a, b, 0.3) + kc.cw_div(a, kc.abs(b) + kc.mat22(1.0, 1.0, 1.0, 1.0)) * float(kc.max(k, v[i]).z)


case("component-wise built-ins of integers and matrices", by_components, N, v=whole(N, 5, dtype=kc.int3),
     m=leaf(N, kc.mat22), out=zeros(N, kc.mat22))  # fmt: skip
