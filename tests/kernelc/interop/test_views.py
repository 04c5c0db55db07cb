"""Views: slices, integers and reshape look at the same memory, and their gradients arrive in the parent."""

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def square2(x: kc.Array[float, 2], y: kc.Array[float, 2]):
    i, j = kc.tid()
    y[i, j] = x[i, j] * x[i, j]


@kc.kernel
def lengths_sq(x: kc.Array[kc.float3], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.dot(x[i], x[i])


@kc.kernel
def grow(x: kc.Array[float]):
    i = kc.tid()
    x[i] = x[i] * x[i] + x[i]


def array64(data, **options):
    return kc.array(np.array(data, np.float64), **options)


def zeros64(shape, **options):
    return kc.zeros(shape, real=kc.float64, **options)


# -- shapes as in NumPy
@pytest.mark.parametrize(
    "key", [np.s_[1:3], np.s_[::2], np.s_[::-1], np.s_[1], np.s_[-1], np.s_[:, 0], np.s_[:, 1:], np.s_[..., 0],
            np.s_[1, ...], np.s_[0, 1:3], np.s_[...], np.s_[2:2]],
)  # fmt: skip
def test_slices_are_those_of_numpy(key):
    data = np.arange(12.0).reshape(3, 4)
    view = kc.array(data)[key]
    np.testing.assert_array_equal(view.numpy(), data[key])
    assert view.shape == data[key].shape
    assert not view.numpy().size or np.shares_memory(view.numpy(), data)


def test_components_are_not_dimensions():
    x = kc.array(np.arange(18.0).reshape(2, 3, 3), dtype=kc.float3)
    assert x.shape == (2, 3) and x[..., 0].shape == (2,) and x[1].shape == (3,) and x[..., 0].dtype == x.dtype
    with pytest.raises(kc.WrongShape):
        x[0, 0, 0]


def test_one_element_is_an_array_of_one_element():
    x = kc.array(np.arange(6.0).reshape(2, 3))
    assert x[1, 2].shape == (1,) and float(x[1, 2]) == 5.0 and float(x[-1, -1]) == 5.0
    v = kc.array(np.arange(6.0).reshape(2, 3), dtype=kc.float3)
    assert v[1].shape == (1,) and v[1].numpy().tolist() == [[3, 4, 5]]


@pytest.mark.parametrize("key", [3, -4, (0, 4), (slice(None), -5)])
def test_indices_out_of_bounds_raise(key):
    with pytest.raises(IndexError):
        kc.array(np.zeros((3, 4)))[key]


@pytest.mark.parametrize("key", [None, [0, 1], np.array([True, False]), True, 1.5])
def test_other_indices_are_refused(key):
    with pytest.raises(TypeError, match="slices and integers"):
        kc.array(np.zeros(2))[key]


def test_iteration_ends():
    assert [float(e) for e in kc.array([1.0, 2.0])] == [1.0, 2.0]


# -- gradients
def test_the_gradient_of_a_view_is_part_of_the_parents():
    x = array64([1, 2, 3, 4, 5], requires_grad=True)
    y = zeros64(3)
    with kc.Tape() as tape:
        kc.launch(square, 3, [x[1:4]], [y])
    tape.backward(grads={y: [1, 10, 100]})
    np.testing.assert_array_equal(x.grad.numpy(), [0, 4, 60, 800, 0])
    assert np.shares_memory(x[1:4].grad.numpy(), x.grad.numpy())


def test_overlapping_views_add_up():
    x = array64([1, 2, 3, 4], requires_grad=True)
    y, z = zeros64(3), zeros64(2)
    with kc.Tape() as tape:
        kc.launch(square, 3, [x[0:3]], [y])
        kc.launch(square, 2, [x[3:1:-1]], [z])
    tape.backward(grads={y: np.ones(3), z: np.ones(2)})
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4, 12, 8])


def test_views_of_views_and_of_vectors():
    x = kc.array(np.arange(12.0).reshape(4, 3), requires_grad=True)
    y = zeros64(2)
    with kc.Tape() as tape:
        kc.launch(lengths_sq, 2, [x[1:][1:3]], [y])
    tape.backward(grads={y: [1, 1]})
    expected = np.zeros((4, 3))
    expected[2:4] = 2 * np.arange(6, 12).reshape(2, 3)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_outputs_may_be_views():
    x, y = array64([1, 2], requires_grad=True), zeros64(6)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y[1:3]])
        kc.launch(square, 2, [y[1:3]], [y[4:6]])
    tape.backward(grads={y: np.ones(6)})
    np.testing.assert_array_equal(y.numpy(), [0, 1, 4, 0, 1, 16])
    np.testing.assert_array_equal(x.grad.numpy(), [2 + 4, 4 + 4 * 8])


def test_writing_in_place_through_a_view():
    x = array64([1, 2, 3, 4], requires_grad=True)
    y = zeros64(4)
    with kc.Tape() as tape:
        kc.launch(grow, 2, [x[1:3]])
        kc.launch(square, 4, [x], [y])
    tape.backward(grads={y: np.ones(4)})
    # y = (x² + x)² inside the view, x² outside
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2 * 6 * 5, 2 * 12 * 7, 8])


def test_seeds_may_be_views():
    x, y = array64([1, 2, 3], requires_grad=True), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(square, 3, [x], [y])
    tape.backward(grads={y[1:2]: [1.0]})
    np.testing.assert_array_equal(x.grad.numpy(), [0, 4, 0])
    tape.backward(y[2])
    np.testing.assert_array_equal(x.grad.numpy(), [0, 4, 6])


def test_reshape():
    x = array64(np.arange(1.0, 7.0), requires_grad=True)
    y = zeros64((2, 3))
    with kc.Tape() as tape:
        kc.launch(square2, (2, 3), [x.reshape(2, 3)], [y])
    tape.backward(grads={y: np.ones((2, 3))})
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(1.0, 7.0))
    assert x.reshape(3, -1).shape == (3, 2) and x.reshape((6,)).shape == (6,)
    assert kc.zeros((2, 2), dtype=kc.float3).reshape(4).dtype == kc.zeros(1, dtype=kc.float3).dtype
    for wrong in ((4,), (2, 2), (-1, 4), ()):
        with pytest.raises(kc.WrongShape):
            x.reshape(*wrong)
    with pytest.raises(kc.WrongShape, match="contiguous"):
        kc.zeros((4, 4))[:, 1:3].reshape(8)


def test_reshaped_columns_of_a_fortran_array_get_their_gradient():
    x = kc.array(np.asfortranarray(np.arange(8.0).reshape(4, 2)), requires_grad=True)
    y = zeros64((2, 2))
    with kc.Tape() as tape:
        kc.launch(square2, (2, 2), [x[:, 1].reshape(2, 2)], [y])
    tape.backward(grads={y: np.ones((2, 2))})
    np.testing.assert_array_equal(x.grad.numpy(), np.array([[0, 2], [0, 6], [0, 10], [0, 14]]))


def test_views_share_versions():
    x = kc.zeros(4)
    v = x[1:3]
    v.assign([1, 2])
    assert x.version == v.version > 0
    with kc.Tape() as tape:
        kc.launch(square, 4, [x], [kc.array(np.zeros(4, np.float32), requires_grad=True)])
    x[0:1].zero_()
    with pytest.raises(kc.Overwritten):
        tape.backward(grads={})


def test_a_view_that_is_written_overlaps_its_parent():
    x = kc.zeros(4)
    with pytest.raises(kc.Overlap):
        kc.launch(square, 2, [x[0:2]], [x[1:3]])
    kc.launch(square, 2, [x[0:2]], [x[2:4]])


@kc.kernel
def squares(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


def test_vectors_as_numbers_have_the_gradients_of_the_vectors():
    v = kc.array(np.arange(1.0, 7.0).reshape(2, 3), dtype=kc.float3, requires_grad=True)
    assert v.shape == (2,) and v.reals().shape == (2, 3)
    y = kc.zeros(6, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(squares, 6, [v.reals().reshape(6)], [y])
    tape.backward(grads={y: np.ones(6)})
    assert np.array_equal(v.grad.numpy(), 2 * v.numpy())


def test_structs_are_not_numbers_of_one_kind():
    @kc.struct
    class Pair:
        a: float
        b: int

    with pytest.raises(kc.WrongDtype, match="one kind"):
        kc.zeros(3, dtype=Pair).reals()
