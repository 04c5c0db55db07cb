"""Python threads: each records, launches and checks on its own."""

import threading

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


def in_threads(work, count=4):
    errors = []

    def run(n):
        try:
            work(n)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("debug", [False, True])
def test_tapes_of_several_threads_do_not_mix(debug):
    def work(n):
        for k in range(40):
            x = kc.array(np.full(300, n + k / 100), requires_grad=True)
            y, z = kc.zeros(300, real=kc.float64), kc.zeros(300, real=kc.float64)
            with kc.Tape() as tape:
                y.zero_()
                kc.launch(square, 300, [x], [y])
                kc.launch(square, 300, [y], [z])
            assert len(tape.entries) == 3
            tape.backward(grads={z: np.ones(300)})
            np.testing.assert_allclose(x.grad.numpy(), 4 * x.numpy() ** 3)

    before, kc.config.debug = kc.config.debug, debug
    try:
        in_threads(work)
    finally:
        kc.config.debug = before


def test_a_launch_beside_the_tape_of_another_thread_is_not_recorded():
    x, y = kc.ones(4), kc.zeros(4)
    with kc.Tape() as tape:
        in_threads(lambda n: kc.launch(square, 4, [x], [kc.zeros(4)]))
        kc.launch(square, 4, [x], [y])
    assert len(tape.entries) == 1


def test_one_kernel_is_compiled_for_all():
    @kc.kernel
    def fresh(x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        y[i] = x[i] * 1.2345678

    def work(n):
        y = kc.zeros(4)
        kc.launch(fresh, 4, [np.full(4, n, np.float32)], [y])
        np.testing.assert_allclose(y.numpy(), np.full(4, n * 1.2345678), rtol=1e-6)

    in_threads(work)


def test_the_current_tape_is_the_innermost_of_this_thread():
    seen = []
    with kc.Tape() as outer:
        with kc.Tape() as inner:
            other = threading.Thread(target=lambda: seen.append(kc.Tape.current()))
            other.start()
            other.join()
            assert kc.Tape.current() is inner
        assert kc.Tape.current() is outer
    assert kc.Tape.current() is None and seen == [None]
