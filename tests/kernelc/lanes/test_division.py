"""Quotients and remainders of integers in lanes are those of Python, for every sign and at the ends of the range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc

LOW, HIGH = -(2**31), 2**31 - 1
EDGES = [LOW, LOW + 1, -(2**30), -7, -3, -2, -1, 0, 1, 2, 3, 7, 46341, 2**30 - 1, 2**30, HIGH - 1, HIGH]
ints = st.integers(LOW, HIGH) | st.sampled_from(EDGES)


def divided(options):
    @kc.kernel(**options)
    def both(a: kc.Array[int], b: kc.Array[int], quotient: kc.Array[int], rest: kc.Array[int]):
        i = kc.tid()
        quotient[i] = a[i] // b[i]
        rest[i] = a[i] % b[i]

    return both


KERNELS = [divided({"lanes": lanes}) for lanes in (4, 8, 16, False)]


def wrapped(x):
    return (x - LOW) % 2**32 + LOW


@pytest.mark.parametrize("kernel", KERNELS, ids=["4", "8", "16", "one by one"])
@given(st.lists(st.tuples(ints, ints), min_size=16, max_size=40))
def test_they_are_those_of_python(kernel, pairs):
    check(kernel, pairs)


@pytest.mark.parametrize("kernel", KERNELS, ids=["4", "8", "16", "one by one"])
def test_at_the_ends_of_the_range(kernel):
    check(kernel, [(a, b) for a in EDGES for b in EDGES])


def check(kernel, pairs):
    a, b = (kc.array(np.array(side, np.int32)) for side in zip(*pairs))
    quotient, rest = kc.zeros(len(pairs), dtype=int), kc.zeros(len(pairs), dtype=int)
    kc.launch(kernel, len(pairs), [a, b], [quotient, rest])
    # By zero, where Python raises, all is zero; `kc.config.debug` finds it.
    assert quotient.numpy().tolist() == [wrapped(x // y) if y else 0 for x, y in pairs]
    assert rest.numpy().tolist() == [x % y if y else 0 for x, y in pairs]
