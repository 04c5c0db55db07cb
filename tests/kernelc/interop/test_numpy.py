"""NumPy and kernelc on the same memory."""

import gc
import weakref

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def double(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i]


@kc.kernel
def double2(x: kc.Array[float, 2], y: kc.Array[float, 2]):
    i, j = kc.tid()
    y[i, j] = 2.0 * x[i, j] + float(10 * i + j)


@kc.kernel
def gather(x: kc.Array[float], index: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[index[i]]


@kc.kernel
def lengths(x: kc.Array[kc.float3], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.length(x[i])


@kc.kernel
def normals(x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i] = kc.normalize(x[i])


@kc.kernel
def traces(m: kc.Array[kc.mat33], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.trace(m[i])


@kc.kernel
def turned(q: kc.Array[kc.quat], x: kc.Array[kc.float3], y: kc.Array[kc.float3]):
    i = kc.tid()
    y[i] = kc.quat_rotate(q[i], x[i])


@kc.kernel
def increment(count: kc.Array[int]):
    count[kc.tid()] += 1


# -- shared memory
def test_memory_is_shared_both_ways():
    data = np.arange(4.0)
    x, y = kc.array(data), kc.zeros(4, real=kc.float64)
    out = y.numpy()
    data[0] = 7.0
    kc.launch(double, 4, [x], [y])
    assert np.shares_memory(x.numpy(), data)
    np.testing.assert_array_equal(out, [14, 2, 4, 6])


def test_numpy_arrays_are_arguments_as_they_are():
    data, out = np.arange(4.0, dtype=np.float32), np.zeros(4, np.float32)
    kc.launch(double, 4, [data], [out])
    np.testing.assert_array_equal(out, 2 * data)


def test_np_asarray_shares_and_np_array_copies():
    a = kc.ones(3)
    assert np.shares_memory(np.asarray(a), a.numpy())
    assert not np.shares_memory(np.array(a, copy=True), a.numpy())
    assert np.asarray(a, dtype=np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.add(a, a), [2, 2, 2])
    assert [float(e) for e in a] == [1, 1, 1]


def test_arrays_are_freed_at_once():
    """Without waiting for Python's collector: it does not know how large they are."""
    gc.disable()
    try:
        for prepare in (lambda a: None, lambda a: a[1:3], lambda a: kc.launch(lengths, 5, [a], [np.zeros(5)])):
            a = kc.zeros((5, 3), real=kc.float64, requires_grad=True)
            prepare(a)
            memory, gradient = weakref.ref(a.numpy().base), weakref.ref(a.grad.numpy().base)
            del a
            assert memory() is None and gradient() is None
    finally:
        gc.enable()


# -- strides
@pytest.mark.parametrize("cut", [np.s_[::2], np.s_[1::3], np.s_[::-1], np.s_[5:0:-2]])
def test_strided_views_are_read_and_written_in_place(cut):
    base, target = np.arange(12.0), np.zeros(12)
    n = len(base[cut])
    kc.launch(double, n, [base[cut]], [target[cut]])
    np.testing.assert_array_equal(target[cut], 2 * base[cut])
    untouched = np.ones(12, bool)
    untouched[cut] = False
    assert (target[untouched] == 0).all()


def test_transposed_and_fortran_arrays():
    x = np.arange(6.0).reshape(2, 3)
    expected = 2 * x + np.array([[0, 1, 2], [10, 11, 12]])
    for a in (np.asfortranarray(x), x.T.copy().T, np.repeat(x, 2, axis=0)[::2]):
        for out in (np.zeros((2, 3)), np.zeros((3, 2)).T, np.zeros((2, 3), order="F")):
            kc.launch(double2, (2, 3), [a], [out])
            np.testing.assert_array_equal(out, expected)


def test_gradients_of_strided_leaves():
    base = np.arange(12.0).reshape(3, 4)
    x = kc.array(base[:, ::2], requires_grad=True)
    y = kc.array(np.zeros((2, 3)).T)
    with kc.Tape() as tape:
        kc.launch(double2, (3, 2), [x], [y])
    weights = np.arange(6.0).reshape(3, 2)
    tape.backward(grads={y: weights})
    np.testing.assert_array_equal(x.grad.numpy(), 2 * weights)


def test_broadcast_memory_is_read_but_not_written():
    wide = np.broadcast_to(np.array([[1.0], [2.0]]), (2, 3))
    out = np.zeros((2, 3))
    kc.launch(double2, (2, 3), [wide], [out])
    np.testing.assert_array_equal(out, 2 * wide + np.array([[0, 1, 2], [10, 11, 12]]))
    with pytest.raises(kc.ReadOnly, match="'y'"):
        kc.launch(double2, (2, 3), [out], [wide])


# -- read-only
def test_read_only_memory_is_read_and_refused_where_it_is_written():
    data = np.arange(3.0)
    data.flags.writeable = False
    out = np.zeros(3)
    kc.launch(double, 3, [data], [out])
    for target in (data, kc.array(data), kc.array(data)[0:3]):
        with pytest.raises(kc.ReadOnly, match=r"'y'.*read-only"):
            kc.launch(double, 3, [out], [target])
        np.testing.assert_array_equal(data, [0, 1, 2])
    for write in (lambda a: a.zero_(), lambda a: a.assign([3, 4, 5]), lambda a: a.fill_(1)):
        with pytest.raises(kc.ReadOnly):
            write(kc.array(data))


# -- nothing
def test_arrays_and_launches_of_no_size():
    x, y = kc.zeros(0, requires_grad=True), kc.zeros(0)
    with kc.Tape() as tape:
        kc.launch(double, 0, [x], [y])
    tape.backward(grads={y: np.zeros(0)})
    assert x.grad.shape == (0,)
    full = kc.ones(3)
    kc.launch(double, 0, [full], [kc.zeros(3)])
    kc.launch(double2, (0, 5), [np.zeros((0, 5))], [np.zeros((0, 5))])
    assert kc.array([], dtype=kc.float3).shape == (0,) and kc.array(np.zeros((0, 3)), dtype=kc.float3).shape == (0,)
    kc.launch(lengths, 0, [np.zeros((0, 3))], [np.zeros(0)])


def test_a_launch_of_no_threads_changes_nothing_and_gives_zero_gradients():
    x, y = kc.array(np.ones(3), requires_grad=True), kc.array(np.full(3, 5.0))
    with kc.Tape() as tape:
        kc.launch(double, 0, [x], [y])
    tape.backward(grads={y: np.ones(3)})
    assert (y.numpy() == 5).all() and (x.grad.numpy() == 0).all()


def test_zero_dimensional_arrays_have_one_element():
    data = np.array(3.0)
    a, out = kc.array(data), kc.zeros(1, real=kc.float64)
    assert a.shape == (1,) and float(a) == 3.0 and np.shares_memory(a.numpy(), data)
    kc.launch(double, 1, [a], [out])
    assert float(out) == 6.0
    with pytest.raises(kc.WrongShape):
        float(kc.zeros(2))


def test_numbers_of_every_kind_are_scalars():
    @kc.kernel
    def fill(k: float, n: int, y: kc.Array[float]):
        y[kc.tid()] = k * float(n)

    for k, n in [(2.0, 3), (np.float32(2), np.int64(3)), (np.array(2.0), np.int32(3)), (2, np.uint8(3))]:
        y = kc.zeros(2)
        kc.launch(fill, 2, [k, n], [y])
        assert (y.numpy() == 6).all()


# -- foreign bytes
@pytest.mark.parametrize("kind", [">f4", ">f8", ">i4"])
def test_big_endian_data_is_copied_right(kind):
    data = np.arange(3).astype(kind)
    a = kc.array(data)
    assert a.numpy().dtype.isnative and a.numpy().dtype.itemsize == data.dtype.itemsize
    np.testing.assert_array_equal(a.numpy(), [0, 1, 2])
    assert a.real is {">f4": kc.float32, ">f8": kc.float64, ">i4": None}[kind]


def test_unaligned_data_is_copied():
    raw = np.zeros(3 * 8 + 1, np.uint8)
    data = raw[1:].view(np.float64)
    data[:] = [1, 2, 3]
    assert not data.flags.aligned
    out = np.zeros(3)
    kc.launch(double, 3, [data], [out])
    np.testing.assert_array_equal(out, [2, 4, 6])


def test_what_only_a_copy_could_serve_is_not_written():
    raw = np.zeros(3 * 8 + 1, np.uint8)
    for target in (raw[1:].view(np.float64), np.zeros(3, ">f8")):
        with pytest.raises(kc.KernelError):
            kc.launch(double, 3, [np.ones(3)], [target])


# -- integers
def test_int64_is_taken_for_int32_where_it_is_read_and_fits():
    x, y = np.array([1.0, 2, 3]), np.zeros(3)
    index = np.array([2, 0, 1])
    assert index.dtype == np.int64
    kc.launch(gather, 3, [x, index], [y])
    np.testing.assert_array_equal(y, [3, 1, 2])
    with pytest.raises(kc.WrongDtype, match="'index'"):
        kc.launch(gather, 3, [x, np.array([2**40, 0, 1])], [y])
    with pytest.raises(kc.WrongDtype, match="'index'"):
        # An array has the type that it was made with; a copy at every launch would hide what it costs.
        kc.launch(gather, 3, [x, kc.array(index)], [y])


def test_int64_is_not_written_as_int32():
    with pytest.raises(kc.WrongDtype, match="'count'"):
        kc.launch(increment, 3, [np.zeros(3, np.int64)])
    with pytest.raises(kc.WrongDtype, match="'index'"):
        kc.launch(gather, 3, [np.ones(3), np.ones(3)], [np.zeros(3)])


# -- vectors and matrices
def test_trailing_dimensions_are_components():
    rng = np.random.default_rng(0)
    x, m, q = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    y, z = np.zeros(4), np.zeros((4, 3))
    for wrap in (np.asarray, kc.array):
        kc.launch(lengths, 4, [wrap(x)], [y])
        np.testing.assert_allclose(y, np.linalg.norm(x, axis=1))
        kc.launch(traces, 4, [wrap(m)], [y])
        np.testing.assert_allclose(y, np.trace(m, axis1=1, axis2=2))
        kc.launch(turned, 4, [wrap(q), wrap(x)], [z])
        np.testing.assert_allclose(np.linalg.norm(z, axis=1), np.linalg.norm(x, axis=1))


def test_gradients_of_trailing_dimensions_have_the_shape_of_the_data():
    x = kc.array(np.array([[3.0, 0, 4], [0, 2, 0]]), requires_grad=True)
    y = kc.zeros(2, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(lengths, 2, [x], [y])
    tape.backward(grads={y: [1, 1]})
    np.testing.assert_allclose(x.grad.numpy(), [[0.6, 0, 0.8], [0, 1, 0]])
    assert x.grad.shape == (2, 3)


def test_components_that_do_not_lie_side_by_side_are_copied_where_read_and_refused_where_written():
    x = np.arange(12.0).reshape(3, 4)
    y = np.zeros(4)
    kc.launch(lengths, 4, [x.T], [y])
    np.testing.assert_allclose(y, np.linalg.norm(x, axis=0))
    with pytest.raises(kc.WrongDtype, match="'x'"):
        # Of an array a copy would lose the gradient.
        kc.launch(lengths, 4, [kc.array(x.T)], [y])
    with pytest.raises(kc.ReadOnly, match="'y'"):
        kc.launch(normals, 4, [x.T.copy()], [np.zeros((3, 4)).T])


def test_rows_of_a_wider_array_are_vectors():
    wide = np.arange(20.0).reshape(4, 5)
    y, out = np.zeros(4), np.zeros((4, 5))
    kc.launch(lengths, 4, [wide[:, 1:4]], [y])
    np.testing.assert_allclose(y, np.linalg.norm(wide[:, 1:4], axis=1))
    kc.launch(normals, 4, [wide[:, 1:4]], [out[:, 2:5]])
    np.testing.assert_allclose(out[:, 2:5], wide[:, 1:4] / y[:, None])
    assert (out[:, :2] == 0).all()


def test_more_dimensions_than_four_are_components():
    @kc.kernel
    def traces3(m: kc.Array[kc.mat33, 3], y: kc.Array[float, 3]):
        i, j, k = kc.tid()
        y[i, j, k] = kc.trace(m[i, j, k])

    m, y = np.random.default_rng(0).normal(size=(2, 2, 2, 3, 3)), np.zeros((2, 2, 2))
    kc.launch(traces3, (2, 2, 2), [m], [y])
    np.testing.assert_allclose(y, np.trace(m, axis1=3, axis2=4))


@pytest.mark.parametrize("wrong", [(4, 2), (4, 4), (4,), (2, 2, 3)])
def test_other_shapes_are_refused_by_name(wrong):
    with pytest.raises(kc.KernelError, match="'x'"):
        kc.launch(lengths, 4, [np.ones(wrong)], [np.zeros(4)])


# -- copies on a tape
def test_replay_sees_what_converted_arguments_hold_now():
    x, index, y = np.array([1.0, 2, 3]), np.array([2, 0, 1]), kc.zeros(3, real=kc.float64)
    flat, z = np.arange(6.0).reshape(3, 2), kc.zeros(2, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(gather, 3, [x, index], [y])
        kc.launch(lengths, 2, [flat.T], [z])
    index[:] = [0, 0, 1]
    flat[:] = [[3, 0], [0, 0], [4, 1]]
    tape.replay()
    np.testing.assert_array_equal(y.numpy(), [1, 1, 2])
    np.testing.assert_array_equal(z.numpy(), [5, 1])
    index[0] = 2**40
    with pytest.raises(kc.WrongDtype, match="do not fit"):
        tape.replay()


def test_a_copy_does_not_cut_a_gradient():
    x, y = kc.array(np.arange(1.0, 7.0).reshape(3, 2), requires_grad=True), np.zeros((3, 2))
    with kc.Tape(), pytest.raises(kc.Overlap, match="carries a gradient"):
        kc.launch(double2, (3, 2), [x], [y])
        kc.launch(lengths, 2, [x.numpy().T], [kc.zeros(2, real=kc.float64)])


def test_memory_inside_of_memory_is_known_once():
    base = np.ones(100)
    whole, w, y = kc.array(base), kc.array(np.full(10, 2.0), requires_grad=True), kc.zeros(10, real=kc.float64)
    with kc.Tape(), pytest.raises(kc.Overlap, match="share memory"):
        kc.launch(double, 10, [whole], [kc.zeros(10, real=kc.float64)])
        kc.launch(double, 10, [kc.array(base[10:20])], [kc.zeros(10, real=kc.float64)])
        kc.launch(double, 10, [w], [kc.array(base[50:60])])
        kc.launch(double, 10, [whole[50:60]], [y])


# -- overlap
def test_a_written_argument_that_overlaps_another_is_refused():
    base = np.zeros(8)
    with pytest.raises(kc.Overlap, match=r"'y'.*'x'"):
        kc.launch(double, 4, [base[0:4]], [base[3:7]])
    kc.launch(double, 4, [base[0::2]], [base[1::2]])
    kc.launch(double, 4, [base[:4]], [base[4:]])
