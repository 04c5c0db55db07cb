"""Programs of several launches: buffers used again, state in place, views, copies."""

from laws.bench import N, leaf, program, whole, zeros

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def times(x: kc.Array[float], y: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.sin(x[i]) * y[i]


@kc.kernel
def damp(x: kc.Array[float], y: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.sin(x[i]) * kc.cos(y[i])


@kc.kernel
def add_to(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] += x[i] * x[i]


@kc.kernel
def total(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, x[i] * x[i])


def reused_buffer(run, x, buffer, out):
    n = len(x)
    for _ in range(3):
        run(square, n, [x], [buffer])
        run(add_to, n, [buffer], [out])
        run(damp, n, [buffer, out], [x])


program("a buffer used again in every step", reused_buffer, x=leaf(N), buffer=zeros(N), out=zeros(N))


def unmarked_middle(run, x, a, b, out):
    n = len(x)
    run(square, n, [x], [a])
    run(times, n, [a, x], [b])
    run(total, n, [b], [out])


program("buffers in the middle are not marked", unmarked_middle, x=leaf(N), a=zeros(N), b=zeros(N), out=zeros(1))


@kc.kernel
def euler(q: kc.Array[float], v: kc.Array[float], k: kc.Array[float], dt: float):
    i = kc.tid()
    v[i] = v[i] - dt * k[0] * kc.sin(q[i])
    q[i] = q[i] + dt * v[i]


def rollout(run, q, v, k):
    for _ in range(10):
        run(euler, len(q), [q, v, k, 0.1])


program("state stepped in place", rollout, q=leaf(N), v=leaf(N), k=leaf(1))


@kc.kernel
def step(a: kc.Array[float], k: kc.Array[float], b: kc.Array[float]):
    i = kc.tid()
    j = i + 1 if i + 1 < a.shape[0] else 0
    b[i] = kc.sin(a[i] * k[0]) + 0.3 * a[j]


def ping_pong(run, a, b, k):
    for n in range(5):
        run(step, len(a), [a, k] if n % 2 == 0 else [b, k], [b] if n % 2 == 0 else [a])


program("ping-pong", ping_pong, a=leaf(N), b=zeros(N), k=leaf(1))


@kc.kernel
def spring_forces(x: kc.Array[kc.float3], pairs: kc.Array[int, 2], k: kc.Array[float], f: kc.Array[kc.float3]):
    i = kc.tid()
    a, b = pairs[i, 0], pairs[i, 1]
    d = x[b] - x[a]
    force = d * (k[i] * (kc.length_sq(d) - 0.5))
    kc.atomic_add(f, a, force)
    kc.atomic_sub(f, b, force)


@kc.kernel
def integrate(x: kc.Array[kc.float3], v: kc.Array[kc.float3], f: kc.Array[kc.float3], dt: float):
    i = kc.tid()
    v[i] += f[i] * dt
    x[i] += v[i] * dt


def cloth(run, x, v, k, pairs, f):
    for _ in range(4):
        run.zero(f)
        run(spring_forces, len(pairs), [x, pairs, k], [f])
        run(integrate, len(x), [x, v, f, 0.05])


program("forces, cleared in every step", cloth, x=leaf(N + 1, kc.float3), v=leaf(N + 1, kc.float3), k=leaf(N),
        pairs=whole((N, 2), N + 1), f=zeros(N + 1, kc.float3))  # fmt: skip


def copied(run, x, y, out):
    n = len(x)
    run.assign(y, x)
    run(square, n, [y], [x])
    run(times, n, [x, y], [out])
    run.assign(y, out)
    run(add_to, n, [y], [out])


program("arrays assigned to each other", copied, x=leaf(N), y=zeros(N), out=zeros(N))


def overwritten_result(run, x, y, out):
    n = len(x)
    run(square, n, [x], [y])
    run(square, n, [y], [out])
    run.zero(y)
    run(add_to, n, [x], [y])
    run(add_to, n, [y], [out])
    run.assign(x, y)


program("results overwritten after they were read", overwritten_result, x=leaf(N), y=leaf(N), out=zeros(N))


@kc.kernel
def collect(x: kc.Array[float], level: float, count: kc.Array[int], kept: kc.Array[int]):
    i = kc.tid()
    if x[i] > level:
        kept[kc.atomic_add(count, 0, 1)] = i


@kc.kernel
def use(x: kc.Array[float], count: kc.Array[int], kept: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    if i < count[0]:
        out[i] += x[kept[i]] * x[kept[i]]


def collisions(run, x, count, kept, out):
    n = len(x)
    for level in (0.6, 0.9, 1.2):
        run.zero(count)
        run(collect, n, [x, level], [count, kept])
        run(use, n, [x, count, kept], [out])
        run(square, n, [out], [x])


program("indices found anew in every step", collisions, x=leaf(N), count=whole(1), kept=whole(N), out=zeros(N))


@kc.kernel
def halves(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = a[i] * b[i]


def views(run, x, out):
    n = len(x) // 2
    run(halves, n, [x[:n], x[n:]], [out])
    run(square, n, [out], [x[n:]])
    run(halves, n, [x[::2], x[1::2]], [out])


program("views of one array", views, x=leaf(2 * N), out=zeros(N))


@kc.kernel
def rows(x: kc.Array[float, 2], out: kc.Array[float]):
    i = kc.tid()
    s = 1.0
    for j in range(x.shape[1]):
        s *= x[i, j]
    out[i] = s


@kc.kernel
def as_vectors(x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i] = kc.cross(x[i], kc.float3(0.5, x[i].x, 1.0))


def seen_as_vectors(run, x, y, out):
    n = len(x)
    run(as_vectors, n, [x], [y])
    run(rows, n, [y], [out])


program("rows of three seen as vectors", seen_as_vectors, x=leaf((N, 3)), y=zeros((N, 3)), out=zeros(N), strided=False)


@kc.kernel
def bounds(x: kc.Array[float], low: kc.Array[float]):
    i = kc.tid()
    kc.atomic_min(low, 0, x[i] * x[i])


@kc.kernel
def shifted(x: kc.Array[float], low: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * (x[i] - low[0])


def normalised(run, x, low, y):
    n = len(x)
    for _ in range(3):
        run.assign(low, [9.0])
        run(bounds, n, [x], [low])
        run(shifted, n, [x, low], [y])
        run.assign(x, y)


program("a minimum found anew in every step", normalised, x=leaf(N), low=zeros(1), y=zeros(N))


def nothing_to_do(run, x, out):
    run(square, 0, [x], [out])
    run(square, len(x), [x], [out])


program("a launch of no threads", nothing_to_do, x=leaf(N), out=leaf(N))


def same_array_twice(run, x, out):
    n = len(x)
    run(times, n, [x, x], [out])
    run(add_to, n, [x], [out])


program("one array for two arguments", same_array_twice, x=leaf(N), out=zeros(N))
