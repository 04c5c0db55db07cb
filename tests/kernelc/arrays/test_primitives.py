"""Scans, sorts, reductions and runs of whole arrays: values against NumPy, gradients against differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kernelc as kc

NUMBERS = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(-3, 3))
REDUCTIONS = {"sum": np.sum, "min": np.min, "max": np.max, "prod": np.prod}


def gradient(function, x):
    """What a tape says of the weighted sum of a function's results."""
    a = kc.array(x.copy(), requires_grad=True)
    with kc.Tape() as tape:
        outs = function(a)
    outs = outs if isinstance(outs, tuple) else (outs,)
    weights = [np.cos(np.arange(o.size)).reshape(o.numpy().shape) for o in outs]
    tape.backward(grads=dict(zip(outs, weights)))
    return a.grad.numpy()


def differences(function, x, h=1e-6):
    def loss(y):
        outs = function(kc.array(y))
        outs = outs if isinstance(outs, tuple) else (outs,)
        return sum(np.sum(np.cos(np.arange(o.size)).reshape(o.numpy().shape) * o.numpy()) for o in outs)

    steps = h * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([(loss(x + d) - loss(x - d)) / (2 * h) for d in steps]).reshape(x.shape)


@given(NUMBERS, st.booleans())
def test_a_scan_is_a_running_sum(x, exclusive):
    want = np.cumsum(x) - x * exclusive
    assert np.allclose(kc.scan(kc.array(x), exclusive=exclusive).numpy(), want, atol=1e-12)


@given(hnp.arrays(np.int32, st.integers(0, 40)), st.sampled_from(["int32", "int64", "uint32"]))
def test_integers_stay_integers_and_wrap(x, kind):
    x = x.astype(kind)
    assert np.array_equal(kc.scan(kc.array(x)).numpy(), np.cumsum(x, dtype=kind))
    assert kc.reduce(kc.array(x)).numpy()[0] == np.sum(x, dtype=kind)


@given(st.lists(st.integers(-3, 3), max_size=40))
def test_sorting_is_stable_and_moves_values_along(keys):
    keys = np.array(keys, np.int32)
    names = np.arange(len(keys), dtype=np.int32)
    sorted_, moved = kc.sort(kc.array(keys), kc.array(names))
    assert np.array_equal(sorted_.numpy(), np.sort(keys))
    assert np.array_equal(moved.numpy(), np.argsort(keys, kind="stable"))
    values, counts = kc.unique(sorted_)
    want, count = np.unique(keys, return_counts=True)
    assert np.array_equal(values.numpy(), want)
    assert np.array_equal(counts.numpy(), count)


@given(NUMBERS, st.sampled_from(sorted(REDUCTIONS)))
def test_reductions_are_those_of_numpy(x, op):
    assert np.allclose(float(kc.reduce(kc.array(x), op)), REDUCTIONS[op](x), rtol=1e-12, atol=1e-12)


def test_float32_is_summed_in_double_precision():
    x = np.full(3_000_000, 0.1, np.float32)
    assert float(kc.reduce(kc.array(x))) == np.float32(np.sum(x, dtype=np.float64))
    assert kc.scan(kc.array(x)).numpy()[-1] == np.float32(np.cumsum(x, dtype=np.float64)[-1])


@pytest.mark.parametrize("function", [
    kc.scan, lambda a: kc.scan(a, exclusive=True), kc.sort, lambda a: kc.sort(a, a),
    *[lambda a, op=op: kc.reduce(a, op) for op in REDUCTIONS], lambda a: kc.unique(kc.sort(a))[0],
])  # fmt: skip
def test_gradients_are_those_of_differences(function):
    x = np.array([2.0, 0.5, 3.0, -1.0, 1.7, 0.3, 2.2])
    assert np.allclose(gradient(function, x), differences(function, x), atol=1e-6)


def test_vectors_go_component_by_component():
    x = np.random.default_rng(1).normal(size=(9, 3))
    a = kc.array(x, dtype=kc.float3, requires_grad=True)
    with kc.Tape() as tape:
        top, sums = kc.reduce(a, "max"), kc.scan(a)
    assert np.allclose(top.numpy()[0], x.max(0)) and np.allclose(sums.numpy(), np.cumsum(x, 0))
    tape.backward(grads={top: [[1.0, 2.0, 3.0]]})
    want = np.zeros_like(x)
    want[x.argmax(0), [0, 1, 2]] = [1, 2, 3]
    assert np.array_equal(a.grad.numpy(), want)


def test_a_product_with_zeros_has_the_right_slopes():
    a = kc.array(np.array([2.0, 0.0, 3.0]), requires_grad=True)
    with kc.Tape() as tape:
        product = kc.reduce(a, "prod")
    tape.backward(product)
    assert np.array_equal(a.grad.numpy(), [0, 6, 0])


def test_a_minimum_goes_to_the_first_that_has_it():
    a = kc.array(np.array([2.0, 1.0, 1.0]), requires_grad=True)
    with kc.Tape() as tape:
        least = kc.reduce(a, "min")
    tape.backward(least)
    assert np.array_equal(a.grad.numpy(), [0, 1, 0])


def test_what_is_overwritten_later_was_seen():
    a = kc.array(np.array([2.0, 5.0, 3.0]), requires_grad=True)
    b = kc.zeros(3, real=kc.float64)
    with kc.Tape() as tape:
        b.assign(a)
        product = kc.reduce(b, "prod")
        b.zero_()
    tape.backward(product)
    assert np.array_equal(a.grad.numpy(), [15, 6, 10])


def test_a_replay_sees_what_the_arrays_hold_then():
    a = kc.array(np.array([3.0, 1.0, 2.0]), requires_grad=True)
    with kc.Tape() as tape:
        least = kc.reduce(kc.scan(kc.sort(a)), "max")
    a.assign(np.array([1.0, 10.0, 5.0]))
    tape.replay()
    tape.backward(least)
    assert float(least) == 16 and np.array_equal(a.grad.numpy(), [1, 1, 1])


def test_a_replay_with_other_runs_is_refused():
    a = kc.array(np.array([1, 1, 2], np.int32))
    with kc.Tape() as tape:
        kc.unique(a)
    a.assign(np.array([1, 2, 3], np.int32))
    with pytest.raises(kc.TapeError, match="2 different numbers when it was recorded, and 3 now"):
        tape.replay()


@pytest.mark.parametrize(("call", "words"), [
    (lambda: kc.scan(np.zeros((2, 2))), "kc.scan takes an array of one dimension"),
    (lambda: kc.scan(np.zeros(2, bool)), "kc.scan takes numbers and vectors, not bool"),
    (lambda: kc.sort(kc.zeros(2, dtype=kc.float3)), "keys are numbers, not float3"),
    (lambda: kc.sort(np.zeros(2), np.zeros(3)), "2 keys, but 3 values"),
    (lambda: kc.reduce(np.zeros(0), "min"), "an empty array has no min"),
    (lambda: kc.reduce(np.zeros(2), "mean"), "kc.reduce has no operation 'mean'"),
    (lambda: kc.unique(np.array([2, 1])), "element 1 is smaller than the one before"),
])  # fmt: skip
def test_what_has_no_meaning_is_refused(call, words):
    with pytest.raises(kc.KernelError) as error:
        call()
    assert words.replace("float3", "vec(3, float32)") in str(error.value) or words in str(error.value)


def test_empty_arrays():
    nothing = np.zeros(0)
    assert float(kc.reduce(nothing)) == 0 and float(kc.reduce(nothing, "prod")) == 1
    assert kc.scan(nothing).shape == kc.sort(nothing).shape == kc.unique(nothing)[0].shape == (0,)
