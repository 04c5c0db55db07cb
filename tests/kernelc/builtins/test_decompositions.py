"""Laws of the decompositions: accuracy in units of the last place for matrices of all kinds, exact gradients where
singular values are equal."""

import numpy as np
import pytest

import kernelc as kc

PRECISIONS = pytest.mark.parametrize("real", [np.float64, np.float32], ids=["f64", "f32"])
REALS = {np.float64: kc.float64, np.float32: kc.float32}


@kc.kernel
def svds(m: kc.Array[kc.mat33], u: kc.Array[kc.mat33], s: kc.Array[kc.float3], v: kc.Array[kc.mat33]):
    i = kc.tid()
    a, b, c = kc.svd3(m[i])
    u[i] = a
    s[i] = b
    v[i] = c


@kc.kernel
def svds2(m: kc.Array[kc.mat22], u: kc.Array[kc.mat22], s: kc.Array[kc.float2], v: kc.Array[kc.mat22]):
    i = kc.tid()
    a, b, c = kc.svd2(m[i])
    u[i] = a
    s[i] = b
    v[i] = c


@kc.kernel
def polars(m: kc.Array[kc.mat33], r: kc.Array[kc.mat33], s: kc.Array[kc.mat33]):
    i = kc.tid()
    a, b = kc.polar3(m[i])
    r[i] = a
    s[i] = b


@kc.kernel
def polars2(m: kc.Array[kc.mat22], r: kc.Array[kc.mat22], s: kc.Array[kc.mat22]):
    i = kc.tid()
    a, b = kc.polar2(m[i])
    r[i] = a
    s[i] = b


@kc.kernel
def eigens(m: kc.Array[kc.mat33], values: kc.Array[kc.float3], vectors: kc.Array[kc.mat33]):
    i = kc.tid()
    a, b = kc.eig3_sym(m[i])
    values[i] = a
    vectors[i] = b


def run(kernel, m, *shapes, seeds=None):
    """The results of a kernel on matrices; with seeds for the results, the gradient."""
    m = np.asarray(m)
    arrays = [kc.zeros((len(m), *shape), dtype=float, real=REALS[m.dtype.type]) for shape in shapes]
    inputs = kc.array(m, dtype=float, requires_grad=seeds is not None)
    if seeds is None:
        kc.launch(kernel, dim=len(m), inputs=[inputs], outputs=arrays)
        return [a.numpy().astype(float) for a in arrays]
    with kc.Tape() as tape:
        kc.launch(kernel, dim=len(m), inputs=[inputs], outputs=arrays)
    tape.backward(grads={a: np.asarray(s, m.dtype) for a, s in zip(arrays, seeds)})
    return inputs.grad.numpy()


def rotations(rng, count, n=3):
    return np.linalg.qr(rng.standard_normal((count, n, n)))[0]


def matrices(n=3, count=200):
    """Random, graded, singular, repeated, zero, reflected and badly scaled ones."""
    rng = np.random.default_rng(11)
    spectra = [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0.5], [1, 0.5, 0.5], [1, 1e-8, 1e-8], [1, 1e-3, 1e-6],
               [1, 1e-8, 1e-16], [1, 1, 1e-12], [1, 1 + 1e-9, 1 - 1e-9], [1, 1e-20, 1e-30], [1e-30, 1e-30, 1e-31],
               [1e30, 1e20, 1]]  # fmt: skip
    parts = [rng.standard_normal((count, n, n)), rng.integers(-2, 3, (count, n, n)).astype(float)]
    parts.append(np.eye(n) + 1e-4 * rng.standard_normal((count, n, n)))
    parts.append(rng.standard_normal((count, n, n)) * 10.0 ** rng.uniform(-9, 0, (count, 1, n)))
    parts.append(rng.standard_normal((count, n, n)) * 10.0 ** rng.uniform(-9, 0, (count, n, 1)))
    for spectrum in spectra:
        parts.append(rotations(rng, 20, n) * np.array(spectrum[:n]) @ rotations(rng, 20, n))
        parts.append(np.diag(spectrum[:n])[None] * rng.choice([-1, 1], (4, 1, n)))
    return np.concatenate(parts)


def units(error, scale, real):
    """The largest error, in units of the last place of `scale`."""
    return (
        float(np.max(np.abs(error).max(axis=tuple(range(1, error.ndim))) / np.maximum(scale, 1e-37)))
        / np.finfo(real).eps
    )


@PRECISIONS
@pytest.mark.parametrize(("kernel", "n"), [(svds2, 2), (svds, 3)], ids=["svd2", "svd3"])
def test_svd_of_any_matrix_is_exact_to_rounding(kernel, n, real):
    m = matrices(n).astype(real)
    u, s, v = run(kernel, m, (n, n), (n,), (n, n))
    exact = m.astype(float)
    want = np.linalg.svd(exact)[1]
    assert units(u * s[:, None] @ v.transpose(0, 2, 1) - exact, want[:, 0], real) < 24
    assert units(s - want, want[:, 0], real) < 16
    for q in (u, v):
        assert units(q.transpose(0, 2, 1) @ q - np.eye(n), 1, real) < 16
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
    np.testing.assert_allclose(np.linalg.det(v), 1, atol=1e-5)


@PRECISIONS
def test_eigenvalues_of_any_symmetric_matrix_are_exact_to_rounding(real):
    m = matrices().astype(real)
    m = (0.5 * (m + m.transpose(0, 2, 1))).astype(real)
    values, vectors = run(eigens, m, (3,), (3, 3))
    scale = np.abs(m).max(axis=(1, 2)).astype(float)
    assert units(vectors * values[:, None] @ vectors.transpose(0, 2, 1) - m, scale, real) < 24
    assert units(vectors.transpose(0, 2, 1) @ vectors - np.eye(3), 1, real) < 16
    assert units(values - np.linalg.eigvalsh(m.astype(float)), scale, real) < 16
    assert (np.diff(values) >= 0).all()


@PRECISIONS
@pytest.mark.parametrize(("kernel", "n"), [(polars2, 2), (polars, 3)], ids=["polar2", "polar3"])
def test_polar_factors_of_any_matrix(kernel, n, real):
    m = matrices(n).astype(real)
    r, s = run(kernel, m, (n, n), (n, n))
    scale = np.abs(m).max(axis=(1, 2)).astype(float)
    assert units(r @ s - m, scale, real) < 24
    assert units(r.transpose(0, 2, 1) @ r - np.eye(n), 1, real) < 24
    assert units(s - s.transpose(0, 2, 1), scale, real) < 8
    assert (np.linalg.eigvalsh(s) / np.maximum(scale, 1e-37)[:, None] > -32 * np.finfo(real).eps).all()
    sure = np.abs(np.linalg.det(m.astype(float) / np.maximum(scale, 1e-37)[:, None, None])) > 1e-3
    assert (np.sign(np.linalg.det(r))[sure] == np.sign(np.linalg.det(m.astype(float)))[sure]).all()


def differences(function, m, h=1e-6):
    """Central differences of a scalar function of one matrix."""
    grad = np.zeros_like(m)
    for index in np.ndindex(m.shape):
        step = np.zeros_like(m)
        step[index] = h
        grad[index] = (function(m + step) - function(m - step)) / (2 * h)
    return grad


def equal_values(n=3):
    rng = np.random.default_rng(5)
    q, p = rotations(rng, 2, n)
    stretches = [np.ones(n), np.r_[2.0, np.ones(n - 1)], np.r_[np.ones(n - 1), 0.5]]
    return [np.eye(n), -np.eye(n), q, q @ p] + [q @ np.diag(x) @ p for x in stretches]


@pytest.mark.parametrize(("kernel", "n"), [(polars2, 2), (polars, 3)], ids=["polar2", "polar3"])
def test_polar_gradient_is_exact_where_singular_values_are_equal(kernel, n):
    weights = np.random.default_rng(2).standard_normal((2, n, n))
    for m in equal_values(n):

        def loss(x):
            r, s = run(kernel, x[None], (n, n), (n, n))
            return (weights[0] * r[0]).sum() + (weights[1] * s[0]).sum()

        got = run(kernel, m[None], (n, n), (n, n), seeds=weights[:, None])[0]
        np.testing.assert_allclose(got, differences(loss, m), atol=1e-8)


@pytest.mark.parametrize(("kernel", "n"), [(svds2, 2), (svds, 3)], ids=["svd2", "svd3"])
def test_svd_gradient_is_exact_for_what_does_not_depend_on_the_basis(kernel, n):
    """U Vᵀ and the sum of s are smooth at equal singular values, although U, V and each s are not."""
    weights = np.random.default_rng(2).standard_normal((n, n))
    for m in equal_values(n):

        def loss(x):
            u, s, v = run(kernel, x[None], (n, n), (n,), (n, n))
            return (weights * (u[0] @ v[0].T)).sum() + 0.7 * s[0].sum()

        u, _, v = (x[0] for x in run(kernel, m[None], (n, n), (n,), (n, n)))
        seeds = [(weights @ v)[None], np.full((1, n), 0.7), (weights.T @ u)[None]]
        got = run(kernel, m[None], (n, n), (n,), (n, n), seeds=seeds)[0]
        np.testing.assert_allclose(got, differences(loss, m), atol=1e-8)


def test_eigenvalue_gradient_is_exact_for_their_sum_and_symmetric_always():
    rng = np.random.default_rng(4)
    q = rotations(rng, 1)[0]
    for values in ([1, 1, 1], [1, 1, 2], [0, 0, 0], [-1, 0.5, 0.5], [1, 2, 3]):
        m = q @ np.diag(np.array(values, float)) @ q.T
        got = run(eigens, m[None], (3,), (3, 3), seeds=[np.full((1, 3), 2.0), np.zeros((1, 3, 3))])[0]
        np.testing.assert_allclose(got, 2 * np.eye(3), atol=1e-14)
        seeds = [rng.standard_normal((1, 3)), rng.standard_normal((1, 3, 3))]
        got = run(eigens, m[None], (3,), (3, 3), seeds=seeds)[0]
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, got.T, rtol=1e-12)


@PRECISIONS
def test_flat_matrices_have_moderate_gradients(real):
    """Singular values that are noise count as zero: their reciprocals do not reach the gradient."""
    rng = np.random.default_rng(9)
    q, p = rotations(rng, 2)
    ones = [np.ones((1, 3, 3)), np.ones((1, 3, 3))]
    for spectrum in ([1, 0.5, 0], [1, 0, 0], [0, 0, 0]):
        m = (q @ np.diag(np.array(spectrum, float)) @ p).astype(real)
        assert np.abs(run(polars, m[None], (3, 3), (3, 3), seeds=ones)).max() < 20
