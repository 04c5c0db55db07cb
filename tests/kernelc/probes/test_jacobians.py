"""`kc.jacobian`: sparse by colours, dense on request, and never an entry missed."""

import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import kernelc as kc
from kernelc.runtime import jacobians


@kc.kernel
def chain(x: kc.Array[kc.float3], rest: kc.Array[float], f: kc.Array[kc.float3]):
    i = kc.tid()
    d = x[i + 1] - x[i]
    force = kc.normalize(d) * (kc.length(d) - rest[i])
    kc.atomic_add(f, i, force)
    kc.atomic_sub(f, i + 1, force)


@kc.kernel
def step(x: kc.Array[kc.float3], f: kc.Array[kc.float3]):
    i = kc.tid()
    x[i] = x[i] + 0.1 * f[i]


@kc.kernel
def twisted(x: kc.Array[float], at: kc.Array[int], out: kc.Array[float], top: kc.Array[float]):
    i = kc.tid()
    s = 0.0
    for k in range(i % 3 + 1):
        s += kc.sin(x[at[(i + k) % at.shape[0]]]) * x[i]
        if s > 1.2:
            break
    if x[i] > 0.9:
        out[i] = s
    else:
        kc.atomic_max(top, i // 2, x[i])


def hanging(n=12):
    random = np.random.default_rng(0)
    x = kc.array(np.cumsum(random.uniform(0.2, 1, (n, 3)), 0), dtype=kc.float3, requires_grad=True)
    rest, f = kc.array(random.uniform(0.5, 1, n - 1), requires_grad=True), kc.zeros(n, kc.float3, real=kc.float64)
    with kc.Tape() as tape:
        for _ in range(2):
            f.zero_()
            kc.launch(chain, n - 1, [x, rest], [f])
            kc.launch(step, n, [x, f])
    return tape, x, rest, f


def test_the_sparse_matrix_is_the_dense_one():
    tape, x, rest, f = hanging()
    sparse = kc.jacobian(tape, [x, f], [x, rest])
    dense = kc.jacobian(tape, [x, f], [x, rest], sparsity="dense")
    assert sparse.format == "csr" and sparse.shape == dense.shape == (72, 47)
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-14, atol=1e-15)
    assert sparse.nnz < dense.size / 2


def test_few_tangents_serve_many_columns(monkeypatch):
    tape, x, _, f = hanging(60)
    pushed = []
    monkeypatch.setattr(jacobians, "_pushed", lambda *a, inner=jacobians._pushed: pushed.append(len(a[3])) or inner(*a))
    assert kc.jacobian(tape, f, x).shape == (180, 180)
    assert sum(pushed) <= 22  # the widest row has fifteen entries; one tangent is the probe


def test_rows_and_columns_are_in_order():
    tape, x, rest, f = hanging()
    whole = kc.jacobian(tape, [f, x], [rest, x]).toarray()
    np.testing.assert_array_equal(kc.jacobian(tape, x, rest).toarray(), whole[36:, :11])
    np.testing.assert_array_equal(kc.jacobian(tape, f, x).toarray(), whole[:36, 11:])
    tape.backward(grads={f: np.ones((12, 3))})
    np.testing.assert_allclose(whole[:36].sum(0)[:11], rest.grad.numpy(), rtol=1e-12, atol=1e-14)


def test_single_precision_and_the_interpreter():
    found = []
    for real, device in ((np.float64, "cpu"), (np.float32, "cpu"), (np.float64, "python")):
        x = kc.array(np.linspace(0.3, 1.5, 9).astype(real), requires_grad=True)
        at = kc.array(np.random.default_rng(1).permutation(9).astype(np.int32))
        out, top = kc.array(np.zeros(9, real)), kc.array(np.zeros(9, real))
        with kc.Tape() as tape:
            kc.launch(twisted, 9, [x, at], [out, top], device=device)
        found.append(kc.jacobian(tape, [out, top], x))
        assert found[-1].dtype == real
    np.testing.assert_allclose(found[1].toarray(), found[0].toarray(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[2].toarray(), found[0].toarray(), rtol=1e-12)


@given(st.integers(1, 150), st.integers(0, 1000))
def test_no_entry_is_missed(n, seed):
    random = np.random.default_rng(seed)
    x = kc.array(random.uniform(0.3, 1.5, n), requires_grad=True)
    at = kc.array(random.integers(0, n, n).astype(np.int32))
    out, top = kc.array(np.zeros(n)), kc.array(np.zeros(n))
    with kc.Tape() as tape:
        kc.launch(twisted, n, [x, at], [out, top])
        out.assign(out[::-1])
    sparse, dense = kc.jacobian(tape, [out, top], x), kc.jacobian(tape, [out, top], x, "dense")
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-13, atol=1e-14)


def test_an_operation_makes_everything_depend_on_everything():
    x, y = kc.array(np.linspace(0.5, 1, 5), requires_grad=True), kc.zeros(1, real=kc.float64)
    with kc.Tape() as tape:
        total = kc.reduce(x)
        running = kc.scan(x)
        kc.launch(step_to, 1, [total], [y])
    np.testing.assert_allclose(kc.jacobian(tape, y, x).toarray(), np.full((1, 5), 2 * total.numpy()[0]))
    np.testing.assert_allclose(kc.jacobian(tape, running, x).toarray(), np.tril(np.ones((5, 5))))


@kc.kernel
def step_to(x: kc.Array[float], y: kc.Array[float]):
    y[kc.tid()] = x[kc.tid()] * x[kc.tid()]


def test_a_pattern_that_misses_entries_is_noticed(monkeypatch):
    tape, x, rest, f = hanging()
    monkeypatch.setattr(jacobians, "_pattern", lambda *a: (np.zeros(1, int), np.zeros(1, int)))
    np.testing.assert_array_equal(kc.jacobian(tape, f, rest).toarray(), kc.jacobian(tape, f, rest, "dense"))


def test_structs_are_refused_and_scipy_is_asked_for(monkeypatch):
    tape, x, rest, f = hanging()
    with pytest.raises(kc.WrongDtype, match="reals and vectors, not int32"):
        kc.jacobian(tape, f, kc.array(np.zeros(3, np.int32)))
    with pytest.raises(kc.WrongChoice, match='"auto", "dense"'):
        kc.jacobian(tape, f, x, sparsity="csr")
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(kc.WrongUse, match="needs SciPy"):
        kc.jacobian(tape, f, x)
    assert kc.jacobian(tape, f, rest, "dense").shape == (36, 11)
