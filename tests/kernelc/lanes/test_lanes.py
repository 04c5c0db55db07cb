"""Lanes change the speed, never the meaning: every width gives what the thread-by-thread code gives."""

import numpy as np
import pytest

import kernelc as kc
from kernelc.codegen.uniform import lanes_refused

WIDTHS = [4, 8, 16, "auto"]
SIZES = [1, 5, 16, 37, 100]


@pytest.fixture(autouse=True)
def restore_lanes():
    before = kc.config.lanes
    yield
    kc.config.lanes = before


@kc.kernel
def divergent(x: kc.Array[kc.float3], trips: kc.Array[int], w: kc.Array[float], n: int, out: kc.Array[kc.float3],
              total: kc.Array[float]):  # fmt: skip
    """Early return, loops of different length, break, while, gathers, shared sums."""
    i = kc.tid()
    if i >= n:
        return
    v = x[i]
    p = 1.0
    for k in range(trips[i]):
        p *= kc.sin(v.x * k + w[i])
        if p < -0.5:
            break
        v = v + kc.float3(p, v.x * 0.1, kc.exp(-v.y * v.y))
    a = x[trips[i]]
    j = 0
    while kc.length(a) < 3.0 and j < 7:
        a = a * 1.5 + v
        j += 1
    out[i] = kc.normalize(a) * p if j % 2 == 0 else kc.cross(a, v)
    total[trips[i]] += kc.dot(v, a) * kc.sqrt(kc.abs(v.z))
    total[0] += v.y


@kc.kernel
def grid(x: kc.Array[float, 2], y: kc.Array[float, 2], m: kc.Array[kc.mat33], rows: kc.Array[int, 2]):
    """Two axes, vector mathematics, matrices, rows of a table, a function with its own adjoint."""
    i, j = kc.tid()
    a = x[i, j]
    b = x[j % 3, i % 3]
    R, S = kc.polar3(m[i])
    y[i, j] = (kc.tanh(a * b) + kc.atan2(a, b + 2.0) + kc.pow(kc.abs(a) + 0.1, 1.3) + kc.determinant(m[i]) * 0.1
               + kc.ddot(R, S) + float(rows[i, 0] + rows[i, 1]) + kc.log1p(a * a) + kc.floor(b) + a % 0.7)  # fmt: skip


def run_divergent(real, n, r):
    x = kc.array(r.normal(size=(n, 3)).astype(real), dtype=kc.float3, requires_grad=True)
    w = kc.array(r.normal(size=n).astype(real), requires_grad=True)
    trips = kc.array(r.integers(0, min(n, 9), n).astype(np.int32))
    out, total = kc.array(np.zeros((n, 3), real), dtype=kc.float3), kc.array(np.zeros(n, real))
    with kc.Tape() as tape:
        kc.launch(divergent, n + 5, [x, trips, w, n], [out, total])
    tape.backward(grads={out: r.normal(size=(n, 3)), total: r.normal(size=n)})
    return [out, total, x.grad, w.grad]


def run_grid(real, n, r):
    shape = (n // 3 + 3, 7)
    x = kc.array(r.normal(size=shape).astype(real), requires_grad=True)
    m = kc.array(r.normal(size=(shape[0], 3, 3)).astype(real), dtype=kc.mat33, requires_grad=True)
    rows = kc.array(r.integers(0, 9, (shape[0], 2)).astype(np.int32))
    y = kc.array(np.zeros(shape, real))
    with kc.Tape() as tape:
        kc.launch(grid, shape, [x, y, m, rows])
    tape.backward(grads={y: r.normal(size=shape)})
    return [y, x.grad, m.grad]


@pytest.mark.parametrize("program", [run_divergent, run_grid])
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_every_width_agrees_with_no_lanes(program, real):
    for n in SIZES:
        kc.config.lanes = 0
        want = [a.numpy().astype(np.float64) for a in program(real, n, np.random.default_rng(n))]
        for width in WIDTHS:
            kc.config.lanes = width
            got = [a.numpy().astype(np.float64) for a in program(real, n, np.random.default_rng(n))]
            for a, b in zip(got, want, strict=True):
                scale = np.abs(b).max() + 1e-9
                assert np.abs(a - b).max() <= (1e-3 if real == np.float32 else 1e-10) * scale, (n, width)


def test_the_same_bits_whatever_the_number_of_threads():
    results = []
    for threads in (1, 2):
        kc.config.threads = threads
        results.append([a.numpy().copy() for a in run_divergent(np.float32, 3000, np.random.default_rng(1))])
    kc.config.threads = 0
    for a, b in zip(*results, strict=True):
        assert a.tobytes() == b.tobytes()


_MATH = ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "expm1",
         "log", "log1p", "log2", "log10", "cbrt", "erf", "sqrt", "sigmoid", "softplus"]  # fmt: skip
_SOURCE = """
import kernelc as kc
{kernels}
"""
_KERNEL = """
@kc.kernel
def use_{name}(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.{name}(x[i])
"""


def test_vector_mathematics_is_accurate(tmp_path):
    """At most a few units in the last place, over each function's domain, for every width."""
    import importlib.util

    from kernelc.builtins import TABLE

    path = tmp_path / "vector_mathematics.py"
    path.write_text(_SOURCE.format(kernels="".join(_KERNEL.format(name=n) for n in _MATH)))
    spec = importlib.util.spec_from_file_location("vector_mathematics", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kc.config.lanes = "auto"
    for name in _MATH:
        row = TABLE.scalar(name)
        low, high = row.domain[0]
        for real, ulps in ((np.float32, 16), (np.float64, 16)):
            x = np.linspace(low, high, 1001).astype(real)
            y = kc.array(np.zeros_like(x))
            kc.launch(getattr(module, f"use_{name}"), len(x), [kc.array(x)], [y])
            want = row.python(x.astype(np.float64))
            gap = np.abs(y.numpy() - want) / np.spacing(np.maximum(np.abs(want), 1e-3).astype(real))
            assert gap.max() <= ulps, (name, real, gap.max())


@kc.kernel
def printing(x: kc.Array[float]):
    i = kc.tid()
    print(x[i])


@kc.kernel
def winning(x: kc.Array[float], m: kc.Array[float]):
    kc.atomic_max(m, 0, x[kc.tid()])


def test_what_must_stay_in_thread_order_says_why():
    assert "prints" in lanes_refused(printing.variant(kc.float32).kernel)
    assert "lowest thread" in lanes_refused(winning.variant(kc.float32).kernel)
    assert lanes_refused(grid.variant(kc.float32).kernel) == ""


@kc.kernel
def split_by_literals(a: kc.Array[int], b: kc.Array[kc.int64], c: kc.Array[kc.uint32], out: kc.Array[int, 2]):
    i = kc.tid()
    out[i, 0] = a[i] // 4
    out[i, 1] = a[i] % 4
    out[i, 2] = a[i] // 1 + a[i] % 1
    out[i, 3] = kc.int32(b[i] // 1024)
    out[i, 4] = kc.int32(b[i] % 1024)
    out[i, 5] = kc.int32(c[i] // 8)
    out[i, 6] = kc.int32(c[i] % 8)
    out[i, 7] = a[i] // 6
    out[i, 8] = a[i] % 6


@pytest.mark.parametrize("width", [0, *WIDTHS])
def test_division_by_literals_rounds_down(width):
    kc.config.lanes = width
    a = np.array([0, 1, 3, 4, 5, -1, -3, -4, -5, -8, 2**31 - 1, -(2**31), 1000, -1000, 7, -7, 63, -64], np.int32)
    b, c, out = a.astype(np.int64) * 100, np.abs(a.astype(np.int64)).astype(np.uint32), np.zeros((len(a), 9), np.int32)
    kc.launch(split_by_literals, len(a), [a, b, c], [out])
    want = [a // 4, a % 4, a, b // 1024, b % 1024, c // 8, c % 8, a // 6, a % 6]
    assert np.array_equal(out, np.stack(want, 1).astype(np.int32))
