"""Probes: buffers used again, between launches and over steps; what the tape must keep, and what it must refuse."""

import numpy as np
import pytest
from probes.harness import DEVICES, OUT, array64, check, check_kernel, leaf, near, on, tmp, zeros64

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def scale(x: kc.Array[float], k: float, y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * k


@kc.kernel
def product(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, a[i] * b[i])


@kc.kernel
def total(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, x[i] * x[i])


@kc.kernel
def weighted(y: kc.Array[float], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, 3.0 * y[i] + x[i])


@kc.kernel
def euler(x: kc.Array[float], v: kc.Array[float], k: kc.Array[float], dt: float):
    i = kc.tid()
    v[i] = v[i] - dt * k[0] * kc.sin(x[i])
    x[i] = x[i] + dt * v[i]


@kc.kernel
def force(x: kc.Array[float], k: kc.Array[float], f: kc.Array[float]):
    i = kc.tid()
    f[i] = -k[0] * x[i] * x[i] * x[i]


@kc.kernel
def move(f: kc.Array[float], v: kc.Array[float], x: kc.Array[float], dt: float):
    i = kc.tid()
    v[i] += dt * f[i]
    x[i] += dt * v[i]


def rollout(x, v, k, steps=6, dt=0.1):
    x, v = x.copy(), v.copy()
    for _ in range(steps):
        v = v - dt * k[0] * np.sin(x)
        x = x + dt * v
    return (x**2).sum()


START = ([0.9, -0.4], [0.1, 0.7], [1.7])


def test_one_buffer_is_reused_over_steps():
    def program(A, x, v, k):
        for _ in range(6):
            kc.launch(euler, 2, inputs=[x, v, k, 0.1])
        out = A.zeros(1)
        kc.launch(total, 2, [x], [out])
        return out

    check(program, START, rollout)


def test_a_force_buffer_is_reused_over_steps():
    def program(A, x, v, k):
        f = A.zeros(2)
        for _ in range(5):
            kc.launch(force, 2, [x, k], [f])
            kc.launch(move, 2, [f, v, x, 0.1])
        out = A.zeros(1)
        kc.launch(total, 2, [x], [out])
        return out

    def reference(x, v, k):
        for _ in range(5):
            v = v - 0.1 * k[0] * x**3
            x = x + 0.1 * v
        return (x**2).sum()

    check(program, START, reference)


def test_ping_pong_between_two_buffers():
    def program(A, x):
        a, b = x, A.zeros(2)
        for _ in range(4):
            kc.launch(square, 2, [a], [b])
            a, b = b, a
        out = A.zeros(1)
        kc.launch(total, 2, [a], [out])
        return out

    check(program, [[1.1, 0.9]], lambda x: (x**32).sum())


def test_an_input_is_overwritten_by_a_later_launch():
    def program(A, x):
        y, out = A.zeros(2), A.zeros(1)
        kc.launch(square, 2, [x], [y])
        kc.launch(scale, 2, [y, 3.0], [x])
        kc.launch(product, 2, [x, y], [out])
        return out

    check(program, [[2.0, 3.0]], lambda x: (3 * x**4).sum(), [96, 324])


def test_a_result_is_overwritten_after_it_was_used():
    def program(A, x):
        y, out = A.zeros(2), A.zeros(1)
        kc.launch(square, 2, [x], [y])
        kc.launch(total, 2, [y], [out])
        kc.launch(scale, 2, [x, 5.0], [y])
        return out

    check(program, [[2.0, 3.0]], lambda x: (x**4).sum(), [32, 108])


def test_a_constant_is_overwritten_after_it_was_used():
    def program(A, x):
        c, out = A.array([10.0, 20.0]), A.zeros(1)
        kc.launch(product, 2, [c, x], [out])
        kc.launch(scale, 2, [A.array([1.0, 1.0]), 7.0], [c])
        return out

    check(program, [[2.0, 3.0]], lambda x: 10 * x[0] + 20 * x[1], [10, 20])


def test_an_index_array_is_overwritten_after_it_was_used():
    @kc.kernel
    def gather(x: kc.Array[float], index: kc.Array[int], out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, x[index[i]] * x[index[i]])

    @kc.kernel
    def clear(index: kc.Array[int]):
        index[kc.tid()] = 0

    def program(A, x):
        index, out = A.array([2, 1]), A.zeros(1)
        kc.launch(gather, 2, [x, index], [out])
        kc.launch(clear, 2, [], [index])
        return out

    check(program, [[2.0, 3.0, 4.0]], lambda x: x[2] ** 2 + x[1] ** 2, [0, 6, 8])


def test_zero_and_assign_while_recording():
    def program(A, x):
        y, z, out = A.zeros(2), A.zeros(2), A.zeros(1)
        for k in range(2):
            y.zero_()
            kc.launch(square, 2, [x], [y])
            z.assign(y)
            y.assign(np.array([1.0, 2.0]))
            kc.launch(product, 2, [z, y], [out])
        return out

    check(program, [[2.0, 3.0]], lambda x: 2 * (x[0] ** 2 + 2 * x[1] ** 2), [8, 24])


def test_assign_of_an_array_carries_its_gradient():
    def program(A, x):
        y, out = A.zeros(2), A.zeros(1)
        y.assign(x)
        kc.launch(total, 2, [y], [out])
        return out

    check(program, [[2.0, 3.0]], lambda x: (x**2).sum(), [4, 6])


def test_zero_cuts_what_was_there():
    def program(A, x):
        y, out = A.zeros(2), A.zeros(1)
        kc.launch(square, 2, [x], [y])
        y.zero_()
        kc.launch(weighted, 2, [y, x], [out])
        return out

    check(program, [[2.0, 3.0]], lambda x: x.sum(), [1, 1])


def test_a_leaf_overwritten_by_zero_and_written_again():
    def program(A, x):
        y, out = A.zeros(2), A.zeros(1)
        kc.launch(square, 2, [x], [y])
        x.zero_()
        kc.launch(scale, 2, [y, 2.0], [x])
        kc.launch(total, 2, [x], [out])
        return out

    check(program, [[2.0, 3.0]], lambda x: 4 * (x**4).sum(), [128, 432])


@pytest.mark.parametrize("kind", ["numpy", "torch", "two arrays of one buffer"])
def test_a_plain_buffer_in_the_middle_is_the_same_memory_in_both_launches(kind):
    x, out = array64([2.0, 3.0]), zeros64(1)
    if kind == "torch":
        torch = pytest.importorskip("torch")
        buffer = torch.zeros(2, dtype=torch.float64)
    else:
        buffer = np.zeros(2)
    wrap = kc.array if kind == "two arrays of one buffer" else lambda b: b
    try:
        with kc.Tape() as tape:
            kc.launch(square, 2, [x], [wrap(buffer)])
            kc.launch(weighted, 2, [wrap(buffer), x], [out])
        tape.backward(out)
    except kc.KernelError:
        return
    near(x.grad.numpy(), [13, 19], 1e-12)


def test_a_plain_constant_is_overwritten_after_it_was_used():
    x, out, buffer = array64([2.0, 3.0]), zeros64(1), np.array([10.0, 20.0])
    try:
        with kc.Tape() as tape:
            kc.launch(product, 2, [buffer, x], [out])
            kc.launch(scale, 2, [np.ones(2), 7.0], [buffer])
        tape.backward(out)
    except kc.KernelError:
        return
    near(x.grad.numpy(), [10, 20], 1e-12)


def test_the_same_array_twice_as_input():
    def program(A, x):
        out = A.zeros(1)
        kc.launch(product, 3, [x, x], [out])
        return out

    check(program, [[2.0, 3.0, 4.0]], lambda x: (x**2).sum(), [4, 6, 8])


@kc.kernel
def outer_sum(a: kc.Array[float], b: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    s = 0.0
    for k in range(n):
        s += a[i] * b[k] * b[k]
    kc.atomic_add(out, 0, s)


def test_the_same_array_twice_in_a_loop():
    def program(A, x):
        out = A.zeros(1)
        kc.launch(outer_sum, 3, [x, x, 3], [out])
        return out

    check(program, [[2.0, 3.0, 4.0]], lambda x: x.sum() * (x**2).sum())


def test_overlapping_views_as_inputs():
    def program(A, x):
        out = A.zeros(1)
        kc.launch(product, 3, [x[:3], x[1:]], [out])
        return out

    check(program, [[2.0, 3.0, 4.0, 5.0]], lambda x: x[:3] @ x[1:], [3, 6, 8, 4])


def test_a_view_is_written_and_the_whole_is_read():
    def program(A, x):
        y, out = A.zeros(4), A.zeros(1)
        kc.launch(square, 2, [x[0:2]], [y[2:4]])
        kc.launch(scale, 2, [x[2:4], 3.0], [y[0:2]])
        kc.launch(total, 4, [y], [out])
        return out

    check(program, [[2.0, 3.0, 4.0, 5.0]], lambda x: (x[:2] ** 4).sum() + 9 * (x[2:] ** 2).sum())


def test_a_view_is_overwritten_after_the_whole_was_read():
    def program(A, x):
        y, out = A.zeros(4), A.zeros(1)
        kc.launch(square, 4, [x], [y])
        kc.launch(total, 4, [y], [out])
        kc.launch(scale, 2, [x[0:2], 7.0], [y[1:3]])
        kc.launch(weighted, 4, [y, x], [out])
        return out

    def reference(x):
        y = x**2
        z = y.copy()
        z[1:3] = 7 * x[:2]
        return (y**2).sum() + 3 * z.sum() + x.sum()

    check(program, [[2.0, 3.0, 4.0, 5.0]], reference)


def test_strided_view_as_input_and_output():
    def program(A, x):
        y, out = A.zeros(6), A.zeros(1)
        kc.launch(square, 3, [x[::2]], [y[1::2]])
        kc.launch(square, 3, [x[1::2]], [y[::2]])
        kc.launch(total, 6, [y], [out])
        return out

    check(program, [[2.0, 3.0, 4.0, 5.0, 1.0, 0.5]], lambda x: (x**4).sum())


def test_read_and_overwrite_in_one_launch_then_again():
    @kc.kernel
    def logistic(x: kc.Array[float], r: kc.Array[float]):
        i = kc.tid()
        x[i] = r[0] * x[i] * (1.0 - x[i])

    def program(A, x, r):
        out = A.zeros(1)
        for _ in range(5):
            kc.launch(logistic, 2, inputs=[x, r])
        kc.launch(total, 2, [x], [out])
        return out

    def reference(x, r):
        for _ in range(5):
            x = r[0] * x * (1 - x)
        return (x**2).sum()

    check(program, [[0.3, 0.6], [2.9]], reference)


def test_accumulating_output_is_read_in_between():
    def program(A, x):
        s, y, out = A.zeros(1), A.zeros(2), A.zeros(1)
        kc.launch(total, 2, [x], [s])
        kc.launch(scale_by, 2, [x, s], [y])
        kc.launch(total, 2, [y], [s])
        kc.launch(product, 1, [s, s], [out])
        return out

    def reference(x):
        s = (x**2).sum()
        return (s + ((x * s) ** 2).sum()) ** 2

    check(program, [[0.7, 0.4]], reference)


@kc.kernel
def scale_by(x: kc.Array[float], s: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * s[0]


def test_requires_grad_is_missing_in_the_middle():
    x, y, z, out = array64([2.0, 3.0]), zeros64(2), zeros64(2), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
        kc.launch(square, 2, [y], [z])
        kc.launch(total, 2, [z], [out])
    tape.backward(out)
    near(x.grad.numpy(), [8 * 2.0**7, 8 * 3.0**7], 1e-12)


def test_marking_the_middle_changes_nothing():
    x, y, out = array64([2.0, 3.0]), zeros64(2, requires_grad=True), zeros64(1, requires_grad=True)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
        kc.launch(total, 2, [y], [out])
    tape.backward(out)
    near(x.grad.numpy(), [32, 108], 1e-12)


def test_a_stale_gradient_in_the_middle_is_not_used_again():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    for _ in range(2):
        out.zero_()
        with kc.Tape() as tape:
            kc.launch(square, 2, [x], [y])
            kc.launch(total, 2, [y], [out])
        tape.backward(out)
    near(x.grad.numpy(), [64, 216], 1e-12)


def test_partial_overwrite_keeps_the_rest():
    @kc.kernel
    def first(x: kc.Array[float], y: kc.Array[float]):
        y[0] = x[0] * x[1]

    def program(A, x):
        y, out = A.zeros(3), A.zeros(1)
        kc.launch(square, 3, [x], [y])
        kc.launch(first, 1, [x], [y])
        kc.launch(total, 3, [y], [out])
        return out

    check(program, [[2.0, 3.0, 0.5]], lambda x: (x[0] * x[1]) ** 2 + x[1] ** 4 + x[2] ** 4)


def test_store_under_a_condition_between_launches():
    @kc.kernel
    def maybe(x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        if x[i] > 2.5:
            y[i] = x[i] * 4.0

    def program(A, x):
        y, out = A.zeros(3), A.zeros(1)
        kc.launch(square, 3, [x], [y])
        kc.launch(maybe, 3, [x], [y])
        kc.launch(total, 3, [y], [out])
        return out

    check(program, [[2.0, 3.0, 4.0]], lambda x: x[0] ** 4 + 16 * (x[1] ** 2 + x[2] ** 2), [32, 96, 128])


def test_a_kernel_reads_what_it_wrote_in_a_local_branch():
    @kc.kernel
    def branchy(x: kc.Array[float], y: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        y[i] = x[i]
        if x[i] > 2.5:
            y[i] = y[i] * y[i]
            if x[i] > 3.5:
                y[i] = y[i] * x[i]
        else:
            y[i] += 1.0
        kc.atomic_add(out, 0, y[i] * y[i])

    check_kernel(branchy, 3, [leaf([2.0, 3.0, 4.0]), tmp(3), OUT], lambda x: (x[0] + 1) ** 2 + x[1] ** 4 + x[2] ** 6)


def test_array_stack_with_run_time_index():
    @kc.kernel
    def stack(x: kc.Array[float], n: int, s: kc.Array[float], out: kc.Array[float]):
        top = 0
        for i in range(n):
            if x[i] > 0.0:
                s[top] = x[i] * x[i]
                top += 1
            else:
                top -= 1
                s[top] = s[top] * x[i]
        t = 0.0
        for i in range(n):
            t += s[i] * s[i]
        out[0] = t

    def reference(x):
        s, top = np.zeros(6), 0
        for i in range(6):
            if x[i] > 0:
                s[top] = x[i] ** 2
                top += 1
            else:
                top -= 1
                s[top] *= x[i]
        return (s**2).sum()

    check_kernel(stack, 1, [leaf([1.2, 0.8, -0.6, 1.4, -0.3, 0.9]), 6, tmp(6), OUT], reference)


def test_bubble_sort_in_place():
    @kc.kernel
    def sort(x: kc.Array[float], n: int, out: kc.Array[float]):
        for i in range(n):
            for j in range(n - 1 - i):
                if x[j] > x[j + 1]:
                    x[j], x[j + 1] = x[j + 1], x[j]
        s = 0.0
        for i in range(n):
            s += float(i) * x[i] * x[i]
        out[0] = s

    check_kernel(sort, 1, [leaf([3.0, 1.0, 4.0, 1.5, 2.5]), 5, OUT], lambda x: (np.arange(5) * np.sort(x) ** 2).sum())


def test_gauss_seidel_in_one_thread():
    @kc.kernel
    def sweep(x: kc.Array[float], n: int, steps: int, out: kc.Array[float]):
        for s in range(steps):
            for i in range(1, n - 1):
                x[i] = 0.5 * (x[i - 1] + x[i + 1]) + 0.1 * x[i] * x[i]
        for i in range(n):
            out[0] += x[i] * x[i]

    def reference(x):
        x = x.copy()
        for _ in range(3):
            for i in range(1, 4):
                x[i] = 0.5 * (x[i - 1] + x[i + 1]) + 0.1 * x[i] * x[i]
        return (x**2).sum()

    check_kernel(sweep, 1, [leaf([1.0, 0.2, -0.4, 0.7, 0.5]), 5, 3, OUT], reference)


def test_output_that_accumulates_and_is_read_by_the_same_thread():
    @kc.kernel
    def fold(x: kc.Array[float], n: int, out: kc.Array[float]):
        for i in range(n):
            out[0] += x[i] * out[0] + 1.0

    def reference(x):
        s = 0.0
        for v in x:
            s += v * s + 1
        return s

    check_kernel(fold, 1, [leaf([0.5, 0.7, -0.2]), 3, OUT], reference)


def test_memory_of_the_tape_counts_copies_only():
    x, y, out = array64(np.ones(1000)), zeros64(1000), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(square, 1000, [x], [y])
        kc.launch(total, 1000, [y], [out])
    assert tape.memory() == 0
    with kc.Tape() as tape:
        kc.launch(square, 1000, [x], [y])
        kc.launch(total, 1000, [y], [out])
        kc.launch(scale, 1000, [x, 2.0], [y])
    assert tape.memory() == 8000


def test_linear_steps_need_no_copies():
    x, v = array64([0.5, 0.2]), array64([0.1, 0.1])

    @kc.kernel
    def drift(v: kc.Array[float], x: kc.Array[float], dt: float):
        i = kc.tid()
        x[i] += dt * v[i]

    with kc.Tape() as tape:
        for _ in range(10):
            kc.launch(drift, 2, inputs=[v, x, 0.1])
    assert tape.memory() == 0
    tape.backward(grads={x: [1.0, 2.0]})
    near(v.grad.numpy(), [1.0, 2.0], 1e-12)


def test_on_overwrite_error_names_both_launches():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    with pytest.raises(kc.KernelError) as caught, kc.Tape(on_overwrite="error"):
        kc.launch(square, 2, [x], [y])
        kc.launch(total, 2, [y], [out])
        kc.launch(scale, 2, [x, 2.0], [y])
    assert "scale" in str(caught.value) and "total" in str(caught.value)


def test_on_overwrite_error_is_silent_where_nothing_is_lost():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    with kc.Tape(on_overwrite="error") as tape:
        kc.launch(scale, 2, [x, 2.0], [y])
        kc.launch(weighted, 2, [y, x], [out])
        kc.launch(scale, 2, [x, 4.0], [y])
        kc.launch(weighted, 2, [y, x], [out])
    tape.backward(out)
    near(x.grad.numpy(), [20, 20], 1e-12)


def test_on_overwrite_error_counts_assign_and_zero():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    for write in (lambda: y.zero_(), lambda: y.assign(np.ones(2))):
        with pytest.raises(kc.KernelError), kc.Tape(on_overwrite="error"):
            kc.launch(square, 2, [x], [y])
            kc.launch(total, 2, [y], [out])
            write()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("write", ["assign", "zero", "launch"])
def test_writing_after_recording_makes_backward_raise(write, device):
    with on(device):
        x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
        with kc.Tape() as tape:
            kc.launch(square, 2, [x], [y])
            kc.launch(total, 2, [y], [out])
        if write == "assign":
            x.assign([5.0, 6.0])
        elif write == "zero":
            y.zero_()
        else:
            kc.launch(scale, 2, [array64([1.0, 1.0]), 2.0], [x])
        with pytest.raises(kc.KernelError):
            tape.backward(out)


def test_writing_between_two_recorded_launches_is_seen():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    tape = kc.Tape()
    try:
        with tape:
            kc.launch(square, 2, [x], [y])
        x.assign([5.0, 6.0])
        with tape:
            kc.launch(weighted, 2, [y, x], [out])
        tape.backward(out)
    except kc.KernelError:
        return
    near(x.grad.numpy(), [3 * 2 * 2.0 + 1, 3 * 2 * 3.0 + 1], 1e-12)
