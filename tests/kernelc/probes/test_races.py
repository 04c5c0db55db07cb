"""Probes: threads that depend on each other inside of one launch. The gradient is that of what ran, or it is refused.

Debug mode reports such launches; outside of it a recorded launch must not give a wrong gradient either.
"""

import numpy as np
from probes.harness import array64, central, near, zeros64

import kernelc as kc


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


@kc.kernel
def scatter(x: kc.Array[float], to: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    y[to[i]] = x[i] * x[i]


def test_a_race_that_appears_in_replay():
    x, to, y = array64([1.0, 2.0, 3.0]), kc.array(np.array([0, 1, 2], np.int32)), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(scatter, 3, [x, to], [y])
    to.assign(np.array([0, 0, 0], np.int32))
    try:
        tape.replay()
        tape.backward(grads={y: [1.0, 0.0, 0.0]})
    except kc.KernelError:
        return
    near(x.grad.numpy(), [0, 0, 6], 1e-12)


def test_a_race_on_the_device_python():
    x, to, y = array64([1.0, 2.0, 3.0]), kc.array(np.array([0, 0, 0], np.int32)), zeros64(3)
    try:
        with kc.Tape() as tape:
            kc.launch(scatter, 3, [x, to], [y], device="python")
        tape.backward(grads={y: [1.0, 0.0, 0.0]})
    except kc.KernelError:
        return
    near(x.grad.numpy(), [0, 0, 6], 1e-12)


def test_flags_and_what_carries_no_gradient_may_race():
    @kc.kernel
    def hit(x: kc.Array[float], found: kc.Array[int], last: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        y[i] = x[i] * x[i]
        if x[i] > 0.0:
            found[0] = 1
        last[0] = float(i)

    x, found, y = array64([1.0, 2.0, 3.0]), kc.zeros(1, dtype=int), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(hit, 3, [x], [found, zeros64(1), y])
    tape.backward(grads={y: [1.0, 1.0, 1.0]})
    near(x.grad.numpy(), [2, 4, 6], 0)
    assert found.numpy()[0] == 1


def test_red_and_black_are_no_race():
    @kc.kernel
    def relax(x: kc.Array[float], colour: int):
        i = 2 * kc.tid() + 1 + colour
        x[i] = 0.5 * (x[i - 1] + x[i + 1]) + 0.1 * x[i] * x[i]

    def reference(x):
        x = x.copy()
        for colour in (0, 1, 0, 1):
            for k in range(3):
                i = 2 * k + 1 + colour
                x[i] = 0.5 * (x[i - 1] + x[i + 1]) + 0.1 * x[i] * x[i]
        return x.sum()

    x = array64(np.linspace(0, 1, 8))
    with kc.Tape() as tape:
        for colour in (0, 1, 0, 1):
            kc.launch(relax, 3, inputs=[x, colour])
    tape.backward(grads={x: np.ones(8)})
    near(x.grad.numpy(), central(reference, [np.linspace(0, 1, 8)])[0], 1e-8)
