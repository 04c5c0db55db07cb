"""Vectors, matrices, quaternions, structs and local arrays: values with components that can be read and written."""

import numpy as np
import pytest

import kernelc as kc
from kernelc.runtime import compile as compiling

CASES = {}


def case(want):
    """A kernel over one row of reals: x holds 1, 2, … 8 and `want` is what it must write to `out`."""

    def add(kernel):
        CASES[kernel.name] = (kernel, np.array(want, float))
        return kernel

    return add


X = kc.Array[float]
I = kc.Array[int]


# -- vectors are values
@case([9, 2, 3, 1, 2, 3, 1, 50])
@kc.kernel
def assignment_copies(x: X, k: I, out: X):
    a = kc.float3(x[0], x[1], x[2])
    b = a
    b.x = 9.0
    c = kc.float3(a)
    c[1] = 50.0
    write3(out, 0, b)
    write3(out, 3, a)
    out[6] = c.x
    out[7] = c.y


@kc.func
def write3(out, at, v):
    out[at] = v.x
    out[at + 1] = v.y
    out[at + 2] = v[2]


@kc.func
def spoil(v):
    v.x = 100.0
    v *= 2.0
    return v


@case([1, 2, 3, 200, 4, 6])
@kc.kernel
def calls_copy(x: X, k: I, out: X):
    a = kc.float3(x[0], x[1], x[2])
    b = spoil(a)
    write3(out, 0, a)
    write3(out, 3, b)


@case([2, 5, 3, 0.5, 1, 3, 2, 4])
@kc.kernel
def components_are_assigned(x: X, k: I, out: X):
    v = kc.float4(1.0)
    v.x, v.w = x[1], 0.5
    v[1] = 5.0
    v[-2] = 3.0
    out[0], out[1], out[2], out[3] = v.x, v.y, v.z, v.w
    m = kc.mat22(1.0, 2.0, 3.0, 4.0)
    m[0, 1], m[1, 0] = m[1, 0], m[0, 1]
    out[4], out[5], out[6], out[7] = m[0, 0], m[0, 1], m[1, 0], m[1][1]


@case([4, 0.5, 9, -1, 1, 2, 4, 1])
@kc.kernel
def components_are_augmented(x: X, k: I, out: X):
    v = kc.float4(x[0], x[1], x[2], x[3])
    v.x += 3.0
    v.y /= 4
    v.z **= 2
    v.w -= 5.0
    out[0], out[1], out[2], out[3] = v.x, v.y, v.z, v.w
    w = kc.float4(7.0, 7.0, 7.0, 7.0)
    w[0] %= 3
    w[1] //= 3
    w[k[1]] -= 3.0
    w[k[2]] *= 1.0 / 7.0
    out[4], out[5], out[6], out[7] = w.x, w.y, w[k[1]], w[k[2]]


@case([3, 20, 1, 2, 6, 2])
@kc.kernel
def run_time_components(x: X, k: I, out: X):
    v = kc.float3(x[0], x[1], x[2])
    out[0] = v[k[1]]
    v[k[0]] = 20.0
    out[1] = v.y
    for j in range(3):
        v[j] = v[j] / x[j]
    out[2] = v[2]
    for j in range(k[1] + 1):
        v[j] += 1.0
    out[3] = v.x
    m = kc.mat33(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], 9.0)
    out[4] = m[k[0], k[1]]
    m[k[1], k[0]] = 2.0
    out[5] = m[2, 1]


@case([5, 7, 9, 2.5, 3.5, 4.5, -3, 32])
@kc.kernel
def vector_arithmetic(x: X, k: I, out: X):
    a = kc.float3(x[0], x[1], x[2])
    b = kc.float3(x[3], x[4], x[5])
    write3(out, 0, a + b)
    write3(out, 3, (a + b) / 2)
    out[6] = (a - b).x
    out[7] = a @ b


@case([3, 6, -9, 1, 0, 0.5, 0, -1])
@kc.kernel
def scaled_vectors(x: X, k: I, out: X):
    a = kc.float3(1.0, 2.0, -3.0)
    a *= 3
    write3(out, 0, +a)
    b = a // 2 - kc.float3(0.0, 3.0, -5.0)
    write3(out, 3, kc.float3(b.x, b.y, 0.5))
    out[6] = (-a % 3).z
    c = kc.int3(7, -7, 5) // 2 + kc.int3(1, 1, 1) * 3
    out[7] = c.y


@case([1, 6, 2, 3, 1, 5])
@kc.kernel
def vectors_unpack(x: X, k: I, out: X):
    a, b, c = kc.float3(x[0], x[1], x[2])
    out[0], out[1] = a, a + b + c
    r, s = kc.mat22(x[0], x[1], x[2], x[3])
    out[2], out[3] = r.y, s.x
    (p, q), t = kc.float2(x[0], x[1]), x[4]
    out[4], out[5] = p, t


# -- constructors
@case([0, 2, 2, 1, 2, 3, 4, 7])
@kc.kernel
def constructors(x: X, k: I, out: X):
    out[0] = kc.float3().y
    out[1] = kc.float3(2.0).z
    out[2] = kc.vec(5)(2).x if False else kc.vec(5)(2.0)[4]
    v = kc.float4(kc.float2(x[0], x[1]), x[2], 4)
    out[3], out[4], out[5], out[6] = v.x, v.y, v.z, v.w
    q = kc.quat(kc.float3(x[0], x[1], x[2]), 7.0)
    out[7] = q.w


@case([1, 3, 2, 4, 6, 1, 5, 9])
@kc.kernel
def matrices(x: X, k: I, out: X):
    columns = kc.mat22(kc.float2(x[0], x[1]), kc.float2(x[2], x[3]))
    out[0], out[1], out[2], out[3] = columns[0, 0], columns[0, 1], columns[1, 0], columns[1, 1]
    m = kc.mat(2, 3)(x[0], x[1], x[2], x[3], x[4], x[5])
    out[4] = (m * kc.float3(1.0, 1.0, 1.0)).x
    out[5] = (m @ kc.transpose(m))[0, 0] - 13.0
    out[6] = (kc.float2(1.0, 1.0) @ m).x
    out[7] = (2 * m + m)[0, 2]


# -- structs
@kc.struct
class Inner:
    v: kc.float3
    n: int


@kc.struct
class Outer:
    a: Inner
    b: Inner
    s: float
    m: kc.mat22


@kc.func
def make(x, n):
    return Inner(v=kc.float3(x, x + 1.0, x + 2.0), n=n)


@kc.func
def grow(o, by):
    o.a.v.y += by
    o.b.n *= 2
    return o


@case([1, 2, 7, 3, 6, 12, 8, 0])
@kc.kernel
def structs_nest(x: X, k: I, out: X):
    o = Outer(a=make(x[0], 3), s=x[6])
    o.b = o.a
    o.b.v.x = 7.0
    out[0], out[1], out[2] = o.a.v.x, o.a.v.y, o.b.v.x
    p = grow(o, 10.0)
    out[3], out[4], out[5] = o.b.n, p.b.n, p.a.v[1]
    o.m[1, 0] = 8.0
    out[6], out[7] = o.m[1, 0], p.m[1, 0]


@case([4, 5, 6, 3, 2, 0, 9, 1])
@kc.kernel
def structs_in_branches_and_loops(x: X, k: I, out: X):
    a = make(x[0], 0)
    for j in range(k[1] + 1):
        a.v += kc.float3(1.0)
        a.n += 1
    write3(out, 0, a.v)
    out[3] = a.n
    if x[0] > 0.5:
        b = make(2.0, 2)
    else:
        b = a
    out[4] = b.v.x
    c = a if x[0] > 5.0 else Inner()
    out[5] = c.v.x
    d = Inner(kc.float3(9.0), n=1)
    out[6], out[7] = d.v.z, d.n


# -- local arrays
@case([8, 36, 4, 0, 10, 6, 2, 5])
@kc.kernel
def local_arrays(x: X, k: I, out: X):
    a = kc.local(8, float)
    total = 0.0
    for j in range(8):
        a[j] = x[7 - j]
        total += a[j]
    out[0], out[1] = a[0], total
    counts = kc.local(4, int)
    for j in range(k[2] + 3):
        counts[j % 4] += 1
    out[2] = counts[k[0] + 0] + counts[k[0]] + counts[-1] - 1
    out[3] = kc.local(3, kc.float3)[1].y
    b = a
    b[0] = 10.0
    out[4] = b[0]
    a[2] *= 1.0
    out[5], out[6] = a[2], len(counts) / 2
    v = kc.local(2, kc.float3)
    v[1] = kc.float3(3.0, 4.0, 5.0)
    out[7] = v[k[0]].z


@case([1, 2, 3, 4, 5, 6, 7, 8])
@kc.kernel
def sorting_in_a_local_array(x: X, k: I, out: X):
    a = kc.local(8, float)
    for j in range(8):
        a[j] = x[(5 * j + 3) % 8]
    for i in range(1, 8):
        v = a[i]
        j = i - 1
        while j >= 0 and a[j] > v:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = v
    for j in range(8):
        out[j] = a[j]


@case([4, 0, 7, 6, 0, 9, 2, 3])
@kc.kernel
def parts_at_run_time_indices(x: X, k: I, out: X):
    v = kc.local(3, kc.float3)
    v[k[0]].y = 4.0
    out[0], out[1] = v[1].y, v[0].y
    v[k[1]][k[0]] = 7.0
    out[2] = v[2][1]
    m = kc.mat33()
    m[k[0]][k[1]] = 6.0
    out[3], out[4] = m[1, 2], m[2, 1]
    s = kc.local(2, Inner)
    s[k[0]].v.z = 9.0
    s[k[0]].n += 2
    out[5], out[6] = s[1].v.z, s[1].n
    m[k[0], k[0]] += 3.0
    out[7] = m[1, 1]


def arguments(real):
    return [np.arange(1.0, 9.0).astype(real), np.array([1, 2, 3], np.int32), np.zeros(8, real)]


@pytest.fixture(scope="module")
def built():
    jobs = []
    for kernel, _ in CASES.values():
        for real in (kc.float32, kc.float64):
            try:
                jobs.append((kernel.variant(real), "forward", frozenset(), frozenset(range(3))))
            except kc.KernelError:
                pass  # its own test will tell
    compiling.prebuild(jobs)


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_values_have_parts(name, device, real, built):
    kernel, want = CASES[name]
    args = arguments(real)
    kc.launch(kernel, 1, args, device=device)
    np.testing.assert_allclose(args[2][: len(want)], want, rtol=1e-6)


# -- elements of arrays that are values
@kc.kernel
def parts_of_elements(v: kc.Array[kc.float3], m: kc.Array[kc.mat22], s: kc.Array[Outer], k: kc.Array[int]):
    i = kc.tid()
    v[i].x = 5.0
    v[i].y *= 3.0
    v[i][2] += 1.0
    v[i][k[i]] += 10.0
    v[i][k[i]] -= 4.0
    v[i][k[i]] *= 2.0
    m[i][0, 1] = v[i].x
    m[i][1][0] += 2.0
    m[i][k[i] - 1, k[i] - 1] = 8.0
    s[i].a.v.x += 3.0
    s[i].b.n = 4
    s[i].s *= 2.0
    s[i].m[0, 0] -= 1.0
    s[i].b.v[k[i]] = 6.0
    t = s[i]
    t.s = 100.0


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("real", [kc.float32, kc.float64])
def test_parts_of_elements_are_written_in_place(device, real):
    v, m = kc.ones(2, dtype=kc.float3, real=real), kc.zeros(2, dtype=kc.mat22, real=real)
    s = kc.ones(2, dtype=Outer, real=real)
    k = np.array([2, 1], np.int32)
    kc.launch(parts_of_elements, 2, [v, m, s, k], device=device)
    np.testing.assert_array_equal(v.numpy(), [[5, 3, (2 + 6) * 2], [5, (3 + 6) * 2, 2]])
    np.testing.assert_array_equal(m.numpy(), [[[0, 5], [2, 8]], [[8, 5], [2, 0]]])
    r = s.numpy()
    np.testing.assert_array_equal(r["a"]["v"], [[4, 1, 1], [4, 1, 1]])
    np.testing.assert_array_equal(r["b"]["n"], [4, 4])
    np.testing.assert_array_equal(r["s"], [2, 2])
    np.testing.assert_array_equal(r["m"][:, 0, 0], [0, 0])
    np.testing.assert_array_equal(r["b"]["v"], [[1, 1, 6], [1, 6, 1]])


@kc.kernel
def add_to_parts(v: kc.Array[kc.float3], k: kc.Array[int]):
    i = kc.tid()
    v[0][k[i]] += 1.0
    v[0][k[i]] -= 0.25


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_adding_to_a_part_at_a_run_time_index_is_atomic(device):
    n = 40000
    v, k = kc.zeros(1, dtype=kc.float3, real=kc.float64), (np.arange(n) % 3).astype(np.int32)
    n = n if device == "cpu" else 40
    kc.launch(add_to_parts, n, [v, k], device=device)
    np.testing.assert_array_equal(v.numpy()[0], [0.75 * len(range(c, n, 3)) for c in range(3)])


@kc.kernel
def spread(x: kc.Array[float, 2], v: kc.Array[kc.float3], w: kc.Array[kc.float3]):
    i, c = kc.tid()
    v[i][c] = x[i, c] * x[i, c]
    w[i][(2 * c) % 3] += 3.0 * x[i, c]


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_threads_may_write_different_components_of_one_element(device):
    n = 2000 if device == "cpu" else 20
    x = kc.array(np.linspace(-1, 1, 3 * n).reshape(n, 3), requires_grad=True)
    v, w = (kc.zeros(n, dtype=kc.float3, real=kc.float64) for _ in range(2))
    with kc.Tape() as tape:
        kc.launch(spread, (n, 3), [x, v, w], device=device)
    np.testing.assert_allclose(v.numpy(), x.numpy() ** 2)
    np.testing.assert_allclose(w.numpy(), 3 * x.numpy()[:, [0, 2, 1]])
    tape.backward(grads={v: np.full((n, 3), 0.5), w: np.tile([1.0, 2.0, 3.0], (n, 1))})
    np.testing.assert_allclose(x.grad.numpy(), x.numpy() + [3.0, 9.0, 6.0])
