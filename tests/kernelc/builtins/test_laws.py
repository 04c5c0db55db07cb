"""Laws of the compound built-ins that single values do not show: singular points, smooth joins, degenerate shapes,
random numbers."""

import numpy as np
import pytest

import kernelc as kc

PRECISIONS = pytest.mark.parametrize("real", [np.float64, np.float32], ids=["f64", "f32"])
REALS = {np.float64: kc.float64, np.float32: kc.float32}


def launch(kernel, inputs, width, seed=None):
    """Run a kernel on columns of numbers; with a seed for its output also the gradients of its inputs."""
    inputs = [np.array(x) for x in inputs]  # each has memory, and so a gradient, of its own
    real = next(x.dtype.type for x in inputs if x.dtype.kind == "f")
    arrays = [kc.array(x, dtype=float, requires_grad=seed is not None) for x in inputs]
    out = kc.zeros((len(inputs[0]), width), dtype=float, real=REALS[real])
    if seed is None:
        kc.launch(kernel, dim=len(inputs[0]), inputs=arrays, outputs=[out])
        return out.numpy()
    with kc.Tape() as tape:
        kc.launch(kernel, dim=len(inputs[0]), inputs=arrays, outputs=[out])
    tape.backward(grads={out: np.asarray(seed, real)})
    return out.numpy(), [a.grad.numpy() for a in arrays]


def jacobian(kernel, x, width):
    """Rows: results, columns: components of the one input."""
    rows = []
    for k in range(width):
        seed = np.zeros((1, width))
        seed[0, k] = 1
        rows.append(launch(kernel, [x[None]], width, seed)[1][0][0])
    return np.array(rows)


# -- singular points
@kc.kernel
def lengths(v: kc.Array[kc.float3], out: kc.Array[float, 2]):
    i = kc.tid()
    out[i, 0] = kc.length(v[i])


@kc.kernel
def directions(v: kc.Array[kc.float3], out: kc.Array[float, 2]):
    i = kc.tid()
    n = kc.normalize(v[i])
    for k in range(3):
        out[i, k] = n[k]


@kc.kernel
def angles(a: kc.Array[kc.float3], b: kc.Array[kc.float3], out: kc.Array[float, 2]):
    i = kc.tid()
    out[i, 0] = kc.angle_between(a[i], b[i])


@PRECISIONS
def test_zero_vectors_have_no_gradient(real):
    zero = np.zeros((1, 3), real)
    for kernel, width in ((lengths, 1), (directions, 3)):
        value, (gradient,) = launch(kernel, [zero], width, np.ones((1, width)))
        assert not value.any() and not gradient.any()


@PRECISIONS
def test_short_vectors_have_their_true_gradient(real):
    x = np.array([[3e-18, 0, 4e-18]], real)
    _, (gradient,) = launch(directions, [x], 3, [[0, 1, 0]])
    np.testing.assert_allclose(gradient[0], [0, 2e17, 0], rtol=1e-5)


@PRECISIONS
def test_parallel_vectors_have_the_angle_zero_without_gradient(real):
    a = np.array([[1, 2, 3], [1, 2, 3], [0, 0, 0]], real)
    b = np.array([[2, 4, 6], [-1, -2, -3], [1, 0, 0]], real)
    value, gradients = launch(angles, [a, b], 1, np.ones((3, 1)))
    np.testing.assert_allclose(value[:, 0], [0, np.pi, 0], rtol=1e-6)
    assert not any(g.any() for g in gradients)


@PRECISIONS
def test_small_angles_keep_their_digits(real):
    angle = np.geomspace(16 * np.finfo(real).eps, 1, 15)  # below, vectors count as parallel
    a = np.tile(np.array([1.0, 0, 0]), (15, 1)).astype(real)
    b = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1).astype(real)
    value = launch(angles, [a, b], 1)[:, 0]
    want = np.arctan2(b[:, 1].astype(float), b[:, 0].astype(float))
    np.testing.assert_allclose(value, want, rtol=20 * np.finfo(real).eps)


# -- rotations
@kc.kernel
def exponentials(r: kc.Array[kc.float3], out: kc.Array[float, 2]):
    i = kc.tid()
    q = kc.quat_from_rotvec(r[i])
    for k in range(4):
        out[i, k] = q[k]


@kc.kernel
def logarithms(q: kc.Array[kc.quat], out: kc.Array[float, 2]):
    i = kc.tid()
    r = kc.quat_to_rotvec(q[i])
    for k in range(3):
        out[i, k] = r[k]


@kc.kernel
def there_and_back(r: kc.Array[kc.float3], out: kc.Array[float, 2]):
    i = kc.tid()
    x = kc.quat_to_rotvec(kc.quat_from_rotvec(r[i]))
    for k in range(3):
        out[i, k] = x[k]


@kc.kernel
def from_matrices(m: kc.Array[kc.mat33], out: kc.Array[float, 2]):
    i = kc.tid()
    q = kc.quat_from_matrix(m[i])
    for k in range(4):
        out[i, k] = q[k]


@PRECISIONS
def test_rotation_vectors_are_smooth_at_the_identity(real):
    for size in (0, 1e-30, 1e-12, 1e-6):
        jac = jacobian(exponentials, np.array([size, -size, size], real), 4)
        np.testing.assert_allclose(jac, np.eye(4, 3) / 2, atol=max(size, 1e-7 if real is np.float32 else 1e-15))
    for sign in (1, -1):
        jac = jacobian(logarithms, np.array([0, 0, 0, sign], real), 3)
        np.testing.assert_allclose(jac, sign * 2 * np.eye(3, 4), atol=1e-15)


@PRECISIONS
def test_rotation_vectors_go_there_and_back(real):
    axis = np.array([1, -2, 2]) / 3
    angle = np.r_[0, np.logspace(-20, 0, 60), np.linspace(0.15, 0.25, 21), np.linspace(1, np.pi - 1e-3, 20)]
    r = (angle[:, None] * axis).astype(real)
    value, (gradient,) = launch(there_and_back, [r], 3, np.tile([1.0, 2, 3], (len(r), 1)))
    eps = np.finfo(real).eps
    np.testing.assert_allclose(value, r, rtol=20 * eps, atol=1e-30)
    np.testing.assert_allclose(gradient, np.tile([1.0, 2, 3], (len(r), 1)), atol=200 * eps)


@PRECISIONS
def test_quaternions_of_matrices_in_all_four_branches(real):
    rng = np.random.default_rng(0)
    q = np.concatenate([rng.standard_normal((200, 4)) * scale for scale in (np.eye(4) * 5 + 0.1)])
    q = np.concatenate([q, np.eye(4), [[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]]])
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    m = np.array([kc.quat_to_matrix(x) for x in q]).astype(real)
    got = launch(from_matrices, [m], 4)
    assert (got[:, 3] >= 0).all()
    close = np.minimum(np.abs(got - q).max(1), np.abs(got + q).max(1))
    assert close.max() < 8 * np.finfo(real).eps


@kc.kernel
def slerps(a: kc.Array[kc.quat], b: kc.Array[kc.quat], t: kc.Array[float], out: kc.Array[float, 2]):
    i = kc.tid()
    q = kc.quat_slerp(a[i], b[i], t[i])
    for k in range(4):
        out[i, k] = q[k]


@kc.kernel
def integrals(q: kc.Array[kc.quat], w: kc.Array[kc.float3], dt: kc.Array[float], out: kc.Array[float, 2]):
    i = kc.tid()
    r = kc.quat_integrate(q[i], w[i], dt[i])
    for k in range(4):
        out[i, k] = r[k]


REST = np.array([[0.1, -0.3, 0.2, 0.9]]) / np.sqrt(0.95)


@pytest.mark.parametrize(
    ("kernel", "second"),
    [
        (slerps, REST),
        (slerps, -REST),
        (slerps, REST + 1e-5),
        (integrals, np.zeros((1, 3))),
        (integrals, np.full((1, 3), 0.2)),
    ],
    ids=["equal", "opposite", "near", "at rest", "slow"],
)
def test_quaternion_paths_are_smooth_at_rest(kernel, second):
    inputs, weights = [REST, second, np.array([0.3])], np.array([[1.0, 2, 3, 4]])
    _, gradients = launch(kernel, inputs, 4, weights)
    for k, array in enumerate(inputs):
        for index in np.ndindex(array.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [x.copy() for x in inputs]
                moved[k][index] += step
                ends.append((launch(kernel, moved, 4) * weights).sum())
            assert abs(gradients[k][index] - (ends[0] - ends[1]) / 2e-6) < 1e-8


# -- degenerate shapes
@kc.kernel
def to_triangles(p: kc.Array[kc.float3], a: kc.Array[kc.float3], b: kc.Array[kc.float3], c: kc.Array[kc.float3],
                 out: kc.Array[float, 2]):  # fmt: skip
    i = kc.tid()
    w = kc.closest_point_triangle(p[i], a[i], b[i], c[i])
    for k in range(3):
        out[i, k] = w[k]


@kc.kernel
def between_edges(p1: kc.Array[kc.float3], q1: kc.Array[kc.float3], p2: kc.Array[kc.float3], q2: kc.Array[kc.float3],
                  out: kc.Array[float, 2]):  # fmt: skip
    i = kc.tid()
    s, t, d = kc.closest_point_edge_edge(p1[i], q1[i], p2[i], q2[i])
    out[i, 0] = s
    out[i, 1] = t
    out[i, 2] = d


def shapes(rng, kind, count=40):
    """Four points each: a triangle or an edge may have collapsed."""
    x = rng.standard_normal((count, 4, 3))
    if kind == "lattice":
        x = rng.integers(0, 3, (count, 4, 3)).astype(float)
    elif kind == "double point":
        x[:, 2] = x[:, 1]
    elif kind == "single point":
        x[:, 1:] = x[:, 1:2]
    elif kind == "line":
        x[:, 3] = x[:, 1] + (x[:, 2] - x[:, 1]) * rng.uniform(-2, 2, (count, 1))
    elif kind == "parallel":
        x[:, 3] = x[:, 2] + (x[:, 1] - x[:, 0]) * rng.uniform(-2, 2, (count, 1))
    return list(x.transpose(1, 0, 2))


KINDS = ["generic", "lattice", "double point", "single point", "line", "parallel"]


@PRECISIONS
@pytest.mark.parametrize("kind", KINDS)
def test_closest_point_of_a_triangle_is_closest_even_if_it_collapsed(kind, real):
    p, a, b, c = (x.astype(real) for x in shapes(np.random.default_rng(1), kind))
    value, gradients = launch(to_triangles, [p, a, b, c], 3, np.ones((len(p), 3)))
    assert np.isfinite(value).all() and all(np.isfinite(g).all() for g in gradients)
    assert value.min() >= 0
    np.testing.assert_allclose(value.sum(1), 1, atol=1e-6)

    def distance(w, k):
        return np.linalg.norm(w[0] * a[k] + w[1] * b[k] + w[2] * c[k] - p[k].astype(float))

    for k in range(len(p)):
        best = distance(kc.closest_point_triangle(p[k], a[k], b[k], c[k]), k)
        assert distance(value[k], k) <= best + 1e-5


@PRECISIONS
@pytest.mark.parametrize("kind", KINDS)
def test_closest_points_of_edges_are_closest_even_if_they_collapsed(kind, real):
    points = [x.astype(real) for x in shapes(np.random.default_rng(2), kind)]
    value, gradients = launch(between_edges, points, 3, np.ones((len(points[0]), 3)))
    assert np.isfinite(value).all() and all(np.isfinite(g).all() for g in gradients)
    assert value.min() >= 0 and value[:, :2].max() <= 1
    for k, (_, _, distance) in enumerate(value):
        assert abs(distance - kc.closest_point_edge_edge(*(x[k] for x in points))[2]) < 2e-5


def test_a_far_point_finds_its_edge():
    """The height above the triangle cancels out of the comparison of the edges."""
    a, b, c = np.zeros((1, 3)), np.array([[1.0, 0, 0]]), np.array([[0, 1.0, 0]])
    p = np.array([[0.3, -0.2, 1e6]])
    np.testing.assert_allclose(launch(to_triangles, [p, a, b, c], 3)[0], [0.7, 0.3, 0], atol=1e-9)


# -- random numbers
@kc.kernel
def draws(seed: int, out: kc.Array[float, 2]):
    i, k = kc.tid()
    out[i, k] = kc.rand(seed, i, k)


@kc.kernel
def normal_draws(seed: int, out: kc.Array[float, 2]):
    i, k = kc.tid()
    out[i, k] = kc.randn(seed, i, k)


def sample(kernel, seed=42, real=kc.float32, shape=(512, 512)):
    out = kc.zeros(shape, dtype=float, real=real)
    kc.launch(kernel, dim=shape, inputs=[seed], outputs=[out])
    return out.numpy().astype(float)


def test_random_numbers_are_the_same_in_both_precisions():
    assert (sample(draws) == sample(draws, real=kc.float64)).all()
    np.testing.assert_allclose(sample(normal_draws), sample(normal_draws, real=kc.float64), atol=2e-6)


def test_random_numbers_are_uniform():
    x = sample(draws)
    assert x.min() >= 0 and x.max() < 1
    for part in (x.ravel(), x[:, 0], x[0], x[:64, :64].ravel()):
        count = np.histogram(part, 16, (0, 1))[0]
        expected = part.size / 16
        assert ((count - expected) ** 2 / expected).sum() < 50  # 15 degrees of freedom: one in 10^5


def test_neighbouring_draws_are_independent():
    x = sample(draws)
    others = [
        np.roll(x, 1, 0),
        np.roll(x, 1, 1),
        np.roll(x, 64, 1),
        x.T,
        sample(draws, 43),
        sample(draws, 42 + (1 << 20)),
    ]
    for other in others:
        off = ~np.eye(512, dtype=bool)
        assert abs(np.corrcoef(x[off], other[off])[0, 1]) < 0.01


def test_normal_numbers_are_normal():
    x = sample(normal_draws).ravel()
    assert abs(x.mean()) < 0.01 and abs(x.std() - 1) < 0.01
    assert abs((x**3).mean()) < 0.03 and abs((x**4).mean() - 3) < 0.1
    assert np.isfinite(x).all() and np.abs(x).max() > 4


# -- search
@kc.kernel
def bounds(sorted_: kc.Array[float], values: kc.Array[float], out: kc.Array[int]):
    i = kc.tid()
    out[i] = kc.lower_bound(sorted_, values[i])


@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_lower_bound_is_searchsorted(n):
    rng = np.random.default_rng(n)
    data = np.sort(rng.integers(0, 30, n)).astype(np.float32)
    values = np.arange(-1, 32).astype(np.float32)
    out = kc.zeros(len(values), dtype=int)
    kc.launch(bounds, dim=len(values), inputs=[data, values], outputs=[out])
    assert (out.numpy() == np.searchsorted(data, values)).all()
