"""Atomics: sums, extrema, and whole numbers that come back and are used as indices."""

from laws.bench import N, case, leaf, whole, zeros

import kernelc as kc


@kc.kernel
def histogram(x: kc.Array[float], bin: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, bin[i], x[i] * x[i])
    kc.atomic_sub(out, (bin[i] + 1) % 3, kc.sin(x[i]))
    out[(bin[i] + 2) % 3] += x[i]
    out[0] -= 0.5 * x[i]


case("scattered sums", histogram, N, x=leaf(N), bin=whole(N, 3), out=leaf(3))


@kc.kernel
def springs(x: kc.Array[kc.float3], pairs: kc.Array[int, 2], rest: kc.Array[float], k: float, f: kc.Array[kc.float3]):
    i = kc.tid()
    a, b = pairs[i, 0], pairs[i, 1]
    d = x[b] - x[a]
    force = kc.normalize(d) * (k * (kc.length(d) - rest[i]))
    kc.atomic_add(f, a, force)
    kc.atomic_sub(f, b, force)


case("springs", springs, N, x=leaf(N + 1, kc.float3), pairs=whole((N, 2), N + 1), rest=leaf(N), k=10.0,
     f=zeros(N + 1, kc.float3))  # fmt: skip


@kc.kernel
def total(x: kc.Array[float], out: kc.Array[float, 2]):
    i = kc.tid()
    kc.atomic_add(out, i % 2, 0, x[i] * x[i])
    kc.atomic_add(out, 0, 1, x[i])


case("sums in two dimensions", total, N, x=leaf(N), out=zeros((2, 2)))


@kc.kernel
def extrema(x: kc.Array[float], low: kc.Array[float], high: kc.Array[float]):
    i = kc.tid()
    kc.atomic_min(low, i % 2, x[i] * x[i])
    kc.atomic_max(high, i % 2, kc.sin(2.0 * x[i]))


case("minimum and maximum over threads", extrema, N, x=leaf(N), low=zeros(2, fill=9.0), high=zeros(2, fill=-9.0),
     strided=False)  # fmt: skip
case("minimum and maximum with a content that may win", extrema, N, x=leaf(N), low=leaf([0.9, 0.01]),
     high=leaf([0.9, 2.0]), strided=False)  # fmt: skip


@kc.kernel
def extrema_in_loop(x: kc.Array[float], n: int, high: kc.Array[float]):
    i = kc.tid()
    a = x[i]
    for k in range(n):
        a = kc.sin(3.0 * a) + 0.1 * float(k)
        if a < 0.0:
            continue
        kc.atomic_max(high, k % 2, a * x[i])


case("maximum over threads and iterations", extrema_in_loop, N, x=leaf(N), n=5, high=zeros(2), strided=False)


@kc.kernel
def extrema_with_fused_products(x: kc.Array[float], y: kc.Array[float], z: kc.Array[float], p: kc.Array[float],
                                high: kc.Array[float]):  # fmt: skip
    i = kc.tid()
    t = x[i] * y[i]
    p[i] = t
    kc.atomic_max(high, 0, t + z[i])


# The adjoint must compute the same bits as the forward kernel to find out who won.
case("the winner is found again", extrema_with_fused_products, N, x=leaf(N), y=leaf(N), z=leaf(N), p=zeros(N),
     high=zeros(1))  # fmt: skip


@kc.kernel
def vector_bounds(x: kc.Array[kc.float3], low: kc.Array[kc.float3], high: kc.Array[kc.float3]):
    i = kc.tid()
    kc.atomic_min(low, 0, x[i] * 2.0)
    kc.atomic_max(high, 0, x[i] * x[i].x)


case("bounding box", vector_bounds, N, x=leaf(N, kc.float3), low=zeros(1, kc.float3, 9.0),
     high=zeros(1, kc.float3, -9.0))  # fmt: skip


@kc.kernel
def compact(x: kc.Array[float], count: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    if x[i] > 0.8:
        k = kc.atomic_add(count, 0, 1)
        out[k] = x[i] * x[i]


case("compaction: a count as index", compact, N, x=leaf(N), count=whole(1), out=zeros(N))


@kc.kernel
def cells(x: kc.Array[float], count: kc.Array[int], last: kc.Array[int], out: kc.Array[float, 2]):
    i = kc.tid()
    for k in range(2):
        cell = int(x[i] * 2.5 + float(k)) % 3
        slot = kc.atomic_add(count, cell, 1)
        old = kc.atomic_max(last, 0, slot)
        out[cell, slot] = x[i] * float(slot + 1) + float(old % 2) * x[i] * x[i]


case("counts in cells, several for each thread", cells, N, x=leaf(N), count=whole(3), last=whole(1),
     out=zeros((3, 2 * N)))  # fmt: skip


@kc.kernel
def count_while(x: kc.Array[float], count: kc.Array[int], n: int, out: kc.Array[float]):
    i = kc.tid()
    a = x[i]
    while True:
        ticket = kc.atomic_add(count, 0, 1)
        a = kc.sin(a) + 0.1 * float(ticket % 3)
        if ticket % 4 == 3 or ticket > n:
            break
    out[i] = a


case("a count decides how long a loop runs", count_while, N, x=leaf(N), count=whole(1), n=40000, out=zeros(N))


@kc.kernel
def own_sums(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    for k in range(n):
        out[i] += x[i] * float(k)
    for k in range(n):
        kc.atomic_sub(out, i, 0.5 * out[i] * x[i])


case("sums in the thread's own element", own_sums, N, x=leaf(N), n=3, out=leaf(N))


@kc.kernel
def bits(x: kc.Array[float], marks: kc.Array[int, 2], seen: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_or(seen, 0, 1 << (i % 5))
    kc.atomic_and(seen, 1, ~(1 << (i % 3)))
    kc.atomic_xor(seen, 2, i)
    s = x[i]
    for k in range(4):
        old = kc.atomic_exchange(marks, i, k % 2, i + k)
        won = kc.atomic_cas(marks, i, 0, i + 2, 7) == i + 2
        s = kc.sin(s + 0.1 * float(old + marks[i, 0])) + (0.5 * s if won else x[i])
    out[i] = s * float(kc.atomic_xor(marks, i, 1, 3) + 1)


case("bits, exchanges and comparisons", bits, N, x=leaf(N), marks=whole((N, 2), 4), seen=whole(3, 31), out=zeros(N))
