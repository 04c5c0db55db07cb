"""Probes: threads that depend on each other inside of one launch. The gradient is that of what ran, or there is an error.

Debug mode reports such launches; outside of it a recorded launch must not give a wrong gradient either.
"""

import kernelc as kc
import numpy as np
import pytest
from probes.harness import array64, near, zeros64


def right_or_refused(kernel, dim, x, others, seeds, value, grad):
    """`value` is what the launch left in the seeded array, computed for threads in ascending order."""
    leaf = array64(x)
    arrays = [zeros64(n) if isinstance(n, int) else array64(n, requires_grad=False) for n in others]
    target = arrays[-1] if others else leaf
    try:
        with kc.Tape() as tape:
            kc.launch(kernel, dim, [leaf], arrays)
        tape.backward(grads={target: seeds})
    except kc.KernelError:
        return
    near(target.numpy(), value, 1e-12, "value")
    near(leaf.grad.numpy(), grad, 1e-12, "gradient")


def test_the_last_store_wins():
    @kc.kernel
    def last(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[0] = x[i] * x[i]

    right_or_refused(last, 3, [1.0, 2.0, 3.0], [1], [1.0], [9.0], [0, 0, 6])


def test_a_product_over_threads():
    @kc.kernel
    def multiply(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[0] *= x[i]

    right_or_refused(multiply, 3, [1.5, 2.0, 3.0], [[1.0]], [1.0], [9.0], [6, 4.5, 3])


def test_a_scan_over_threads():
    @kc.kernel
    def scan(x: kc.Array[float]):
        i = kc.tid()
        x[i + 1] = x[i] * x[i + 1]

    right_or_refused(scan, 3, [2.0, 3.0, 4.0, 5.0], [], [0, 0, 0, 1], [2, 6, 24, 120], [60, 40, 30, 24])


def test_what_a_neighbour_stored():
    @kc.kernel
    def neighbour(x: kc.Array[float], y: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        y[i] = x[i] * x[i]
        if i > 0:
            kc.atomic_add(out, 0, y[i - 1] * y[i])

    right_or_refused(neighbour, 3, [1.0, 2.0, 3.0], [3, 1], [1.0], [40.0], [8, 40, 24])


def test_a_sum_that_is_read_while_it_grows():
    @kc.kernel
    def prefix(x: kc.Array[float], s: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(s, 0, x[i])
        y[i] = s[0] * s[0]

    right_or_refused(prefix, 3, [1.0, 2.0, 3.0], [1, 3], [1, 1, 1], [1, 9, 36], [20, 18, 12])


def test_one_thread_that_stores_for_all_is_no_race():
    @kc.kernel
    def chosen(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        if i == 1:
            out[0] = x[i] * x[i] * x[0]

    x, out = array64([2.0, 3.0, 4.0]), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(chosen, 3, [x], [out])
    tape.backward(out)
    near(x.grad.numpy(), [9, 12, 0], 1e-12)


def test_a_permutation_and_private_blocks_are_no_race():
    @kc.kernel
    def permute(x: kc.Array[float], to: kc.Array[int], t: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        for k in range(3):
            t[3 * i + k] = x[i] * float(k + 1)
        s = 0.0
        for k in range(3):
            s += t[3 * i + k] * t[3 * i + k]
        y[to[i]] = s

    x, y = array64([2.0, 3.0, 4.0]), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(permute, 3, [x, np.array([2, 0, 1], np.int32)], [zeros64(9), y])
    tape.backward(grads={y: [1.0, 2.0, 3.0]})
    near(y.numpy(), [14 * 9, 14 * 16, 14 * 4], 1e-12)
    near(x.grad.numpy(), [28 * 2 * 3, 28 * 3 * 1, 28 * 4 * 2], 1e-12)
