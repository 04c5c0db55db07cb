"""Memory in which copies run over themselves, elements overlap, or some are masked: right, or refused by name."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def square2(x: kc.Array[float, 2], y: kc.Array[float, 2]):
    i, j = kc.tid()
    y[i, j] = x[i, j] * x[i, j]


def zeros64(shape):
    return kc.zeros(shape, real=kc.float64)


# -- copies within an array
SELF = {
    "shifted up": (lambda y: y[1:4], lambda y: y[0:3]),
    "shifted down": (lambda y: y[0:3], lambda y: y[1:4]),
    "itself": (lambda y: y, lambda y: y),
    "itself as a view": (lambda y: y[:], lambda y: y),
    "reversed": (lambda y: y, lambda y: y[::-1]),
    "a part": (lambda y: y[0:2], lambda y: y[2:4]),
    "a row": (lambda y: y.reshape(2, 2)[0], lambda y: y.reshape(2, 2)[1]),
    "another array of the memory": (lambda y: y, lambda y: kc.array(y.numpy())),
}


@pytest.mark.parametrize(("into", "source"), SELF.values(), ids=SELF)
@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("device", ["cpu", "python"])
def test_a_copy_within_an_array_has_the_right_gradient(into, source, weak, device):
    start, weights = [1.0, 2.0, 3.0, 4.0], np.array([1.0, 10.0, 100.0, 1000.0])
    x = kc.array(start if weak else np.array(start), requires_grad=True)
    y, z = kc.zeros(4, real=kc.float32 if weak else kc.float64), kc.zeros(4, real=kc.float32 if weak else kc.float64)
    with kc.Tape() as tape:
        kc.launch(square, 4, [x], [y], device=device)
        into(y).assign(source(y))
        kc.launch(square, 4, [y], [z], device=device)

    def plain(x):
        held = x * x
        into(kc.array(held)).numpy()[...] = source(kc.array(held)).numpy().copy()
        return held

    for content in (start, [2.0, 1.0, 5.0, 3.0]):
        x.assign(content)
        tape.replay()
        held = plain(np.array(content))
        np.testing.assert_array_equal(z.numpy(), held * held)
        which = np.rint(np.sqrt(held)).astype(int)  # dz/dy = 2y, and y is the square of one of x
        expected = [sum(w * 2 * h * 2 * c for w, h, k in zip(weights, held, which, strict=True) if k == c)
                    for c in content]  # fmt: skip
        tape.zero()
        tape.backward(grads={z: weights})
        np.testing.assert_allclose(x.grad.numpy(), expected)


def test_a_weak_array_keeps_its_digits_when_it_is_shifted():
    y = kc.array([0.1, 0.2, 0.3, 0.4])
    y[1:4].assign(y[0:3])
    z = zeros64(4)
    kc.launch(square, 4, [y], [z])
    np.testing.assert_array_equal(np.sqrt(z.numpy()).round(12), [0.1, 0.1, 0.2, 0.3])


def test_an_integer_between_two_reals_ends_the_gradient():
    x, n, y = kc.array(np.array([1.5]), requires_grad=True), kc.zeros(1, dtype=int), zeros64(1)
    with kc.Tape() as tape:
        n.assign(x)
        y.assign(n)
    with pytest.raises(kc.CutGradient):
        tape.backward(y)


# -- elements that overlap each other

OVERLAPPING = {
    "stride 0": lambda: as_strided(np.ones(1), (4,), (0,)),
    "torch.expand": lambda: torch.ones(1, dtype=torch.float64).expand(4),
    "half an element": lambda: as_strided(np.ones(4), (4,), (4,)),
}
OVERLAPPING2 = {
    "windows": lambda: as_strided(np.ones(8), (4, 3), (8, 8)),
    "rows": lambda: torch.ones(3, dtype=torch.float64).expand(4, 3),
    "columns": lambda: as_strided(np.ones(4), (4, 3), (8, 0)),
    "backwards": lambda: as_strided(np.ones(8)[7:], (4, 3), (-8, -8)),
}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("tape", [False, True])
@pytest.mark.parametrize("make", [*OVERLAPPING.values(), *OVERLAPPING2.values()], ids=[*OVERLAPPING, *OVERLAPPING2])
def test_outputs_whose_elements_overlap_are_refused(make, tape, debug, monkeypatch):
    monkeypatch.setattr(kc.config, "debug", debug)
    y = make()
    kernel = square if y.ndim == 1 else square2
    x = kc.array(np.ones(tuple(y.shape)), requires_grad=True)
    with kc.Tape() if tape else nullcontext():
        for output in (y, kc.array(y)):
            if not kc.array(y).numpy().flags.writeable or kc.array(y).numpy().strides != np.asarray(y).strides:
                continue  # a copy was made: unaligned
            with pytest.raises(kc.Overlap, match=r"square2?: 'y' is written, but its elements overlap each other"):
                kc.launch(kernel, x.shape, [x], [output])
            for device in ("cpu", "python"):
                with pytest.raises(kc.Overlap):
                    kc.launch(kernel, x.shape, [x], [output], device=device)


def test_a_known_launch_refuses_them_as_well():
    x, dense = kc.array(np.ones(4)), kc.array(np.ones(8)[::2])
    for _ in range(2):
        kc.launch(square, 4, [x], [dense])
    with pytest.raises(kc.Overlap, match="overlap each other"):
        kc.launch(square, 4, [x], [kc.array(as_strided(np.ones(2), (4,), (0,)))])


@pytest.mark.parametrize("write", [lambda a: a.assign(np.arange(4.0)), lambda a: a.zero_(), lambda a: a.fill_(1.0)])
def test_writes_from_python_refuse_them(write):
    with pytest.raises(kc.Overlap, match="overlap each other"):
        write(kc.array(as_strided(np.ones(1), (4,), (0,))))


def test_inputs_may_overlap_themselves_and_every_element_has_a_gradient():
    y, x = zeros64(4), kc.array(np.broadcast_to(3.0, 4), requires_grad=True)
    with kc.Tape() as tape:
        kc.launch(square, 4, [x], [y])
    np.testing.assert_array_equal(y.numpy(), 9.0)
    tape.backward(grads={y: np.arange(4.0)})
    np.testing.assert_array_equal(x.grad.numpy(), 6.0 * np.arange(4))


def test_strides_that_only_look_like_an_overlap_are_accepted():
    y = as_strided(np.zeros(8), (2, 3), (3 * 8, 2 * 8))  # 0 2 4, 3 5 7
    kc.launch(square2, (2, 3), [np.arange(6.0).reshape(2, 3)], [y])
    np.testing.assert_array_equal(y, np.arange(6.0).reshape(2, 3) ** 2)


# -- structs
def test_fields_are_not_copied_by_position():
    @kc.struct
    class Pair:
        a: float
        b: float

    pairs = kc.zeros(2, dtype=Pair)
    for other in (np.ones(2, [("b", "f4"), ("a", "f4")]), np.ones(2, np.float32)):
        with pytest.raises(kc.WrongDtype, match="does not fit"):
            pairs.assign(other)
    with pytest.raises(kc.WrongDtype, match="does not fit"):
        kc.zeros(2).assign(pairs)


# -- masks
MASKED = np.ma.array([1.0, 2.0, 3.0, 4.0], mask=[False, True, False, False])


@pytest.mark.parametrize("use", [
    lambda: kc.array(MASKED), lambda: kc.launch(square, 4, [MASKED], [zeros64(4)]),
    lambda: kc.launch(square, 4, [np.ones(4)], [MASKED.copy()]), lambda: zeros64(4).assign(MASKED),
    lambda: kc.array([MASKED, MASKED]), lambda: kc.zeros_like(MASKED), lambda: zeros64((2, 4)).fill_(MASKED),
])  # fmt: skip
def test_a_mask_is_not_dropped(use):
    with pytest.raises(kc.WrongDtype, match="masked") as caught:
        use()
    assert ".filled(" in caught.value.advice


def test_a_masked_array_without_masked_elements_is_an_array():
    y = np.ma.zeros(3)
    kc.launch(square, 3, [np.ma.array([1.0, 2.0, 3.0])], [y])
    np.testing.assert_array_equal(y.data, [1, 4, 9])


def test_the_mask_of_weights_is_not_dropped():
    x, y = kc.array(np.ones(4), requires_grad=True), zeros64(4)
    with kc.Tape() as tape:
        kc.launch(square, 4, [x], [y])
    with pytest.raises(kc.WrongDtype, match="masked"):
        tape.backward(grads={y: MASKED})
