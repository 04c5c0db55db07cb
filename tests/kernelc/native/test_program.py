"""A program does its steps in order in one call, with Python steps between, and stops at the first failure."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from kernelc import _native


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_steps_run_in_order(entry, block):
    x, y, z = floats(1, 2, 3), floats(0, 0, 0), floats(9, 9, 9)
    seen = []
    program = _native.Program()
    steps = [
        program.add_launch(entry("twice"), block(y, x), 3, True, None),
        program.add_copy(z.ctypes.data, y.ctypes.data, y.nbytes),
        program.add_call(lambda: seen.append(z.copy())),
        program.add_accumulate(z.ctypes.data, x.ctypes.data, 3, 4),
        program.add_zero(y.ctypes.data, y.nbytes),
    ]
    assert steps == list(range(5)) and len(program) == 5
    for _ in range(3):
        assert program.run() is None
        assert np.array_equal(seen.pop(), [2, 4, 6])
        assert np.array_equal(z, [3, 6, 9]) and not y.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 1000, 300_000])
def test_sums_copies_and_fills_of_any_size(dtype, count):
    rng = np.random.default_rng(1)
    a, b = rng.random(count).astype(dtype), rng.random(count).astype(dtype)
    total, copy, cleared = a.copy(), np.empty_like(a), np.ones_like(a)
    program = _native.Program()
    program.add_accumulate(total.ctypes.data, b.ctypes.data, count, a.itemsize)
    program.add_copy(copy.ctypes.data, a.ctypes.data, a.nbytes)
    program.add_zero(cleared.ctypes.data, a.nbytes)
    program.run()
    assert np.array_equal(total, a + b) and np.array_equal(copy, a) and not cleared.any()


@pytest.mark.parametrize("shift", [-1, 0, 1, 100_000])
def test_a_copy_may_overlap(shift):
    a = np.arange(1_000_000)
    to, source = (a[shift:], a[: len(a) - shift]) if shift >= 0 else (a[:shift], a[-shift:])
    expected = source.copy()
    program = _native.Program()
    program.add_copy(to.ctypes.data, source.ctypes.data, source.nbytes)
    program.run()
    assert np.array_equal(to, expected)


def test_words_can_be_patched(entry, block):
    x, y, z = floats(1), floats(0), floats(0)
    program = _native.Program()
    step = program.add_launch(entry("twice"), block(y, x), 1, False, None)
    program.run()
    program.set_words(step, 0, z.ctypes.data)
    program.run()
    assert y[0] == z[0] == 2
    for word in (-1, 0xFFFFFFFFFFFFFFFF, 1 << 63):
        program.set_words(step, 1, word)
    for step, word in ((1, 0), (0, 2)):
        with pytest.raises(IndexError):
            program.set_words(step, word, 0)


def test_a_failure_names_its_step_and_stops(entry, block):
    out, after = np.zeros(4, dtype=np.int64), floats(1)
    program = _native.Program()
    program.add_call(lambda: None)
    program.add_launch(entry("nothing"), b"", 1, False, None)
    program.add_launch(entry("fail_some"), block(2, 1, out), 4, False, None)
    program.add_zero(after.ctypes.data, 4)
    for _ in range(2):
        failure = program.run()
        assert (failure.step, failure.thread, failure.code) == (2, 2, 2)
        assert after[0] == 1


def test_an_exception_of_a_call_propagates(entry):
    ran = []

    def fail():
        raise KeyError("mine")

    program = _native.Program()
    program.add_call(lambda: ran.append(1))
    program.add_call(fail)
    program.add_call(lambda: ran.append(2))
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            program.run()
    assert ran == [1, 1]


def test_a_call_may_launch_and_run_other_programs(entry, block):
    x, y = np.ones(200_000, dtype=np.float32), np.zeros(200_000, dtype=np.float32)
    inner, outer = _native.Program(), _native.Program()
    inner.add_launch(entry("twice"), block(y, x), len(x), True, None)
    outer.add_launch(entry("twice"), block(y, x), len(x), True, None)
    outer.add_call(inner.run)
    outer.add_call(lambda: _native.launch(entry("twice"), block(y, x), len(x), True))
    outer.add_launch(entry("twice"), block(y, x), len(x), True, None)
    assert outer.run() is None
    assert (y == 8).all()


def test_a_running_program_is_not_changed(entry):
    program = _native.Program()
    refused = []

    def tamper():
        for change in (program.run, lambda: program.add_zero(0, 0), lambda: program.add_call(tamper)):
            with pytest.raises(RuntimeError, match="running"):
                change()
            refused.append(change)
        program.keep(object())

    program.add_call(tamper)
    program.run()
    assert len(refused) == 3
    assert program.add_zero(0, 0) == 1


def test_a_call_may_patch_later_steps(entry, block):
    x, y, z = floats(1), floats(0), floats(0)
    program = _native.Program()
    program.add_call(lambda: program.set_words(1, 0, z.ctypes.data))
    program.add_launch(entry("twice"), block(y, x), 1, False, None)
    program.run()
    assert (y[0], z[0]) == (0, 2)


def test_other_python_threads_go_on_while_it_runs(entry, block):
    out = np.zeros(1, dtype=np.int64)
    program = _native.Program()
    program.add_launch(entry("spin"), block(300_000_000, out), 1, False, None)
    runner = threading.Thread(target=program.run)
    runner.start()
    ticks = 0
    while runner.is_alive():
        ticks += 1
        if ticks == 1000:
            with pytest.raises(RuntimeError, match="running"):
                program.set_words(0, 0, 0)
    runner.join()
    assert ticks > 1000


def test_what_it_keeps_lives_as_long_as_it(entry, block):
    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    program = _native.Program()
    program.keep(owner)
    del owner
    assert alive() is not None
    del program
    assert alive() is None


def test_a_cycle_through_its_calls_is_collected():
    class Tape:
        def __init__(self) -> None:
            self.program = _native.Program()
            self.program.add_call(lambda: self)

    tape = Tape()
    alive = weakref.ref(tape)
    del tape
    gc.collect()
    assert alive() is None


def test_bad_arguments_are_refused(entry):
    program = _native.Program()
    with pytest.raises(TypeError):
        program.add_call(3)
    with pytest.raises(TypeError):
        program.add_launch(entry("nothing"), b"", 1, True, "record")
    with pytest.raises(ValueError, match="4 or 8"):
        program.add_accumulate(0, 0, 1, 2)
    with pytest.raises(ValueError, match="null"):
        program.add_launch(0, b"", 1, True, None)
    assert len(program) == 0
