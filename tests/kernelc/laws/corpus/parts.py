"""Rows of arrays, slices of vectors and matrices, and the operators that go with them."""

from laws.bench import N, case, leaf, whole, zeros

import kernelc as kc


@kc.func
def total(row: kc.Array[float], w: float):
    s = 0.0
    for j in range(row.shape[0]):
        s += row[j] * row[j] * w
    return s


@kc.func
def scale_first(row, by):
    row[0] = row[0] * by
    row[1] += by


@kc.kernel
def rows(a: kc.Array[float, 2], cube: kc.Array[kc.float2, 3], k: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    row = a[i]
    scale_first(row, cube[i][1, 0].x)
    plane = cube[i]
    line = plane[k[i]]
    line[len(line) - 1] *= 2.0
    cube[i][0][1].y = row[2] * 0.5
    kc.atomic_add(plane, 1, 1, kc.float2(row[1], 0.3))
    n, m = plane.shape
    out[i] = total(row, plane[0, 0].y) + line[0].x * float(n + 2 * m) + plane[1, 1].x * plane[0][1].y


case("rows of arrays", rows, N, a=leaf((N, 3)), cube=leaf((N, 2, 2), kc.float2), k=whole(N, 2), out=zeros(N))


@kc.kernel
def slices(v: kc.Array[kc.float4], m: kc.Array[kc.mat33], j: kc.Array[int], out: kc.Array[kc.float3]):
    i = kc.tid()
    a, b = v[i], m[i]
    a[1:3] = a[0:2] * a.w
    a[::-2] += kc.float2(0.5, a.x)
    b[:, j[i]] = b[j[i]] * 2.0 + a[1:]
    b[0:2, 0:2] = b[1:, 1:]
    b[2, :] *= 0.5
    m[i][1:, 0] = b[0, :2]
    out[i] = b[:, 0] * a.y + b[2] + 2.0 / a[:-1] + a[0:3] * b


case("slices of vectors and matrices", slices, N, v=leaf(N, kc.float4), m=leaf(N, kc.mat33), j=whole(N, 3),
     out=zeros(N, kc.float3))  # fmt: skip


@kc.kernel
def backwards(x: kc.Array[float], n: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    s = 1.0
    for k in reversed(range(n[i])):
        s = kc.clamp(s * x[i], low=0.1, high=4.0) + float(k)
    for k in reversed(range(1, n[i] + 4, 3)):
        s = s * x[i] + kc.sin(float(k) * x[i])
    for k in reversed(range(3)):
        s = s * x[i] - kc.min(b=float(k), a=s)
    out[i] = s


case("loops backwards, and built-ins by name", backwards, N, x=leaf(N), n=whole(N, 5), out=zeros(N))


@kc.kernel
def motions(t: kc.Array[kc.transform], u: kc.Array[kc.transform], out: kc.Array[kc.float3]):
    i = kc.tid()
    out[i] = kc.transform_point(t[i] * u[i], kc.float3(1.0, 2.0, 3.0))


case("products of transforms", motions, N, t=leaf(N, kc.transform), u=leaf(N, kc.transform), out=zeros(N, kc.float3))


WEIGHTS = [0.5, 2.0, -1.0]


@kc.kernel
def over_tuples(x: kc.Array[float], n: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    s = x[i]
    for w in WEIGHTS:
        s = s * x[i] + w
    for k, w in ((0, 0.3), (2, 0.7), (1, 1.1)):
        if k == n[i] % 3:
            continue
        s += kc.sin(s) * w * float(k + 1)
        if s > 3.0:
            break
        for j in (1, 2):
            s *= x[i]
            if j > n[i]:
                break
    out[i] = s


case("loops over tuples", over_tuples, N, x=leaf(N), n=whole(N, 4), out=zeros(N))


@kc.kernel
def slopes(x: kc.Array[kc.float3], out: kc.Array[float]):
    i = kc.tid()
    v = x[i]
    p, q = kc.grad(kc.atan2)(v.x, v.y)
    out[i] = kc.grad(kc.sin)(v.x) * v.y + p * q + kc.dot(kc.grad(kc.length)(v), kc.float3(1.0, 2.0, 3.0))


case("derivatives of built-ins", slopes, N, x=leaf(N, kc.float3), out=zeros(N))


@kc.kernel
def slopes_of_noise(x: kc.Array[kc.float3], out: kc.Array[float]):
    i = kc.tid()
    v = x[i]
    out[i] = kc.dot(kc.grad(kc.noise)(1, v), v) + kc.grad(kc.noise)(2, v[0:2]).y + kc.grad(kc.noise)(3, v.z)


case("derivatives of a built-in by the form that fits", slopes_of_noise, N, x=leaf(N, kc.float3), out=zeros(N))
