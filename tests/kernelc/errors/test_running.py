"""Kernels that print, assert, and meet odd numbers: output as Python's, exceptions instead of crashes."""

import io
import sys

import numpy as np
import pytest

import kernelc as kc

DEVICES = ["cpu", "python"]


# -- print
@kc.func
def talk(i, x, n, flag):
    print("thread", i, "has", x, n, flag)
    print()
    print(x * 0.1, -n, 1.5, 2, True, i == 0)
    if i == 1:
        print("only one")


@kc.kernel
def talking(x: kc.Array[float], n: kc.Array[int], flag: kc.Array[bool]):
    i = kc.tid()
    talk(i, x[i], n[i], flag[i])


X = np.array([1.0, -0.0, 1e-7, 123456789.0, 1e16, 1e300, np.inf, np.nan, 1 / 3])
N = np.arange(9, dtype=np.int32) * -(10**8)
FLAG = np.arange(9) % 2 == 0


@pytest.mark.parametrize("device", DEVICES)
def test_print_is_pythons(device, capsys):
    for i in range(9):
        talk(i, float(X[i]), int(N[i]), bool(FLAG[i]))
    want = capsys.readouterr().out
    kc.launch(talking, 9, [X, N, FLAG], device=device)
    assert capsys.readouterr().out == want


@kc.kernel
def print_others(x: kc.Array[float], a: kc.Array[kc.int64], u: kc.Array[kc.uint32]):
    i = kc.tid()
    print(x[i], a[i], u[i], kc.float3(x[i], 2.0, 0.5), (i, 2.5))


@pytest.mark.parametrize("device", DEVICES)
def test_other_types_print_in_full(device, capsys):
    x = np.array([0.1, 16777216.0], np.float32)
    a, u = np.array([2**62 + 1, -(2**40) - 1]), np.array([2**32 - 1, 0], np.uint32)
    kc.launch(print_others, 2, [x, a, u], device=device)
    assert capsys.readouterr().out == (
        "0.1 4611686018427387905 4294967295 (0.1, 2.0, 0.5) (0, 2.5)\n"
        "16777216.0 -1099511627777 0 (16777216.0, 2.0, 0.5) (1, 2.5)\n"
    )


@kc.kernel
def count_aloud(n: int):
    i = kc.tid()
    for k in range(n):
        print(i, k)


@pytest.mark.parametrize("device", DEVICES)
def test_lines_come_in_the_order_of_the_threads(device, capsys):
    kc.launch(count_aloud, 500, [3], device=device)
    assert capsys.readouterr().out == "".join(f"{i} {k}\n" for i in range(500) for k in range(3))


def test_print_goes_to_where_stdout_is_now(monkeypatch):
    here = io.StringIO()
    monkeypatch.setattr(sys, "stdout", here)
    kc.launch(count_aloud, 1, [1])
    assert here.getvalue() == "0 0\n"


def test_recorded_launches_print_once_and_again_in_replay(capsys):
    with kc.Tape() as tape:
        kc.launch(count_aloud, 1, [2])
    assert capsys.readouterr().out == "0 0\n0 1\n"
    tape.replay()
    assert capsys.readouterr().out == "0 0\n0 1\n"


# -- assert
@kc.kernel
def positive(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    print("thread", i)
    assert x[i] > 0.0, "x is positive"
    y[i] = x[i]


@pytest.mark.parametrize("device", DEVICES)
def test_what_was_printed_before_a_failure_is_seen(device, capsys):
    with pytest.raises(kc.AssertFailed, match="positive, thread 2: assertion failed: x is positive"):
        kc.launch(positive, 4, [np.array([1.0, 2.0, -1.0, 3.0]), kc.zeros(4, real=kc.float64)], device=device)
    assert capsys.readouterr().out == "thread 0\nthread 1\nthread 2\n"


@kc.kernel
def quiet(x: kc.Array[float]):
    assert x[kc.tid()] >= 0.0


def test_the_lowest_thread_is_reported_whatever_the_number_of_threads():
    x = np.ones(200000, np.float32)
    x[[123, 70000, 150000]] = -1
    for threads in (1, 2, 4):
        kc.config.threads = threads
        try:
            with pytest.raises(kc.AssertFailed) as caught:
                kc.launch(quiet, len(x), [x])
        finally:
            kc.config.threads = 0
        assert caught.value.thread == 123


def test_a_failed_launch_on_a_tape_is_raised_and_the_tape_lives():
    bad, x = (kc.array(np.array(data), requires_grad=True) for data in ([1.0, -2.0], [1.0, 2.0]))
    y = kc.zeros(2, real=kc.float64)
    with kc.Tape() as tape:
        with pytest.raises(kc.AssertFailed):
            kc.launch(positive, 2, [bad, y])
        with pytest.raises(kc.TapeError, match=r"written by launch 0 \(positive\), which failed"):
            kc.launch(positive, 2, [x, y])
        y.zero_()
        kc.launch(positive, 2, [x, y])
    tape.backward(grads={y: np.ones(2)})
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])


# -- odd numbers and empty launches
@kc.kernel
def odd_numbers(x: kc.Array[float], n: kc.Array[int], out: kc.Array[float, 2], back: kc.Array[int, 2]):
    i = kc.tid()
    out[i, 0] = x[i] / (x[i] - x[i])
    out[i, 1] = kc.sqrt(x[i]) + kc.log(x[i]) + kc.acos(x[i]) + x[i] ** 0.5
    out[i, 2] = kc.length(kc.normalize(kc.float3(x[i])))
    back[i, 0] = int(x[i])
    back[i, 1] = round(x[i]) if x[i] == x[i] else -1
    back[i, 2] = 7 // n[i] + 7 % n[i]
    back[i, 3] = (-2147483647 - 1) // n[i] + (1 << n[i]) + (5 >> n[i]) + abs(n[i])


@pytest.mark.parametrize("device", DEVICES)
def test_no_number_ends_the_process(device):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324])
    n = np.array([0, -1, 1, 31, 32, -(2**31), 2**31 - 1, 100], np.int32)
    out, back = kc.zeros((8, 3), real=kc.float64), kc.array(np.zeros((8, 4), np.int32))
    kc.launch(odd_numbers, 8, [x, n, out, back], device=device)
    big, small = 2**31 - 1, -(2**31)
    np.testing.assert_array_equal(back.numpy()[:, 0], [0, 0, big, small, 0, big, small, 0])
    np.testing.assert_array_equal(back.numpy()[0, 2:3], [0])


@pytest.mark.parametrize("device", DEVICES)
def test_the_gradients_of_odd_numbers_do_not_end_the_process(device):
    x = kc.array(np.array([0.0, np.inf, np.nan, -1.0]), requires_grad=True)
    n = np.ones(4, np.int32)
    out, back = kc.zeros((4, 3), real=kc.float64), kc.array(np.zeros((4, 4), np.int32))
    with kc.Tape() as tape:
        kc.launch(odd_numbers, 4, [x, n, out, back], device=device)
    tape.backward(grads={out: np.ones((4, 3))})


@kc.kernel
def rows(x: kc.Array[float, 2], out: kc.Array[float]):
    i = kc.tid()
    for j in range(x.shape[1]):
        out[i] += x[i, j]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("debug", [False, True])
def test_empty_arrays_and_grids_are_fine(device, debug):
    kc.config.debug = debug
    try:
        out = kc.zeros(3, real=kc.float64)
        kc.launch(rows, 3, [np.zeros((3, 0)), out], device=device)
        kc.launch(rows, 0, [np.zeros((0, 4)), np.zeros(0)], device=device)
        x = kc.array(np.zeros((0, 2)), requires_grad=True)
        with kc.Tape() as tape:
            kc.launch(rows, 0, [x, out], device=device)
        tape.replay()
        tape.backward(grads={out: np.ones(3)})
        assert x.grad.shape == (0, 2)
    finally:
        kc.config.debug = False
    np.testing.assert_array_equal(out.numpy(), 0.0)


@kc.kernel
def plane(out: kc.Array[int, 2]):
    i, j = kc.tid()
    out[i, j] = 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [(0, 3), (3, 0), (0, 0)])
def test_a_grid_without_threads_does_nothing(device, dim):
    out = kc.zeros((3, 3), dtype=int)
    kc.launch(plane, dim, [out], device=device)
    assert not out.numpy().any()
