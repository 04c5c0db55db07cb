"""Probes: vectors, matrices, quaternions, transforms, structs, local arrays: values, copied, read and written."""

import numpy as np
import pytest
from probes.harness import DEVICES, OUT, REALS, Arrays, array64, central, check_kernel, leaf, near, zeros64

import kernelc as kc

R = np.random.default_rng(11)
V3 = R.normal(size=(1, 3))
M3 = R.normal(size=(1, 3, 3)) + 2 * np.eye(3)
Q = R.normal(size=(2, 4))
Q /= np.linalg.norm(Q, axis=1)[:, None]


def rotation(q):
    x, y, z, w = q
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), w * w - x * x + y * y - z * z, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), w * w - x * x - y * y + z * z],
        ]
    )


def hamilton(a, b):
    u, w, v, r = a[:3], a[3], b[:3], b[3]
    return np.append(w * v + r * u + np.cross(u, v), w * r - u @ v)


def test_vector_arithmetic():
    @kc.kernel
    def arith(a: kc.Array[kc.float3], b: kc.Array[kc.float3], out: kc.Array[float]):
        u, v = a[0], b[0]
        w = 2.0 * u - v / 3.0 + (-u) * v.x + kc.float3(1.0, v.y, 0.0)
        w += u
        w -= 0.5 * v
        w *= 1.5
        w /= u.z
        out[0] = kc.dot(w, w) + kc.length(w) * kc.length_sq(v) + w[1] * w.z

    def reference(a, b):
        u, v = a[0], b[0]
        w = 2 * u - v / 3 - u * v[0] + np.array([1, v[1], 0])
        w = (w + u - 0.5 * v) * 1.5 / u[2]
        return w @ w + np.linalg.norm(w) * (v @ v) + w[1] * w[2]

    check_kernel(arith, 1, [leaf(V3, kc.float3), leaf(V3[:, ::-1], kc.float3), OUT], reference)


def test_vector_functions():
    @kc.kernel
    def functions(a: kc.Array[kc.float3], b: kc.Array[kc.float3], out: kc.Array[float]):
        u, v = a[0], b[0]
        c = kc.cross(u, v) + kc.normalize(u) + kc.cw_mul(u, v) + kc.cw_div(u, kc.float3(2.0, 3.0, 4.0))
        m = kc.outer(u, v)
        r = kc.reflect(u, kc.normalize(v))
        out[0] = kc.dot(c, r) + m[1, 2] * kc.angle_between(u, v) + kc.trace(m) + kc.dot(kc.lerp(u, v, 0.3), c)

    def reference(a, b):
        u, v = a[0], b[0]
        n = v / np.linalg.norm(v)
        c = np.cross(u, v) + u / np.linalg.norm(u) + u * v + u / [2, 3, 4]
        angle = np.arccos(u @ v / np.linalg.norm(u) / np.linalg.norm(v))
        return c @ (u - 2 * (u @ n) * n) + u[1] * v[2] * angle + u @ v + (0.7 * u + 0.3 * v) @ c

    check_kernel(functions, 1, [leaf(V3, kc.float3), leaf([[0.3, 0.9, -0.5]], kc.float3), OUT], reference)


def test_vectors_are_copied():
    @kc.func
    def spoil(v: kc.float3) -> float:
        v.x = 100.0
        v[1] *= 2.0
        return v.x + v.y

    @kc.kernel
    def copies(a: kc.Array[kc.float3], out: kc.Array[float]):
        u = a[0]
        w = u
        w.x = 5.0
        s = spoil(u)
        a[0] = w
        w.y = 7.0
        out[0] = u.x * u.y + 10.0 * w.x + s + a[0].y

    check_kernel(
        copies,
        1,
        [leaf([[1.5, 2.5, 3.5]], kc.float3), OUT],
        lambda a: a[0, 0] * a[0, 1] + 50 + 100 + 2 * a[0, 1] + a[0, 1],
    )


def test_constructors():
    @kc.kernel
    def make(x: kc.Array[float], out: kc.Array[float]):
        z = kc.float3()
        a = kc.float3(x[0])
        b = kc.float4(kc.float3(x[0], x[1], 2), 1)
        c = kc.vec(5)(1.0, 2.0, x[0], x[1], 5.0)
        m = kc.mat22(1, x[0], 2, x[1])
        n = kc.mat(2, 3)(1.0, 2.0, 3.0, 4.0, x[0], x[1])
        i = kc.float2(x[1], 1)
        out[0] = z.x + a.y * a.z + b.w * b.x + c[2] * c[4] + m[0, 1] * m[1, 1] + n[1, 1] * n[1, 2] + kc.dot(m * i, i)

    def reference(x):
        m, i = np.array([[1, x[0]], [2, x[1]]]), np.array([x[1], 1])
        return x[0] ** 2 + x[0] + 5 * x[0] + x[0] * x[1] + x[0] * x[1] + i @ m @ i

    check_kernel(make, 1, [leaf([1.3, 0.4]), OUT], reference)


def test_run_time_components():
    @kc.kernel
    def dynamic(a: kc.Array[kc.float3], m: kc.Array[kc.mat33], n: int, out: kc.Array[float]):
        v = a[0]
        g = m[0]
        s = 0.0
        for i in range(n):
            j = (i + 1) % 3
            v[i] = v[i] * v[j] + g[i, j]
            g[j, i] += v[j] * g[i, i]
            row = g[i]
            s += row[j] * v[i]
        out[0] = s + kc.dot(v, v) + kc.determinant(g)

    def reference(a, m):
        v, g, s = a[0].copy(), m[0].copy(), 0.0
        for i in range(3):
            j = (i + 1) % 3
            v[i] = v[i] * v[j] + g[i, j]
            g[j, i] += v[j] * g[i, i]
            s += g[i, j] * v[i]
        return s + v @ v + np.linalg.det(g)

    check_kernel(dynamic, 1, [leaf(V3, kc.float3), leaf(M3, kc.mat33), 3, OUT], reference)


def test_matrix_algebra():
    @kc.kernel
    def algebra(a: kc.Array[kc.mat33], b: kc.Array[kc.mat33], v: kc.Array[kc.float3], out: kc.Array[float]):
        m, n, u = a[0], b[0], v[0]
        p = m * n + kc.transpose(m) - 2.0 * n / 3.0 + kc.diag(u) + kc.skew(u)
        i = kc.inverse(p)
        c = kc.cofactor(m)
        x = kc.solve(m, u)
        out[0] = (
            kc.dot(i * u, u) + kc.determinant(p) + kc.trace(c) + kc.ddot(p, n) + kc.dot(x, u) + kc.dot(m @ u, n @ u)
        )

    def reference(a, b, v):
        m, n, u = a[0], b[0], v[0]
        skew = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        p = m @ n + m.T - 2 * n / 3 + np.diag(u) + skew
        c = np.linalg.det(m) * np.linalg.inv(m).T
        return (
            u @ np.linalg.inv(p) @ u
            + np.linalg.det(p)
            + np.trace(c)
            + (p * n).sum()
            + u @ np.linalg.solve(m, u)
            + (m @ u) @ (n @ u)
        )

    check_kernel(
        algebra,
        1,
        [leaf(M3, kc.mat33), leaf(M3.transpose(0, 2, 1) + 0.5, kc.mat33), leaf(V3, kc.float3), OUT],
        reference,
        tol=None,
    )


def test_matrices_of_other_sizes():
    @kc.kernel
    def rectangular(x: kc.Array[float], out: kc.Array[float]):
        m = kc.mat(2, 3)(x[0], x[1], x[2], x[3], x[4], x[5])
        n = m * kc.transpose(m)
        out[0] = kc.determinant(n) + kc.trace(n) + kc.dot(m * kc.float3(1.0, 2.0, 3.0), kc.float2(x[0], x[1]))

    def reference(x):
        m = x.reshape(2, 3)
        return np.linalg.det(m @ m.T) + np.trace(m @ m.T) + m @ [1, 2, 3] @ x[:2]

    check_kernel(rectangular, 1, [leaf([0.5, 1.2, -0.3, 0.7, 0.1, 0.9]), OUT], reference)


def test_cholesky_and_decompositions():
    @kc.kernel
    def decompose(a: kc.Array[kc.mat33], out: kc.Array[float]):
        m = a[0]
        spd = kc.transpose(m) * m + kc.mat33(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
        l = kc.cholesky(spd)
        u, s, v = kc.svd3(m)
        r, p = kc.polar3(m)
        values, vectors = kc.eig3_sym(m)
        back = u * kc.diag(s) * kc.transpose(v)
        out[0] = (
            l[2, 1] * l[1, 0]
            + s[0] * s[1]
            + s[2] * s[2] * s[0]
            + r[0, 1] * p[1, 2]
            + values[0] * values[2]
            + back[0, 2] * back[1, 1]
        )

    def reference(a):
        m = a[0]
        l = np.linalg.cholesky(m.T @ m + np.eye(3))
        u, s, vt = np.linalg.svd(m)
        r, p = u @ vt, vt.T @ np.diag(s) @ vt
        w = np.linalg.eigvalsh((m + m.T) / 2)
        return l[2, 1] * l[1, 0] + s[0] * s[1] + s[2] ** 2 * s[0] + r[0, 1] * p[1, 2] + w[0] * w[2] + m[0, 2] * m[1, 1]

    check_kernel(decompose, 1, [leaf(M3, kc.mat33), OUT], reference, devices=("cpu",), tol=2e-4, reals=REALS)


def test_quaternions():
    @kc.kernel
    def quats(q: kc.Array[kc.quat], v: kc.Array[kc.float3], out: kc.Array[float]):
        a, b = q[0], q[1]
        c = a * b
        w = kc.quat_rotate(c, v[0]) + kc.quat_rotate_inv(a, v[0])
        m = kc.quat_to_matrix(b)
        i = kc.quat_inverse(a)
        out[0] = w.x + 2.0 * w.y * w.z + kc.trace(m) * m[0, 1] + i.x * i.w + c.w

    def reference(q, v):
        c = hamilton(q[0], q[1])
        w = rotation(c) @ v[0] + rotation(q[0]).T @ v[0]
        m = rotation(q[1])
        i = q[0] * [-1, -1, -1, 1] / (q[0] @ q[0])
        return w[0] + 2 * w[1] * w[2] + np.trace(m) * m[0, 1] + i[0] * i[3] + c[3]

    # Unit quaternions: only directions that keep the length are compared, because the functions are for unit ones.
    A = Arrays(np.float64)
    for device in DEVICES:
        q, v, out = A.leaf(Q, kc.quat), A.leaf(V3, kc.float3), A.zeros(1)
        with kc.Tape() as tape:
            kc.launch(quats, 1, [q, v], [out], device=device)
        tape.backward(out)
        near(out.numpy(), [reference(Q, V3)], 1e-12)
        gq, gv = central(lambda x, y: reference(x / np.linalg.norm(x, axis=1)[:, None], y), [Q, V3])
        got = q.grad.numpy()
        got = got - (got * Q).sum(1)[:, None] * Q
        near(got, gq, 1e-7)
        near(v.grad.numpy(), gv, 1e-7)


def test_quaternion_construction_and_integration():
    @kc.kernel
    def spin(w: kc.Array[kc.float3], n: int, out: kc.Array[float]):
        q = kc.quat(0.0, 0.0, 0.0, 1.0)
        for i in range(n):
            q = kc.quat_integrate(q, w[0], 0.1)
        a = kc.quat_from_axis_angle(w[0], 0.7)
        v = kc.quat_rotate(kc.quat_slerp(q, a, 0.4), kc.float3(1.0, 2.0, 3.0))
        r = kc.quat_to_rotvec(kc.quat_from_matrix(kc.quat_to_matrix(q)))
        out[0] = v.x + v.y * v.z + kc.dot(r, r)

    def axis_angle(axis, angle):
        return np.append(axis / np.linalg.norm(axis) * np.sin(angle / 2), np.cos(angle / 2))

    def reference(w):
        q = np.array([0, 0, 0, 1.0])
        for _ in range(4):
            q = hamilton(axis_angle(w[0], np.linalg.norm(w[0]) * 0.1), q)
        a = axis_angle(w[0], 0.7)
        angle = np.arccos(np.clip(q @ a, -1, 1))
        s = (np.sin(0.6 * angle) * q + np.sin(0.4 * angle) * a) / np.sin(angle)
        v = rotation(s) @ [1, 2, 3]
        return v[0] + v[1] * v[2] + (w[0] @ w[0]) * 0.16

    check_kernel(spin, 1, [leaf([[0.9, -1.3, 0.7]], kc.float3), 4, OUT], reference, tol=None)


def test_transforms():
    @kc.kernel
    def poses(t: kc.Array[kc.transform], p: kc.Array[kc.float3], out: kc.Array[float]):
        a = t[0]
        b = kc.transform(p[0], a.q)
        c = kc.transform_multiply(a, b)
        x = kc.transform_point(c, p[0]) + kc.transform_vector(kc.transform_inverse(a), p[0])
        a.p = a.p + x
        out[0] = kc.dot(x, kc.float3(1.0, 2.0, 3.0)) + a.p.x * a.p.y

    def reference(t, p):
        pos, q, u = t[0, :3], t[0, 3:], p[0]
        r = rotation(q)
        x = pos + r @ (u + r @ u) + r.T @ u
        s = pos + x
        return x @ [1, 2, 3] + s[0] * s[1]

    for device in DEVICES:
        A = Arrays(np.float64)
        data = np.concatenate([V3, Q[:1]], 1)
        t, p, out = A.leaf(data, kc.transform), A.leaf(V3 * 0.5, kc.float3), A.zeros(1)
        with kc.Tape() as tape:
            kc.launch(poses, 1, [t, p], [out], device=device)
        tape.backward(out)
        near(out.numpy(), [reference(data, V3 * 0.5)], 1e-12)
        gt, gp = central(reference, [data, V3 * 0.5])
        near(t.grad.numpy()[:, :3], gt[:, :3], 1e-7)
        near(p.grad.numpy(), gp, 1e-7)


@kc.struct
class Ball:
    x: kc.float3
    v: kc.float3
    mass: float
    kind: int


@kc.func
def energy(b: Ball, g: float) -> float:
    return 0.5 * b.mass * kc.dot(b.v, b.v) + b.mass * g * b.x.y


@kc.func
def advance(b: Ball, dt: float):
    b.v.y -= 9.81 * dt
    b.x = b.x + b.v * dt
    b.x[0] *= 1.5
    return b


def test_structs_are_values():
    @kc.kernel
    def drop(x: kc.Array[float], n: int, out: kc.Array[float]):
        b = Ball(x=kc.float3(x[0], x[1], 0.0), v=kc.float3(1.0, x[2], 0.0), mass=x[3], kind=2)
        c = b
        c.mass *= 2.0
        for i in range(n):
            b = advance(b, 0.1)
        out[0] = energy(b, 9.81) + energy(c, g=2.0) * b.kind

    def reference(x):
        p, v, m = np.array([x[0], x[1], 0]), np.array([1.0, x[2], 0]), x[3]
        e = 2 * m * (0.5 * (v @ v) + 2 * p[1])
        for _ in range(3):
            v = v - [0, 0.981, 0]
            p = (p + v * 0.1) * [1.5, 1, 1]
        return m * (0.5 * (v @ v) + 9.81 * p[1]) + 2 * e

    check_kernel(drop, 1, [leaf([0.3, 1.2, 0.5, 1.7]), 3, OUT], reference)


def balls(A, requires_grad=True):
    b = kc.zeros(2, dtype=Ball, real=kc.float64 if A.real == np.float64 else kc.float32, requires_grad=requires_grad)
    b.numpy()["x"] = [[1, 2, 3], [4, 5, 6]]
    b.numpy()["v"] = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
    b.numpy()["mass"] = [1.5, 2.5]
    b.numpy()["kind"] = [1, 3]
    return b


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("real", REALS)
def test_arrays_of_structs_carry_gradients(device, real):
    @kc.kernel
    def sum_up(b: kc.Array[Ball], out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, energy(b[i], 9.81) * b[i].kind)

    A = Arrays(real)
    b, out = balls(A), A.zeros(1)
    with kc.Tape() as tape:
        kc.launch(sum_up, 2, [b], [out], device=device)
    tape.backward(out)
    tape.backward(out)
    g = b.grad.numpy()
    near(g["v"], 2 * np.array([[0.15, 0.3, 0.45], [3, 3.75, 4.5]]), 1e-5)
    near(g["x"], 2 * 9.81 * np.array([[0, 1.5, 0], [0, 7.5, 0]]), 1e-5)
    assert g["kind"].tolist() == [0, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_of_structs_in_place_and_as_seeds(device):
    @kc.kernel
    def heat(b: kc.Array[Ball], x: kc.Array[float]):
        i = kc.tid()
        b[i].mass = b[i].mass * x[i]
        b[i].x.y *= b[i].mass
        s = b[i]
        s.v = s.v * s.mass
        b[i] = s

    A = Arrays(np.float64)
    b, x = balls(A), A.leaf([2.0, 3.0])
    with kc.Tape() as tape:
        kc.launch(heat, 2, [b], [x], device=device)
    seed = np.zeros(2, b.numpy().dtype)
    seed["mass"], seed["x"], seed["v"] = 1.0, 1.0, 1.0
    tape.backward(grads={b: seed})
    mass, y, v = np.array([1.5, 2.5]), np.array([2.0, 5.0]), np.array([0.6, 1.5])
    near(b.grad.numpy()["mass"], (1 + y + v) * [2, 3], 1e-12)
    near(x.grad.numpy(), (1 + y + v) * mass, 1e-12)
    near(b.grad.numpy()["v"], (mass * [2, 3])[:, None] * np.ones(3), 1e-12)


def test_a_struct_argument():
    @kc.struct
    class Parameters:
        gravity: kc.float3
        k: float
        n: int

    @kc.kernel
    def use(p: Parameters, x: kc.Array[kc.float3], out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, kc.dot(p.gravity, x[i]) * p.k + p.n)

    for device in DEVICES:
        x, out = array64(V3, kc.float3), zeros64(1)
        with kc.Tape() as tape:
            kc.launch(use, 1, [Parameters(gravity=(0.0, -9.81, 0.0), k=0.5, n=3), x], [out], device=device)
        tape.backward(out)
        near(out.numpy(), [-9.81 * 0.5 * V3[0, 1] + 3], 1e-12)
        near(x.grad.numpy(), [[0, -4.905, 0]], 1e-12)


def test_local_arrays():
    @kc.kernel
    def polynomial(x: kc.Array[float], n: int, out: kc.Array[float]):
        a = kc.local(6, float)
        c = kc.local(3, kc.float3)
        k = kc.local(4, int)
        for i in range(n):
            a[i] = x[i % 3] * float(i + 1)
            k[i % 4] += i
        for i in range(1, n):
            a[i] += a[i - 1] * a[i]
            c[i % 3] = c[(i - 1) % 3] + kc.float3(a[i], x[0], 1.0)
        s = 0.0
        for i in range(n):
            s += a[i] * a[i] * k[i % 4]
        out[0] = s + kc.dot(c[0], c[2]) + c[1].x

    def reference(x):
        a, c, k = np.zeros(6), np.zeros((3, 3)), np.zeros(4)
        for i in range(6):
            a[i] = x[i % 3] * (i + 1)
            k[i % 4] += i
        for i in range(1, 6):
            a[i] += a[i - 1] * a[i]
            c[i % 3] = c[(i - 1) % 3] + np.array([a[i], x[0], 1])
        return (a * a * k[np.arange(6) % 4]).sum() + c[0] @ c[2] + c[1, 0]

    check_kernel(polynomial, 1, [leaf([0.3, 0.2, -0.4]), 6, OUT], reference)


def test_a_local_array_begins_at_zero_in_every_iteration_and_thread():
    @kc.kernel
    def fresh(x: kc.Array[float], n: int, out: kc.Array[float]):
        i = kc.tid()
        for j in range(n):
            a = kc.local(2)
            a[j % 2] += x[i]
            kc.atomic_add(out, 0, a[0] * a[0] + a[1])

    check_kernel(fresh, 2, [leaf([2.0, 3.0]), 3, OUT], lambda x: (2 * x**2 + x).sum())


def test_spatial_vectors():
    @kc.kernel
    def twist(a: kc.Array[kc.spatial_vector], b: kc.Array[kc.spatial_vector], out: kc.Array[float]):
        c = kc.spatial_cross(a[0], b[0])
        w = kc.spatial_top(c)
        out[0] = kc.spatial_dot(c, b[0]) + w.x + kc.spatial_bottom(a[0]).z * c[5]

    a, b = R.normal(size=(2, 1, 6))

    def reference(a, b):
        (w, v), (p, q) = a[0].reshape(2, 3), b[0].reshape(2, 3)
        c = np.append(np.cross(w, p), np.cross(w, q) + np.cross(v, p))
        return c @ b[0] + c[0] + v[2] * c[5]

    check_kernel(twist, 1, [leaf(a, kc.spatial_vector), leaf(b, kc.spatial_vector), OUT], reference)


def test_geometry():
    @kc.kernel
    def closest(p: kc.Array[kc.float3], out: kc.Array[float]):
        b = kc.closest_point_triangle(p[0], p[1], p[2], p[3])
        q = b.x * p[1] + b.y * p[2] + b.z * p[3]
        t = kc.closest_point_segment(p[0], p[1], p[2])
        hit, s, u, v = kc.ray_triangle(p[0], q - p[0], p[1], p[2], p[3])
        e = p[1] + t * (p[2] - p[1])
        out[0] = (
            kc.length(p[0] - q)
            + kc.length(p[0] - e)
            + s
            + kc.triangle_area(p[1], p[2], p[3])
            + kc.tet_volume(p[0], p[1], p[2], p[3])
        )
        if hit:
            out[0] += u * v

    points = np.array([[0.2, 0.3, 1.0], [0, 0, 0.1], [1, 0, 0], [0.1, 1.2, 0.2]])

    def reference(p):
        a, b, c = p[1], p[2], p[3]
        n = np.cross(b - a, c - a)
        area = np.linalg.norm(n) / 2
        n = n / np.linalg.norm(n)
        d = (p[0] - a) @ n
        q = p[0] - d * n
        w = np.linalg.lstsq(np.stack([b - a, c - a], 1), q - a, rcond=None)[0]
        t = (p[0] - a) @ (b - a) / ((b - a) @ (b - a))
        e = a + t * (b - a)
        return abs(d) + np.linalg.norm(p[0] - e) + 1 + area + tet(p) + w[0] * w[1]

    def tet(p):
        return np.linalg.det(np.stack([p[1] - p[0], p[2] - p[0], p[3] - p[0]])) / 6

    check_kernel(closest, 1, [leaf(points, kc.float3), OUT], reference)


def test_signed_distances_and_textures():
    @kc.kernel
    def scene(p: kc.Array[kc.float3], image: kc.Array[float, 2], out: kc.Array[float]):
        x = p[0]
        d = (
            kc.sdf_sphere(x, 0.5)
            + 2.0 * kc.sdf_box(x, kc.float3(0.3, 0.2, 0.1))
            + kc.sdf_plane(x, kc.float3(0.0, 1.0, 0.0), 0.3)
        )
        c = kc.sdf_capsule(x, kc.float3(0.0, 0.0, 0.0), kc.float3(0.0, 1.0, 0.0), 0.2)
        out[0] = d + c * kc.texture_clamp(image, kc.float2(x.x, x.y))

    image = R.uniform(size=(4, 5))
    point = np.array([[0.43, 0.37, 0.55]])

    def reference(p, image):
        x = p[0]
        d = np.linalg.norm(x) - 0.5 + 2 * np.linalg.norm(np.maximum(np.abs(x) - [0.3, 0.2, 0.1], 0)) + x[1] + 0.3
        c = np.hypot(x[0], x[2]) - 0.2
        u, v = x[0] * 5 - 0.5, (1 - x[1]) * 4 - 0.5
        i, j = int(np.floor(v)), int(np.floor(u))
        a, b = v - i, u - j
        t = (1 - a) * ((1 - b) * image[i, j] + b * image[i, j + 1]) + a * (
            (1 - b) * image[i + 1, j] + b * image[i + 1, j + 1]
        )
        return d + c * t

    check_kernel(scene, 1, [leaf(point, kc.float3), leaf(image), OUT], reference)


def test_rand_is_uniform_reproducible_and_the_same_everywhere():
    @kc.kernel
    def draw(out: kc.Array[float]):
        i = kc.tid()
        out[i] = kc.rand(3, i, 1)

    runs = []
    for real in (kc.float32, kc.float64):
        for device in DEVICES:
            out = kc.zeros(500, real=real)
            kc.launch(draw, 500, [], [out], device=device)
            runs.append(out.numpy().astype(np.float64))
    assert all(np.array_equal(r, runs[0]) for r in runs)
    assert 0 <= runs[0].min() and runs[0].max() < 1 and abs(runs[0].mean() - 0.5) < 0.05 and len(set(runs[0])) > 490


def test_plain_arrays_of_the_right_shape_are_vectors():
    @kc.kernel
    def mix(v: kc.Array[kc.float3], m: kc.Array[kc.mat33], q: kc.Array[kc.quat], out: kc.Array[kc.float3]):
        i = kc.tid()
        out[i] = m[i] * kc.quat_rotate(q[i], v[i])

    v, m, q = R.normal(size=(4, 3)), R.normal(size=(4, 3, 3)), R.normal(size=(4, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    out = np.zeros((4, 3))
    kc.launch(mix, 4, [v, m, q], [out])
    want = np.array([m[i] @ rotation(q[i]) @ v[i] for i in range(4)])
    near(out, want, 1e-12)
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4, 3, dtype=torch.float64)
    kc.launch(mix, 4, [torch.from_numpy(v), torch.from_numpy(m), q], [tensor])
    near(tensor.numpy(), want, 1e-12)
    x, y = array64(v), zeros64((4, 3))
    with kc.Tape() as tape:
        kc.launch(mix, 4, [x, m, q], [y])
    tape.backward(grads={y: np.ones((4, 3))})
    assert x.grad.shape == (4, 3)
    near(x.grad.numpy(), [rotation(q[i]).T @ m[i].T @ np.ones(3) for i in range(4)], 1e-12)
