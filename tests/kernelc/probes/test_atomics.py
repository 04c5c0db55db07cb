"""Probes: atomics. Sums and differences, winners of minimum and maximum, integer results as indices."""

import numpy as np
import pytest
from probes.harness import (
    DEVICES,
    OUT,
    Arrays,
    array64,
    check,
    check_kernel,
    const,
    leaf,
    near,
    on,
    refused,
    tmp,
    zeros64,
)

import kernelc as kc


@kc.kernel
def smallest(x: kc.Array[float], m: kc.Array[float]):
    i = kc.tid()
    kc.atomic_min(m, 0, x[i] * x[i])


@kc.kernel
def largest(x: kc.Array[float], m: kc.Array[float]):
    i = kc.tid()
    kc.atomic_max(m, 0, x[i] * x[i])


@kc.kernel
def total(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, x[i] * x[i])


def test_minimum_and_maximum():
    check_kernel(smallest, 4, [leaf([4.0, 2.0, 3.0, 5.0]), tmp(1, fill=1e9)], lambda x: (x**2).min(), [0, 4, 0, 0])
    check_kernel(largest, 4, [leaf([4.0, 2.0, 5.0, 3.0]), tmp(1, fill=-1e9)], lambda x: (x**2).max(), [0, 0, 10, 0])


def test_a_tie_goes_to_the_lowest_thread():
    args = [leaf([4.0, 2.0, 2.0, 5.0]), tmp(1, fill=1e9)]
    check_kernel(smallest, 4, args, lambda x: (x**2).min(), [0, 4, 0, 0])
    args = [leaf([3.0, 1.0, 3.0, 3.0]), tmp(1, fill=-1e9)]
    check_kernel(largest, 4, args, lambda x: (x**2).max(), [6, 0, 0, 0])


def test_what_was_there_before_may_win():
    def program(A, x):
        m, out = A.zeros(1), A.zeros(1)
        kc.launch(total, 1, [x[0:1]], [m])
        kc.launch(smallest, 3, [x[1:]], [m])
        kc.launch(total, 1, [m], [out])
        return out

    check(program, [[1.5, 2.0, 3.0, 4.0]], lambda x: x[0] ** 4, [4 * 1.5**3, 0, 0, 0])
    check(program, [[2.5, 2.0, 1.2, 4.0]], lambda x: x[2] ** 4, [0, 0, 4 * 1.2**3, 0])


def test_winners_of_several_places_and_of_vectors():
    @kc.kernel
    def boxes(x: kc.Array[kc.float3], group: kc.Array[int], low: kc.Array[kc.float3], high: kc.Array[kc.float3]):
        i = kc.tid()
        kc.atomic_min(low, group[i], x[i])
        kc.atomic_max(high, group[i], x[i])

    @kc.kernel
    def volume(low: kc.Array[kc.float3], high: kc.Array[kc.float3], out: kc.Array[float]):
        i = kc.tid()
        d = high[i] - low[i]
        kc.atomic_add(out, 0, d.x * d.y * d.z)

    points = np.random.default_rng(4).normal(size=(8, 3))
    group = np.array([0, 1, 0, 1, 0, 1, 0, 1])

    def program(A, x):
        low, high, out = A.zeros((2, 3), kc.float3, 1e9), A.zeros((2, 3), kc.float3, -1e9), A.zeros(1)
        kc.launch(boxes, 8, [x, A.array(group)], [low, high])
        kc.launch(volume, 2, [low, high], [out])
        return out

    def reference(x):
        return sum(np.prod(x[group == g].max(0) - x[group == g].min(0)) for g in (0, 1))

    check(program, [leaf(points, kc.float3)], reference)


def test_two_launches_compete_for_one_minimum():
    def program(A, x, y):
        m, out = A.zeros(1, fill=1e9), A.zeros(1)
        kc.launch(smallest, 2, [x], [m])
        kc.launch(smallest, 2, [y], [m])
        kc.launch(total, 1, [m], [out])
        return out

    for x, y in ([[2.0, 3.0], [4.0, 1.5]], [[1.0, 3.0], [4.0, 1.5]]):
        check(program, [x, y], lambda x, y: min((x**2).min(), (y**2).min()) ** 2)


def test_the_winner_after_the_array_was_overwritten():
    def program(A, x):
        m, out = A.zeros(1, fill=1e9), A.zeros(1)
        kc.launch(smallest, 3, [x], [m])
        kc.launch(total, 1, [m], [out])
        m.zero_()
        kc.launch(largest, 3, [x], [m])
        kc.launch(total, 1, [m], [out])
        return out

    check(program, [[3.0, 2.0, 4.0]], lambda x: (x**2).min() ** 2 + (x**2).max() ** 2, [0, 32, 256])


def test_replay_finds_other_winners():
    x, m = array64([3.0, 2.0, 4.0]), zeros64(1)
    with kc.Tape() as tape:
        m.assign(np.array([1e9]))
        kc.launch(smallest, 3, [x], [m])
    tape.backward(m)
    near(x.grad.numpy(), [0, 4, 0], 1e-12)
    x.assign([3.0, 5.0, 1.0])
    tape.replay()
    tape.zero()
    tape.backward(m)
    near(x.grad.numpy(), [0, 0, 2], 1e-12)


def test_a_minimum_over_a_loop_in_one_thread():
    @kc.kernel
    def loop_min(x: kc.Array[float], n: int, m: kc.Array[float]):
        for i in range(n):
            kc.atomic_min(m, 0, x[i] * x[i])

    check_kernel(loop_min, 1, [leaf([4.0, 2.0, 3.0]), 3, tmp(1, fill=1e9)], lambda x: (x**2).min(), [0, 4, 0])


def test_sub_and_two_dimensions():
    @kc.kernel
    def grid(x: kc.Array[float], y: kc.Array[float, 2], out: kc.Array[float]):
        i, j = kc.tid()
        kc.atomic_add(y, i, j, x[i] * x[j])
        kc.atomic_sub(y, j, i, 0.5 * x[i])
        kc.atomic_sub(out, 0, x[i] * x[j])

    @kc.kernel
    def read(y: kc.Array[float, 2], out: kc.Array[float]):
        i, j = kc.tid()
        out[0] += y[i, j] * y[i, j]

    def program(A, x):
        y, out = A.zeros((3, 3)), A.zeros(1)
        kc.launch(grid, (3, 3), [x], [y, out])
        kc.launch(read, (3, 3), [y], [out])
        return out

    def reference(x):
        y = np.outer(x, x) - 0.5 * x[None, :]
        return (y**2).sum() - x.sum() ** 2

    check(program, [[0.5, 1.5, -0.7]], reference)


def test_element_plus_equals_is_atomic():
    @kc.kernel
    def scatter(x: kc.Array[float], where: kc.Array[int], y: kc.Array[float]):
        i = kc.tid()
        y[where[i]] += x[i] * x[i]
        y[where[i]] -= x[i]

    @kc.kernel
    def weigh(y: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, float(i + 1) * y[i])

    where = np.random.default_rng(0).integers(0, 3, 50)

    def program(A, x):
        y, out = A.zeros(3), A.zeros(1)
        kc.launch(scatter, 50, [x, A.array(where)], [y])
        kc.launch(weigh, 3, [y], [out])
        return out

    check(program, [np.linspace(-1, 1, 50)], lambda x: ((where + 1) * (x**2 - x)).sum())


@kc.kernel
def compact(x: kc.Array[float], count: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    if x[i] > 0.0:
        k = kc.atomic_add(count, 0, 1)
        y[k] = x[i] * x[i]


@kc.kernel
def ranked(y: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, float(i + 1) * y[i] * y[i])


def test_an_integer_result_is_an_index():
    def program(A, x):
        count, y, out = A.array([0]), A.zeros(4), A.zeros(1)
        kc.launch(compact, 5, [x], [count, y])
        kc.launch(ranked, 4, [y], [out])
        return out

    def reference(x):
        y = x[x > 0] ** 2
        return (np.arange(1, len(y) + 1) * y**2).sum()

    check(program, [[0.5, -1.0, 1.5, 0.8, -0.2]], reference)


def test_an_integer_result_when_the_counter_was_reset_later():
    def program(A, x):
        count, y, out = A.array([0]), A.zeros(4), A.zeros(1)
        for _ in range(2):
            count.zero_()
            y.zero_()
            kc.launch(compact, 5, [x], [count, y])
            kc.launch(ranked, 4, [y], [out])
        count.zero_()
        return out

    def reference(x):
        y = x[x > 0] ** 2
        return 2 * (np.arange(1, len(y) + 1) * y**2).sum()

    check(program, [[0.5, -1.0, 1.5, 0.8, -0.2]], reference)


@pytest.mark.parametrize("device", DEVICES)
def test_an_integer_result_in_replay(device):
    with on(device):
        x, count, y, out = array64([0.5, -1.0, 1.5]), kc.zeros(1, dtype=int), zeros64(3), zeros64(1)
        with kc.Tape() as tape:
            count.zero_()
            y.zero_()
            out.zero_()
            kc.launch(compact, 3, [x], [count, y])
            kc.launch(ranked, 3, [y], [out])
        x.assign([-0.5, 2.0, 1.5])
        tape.replay()
        tape.backward(out)
        near(out.numpy(), [2.0**4 + 2 * 1.5**4], 1e-12)
        near(x.grad.numpy(), [0, 4 * 8.0, 2 * 4 * 1.5**3], 1e-12)


def test_integer_results_in_a_loop_and_of_every_kind():
    @kc.kernel
    def queue(x: kc.Array[float], n: int, c: kc.Array[int], y: kc.Array[float], out: kc.Array[float]):
        for i in range(n):
            k = kc.atomic_add(c, 0, 2)
            y[k] = x[i] * x[i]
            if x[i] > 0.0:
                j = kc.atomic_sub(c, 0, 1)
                y[j] = x[i] * y[k]
            old = kc.atomic_max(c, 1, i)
            out[0] += y[k] * float(old + 1)
        m = kc.atomic_min(c, 1, 0)
        out[0] += y[m] * y[m]

    def reference(x):
        c, y, out = [0, 0], np.zeros(12), 0.0
        for i in range(4):
            k = c[0]
            c[0] += 2
            y[k] = x[i] ** 2
            if x[i] > 0:
                j = c[0]
                c[0] -= 1
                y[j] = x[i] * y[k]
            old = c[1]
            c[1] = max(c[1], i)
            out += y[k] * (old + 1)
        return out + y[c[1]] ** 2

    check_kernel(queue, 1, [leaf([0.7, -0.4, 1.2, 0.3]), 4, const([0, 0]), tmp(12), OUT], reference)


def test_a_real_result_is_refused():
    @kc.kernel
    def running(x: kc.Array[float], s: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        y[i] = kc.atomic_add(s, 0, x[i])  # here

    refused(running)

    @kc.kernel
    def running_min(x: kc.Array[float], s: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        old = kc.atomic_min(s, 0, x[i])  # here
        y[i] = old

    refused(running_min)


def test_minimum_and_store_on_one_array_are_right_or_refused():
    @kc.kernel
    def both(x: kc.Array[float], m: kc.Array[float]):
        i = kc.tid()
        m[i + 1] = x[i] * 3.0
        kc.atomic_min(m, 0, x[i] * x[i])

    x, m = array64([3.0, 2.0, 4.0]), zeros64(4)
    m.fill_(1e9)
    try:
        with kc.Tape() as tape:
            kc.launch(both, 3, [x], [m])
        tape.backward(grads={m: [1.0, 1.0, 1.0, 1.0]})
    except kc.KernelError:
        return
    near(x.grad.numpy(), [3, 7, 3], 1e-12)


def test_the_bits_do_not_depend_on_the_number_of_threads():
    @kc.kernel
    def mixed(x: kc.Array[float], w: kc.Array[int], y: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        y[i] = kc.sin(x[i]) * x[w[i]]
        kc.atomic_add(out, i % 7, y[i])

    n = 20000
    rng = np.random.default_rng(1)
    data, where = rng.normal(size=n).astype(np.float32), rng.integers(0, n, n).astype(np.int32)
    runs = []
    before = kc.config.threads
    try:
        for threads in (1, 2, 3, 8):
            kc.config.threads = threads
            x, y, out = kc.array(data.copy(), requires_grad=True), kc.zeros(n), kc.zeros(7)
            with kc.Tape() as tape:
                kc.launch(mixed, n, [x, kc.array(where)], [y, out])
            tape.backward(grads={out: np.arange(7), y: np.ones(n)})
            runs.append((out.numpy().tobytes(), y.numpy().tobytes(), x.grad.numpy().tobytes()))
    finally:
        kc.config.threads = before
    assert all(r == runs[0] for r in runs)


def test_integer_arrays_take_atomics_without_gradients():
    for device in DEVICES:
        A = Arrays(np.float64)

        @kc.kernel
        def histogram(x: kc.Array[float], h: kc.Array[int], low: kc.Array[int]):
            i = kc.tid()
            kc.atomic_add(h, int(x[i]), 1)
            kc.atomic_min(low, 0, int(x[i]))

        h, low = kc.zeros(4, dtype=int), kc.array([9])
        kc.launch(histogram, 5, [A.array([0.5, 3.2, 3.9, 1.1, 3.0]), h, low], device=device)
        assert h.numpy().tolist() == [1, 1, 0, 3] and low.numpy().tolist() == [0]
