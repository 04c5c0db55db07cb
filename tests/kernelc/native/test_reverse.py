"""The reverse sweep: who clears a gradient, who writes it first, and where the weights are read."""

import numpy as np
import pytest

import kernelc as kc

F = kc.Array[float]
F3 = kc.Array[kc.float3]


@kc.kernel
def scale(x: F, k: float, y: F):
    i = kc.tid()
    y[i] = x[i] * k


@kc.kernel
def product(a: F, b: F, y: F):
    i = kc.tid()
    y[i] = a[i] * b[i]


@kc.kernel
def turn(x: F3, y: F3):
    i = kc.tid()
    y[i] = kc.cross(kc.float3(1.0, 2.0, 3.0), x[i])


@kc.kernel
def some(x: F, y: F):
    i = kc.tid()
    if i % 2 == 0:
        y[i] = 3.0 * x[i]


@kc.kernel
def root(x: F, y: F):
    i = kc.tid()
    y[i] = kc.sqrt(x[i])


def leaf(values, **options):
    return kc.array(np.array(values, np.float64), requires_grad=True, **options)


def zeros(n):
    return kc.zeros(n, real=kc.float64)


@pytest.fixture(params=[0, 2, 8])
def lanes(request):
    before, kc.config.lanes = kc.config.lanes, request.param
    yield request.param
    kc.config.lanes = before


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40])
def test_the_first_launch_writes_over_what_was_there(lanes, n):
    x, y, z = leaf(np.arange(n)), zeros(n), zeros(n)
    with kc.Tape() as tape:
        kc.launch(scale, n, [x, 2.0], [y])
        kc.launch(product, n, [x, y], [z])
    for _ in range(2):
        x.grad.numpy()[:] = np.nan
        tape.backward(grads={z: np.ones(n)}, add=False)
        assert np.allclose(x.grad.numpy(), 4.0 * np.arange(n))


@pytest.mark.parametrize("n", [1, 5, 16, 33])
def test_elements_of_three_components(lanes, n):
    x, y = leaf(np.ones((n, 3)), dtype=kc.float3), kc.zeros(n, kc.float3, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(turn, n, [x], [y])
    w = np.random.default_rng(0).standard_normal((n, 3))
    kept = w.copy()
    tape.backward(grads={y: w}, add=False)
    assert np.allclose(x.grad.numpy(), np.cross(w, [1.0, 2.0, 3.0]))
    assert np.array_equal(w, kept)
    tape.backward(grads={y: w})
    assert np.allclose(x.grad.numpy(), 2 * np.cross(w, [1.0, 2.0, 3.0]))


def test_elements_that_a_launch_does_not_reach_are_zero(lanes):
    x, y = leaf(np.arange(12)), zeros(12)
    with kc.Tape() as tape:
        kc.launch(scale, 9, [x, 2.0], [y])
    x.grad.numpy()[:] = np.nan
    tape.backward(grads={y: np.ones(12)}, add=False)
    assert np.array_equal(x.grad.numpy(), [2.0] * 9 + [0.0] * 3)


def test_a_store_under_a_condition_leaves_the_rest(lanes):
    x, y = leaf(np.arange(10)), zeros(10)
    with kc.Tape() as tape:
        kc.launch(scale, 10, [x, 5.0], [y])
        kc.launch(some, 10, [x], [y])
    x.grad.numpy()[:] = np.nan
    tape.backward(grads={y: np.ones(10)}, add=False)
    assert np.array_equal(x.grad.numpy(), [3.0, 5.0] * 5)


@pytest.mark.parametrize("part", [np.s_[::-1], np.s_[2:8], np.s_[::2]], ids=str)
def test_views(lanes, part):
    x, y = leaf(np.arange(1.0, 11.0)), zeros(10)
    n = len(np.arange(10)[part])
    with kc.Tape() as tape:
        kc.launch(scale, n, [x[part], 2.0], [y[part]])
    w = np.arange(10.0)
    x.grad.numpy()[:] = np.nan
    tape.backward(grads={y: w}, add=False)
    want = np.zeros(10)
    want[part] = 2 * w[part]
    assert np.array_equal(x.grad.numpy(), want)


def test_one_array_for_two_arguments(lanes):
    x, y = leaf(np.arange(10)), zeros(10)
    with kc.Tape() as tape:
        kc.launch(product, 10, [x, x], [y])
    x.grad.numpy()[:] = np.nan
    tape.backward(grads={y: np.ones(10)}, add=False)
    assert np.array_equal(x.grad.numpy(), 2.0 * np.arange(10))


def test_a_leaf_that_nobody_asks_for_is_zero():
    x, other, y, z = leaf([1.0, 2.0]), leaf([3.0, 4.0]), zeros(2), zeros(2)
    with kc.Tape() as tape:
        kc.launch(scale, 2, [x, 2.0], [y])
        kc.launch(root, 2, [other], [z])
    for a in (x, other):
        a.grad.numpy()[:] = np.nan
    tape.backward(grads={y: [1.0, 1.0]}, add=False)
    assert np.array_equal(x.grad.numpy(), [2.0, 2.0]) and np.array_equal(other.grad.numpy(), [0.0, 0.0])


def test_a_leaf_that_is_overwritten():
    x, y = leaf([1.0, 2.0]), zeros(2)
    with kc.Tape() as tape:
        kc.launch(scale, 2, [x, 2.0], [y])
        kc.launch(scale, 2, [y, 3.0], [x])
    for add, want in ((False, 6.0), (True, 12.0), (False, 6.0)):
        tape.backward(grads={x: [1.0, 1.0]}, add=add)
        assert np.array_equal(x.grad.numpy(), [want, want])


def test_the_loss_may_be_a_leaf():
    x = leaf([4.0])
    with kc.Tape() as tape:
        kc.launch(scale, 1, [x, 2.0], [zeros(1)])
    x.grad.numpy()[:] = 7.0
    tape.backward(x, add=False)
    assert x.grad.numpy() == [1.0]
    tape.backward(x)
    assert x.grad.numpy() == [2.0]


@pytest.mark.parametrize("kind", ["gradient", "read-only", "strided", "broadcast", "list"])
def test_weights_in_any_memory(kind):
    n = 40
    x, y = leaf(np.arange(n)), zeros(n)
    with kc.Tape() as tape:
        kc.launch(scale, n, [x, 2.0], [y])
    w = np.arange(n) + 1.0
    if kind == "gradient":
        x.grad.numpy()[:] = w
        given = x.grad
    elif kind == "read-only":
        given = w.copy()
        given.flags.writeable = False
    elif kind == "strided":
        given = np.repeat(w, 2)[::2]
    elif kind == "broadcast":
        given, w = np.broadcast_to(3.0, n), np.full(n, 3.0)
    else:
        given = list(w)
    tape.backward(grads={y: given}, add=False)
    assert np.array_equal(x.grad.numpy(), 2 * w)


def test_gradients_in_between_are_left_at_zero():
    x, y, z = leaf(np.ones(20)), zeros(20), zeros(20)
    with kc.Tape() as tape:
        kc.launch(scale, 20, [x, 2.0], [y])
        kc.launch(scale, 20, [y, 2.0], [z])
    for _ in range(2):
        tape.backward(grads={z: np.ones(20)}, add=False)
        assert not y.grad.numpy().any() and not z.grad.numpy().any()


def test_what_nobody_asks_for_does_not_run_back():
    x, y, z = leaf([0.0, 1.0]), zeros(2), zeros(2)
    before, kc.config.singular = kc.config.singular, "raise"
    try:
        with kc.Tape() as tape:
            kc.launch(scale, 2, [x, 2.0], [y])
            kc.launch(root, 2, [x], [z])  # has no derivative at zero
        tape.backward(grads={y: [1.0, 1.0]}, add=False)
        assert np.array_equal(x.grad.numpy(), [2.0, 2.0])
        with pytest.raises(kc.KernelError, match="sqrt"):
            tape.backward(grads={z: [1.0, 1.0]})
    finally:
        kc.config.singular = before


def test_the_same_bits_with_and_without_clearing():
    n, random = 1000, np.random.default_rng(1)
    x, y, z = leaf(random.standard_normal(n)), zeros(n), zeros(n)
    with kc.Tape() as tape:
        kc.launch(scale, n, [x, 0.3], [y])
        kc.launch(product, n, [y, x], [z])
    w = random.standard_normal(n)
    tape.zero()
    tape.backward(grads={z: w})
    first = x.grad.numpy().copy()
    tape.backward(grads={z: w}, add=False)
    assert np.array_equal(first, x.grad.numpy())


def test_debug_mode():
    before, kc.config.debug = kc.config.debug, True
    try:
        x, y = leaf(np.arange(10)), zeros(10)
        with kc.Tape() as tape:
            kc.launch(scale, 10, [x, 2.0], [y])
        x.grad.numpy()[:] = np.nan
        tape.backward(grads={y: np.ones(10)}, add=False)
        assert np.array_equal(x.grad.numpy(), np.full(10, 2.0))
    finally:
        kc.config.debug = before
