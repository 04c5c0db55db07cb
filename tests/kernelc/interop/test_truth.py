"""Arrays are neither true nor equal: what Python would make of that by itself is not what people mean."""

import operator

import numpy as np
import pytest

import kernelc as kc


@pytest.mark.parametrize("n", [0, 1, 3])
def test_an_array_is_neither_true_nor_false(n):
    with pytest.raises(kc.KernelError, match=r"neither true nor false"):
        bool(kc.zeros(n))


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
def test_arrays_are_not_compared(compare):
    a = kc.zeros(3)
    for other in (0, 0.0, None, "x", [0.0], kc.zeros(3), a, a[0]):
        with pytest.raises(kc.KernelError, match=r"a\.numpy\(\) == b\.numpy\(\)"):
            compare(a, other)
    with pytest.raises(kc.KernelError):
        compare(0, a)


def test_numpy_compares_as_it_does_with_its_own():
    assert (np.zeros(3) == kc.zeros(3)).tolist() == [True] * 3
    assert kc.zeros(1)[0].numpy() == 0


def test_asking_whether_a_number_is_in_an_array_raises():
    with pytest.raises(kc.KernelError, match="`in`"):
        0.0 in kc.zeros(3)  # noqa: B015


def test_arrays_are_keys_by_identity():
    a, b = kc.zeros(3), kc.zeros(3)
    known = {a: 1, b: 2}
    assert known[a] == 1 and known[b] == 2 and a in known and kc.zeros(3) not in known
    assert len({a, b, a}) == 2 and a is not b and a in [a, b]


def test_views_of_a_weak_array_still_move_together():
    a = kc.array([1.0, 2.0, 3.0])
    views = [a[1:], a[1:], a[:2]]
    a.adapt(kc.float64)
    assert all(v.dtype is kc.float64 for v in (a, *views))
