"""Memory: elements, components, fields and local arrays that are overwritten."""

import numpy as np
from laws.bench import N, case, const, leaf, whole, zeros

import kernelc as kc


@kc.kernel
def square_in_place(x: kc.Array[float]):
    i = kc.tid()
    x[i] = x[i] ** 2


case("x[i] = x[i]**2", square_in_place, N, x=leaf(N))


@kc.kernel
def augmented(x: kc.Array[float], y: kc.Array[float], k: kc.Array[int]):
    i = kc.tid()
    y[i] *= x[i]
    y[i] += x[i] * y[i]
    y[i] -= kc.sin(x[i])
    y[i] /= x[i] + 1.0
    y[i] **= 2
    k[i] += 5
    k[i] //= 2
    k[i] %= 4
    y[i] *= float(k[i])


case("every augmented assignment", augmented, N, x=leaf(N), y=leaf(N), k=whole(N, 9))


@kc.kernel
def dead_write(x: kc.Array[float], y: kc.Array[float], z: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]
    a = y[i]
    y[i] = x[i] * 3.0
    z[i] = y[i] * a
    y[i] = x[i]


case("write, read, write, read, write", dead_write, N, x=leaf(N), y=leaf(N), z=zeros(N))


@kc.func
def through(a, scratch):
    scratch[0] = a * a
    return scratch[0] * a


@kc.kernel
def shared_scratch(x: kc.Array[float], scratch: kc.Array[float], out: kc.Array[float]):
    u = through(x[0], scratch)
    w = through(x[1], scratch)
    out[0] = u * w + scratch[0]


case("a function writes to memory, twice", shared_scratch, x=leaf(2), scratch=zeros(1), out=zeros(1))


@kc.kernel
def scan(x: kc.Array[float], n: int):
    for i in range(1, n):
        x[i] *= x[i - 1]


case("scan in place", scan, x=leaf(5), n=5)


@kc.kernel
def iterated(x: kc.Array[float], y: kc.Array[float], n: int):
    i = kc.tid()
    for _ in range(n):
        y[i] = 0.3 * y[i] * y[i] + x[i]


case("one element, iterated", iterated, N, x=leaf(N), y=leaf(N), n=5)


@kc.kernel
def history(x: kc.Array[float], t: kc.Array[float, 2], n: int, out: kc.Array[float]):
    i = kc.tid()
    t[i, 0] = x[i]
    for k in range(n):
        t[i, k + 1] = kc.sin(t[i, k]) * x[i]
    out[i] = t[i, n] * t[i, n // 2]


case("intermediate results in an array", history, N, x=leaf(N), t=zeros((N, 6)), n=5, out=zeros(N))


@kc.kernel
def guarded(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    if x[i] > 1.0:
        y[i] = y[i] * x[i]
        if y[i] > 1.2:
            y[i] = kc.sin(y[i])
            return
    y[i] = y[i] * y[i]


case("writes under conditions", guarded, N, x=leaf(N), y=leaf(N))


@kc.kernel
def writes_until(x: kc.Array[float], y: kc.Array[float, 2], n: int):
    i = kc.tid()
    for k in range(n):
        y[i, k % 2] *= x[i] + y[i, (k + 1) % 2]
        if y[i, k % 2] > 4.0:
            y[i, 0] = y[i, 0] * y[i, 1]
            break
        if k == 1:
            continue
        y[i, 1] += 0.3


case("writes in a loop that is left early", writes_until, N, x=leaf(N), y=leaf((N, 2)), n=6)


@kc.kernel
def index_in_memory(x: kc.Array[float], order: kc.Array[int], n: int, out: kc.Array[float]):
    for k in range(n):
        order[k] = (order[k] * 2 + 1) % 5
        out[order[k]] = out[order[k]] * x[k] + x[order[k]]


case("indices that are changed in memory", index_in_memory, x=leaf(5), order=whole([3, 1, 4, 0, 2]), n=5, out=leaf(5))


@kc.kernel
def four_dimensions(x: kc.Array[float, 4], y: kc.Array[float, 3], out: kc.Array[float, 2]):
    i, j = kc.tid()
    s = 0.0
    for k in range(x.shape[2]):
        for l in range(x.shape[3]):
            y[i, j, k] += x[i, j, k, l] * x[i, j, k, 0]
        s += y[i, j, k] * y[i, j, k]
    out[i, j] = s


case("up to four dimensions", four_dimensions, (N, 2), x=leaf((N, 2, 2, 2)), y=leaf((N, 2, 2)), out=zeros((N, 2)))


@kc.kernel
def three_axes(x: kc.Array[float, 3]):
    i, j, k = kc.tid()
    x[i, j, k] = kc.sin(x[i, j, k]) * x[i, j, k]


case("a grid of three axes", three_axes, (N, 2, 2), x=leaf((N, 2, 2)))


@kc.kernel
def gather(x: kc.Array[float], at: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    a = x[at[i]]
    b = x[at[at[i]]]
    out[i] = a * b + x[i]


case("gather", gather, N, x=leaf(N), at=whole(N, N), out=zeros(N))


@kc.kernel
def stencil(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    n = x.shape[0]
    left = x[i - 1] if i > 0 else 0.0
    right = x[i + 1] if i + 1 < n else 0.0
    out[i] = (left - 2.0 * x[i] + right) * x[i]


case("stencil with boundaries", stencil, N, x=leaf(N), out=zeros(N))


# -- components
@kc.kernel
def components(x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i].x = x[i].y * x[i].z
    y[i][1] = y[i].x * x[i].x
    y[i][1] *= y[i].z
    y[i] *= x[i].x
    y[i] += 0.5 * x[i]
    y[i].z -= y[i].y


case("components of elements", components, N, x=leaf(N, kc.float3), y=leaf(N, kc.float3))


@kc.kernel
def twice(x: kc.Array[float], out: kc.Array[float]):
    v = kc.float3(0.0, 1.0, 0.0)
    v[0] = x[0]
    v[0] = v[0] * v[0]
    v.y = v.x * x[1]
    v.x += v.y
    out[0] = v[0] * v[1]


case("components assigned twice", twice, x=leaf(2), out=zeros(1))


@kc.kernel
def components_in_loop(x: kc.Array[kc.float3], n: int, out: kc.Array[kc.float3]):
    i = kc.tid()
    v = x[i]
    for k in range(n):
        v.x *= v.y
        v[k % 3] += 0.1 * v.x
        v[(k + i) % 3] = kc.sin(v[k % 3])
    out[i] = v


case("components by a running index", components_in_loop, N, x=leaf(N, kc.float3), n=5, out=zeros(N, kc.float3))


@kc.kernel
def matrix_entries(x: kc.Array[kc.mat22], n: int, out: kc.Array[kc.mat22]):
    i = kc.tid()
    m = x[i]
    for k in range(n):
        m[0, 1] = m[0, 0] * m[1, 1] - m[0, 1]
        m[k % 2, 0] *= m[1, k % 2]
        m = m * 0.7 + kc.transpose(m) * 0.2
    out[i] = m * x[i]


case("entries of a matrix", matrix_entries, N, x=leaf(N, kc.mat22), n=3, out=zeros(N, kc.mat22))


@kc.kernel
def copies(x: kc.Array[kc.float3], out: kc.Array[kc.float3]):
    i = kc.tid()
    v = x[i]
    w = v
    v.x = 2.0 * v.y
    w.z *= v.x
    u = w
    w = v
    w.y = u.z
    out[i] = u + kc.cw_mul(v, w)


case("assignment copies", copies, N, x=leaf(N, kc.float3), out=zeros(N, kc.float3))


@kc.kernel
def turned(q: kc.Array[kc.quat], t: kc.Array[kc.transform], x: kc.Array[kc.float3], out: kc.Array[kc.float3]):
    i = kc.tid()
    p = kc.quat_rotate(q[i], x[i])
    r = q[i]
    r.w = r.w * 0.5 + p.x
    out[i] = kc.transform_point(t[i], p) + kc.quat_rotate_inv(r, x[i])


case("quaternions and transforms", turned, N, q=leaf(N, kc.quat), t=leaf(N, kc.transform), x=leaf(N, kc.float3),
     out=zeros(N, kc.float3))  # fmt: skip


@kc.kernel
def wide(x: kc.Array[kc.vec(7)], M: kc.Array[kc.mat(2, 3)], S: kc.Array[kc.spatial_matrix], out: kc.Array[float]):
    i = kc.tid()
    s = 0.0
    v = x[i]
    for k in range(7):
        s += v[k] * v[(k + 1) % 7]
    w = M[i] * kc.float3(v[0], v[1], s)
    t = S[i] * kc.spatial_vector(v[0], v[1], v[2], v[3], v[4], s)
    out[i] = w.x * w.y + kc.dot(t, t)


case("vectors and matrices of any size", wide, N, x=leaf(N, kc.vec(7)), M=leaf(N, kc.mat(2, 3)),
     S=leaf(N, kc.spatial_matrix, 0.1, 0.3), out=zeros(N))  # fmt: skip


# -- structs
@kc.struct
class Ball:
    x: kc.float3
    v: kc.float3
    m: float
    kind: int


@kc.struct
class Pair:
    a: Ball
    rest: float


@kc.func
def pushed(b, f, dt):
    b.v += f * (dt / b.m)
    b.x += b.v * dt
    return b


@kc.kernel
def fly(balls: kc.Array[Ball], f: kc.Array[kc.float3], dt: float, n: int, out: kc.Array[kc.float3]):
    i = kc.tid()
    b = balls[i]
    c = b
    for _ in range(n):
        b = pushed(b, f[i] - 0.5 * b.v, dt)
        b.m *= 1.01
    if b.kind > 2:
        b.x.y = c.x.z * b.x.y
    out[i] = b.x + c.v


case("structs", fly, N, balls=leaf(N, Ball), f=leaf(N, kc.float3), dt=0.1, n=4, out=zeros(N, kc.float3))


@kc.kernel
def fields(pairs: kc.Array[Pair], k: float, out: kc.Array[float]):
    i = kc.tid()
    p = pairs[i]
    p.a.x.y = p.a.x.y * p.rest
    q = Pair(a=p.a, rest=k)
    q.a.v.z *= q.a.x.y
    out[i] = p.a.v.z * q.a.v.z + q.rest * p.a.m


case("structs in structs", fields, N, pairs=leaf(N, Pair), k=0.7, out=zeros(N))


@kc.kernel
def fields_in_place(balls: kc.Array[Ball], dt: float):
    i = kc.tid()
    balls[i].v.y = balls[i].v.y - dt * kc.sin(balls[i].x.y)
    balls[i].x += balls[i].v * dt
    balls[i].kind += 1
    balls[i].m *= balls[i].m


case("fields of elements in place", fields_in_place, N, balls=leaf(N, Ball), dt=0.1)


@kc.kernel
def by_value(ball: Ball, x: kc.Array[kc.float3], gravity: kc.float3, out: kc.Array[float]):
    i = kc.tid()
    out[i] = ball.m * kc.dot(ball.x - x[i], gravity) + float(ball.kind)


case("structs and vectors by value", by_value, N, ball=Ball(x=np.array([1.0, 2.0, 3.0]), m=2.0, kind=3),
     x=leaf(N, kc.float3), gravity=np.array([0.0, -9.8, 1.0]), out=zeros(N))  # fmt: skip


# -- local arrays
@kc.kernel
def smoothed(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    window = kc.local(4, float)
    for k in range(n):
        window[k % 4] = x[i] * kc.sin(x[i] + float(k))
        window[(k + 1) % 4] += 0.5 * window[k % 4]
    s = 1.0
    for k in range(4):
        s *= 1.0 + window[k]
    out[i] = s


case("local array", smoothed, N, x=leaf(N), n=6, out=zeros(N))


@kc.kernel
def median(x: kc.Array[float, 2], out: kc.Array[float]):
    i = kc.tid()
    v = kc.local(5, float)
    for k in range(5):
        v[k] = x[i, k] * x[i, k]
    for k in range(1, 5):
        j = k
        while j > 0 and v[j - 1] > v[j]:
            v[j - 1], v[j] = v[j], v[j - 1]
            j -= 1
    out[i] = v[2] + 0.1 * v[0] * v[4]


case("sorting in a local array", median, N, x=leaf((N, 5)), out=zeros(N))


@kc.kernel
def local_vectors(x: kc.Array[kc.float3], n: int, out: kc.Array[float]):
    i = kc.tid()
    points = kc.local(3, kc.float3)
    counts = kc.local(3, int)
    for k in range(n):
        points[k % 3] += x[i] * (0.5 + float(k))
        points[(k * 2) % 3].y *= 0.8
        counts[k % 3] += k
    s = 0.0
    for k in range(3):
        s += kc.length(points[k]) * float(counts[k])
    out[i] = s


case("local arrays of vectors and whole numbers", local_vectors, N, x=leaf(N, kc.float3), n=5, out=zeros(N))


@kc.kernel
def zero_writes(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 0.0
    y[i] += x[i]
    y[i] = y[i] * y[i]


case("cleared, then accumulated", zero_writes, N, x=leaf(N), y=leaf(N))


@kc.kernel
def only_reads(x: kc.Array[float], c: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    c[i] = c[i] * 2.0
    out[i] = x[i] * c[i]
    c[i] = c[i] + 1.0
    out[i] += x[i] * x[i] * c[i]


case("a factor without gradient that changes", only_reads, N, x=leaf(N), c=const(N), out=zeros(N))
