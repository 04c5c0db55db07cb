"""What creation functions make: dtypes and precision as the page "Fine print / Creation" says."""

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def double(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i]


@kc.kernel
def scale(x: kc.Array[float], k: float, y: kc.Array[float]):
    i = kc.tid()
    y[i] = k * x[i]


@kc.kernel
def scale3(x: kc.Array[kc.float3], w: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i] = kc.cw_mul(x[i], w[i])


# -- precision
@pytest.mark.parametrize("dtype", [None, float, kc.float3])
def test_reals_are_float32_unless_the_data_is_float64(dtype):
    for data, real in [(np.ones((2, 3), np.float32), kc.float32), (np.ones((2, 3)), kc.float64)]:
        a = kc.array(data, dtype=dtype)
        assert a.real is real and a.numpy().dtype == data.dtype and np.shares_memory(a.numpy(), data)
    assert kc.array([[1.0, 2.0, 3.0]], dtype=dtype).real is kc.float32


def test_integer_data_becomes_float32_where_reals_are_wanted():
    assert kc.array(np.arange(3), dtype=float).real is kc.float32
    assert kc.array(np.arange(3), dtype=float, real=kc.float64).real is kc.float64
    assert kc.array([1, 2, 3], real=kc.float64).real is kc.float64


@pytest.mark.parametrize("make", [kc.zeros, kc.ones, kc.empty, lambda n, **k: kc.full(n, 3, **k)])
def test_filled_arrays_are_float32_unless_real_says_otherwise(make):
    assert make(4).real is kc.float32
    assert make(4, dtype=float).real is kc.float32
    assert make(4, dtype=kc.float3).numpy().dtype == np.float32
    assert make(4, dtype=kc.float3, real=kc.float64).numpy().dtype == np.float64
    assert make(4, dtype=kc.float64).numpy().dtype == np.float64
    assert make((2, 3), dtype=kc.mat33).numpy().shape == (2, 3, 3, 3)
    assert make(4, dtype=int).numpy().dtype == np.int32
    assert make(4, dtype=kc.int64).numpy().dtype == np.int64
    assert make(4, dtype=kc.uint32).numpy().dtype == np.uint32
    assert make(4, dtype=bool).numpy().dtype == np.bool_


def test_filled_arrays_hold_what_they_say():
    assert (kc.zeros(3).numpy() == 0).all() and (kc.ones(3, dtype=kc.float3).numpy() == 1).all()
    np.testing.assert_array_equal(kc.full(2, [1, 2, 3], dtype=kc.float3).numpy(), [[1, 2, 3], [1, 2, 3]])


def test_pinned_types_stay_pinned():
    assert kc.array(np.ones(3), dtype=kc.float32).real is kc.float32
    assert kc.array(np.ones(3, np.float32), dtype=kc.float64).real is kc.float64
    a = kc.array([1.0, 2.0], dtype=kc.float32)
    with pytest.raises(kc.MixedLaunch):
        kc.launch(double, 2, [a], [kc.zeros(2, real=kc.float64)])


def test_lists_of_integers_are_int32_and_never_wrap():
    assert kc.array([1, 2, 3]).dtype is kc.int32
    assert kc.array([True, False]).numpy().dtype == np.bool_
    with pytest.raises(kc.WrongDtype, match="do not fit"):
        kc.array([2**40])
    assert kc.array([2**40], dtype=kc.int64).numpy()[0] == 2**40
    with pytest.raises(kc.WrongDtype, match="do not fit"):
        kc.array(np.array([-1]), dtype=kc.uint32)


def test_numpy_integers_keep_their_type():
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_):
        data = np.zeros(3, kind)
        assert np.shares_memory(kc.array(data).numpy(), data)


@pytest.mark.parametrize("kind", [np.longdouble, np.complex64, "U3", object])
def test_other_types_are_refused_by_name(kind):
    if kind is np.longdouble and np.dtype(kind).itemsize == 8:
        pytest.skip("long double is double here")
    with pytest.raises(kc.WrongDtype, match="not supported"):
        kc.array(np.zeros(3, kind))


def test_zeros_like_does_not_inherit_the_gradient_flag():
    x = kc.ones((2, 3), dtype=kc.float3, requires_grad=True, real=kc.float64)
    for y in (kc.zeros_like(x), kc.empty_like(x)):
        assert y.shape == x.shape and y.dtype == x.dtype and not y.requires_grad and y.grad is None
    assert kc.zeros_like(x, requires_grad=True).grad is not None
    assert kc.zeros_like(np.ones((2, 3))).numpy().dtype == np.float64


def test_only_reals_can_require_a_gradient():
    with pytest.raises(kc.WrongDtype, match="only real arrays"):
        kc.array([1, 2], requires_grad=True)
    with pytest.raises(kc.WrongDtype, match="only real arrays"):
        kc.zeros(3, dtype=int, requires_grad=True)


def test_shapes():
    assert kc.zeros(3).shape == (3,) and kc.zeros((3,)).shape == (3,) and kc.zeros((2, 3, 4, 5)).ndim == 4
    assert kc.array(3.0).shape == (1,) and kc.array(np.float64(2.0)).shape == (1,)
    for wrong in (-1, (2, -3), 2.5, (2.0,)):
        with pytest.raises((kc.WrongShape, TypeError)):
            kc.zeros(wrong)
    with pytest.raises(kc.WrongShape, match="does not end in"):
        kc.array(np.ones((4, 2)), dtype=kc.float3)
    with pytest.raises(kc.WrongShape, match="4 dimensions"):
        kc.array(np.ones((1, 1, 1, 1, 1, 3)), dtype=kc.float3)


def test_copy_does_not_share():
    data = np.ones(3)
    a = kc.array(data, copy=True)
    a.numpy()[:] = 5
    assert (data == 1).all()


def test_an_array_of_an_array_is_a_view_of_it():
    x = kc.array(np.ones((4, 3)), requires_grad=True)
    v = kc.array(x, dtype=kc.float3)
    y = kc.zeros(4, dtype=kc.float3, real=kc.float64)
    assert v.shape == (4,) and np.shares_memory(v.numpy(), x.numpy())
    with kc.Tape() as tape:
        kc.launch(scale3, 4, [v, v], [y])
    tape.backward(grads={y: np.ones((4, 3))})
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.ones((4, 3)))
    before = x.version
    kc.array(x).assign(np.zeros((4, 3)))
    assert x.version > before


# -- weak lists and scalars
@pytest.mark.parametrize("real", [kc.float32, kc.float64])
def test_lists_and_scalars_adapt_to_the_launch(real):
    x = kc.ones(2, real=real)
    y = kc.zeros(2, real=real)
    weights = kc.array([0.1, 0.2], requires_grad=True)
    k = kc.scalar(0.1, requires_grad=True)
    with kc.Tape() as tape:
        kc.launch(scale, 2, [weights, k], [y])
    tape.backward(grads={y: np.ones(2)})
    assert weights.real is real and k.real is real and x.real is real
    exact = real.numpy.type
    np.testing.assert_array_equal(y.numpy(), np.array([0.1, 0.2], real.numpy) * exact(0.1))
    assert k.grad.numpy().dtype == real.numpy and weights.grad.numpy().dtype == real.numpy


def test_a_weak_array_keeps_the_precision_of_its_first_launch():
    x = kc.array([1.0, 2.0])
    kc.launch(double, 2, [x], [kc.zeros(2, real=kc.float64)])
    assert x.real is kc.float64
    with pytest.raises(kc.MixedLaunch):
        kc.launch(double, 2, [x], [kc.zeros(2)])


def test_a_launch_without_a_real_array_is_float32():
    x, y = kc.array([1.0, 2.0]), kc.array([0.0, 0.0])
    kc.launch(double, 2, [x], [y])
    assert x.real is kc.float32 and y.real is kc.float32


def test_views_of_weak_arrays_are_weak_and_move_with_them():
    x = kc.array([0.1, 0.2, 0.3, 0.4], requires_grad=True)
    v, w = x[1:3], x.reshape(2, 2)
    y = kc.zeros(2, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(double, 2, [v], [y])
    tape.backward(grads={y: np.ones(2)})
    np.testing.assert_array_equal(y.numpy(), [0.4, 0.6])
    assert x.real is kc.float64 and np.shares_memory(x.numpy(), v.numpy()) and np.shares_memory(x.numpy(), w.numpy())
    np.testing.assert_array_equal(x.grad.numpy(), [0, 2, 2, 0])


def test_weak_vectors_adapt_too():
    x = kc.array([[0.1, 0.2, 0.3]], dtype=kc.float3)
    plain = kc.array([[0.1, 0.2, 0.3]])
    y = kc.zeros(1, dtype=kc.float3, real=kc.float64)
    kc.launch(scale3, 1, [x, plain], [y])
    np.testing.assert_array_equal(y.numpy(), np.array([[0.1, 0.2, 0.3]]) ** 2)


@pytest.mark.parametrize("write", [lambda a: a.assign([0.3, 0.7]), lambda a: np.copyto(a.numpy(), [0.5, 0.25])])
def test_writes_before_the_first_launch_count(write):
    x, y = kc.array([1.0, 2.0]), kc.zeros(2, real=kc.float64)
    write(x)
    expected = np.array(x.numpy(), np.float64)
    kc.launch(double, 2, [x], [y])
    np.testing.assert_allclose(y.numpy(), 2 * expected, rtol=1e-7)


def test_assigning_to_a_weak_array_keeps_full_precision():
    x, y = kc.array([1.0, 2.0]), kc.zeros(2, real=kc.float64)
    x.assign(np.array([0.1, 0.2]))
    kc.launch(double, 2, [x], [y])
    np.testing.assert_array_equal(y.numpy(), [0.2, 0.4])
    z = kc.array([1.0, 2.0]).zero_()
    kc.launch(double, 2, [z], [y])
    assert (y.numpy() == 0).all()


def test_a_weak_array_that_is_cleared_on_a_tape_may_still_adapt():
    loss = kc.array([5.0, 5.0])
    with kc.Tape() as tape:
        loss.zero_()
        kc.launch(double, 2, [np.ones(2)], [loss])
    for _ in range(3):
        tape.replay()
        np.testing.assert_array_equal(loss.numpy(), [2, 2])


# -- mixed launches
def test_mixed_precision_names_both_arguments():
    with pytest.raises(kc.MixedLaunch) as caught:
        kc.launch(double, 3, [np.ones(3)], [kc.zeros(3)])
    text = str(caught.value)
    assert "'x'" in text and "'y'" in text and "float64" in text and "float32" in text and "double" in text


def test_arrays_pinned_to_both_precisions_share_a_launch_where_the_kernel_casts():
    @kc.kernel
    def widen(x: kc.Array[kc.float32], y: kc.Array[kc.float64]):
        i = kc.tid()
        y[i] = kc.float64(x[i]) * 2.0

    x, y = kc.array(np.ones(3, np.float32), requires_grad=True), kc.zeros(3, dtype=kc.float64)
    with kc.Tape() as tape:
        kc.launch(widen, 3, [x], [y])
    tape.backward(grads={y: np.ones(3)})
    assert (y.numpy() == 2).all() and (x.grad.numpy() == 2).all() and x.grad.numpy().dtype == np.float32
