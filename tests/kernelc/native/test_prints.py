"""Prints come out in the order of steps, then threads, whatever the number of workers, and there is a bound on them."""

from __future__ import annotations

import threading

import pytest

from kernelc import _native

NEVER = -1


def printed(threads, *, step=-1):
    return [line for i in threads for line in ((step, 1, i, [float(i), 0.5]), (step, 2, i, []))]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_prints_are_in_thread_order(entry, block, workers):
    _native.set_threads(workers)
    _native.launch(entry("print_some"), block(7, NEVER), 20_000, True)
    assert _native.take_prints() == printed(range(0, 20_000, 7))
    assert _native.take_prints() == []


def test_prints_of_a_program_name_their_step(entry, block):
    program = _native.Program()
    program.add_launch(entry("print_some"), block(1, NEVER), 3, False, None)
    program.add_zero(0, 0)
    program.add_launch(entry("print_some"), block(100, NEVER), 1000, True, None)
    program.run()
    assert _native.take_prints() == printed(range(3), step=0) + printed(range(0, 1000, 100), step=2)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_what_is_dropped_is_said_and_does_not_depend_on_the_workers(entry, block, workers):
    _native.set_threads(workers)
    _native.launch(entry("print_some"), block(1, NEVER), 50_000, True)
    # A print without values counts as one: each thread takes three of the 100000.
    *lines, last = _native.take_prints()
    assert lines == printed(range(33_333)) and len(lines) == 2 * 33_333
    assert last == (-1, -1, -1, [3.0 * 50_000 - sum(max(1, len(values)) for *_, values in lines)])
    _native.launch(entry("print_some"), block(1, NEVER), 2, False)
    assert _native.take_prints() == printed(range(2))


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_after_a_failure_only_what_came_before_is_printed(entry, block, workers):
    _native.set_threads(workers)
    for failing in (0, 1000, 19_999):
        assert _native.launch(entry("print_some"), block(10, failing), 20_000, True).thread == failing
        assert _native.take_prints() == printed(range(0, failing + 1, 10))


def test_each_python_thread_takes_its_own(entry, block):
    taken = []

    def work():
        _native.launch(entry("print_some"), block(1, NEVER), 2, False)
        taken.append(_native.take_prints())

    _native.launch(entry("print_some"), block(1, NEVER), 1, False)
    other = threading.Thread(target=work)
    other.start()
    other.join()
    assert taken == [printed(range(2))]
    assert _native.take_prints() == printed(range(1))


def test_a_call_in_a_program_takes_only_what_it_printed(entry, block):
    taken = []

    def call():
        _native.launch(entry("print_some"), block(1, NEVER), 1, False)
        taken.append(_native.take_prints())

    program = _native.Program()
    program.add_launch(entry("print_some"), block(1, NEVER), 2, False, None)
    program.add_call(call)
    program.add_launch(entry("print_some"), block(1, NEVER), 3, False, None)
    program.run()
    assert taken == [printed(range(1))]
    assert _native.take_prints() == printed(range(2), step=0) + printed(range(3), step=2)
