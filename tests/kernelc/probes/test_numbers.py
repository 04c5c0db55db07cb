"""Probes: Python's meaning of numbers: division, remainders, powers, literals, precisions, laziness, order."""

import math

import numpy as np
import pytest
from probes.harness import DEVICES, OUT, REALS, Arrays, check_kernel, const, leaf, near, refused, values

import kernelc as kc

INTS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5), (1, 3), (-1, 3)]


@kc.kernel
def int_ops(a: kc.Array[int], b: kc.Array[int], out: kc.Array[int, 2]):
    i = kc.tid()
    out[i, 0] = a[i] // b[i]
    out[i, 1] = a[i] % b[i]
    out[i, 2] = -a[i] // b[i]
    out[i, 3] = a[i] * b[i] - a[i] ** 2 + b[i] ** 3
    out[i, 4] = (a[i] & b[i]) + (a[i] | b[i]) * 10 + (a[i] ^ b[i]) * 100
    out[i, 5] = (a[i] << 2) + (a[i] >> 1) + ~b[i]
    out[i, 6] = abs(a[i]) + min(a[i], b[i]) * 10 + max(a[i], b[i], 3) * 100
    out[i, 7] = int(a[i] / b[i])


@pytest.mark.parametrize("device", DEVICES)
def test_integers_are_pythons(device):
    a, b = np.array(INTS, np.int32).T
    out = kc.zeros((len(INTS), 8), dtype=int)
    kc.launch(int_ops, len(INTS), [kc.array(a.copy()), kc.array(b.copy())], [out], device=device)
    for n, (p, q) in enumerate(INTS):
        want = [
            p // q,
            p % q,
            -p // q,
            p * q - p**2 + q**3,
            (p & q) + (p | q) * 10 + (p ^ q) * 100,
            (p << 2) + (p >> 1) + ~q,
            abs(p) + min(p, q) * 10 + max(p, q, 3) * 100,
            int(p / q),
        ]
        assert out.numpy()[n].tolist() == want, (p, q)


@kc.kernel
def real_ops(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float, 2]):
    i = kc.tid()
    out[i, 0] = a[i] // b[i]
    out[i, 1] = a[i] % b[i]
    out[i, 2] = a[i] / b[i]
    out[i, 3] = float(int(a[i])) + float(round(a[i])) * 100.0
    out[i, 4] = -(a[i] ** 2)
    out[i, 5] = 2.0 ** a[i]
    out[i, 6] = kc.mod(a[i], b[i])
    out[i, 7] = kc.floor(a[i]) + 10.0 * kc.ceil(a[i]) + 100.0 * kc.trunc(a[i]) + 1000.0 * kc.round(a[i])
    out[i, 8] = abs(a[i]) + math.fabs(b[i])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("real", REALS)
def test_reals_are_pythons(device, real):
    pairs = [
        (5.5, 2.0),
        (-5.5, 2.0),
        (5.5, -2.0),
        (-5.5, -2.0),
        (0.5, 1.0),
        (1.5, 0.25),
        (2.5, 3.0),
        (-0.5, 3.0),
        (6.0, 3.0),
        (-6.0, 3.0),
    ]
    A = Arrays(real)
    a, b = np.array(pairs).T
    out = A.zeros((len(pairs), 9))
    kc.launch(real_ops, len(pairs), [A.array(a), A.array(b)], [out], device=device)
    for n, (p, q) in enumerate(pairs):
        want = [
            p // q,
            p % q,
            p / q,
            int(p) + round(p) * 100.0,
            -(p**2),
            2.0**p,
            p % q,
            math.floor(p) + 10 * math.ceil(p) + 100 * math.trunc(p) + 1000 * round(p),
            abs(p) + abs(q),
        ]
        near(out.numpy()[n], want, 1e-6 if real == np.float32 else 1e-13, f"{p}, {q}")


@kc.kernel
def true_division(n: int, m: int, out: kc.Array[float]):
    out[0] = n / m
    out[1] = (n + 1) / (m * 2)
    out[2] = 1 / 3
    out[3] = n / 2.0
    out[4] = 7 // 2
    out[5] = -7 // 2
    out[6] = -7 % 3
    out[7] = 7 % -3


def test_division_of_integers_is_true():
    for row in values(true_division, 1, [7, 2], 8):
        near(row, [3.5, 2.0, 1 / 3, 3.5, 3, -4, 2, -2], 1e-7)


def test_an_int_meets_a_float():
    @kc.kernel
    def meet(x: kc.Array[float], n: kc.Array[int], out: kc.Array[float]):
        i = n[0]
        out[0] = i * x[0] + x[1] ** i - i / x[0] + (x[0] if x[0] > i else i * x[1]) + x[0] * True

    check_kernel(
        meet, 1, [leaf([1.5, 0.7]), const([3]), OUT], lambda x: 3 * x[0] + x[1] ** 3 - 3 / x[0] + 3 * x[1] + x[0]
    )


def test_powers():
    @kc.kernel
    def powers(x: kc.Array[float], out: kc.Array[float]):
        a = x[0]
        out[0] = (
            a**2
            + a**3
            + a**-1
            + a**0
            + a**5
            + a**1
            + a**0.5
            + a**-2.5
            + 2**a
            + kc.pow(a, 2)
            + pow(a, 3)
            + a ** x[1]
            + a**7.0
        )

    check_kernel(
        powers,
        1,
        [leaf([1.3, 0.6]), OUT],
        lambda x: (
            x[0] ** 2
            + x[0] ** 3
            + 1 / x[0]
            + 1
            + x[0] ** 5
            + x[0]
            + x[0] ** 0.5
            + x[0] ** -2.5
            + 2 ** x[0]
            + x[0] ** 2
            + x[0] ** 3
            + x[0] ** x[1]
            + x[0] ** 7
        ),
    )


def test_powers_of_negative_bases():
    @kc.kernel
    def powers(x: kc.Array[float], n: int, out: kc.Array[float]):
        a = x[0]
        out[0] = a**2 + a**3 + a**-3 + a**5 + a**n + kc.pow(a, 3.0) + a**6.0

    check_kernel(
        powers,
        1,
        [leaf([-1.3]), 4, OUT],
        lambda x: x[0] ** 2 + x[0] ** 3 + x[0] ** -3 + x[0] ** 5 + x[0] ** 4 + x[0] ** 3 + x[0] ** 6,
    )


def test_minus_binds_weaker_than_power():
    @kc.kernel
    def signs(x: kc.Array[float], out: kc.Array[float]):
        out[0] = -(x[0] ** 2) + 2 ** -x[0] - -x[0]

    check_kernel(signs, 1, [leaf([1.5]), OUT], lambda x: -(x[0] ** 2) + 2 ** -x[0] + x[0])


def test_a_literal_has_full_precision():
    @kc.kernel
    def literal(x: kc.Array[float], out: kc.Array[float]):
        third = 1.0 / 3.0
        out[0] = x[0] * 0.1 + third + 1e-12 + kc.pi

    A = Arrays(np.float64)
    out = A.zeros(1)
    kc.launch(literal, 1, [A.array([1.0]), out])
    assert out.numpy()[0] == 0.1 + 1.0 / 3.0 + 1e-12 + np.pi


def test_a_literal_takes_the_pinned_type_at_full_precision():
    @kc.kernel
    def pinned(x: kc.Array[kc.float64], y: kc.Array[kc.float32], out: kc.Array[kc.float64]):
        out[0] = x[0] * 0.1 + 1e-12
        out[1] = kc.float64(y[0]) * 0.1
        out[2] = 0.1
        y[0] = kc.float32(x[0]) * 0.1

    for device in DEVICES:
        x, y, out = kc.array(np.array([1.0])), kc.array(np.array([1.0], np.float32)), kc.zeros(3, dtype=kc.float64)
        kc.launch(pinned, 1, [x, y], [out], device=device)
        assert out.numpy().tolist() == [0.1 + 1e-12, 0.1, 0.1]
        assert y.numpy()[0] == np.float32(0.1)


def test_a_cast_between_precisions_carries_the_gradient():
    @kc.kernel
    def widen(x: kc.Array[kc.float32], out: kc.Array[kc.float64]):
        a = kc.float64(x[0])
        b = kc.float32(a * a)
        out[0] = kc.float64(b) * a

    for device in DEVICES:
        x, out = kc.array(np.array([1.5], np.float32), requires_grad=True), kc.zeros(1, dtype=kc.float64)
        with kc.Tape() as tape:
            kc.launch(widen, 1, [x], [out], device=device)
        tape.backward(out)
        near(x.grad.numpy(), [3 * 1.5**2], 1e-6)
        assert x.grad.numpy().dtype == np.float32


def test_accumulating_in_double():
    @kc.kernel
    def accumulate(x: kc.Array[kc.float32], n: int, out: kc.Array[kc.float64]):
        s = kc.float64(0.0)
        for i in range(n):
            s += kc.float64(x[i]) * kc.float64(x[i])
        out[0] = s

    x, out = kc.array(np.array([1e4, 1.0, 1e-3], np.float32), requires_grad=True), kc.zeros(1, dtype=kc.float64)
    with kc.Tape() as tape:
        kc.launch(accumulate, 1, [x, 3], [out])
    tape.backward(out)
    assert abs(out.numpy()[0] - (1e8 + 1 + np.float64(np.float32(1e-3)) ** 2)) < 1e-7
    near(x.grad.numpy(), [2e4, 2, 2e-3], 1e-6)


def test_two_precisions_in_an_expression_are_refused():
    @kc.kernel
    def mixed(x: kc.Array[kc.float64], y: kc.Array[kc.float32], out: kc.Array[kc.float64]):
        out[0] = x[0] * y[0]  # here

    refused(mixed, "KC104")


def test_two_precisions_in_a_launch_are_refused_by_name():
    @kc.kernel
    def add(first: kc.Array[float], second: kc.Array[float], out: kc.Array[float]):
        out[0] = first[0] + second[0]

    with pytest.raises(kc.KernelError) as caught:
        kc.launch(add, 1, [np.zeros(1), np.zeros(1, np.float32)], [np.zeros(1)])
    assert "first" in str(caught.value) and "second" in str(caught.value)


def test_integers_wrap():
    @kc.kernel
    def wrap(n: kc.Array[int], out: kc.Array[int]):
        out[0] = n[0] + 1
        out[1] = n[0] * 2
        out[2] = -n[1]
        out[3] = abs(n[1])

    for device in DEVICES:
        n, out = kc.array(np.array([2**31 - 1, -(2**31)], np.int32)), kc.zeros(4, dtype=int)
        kc.launch(wrap, 1, [n], [out], device=device)
        assert out.numpy().tolist() == [-(2**31), -2, -(2**31), -(2**31)]


def test_wide_and_unsigned_integers():
    @kc.kernel
    def wide(n: kc.Array[kc.int64], u: kc.Array[kc.uint32], out: kc.Array[kc.int64]):
        out[0] = n[0] * 3
        out[1] = kc.int64(u[0]) + 1
        out[2] = kc.int64(u[0] + 1)
        out[3] = n[0] // 7 % 1000
        out[4] = kc.int64(u[0] >> 4)

    for device in DEVICES:
        n, u = kc.array(np.array([2**40], np.int64)), kc.array(np.array([2**32 - 1], np.uint32))
        out = kc.zeros(5, dtype=kc.int64)
        kc.launch(wide, 1, [n, u], [out], device=device)
        assert out.numpy().tolist() == [3 * 2**40, 2**32, 0, 2**40 // 7 % 1000, (2**32 - 1) >> 4]


def test_division_by_zero_and_overflow_never_kill_the_process():
    @kc.kernel
    def hazards(n: kc.Array[int], out: kc.Array[int]):
        out[0] = n[0] // n[1]
        out[1] = n[0] % n[1]
        out[2] = n[2] // n[3]
        out[3] = n[2] % n[3]

    for device in DEVICES:
        out = kc.zeros(4, dtype=int)
        kc.launch(hazards, 1, [kc.array(np.array([5, 0, -(2**31), -1], np.int32))], [out], device=device)
        assert out.numpy()[3] == 0


@pytest.mark.parametrize("device", DEVICES)
def test_a_literal_that_does_not_fit_is_refused_or_right(device):
    @kc.kernel
    def big(n: kc.Array[int], out: kc.Array[float]):
        out[0] = float(n[0] * 4294967296)
        out[1] = 1.0 if n[0] < 3000000000 else 0.0

    out = kc.zeros(2)
    try:
        kc.launch(big, 1, [kc.array([1])], [out], device=device)
    except kc.KernelError:
        return
    assert out.numpy().tolist() == [4294967296.0, 1.0]


def test_an_integer_argument_that_does_not_fit_is_refused_every_time():
    @kc.kernel
    def take(n: int, out: kc.Array[int]):
        out[0] = n

    out = kc.zeros(1, dtype=int)
    for n in (3, 2**31, -(2**31) - 1):
        try:
            kc.launch(take, 1, [n], [out])
        except kc.KernelError:
            assert n != 3
        else:
            assert out.numpy()[0] == n


def test_a_real_argument_beyond_single_precision_is_infinite_or_refused():
    @kc.kernel
    def take(x: float, out: kc.Array[float]):
        out[0] = x

    for device in DEVICES:
        out = kc.zeros(1)
        try:
            kc.launch(take, 1, [1e40], [out], device=device)
        except kc.KernelError:
            continue
        assert out.numpy()[0] == np.inf
    kc.launch(take, 1, [float("nan")], [out])
    assert np.isnan(out.numpy()[0])


def test_comparisons_chain():
    @kc.kernel
    def chain(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        s = 0.0
        if 0.0 < x[i] < 2.0 < x[i] + 1.5:
            s += x[i]
        if not (x[i] >= 1.0) or x[i] == 1.5 and x[i] != 2.0:
            s += 10.0 * x[i]
        if 1 < 2 < 3 and True:
            s += 100.0 * x[i]
        kc.atomic_add(out, 0, s)

    data = [0.5, 1.0, 1.5, 1.8, -1.0]

    def reference(x):
        s = 0.0
        for v in x:
            s += v * (0 < v < 2 < v + 1.5) + 10 * v * (not (v >= 1) or (v == 1.5 and v != 2)) + 100 * v
        return s

    grad = [(0 < v < 2 < v + 1.5) + 10 * (not (v >= 1) or v == 1.5) + 100 for v in data]
    check_kernel(chain, 5, [leaf(data), OUT], reference, grad)


def test_and_or_are_lazy():
    @kc.func
    def touch(t: kc.Array[float], v: float) -> bool:
        t[0] += 1.0
        return v > 0.0

    @kc.kernel
    def lazy(x: kc.Array[float], t: kc.Array[float], out: kc.Array[float]):
        a = x[0] > 0.0 and touch(t, x[1])
        b = x[0] > 0.0 or touch(t, x[1])
        c = touch(t, x[0]) or touch(t, x[1])
        d = touch(t, x[1]) and touch(t, x[0])
        y = x[0] if touch(t, x[0]) else x[1]
        out[0] = (
            t[0] + (10.0 if a else 0.0) + (100.0 if b else 0.0) + (1000.0 if c else 0.0) + (1e4 if d else 0.0) + y * 0.0
        )

    for x, want in (
        ([1.0, -1.0], 1 + 0 + 1 + 1 + 1 + 1100),
        ([-1.0, 1.0], 0 + 1 + 2 + 2 + 1 + 1100),
        ([1.0, 1.0], 1 + 0 + 1 + 2 + 1 + 11110),
    ):
        for real in REALS:
            for device in DEVICES:
                A = Arrays(real)
                out = A.zeros(1)
                kc.launch(lazy, 1, [A.array(x), A.zeros(1), out], device=device)
                assert out.numpy()[0] == want, (x, device)


def test_the_order_of_evaluation_is_pythons():
    @kc.func
    def bump(t: kc.Array[float], by: float) -> float:
        t[0] = t[0] + by
        return t[0]

    @kc.kernel
    def order(t: kc.Array[float], out: kc.Array[float]):
        out[0] = t[0] + bump(t, 1.0) * 10.0 + t[0] * 100.0
        out[1] = bump(t, 1.0) - bump(t, 1.0) * 10.0
        t[1] = bump(t, 1.0) + t[0]
        out[2], out[3] = bump(t, 1.0), t[0]
        out[4] = t[1]

    for row in values(order, 1, [const([2.0, 0.0])], 5):
        near(row, [2 + 30 + 300, 4 - 50, 7, 7, 12], 1e-7)


def test_augmented_assignment_reads_its_target_first():
    @kc.func
    def set_ten(t: kc.Array[float]) -> float:
        t[0] = 10.0
        return 3.0

    @kc.kernel
    def times(t: kc.Array[float]):
        t[0] *= set_ten(t)

    for device in DEVICES:
        t = kc.array(np.array([2.0]))
        kc.launch(times, 1, [], [t], device=device)
        assert t.numpy()[0] == 6.0


def test_tuple_assignment_computes_the_right_side_first():
    @kc.kernel
    def swap(x: kc.Array[float], out: kc.Array[float]):
        x[0], x[1] = x[1] * x[1], x[0]
        a, b = x[0], x[1]
        a, b = b, a * b
        i, x[2] = 1, a
        out[0] = a + 3.0 * b + x[i] * x[2]

    def reference(x):
        y0, y1 = x[1] ** 2, x[0]
        a, b = y1, y0 * y1
        return a + 3 * b + y1 * a

    check_kernel(swap, 1, [leaf([1.5, 0.7, 0.0]), OUT], reference)


def test_a_name_keeps_one_type():
    @kc.kernel
    def change(x: kc.Array[float], out: kc.Array[float]):
        s = 0
        s = x[0]  # here
        out[0] = s

    refused(change, "KC103")

    @kc.kernel
    def grow(x: kc.Array[float], n: int, out: kc.Array[float]):
        s = 0
        for i in range(n):
            s += x[i]  # here
        out[0] = s

    refused(grow, "KC103")


def test_a_number_is_no_condition_value():
    """`a or b` of numbers would be a number in Python: refused, or a number."""

    @kc.kernel
    def either(n: kc.Array[int], out: kc.Array[int]):
        out[0] = n[0] or n[1]  # here

    try:
        rows = values(either, 1, [const([0, 5])], 1, dtype=int, reals=(np.float64,))
    except kc.KernelError:
        return
    assert all(r[0] == 5 for r in rows)


def test_truth_of_numbers():
    @kc.kernel
    def truth(n: kc.Array[int], x: kc.Array[float], out: kc.Array[float]):
        s = 0.0
        if n[0]:
            s += 1.0
        if not n[1]:
            s += 10.0
        if x[0]:
            s += 100.0
        while n[1]:
            s += 1000.0
            break
        out[0] = s

    for row in values(truth, 1, [const([3, 0]), const([0.5])]):
        assert row[0] == 111.0


def test_bools_count_as_integers():
    @kc.kernel
    def count(x: kc.Array[float], out: kc.Array[float]):
        out[0] = (x[0] > 1.0) + (x[1] > 1.0) + (x[2] > 1.0) * 10 + True + (x[0] > 0.0) * x[0]

    for row in values(count, 1, [const([1.5, 2.5, 0.5])]):
        assert row[0] == 1 + 1 + 0 + 1 + 1.5


def test_float_and_int_conversions():
    @kc.kernel
    def convert(x: kc.Array[float], out: kc.Array[float]):
        out[0] = int(x[0]) + float(3) + int(-x[0]) * 10 + bool(x[0]) + int(2.9) + float(True)
        out[1] = math.floor(-x[0]) + math.ceil(-x[0]) * 10 + math.trunc(-x[0]) * 100

    for row in values(convert, 1, [const([2.7])], 2):
        near(row, [2 + 3 - 20 + 1 + 2 + 1, -3 - 20 - 200], 1e-6)


def test_a_gradient_through_int_is_cut_and_declared():
    @kc.kernel
    def cut(x: kc.Array[float], out: kc.Array[float]):
        n = int(x[0])  # here
        out[0] = x[0] * n

    check_kernel(cut, 1, [leaf([2.5]), OUT], lambda x: x[0] * np.floor(x[0]), [2.0])
    explanation = kc.explain(cut)
    assert "int" in str(explanation) and "test_numbers.py" in str(explanation)


def test_stop_grad_acknowledges():
    @kc.kernel
    def stopped(x: kc.Array[float], v: kc.Array[kc.float3], out: kc.Array[float]):
        w = kc.stop_grad(v[0])
        out[0] = kc.stop_grad(x[0] * x[0]) * x[0] + kc.dot(w, v[0])

    check_kernel(
        stopped,
        1,
        [leaf([2.0]), leaf([[1.0, 2.0, 3.0]], kc.float3), OUT],
        lambda x, v: x[0] ** 3 + (v**2).sum(),
        [[4.0], [[1.0, 2.0, 3.0]]],
    )


def test_for_else_works_or_is_refused():
    @kc.kernel
    def search(x: kc.Array[float], n: int, out: kc.Array[float]):
        for i in range(n):
            if x[i] > 2.0:
                out[0] = x[i]
                break
        else:
            out[0] = -1.0

    try:
        hit, miss = (values(search, 1, [const(d), 3])[0][0] for d in ([1.0, 3.0, 4.0], [1.0, 1.0, 1.0]))
    except kc.KernelError:
        return
    assert (hit, miss) == (3.0, -1.0)


def test_a_loop_variable_after_the_loop():
    @kc.kernel
    def after(n: int, out: kc.Array[int]):
        i = 100
        for i in range(n):
            pass
        out[0] = i

    for n, want in ((5, 4), (0, 100)):
        for row in values(after, 1, [n], 1, dtype=int, reals=(np.float64,)):
            assert row[0] == want


def test_changing_the_counter_does_not_change_the_loop():
    @kc.kernel
    def counter(n: int, out: kc.Array[int]):
        c = 0
        for i in range(n):
            i = i * 2
            c += i
            n = 1
        out[0] = c + n

    for row in values(counter, 1, [4], 1, dtype=int, reals=(np.float64,)):
        assert row[0] == 13


def test_ranges_of_any_bounds_and_step():
    @kc.kernel
    def walk(a: int, b: int, s: int, out: kc.Array[int]):
        c = 0
        for i in range(a, b, s):
            c = c * 7 + i
            out[1] += 1
        out[0] = c

    for a, b, s in (
        (0, 5, 1),
        (5, 0, -1),
        (0, 10, 3),
        (10, 0, -3),
        (0, 5, -1),
        (5, 0, 1),
        (-5, 5, 2),
        (3, 3, 1),
        (0, 1, 100),
        (0, -1, -100),
    ):
        c = 0
        for i in range(a, b, s):
            c = c * 7 + i
        for row in values(walk, 1, [a, b, s], 2, dtype=int, reals=(np.float64,)):
            assert row.tolist() == [c, len(range(a, b, s))], (a, b, s)


def test_ranges_near_the_limits_of_int32():
    @kc.kernel
    def count(a: int, b: int, s: int, out: kc.Array[int]):
        for i in range(a, b, s):
            out[0] += 1
            out[1] = i

    big = 10**9
    for a, b, s in ((0, 2**31 - 1, big), (-2 * big, 2 * big, big), (2 * big, -2 * big, -big), (0, -(2**31), -big)):
        for device in DEVICES:
            out = kc.zeros(2, dtype=int)
            kc.launch(count, 1, [a, b, s], [out], device=device)
            assert out.numpy().tolist() == [len(range(a, b, s)), range(a, b, s)[-1]], (a, b, s)


def test_a_range_with_step_zero_is_an_error():
    @kc.kernel
    def stuck(n: int, s: int, out: kc.Array[int]):
        for i in range(0, n, s):  # here
            out[0] += 1

    for device in DEVICES:
        with pytest.raises(kc.KernelError) as caught:
            kc.launch(stuck, 1, [5, 0], [kc.zeros(1, dtype=int)], device=device)
        assert "test_numbers.py" in str(caught.value)


def test_shapes_and_lengths():
    @kc.kernel
    def shapes(x: kc.Array[float, 3], v: kc.Array[kc.float3], out: kc.Array[int]):
        out[0] = x.shape[0] * 100 + x.shape[1] * 10 + x.shape[2]
        out[1] = len(v) + len(v[0]) * 10
        out[2] = v.shape[0]

    for device in DEVICES:
        out = kc.zeros(3, dtype=int)
        kc.launch(shapes, 1, [np.zeros((2, 3, 4)), np.zeros((5, 3))], [out], device=device)
        assert out.numpy().tolist() == [234, 35, 5]


def test_min_and_max_of_nan_and_ints():
    @kc.kernel
    def extremes(x: kc.Array[float], n: int, out: kc.Array[float]):
        out[0] = max(n, x[0]) + min(2, x[0]) * 10.0 + kc.clamp(n, 0, 5) * 100.0

    for row in values(extremes, 1, [const([2.5]), 7]):
        assert row[0] == 7 + 20 + 500


def test_vectors_of_builtins_by_component():
    @kc.kernel
    def bits(v: kc.Array[kc.float3], out: kc.Array[float]):
        a = kc.abs(v[0])
        b = kc.min(v[0], kc.float3(0.5, 0.5, 0.5))
        c = kc.clamp(v[0], -0.5, 0.5)
        out[0] = kc.dot(a, kc.float3(1.0, 2.0, 3.0)) + kc.dot(b, c)

    check_kernel(
        bits,
        1,
        [leaf([[-1.0, 0.3, 0.9]], kc.float3), OUT],
        lambda v: np.abs(v[0]) @ [1, 2, 3] + np.minimum(v[0], 0.5) @ np.clip(v[0], -0.5, 0.5),
    )
