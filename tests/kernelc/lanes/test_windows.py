"""The last group of a launch may not be full: what it sees, and what it leaves alone."""

import numpy as np
import pytest

import kernelc as kc

SIZES = [16, 17, 31, 33, 100, 129]
REALS = [np.float32, np.float64]


@kc.kernel
def product(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = a[i] * b[i]


@kc.kernel
def twice_below(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    if i < n:
        y[i] = x[i] * 2.0


@kc.kernel
def twice_if(x: kc.Array[float], flag: int, y: kc.Array[float]):
    i = kc.tid()
    v = 1.0
    if flag > 0:
        v = x[i]
    y[i] = v * 2.0


@kc.kernel
def flipped(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i]
    if x[i] > 0.5:
        y[i] = -x[i]


@kc.kernel
def picked(j: kc.Array[int], x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i] = x[j[i] - 200000000] * 2.0 + y[i]


@kc.kernel
def picked_unsigned(j: kc.Array[kc.uint32], x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i] = x[j[i] - 200000000] * 2.0 + y[i]


@kc.kernel
def picked_wide(j: kc.Array[kc.int64], x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i] = x[j[i] - 200000000] * 2.0 + y[i]


@kc.kernel
def picked_by_some(j: kc.Array[kc.uint32], x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    k = j[i] - 200000000
    if k < 5:
        y[i] = x[k] * 2.0 + y[i]
    else:
        y[i] = y[i] + 2.0 * x[k]


def numbers(n, real):
    return np.random.default_rng(n).random(n).astype(real)


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("n", SIZES)
def test_overlapping_views_share_one_gradient(n, real):
    x = kc.array(numbers(n + 1, real), requires_grad=True)
    out = kc.array(np.zeros(n, real))
    with kc.Tape() as tape:
        kc.launch(product, n, [x[:n], x[1:]], [out])
    tape.backward(grads={out: np.ones(n)})
    data, expected = x.numpy(), np.zeros(n + 1)
    expected[:n] += data[1:]
    expected[1:] += data[:n]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("n", SIZES)
def test_arrays_may_be_shorter_than_the_grid(n, real):
    x, y = numbers(n, real), kc.array(np.full(n, 7, real))
    kc.launch(twice_below, n + 40, [x, n], [y])
    np.testing.assert_allclose(y.numpy(), 2 * x)
    z = kc.array(np.full(n, 7, real))
    kc.launch(twice_below, n, [x[: n - 3].copy(), n - 3], [z])
    np.testing.assert_allclose(z.numpy(), [*(2 * x[: n - 3]), 7, 7, 7])


@pytest.mark.parametrize("n", SIZES)
def test_an_array_that_is_not_read_may_be_empty(n):
    y = kc.zeros(n)
    kc.launch(twice_if, n, [kc.zeros(0), 0], [y])
    assert (y.numpy() == 2).all()


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("n", SIZES)
def test_stores_of_some_lanes_follow_stores_of_all(n, real):
    x, y = numbers(n, real), kc.array(np.zeros(n, real))
    kc.launch(flipped, n, [x], [y])
    np.testing.assert_array_equal(y.numpy(), np.where(x > 0.5, -x, x))


@pytest.mark.parametrize("kernel", [picked, picked_unsigned, picked_wide, picked_by_some])
@pytest.mark.parametrize("n", SIZES)
def test_lanes_beyond_the_grid_use_valid_indices(n, kernel):
    random = np.random.default_rng(n)
    x, y = random.random((2, n, 3)).astype(np.float32)
    j = random.integers(0, n, n)
    expected = x[j] * 2 + y
    whole = {picked: np.int32, picked_wide: np.int64}.get(kernel, np.uint32)
    kc.launch(kernel, n, [(j + 200000000).astype(whole), x], [y])
    np.testing.assert_allclose(y, expected, rtol=1e-6)
