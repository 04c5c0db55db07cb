"""A launch runs every thread once, in chunks that depend on the total only, and reports the lowest failing thread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelc import _native
from kernelc.toolchain.simd import ABI

TOTALS = [0, 1, 7, 127, 128, 129, 1000, 16384, 16385, 100_003, 1_000_000]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("total", TOTALS)
def test_every_thread_runs_once(entry, block, total, parallel, threads):
    _native.set_threads(threads)
    x, y = np.arange(total, dtype=np.float32), np.zeros(total, dtype=np.float32)
    assert _native.launch(entry("twice"), block(y, x), total, parallel) is None
    assert np.array_equal(y, 2 * x)


@pytest.mark.parametrize("total", TOTALS)
def test_chunks_depend_on_the_total_only(entry, block, total):
    begins = []
    for threads in (1, 2, 7):
        _native.set_threads(threads)
        begins.append(np.full(total, -1, dtype=np.int64))
        _native.launch(entry("chunk_of"), block(begins[-1]), total, True)
    expected = np.arange(total) // _native.chunk_size(total) * _native.chunk_size(total)
    assert all(np.array_equal(b, expected) for b in begins)


def test_a_sequential_launch_is_few_calls_in_order(entry, block):
    """Between them it hears of Ctrl-C; each is made of whole groups of lanes."""
    begins = np.full(100_000, -1, dtype=np.int64)
    _native.launch(entry("chunk_of"), block(begins), len(begins), False)
    assert np.array_equal(begins, np.arange(len(begins)) // 2**14 * 2**14)


def test_the_caller_may_choose_the_chunks(entry, block):
    begins = np.full(100, -1, dtype=np.int64)
    _native.launch(entry("chunk_of"), block(begins), 100, True, 30)
    assert np.array_equal(begins, np.arange(100) // 30 * 30)


@given(total=st.integers(1, 1 << 40))
def test_chunks_are_few_and_aligned(total):
    size = _native.chunk_size(total)
    assert size >= 128 and size % 64 == 0
    assert -(-total // size) <= 128


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    total=st.integers(1, 50_000),
    first=st.integers(0, 50_000),
    stride=st.integers(1, 5_000),
    threads=st.integers(1, 4),
    parallel=st.booleans(),
)
def test_the_lowest_failing_thread_is_reported(entry, block, total, first, stride, threads, parallel):
    _native.set_threads(threads)
    out = np.zeros(total, dtype=np.int64)
    failure = _native.launch(entry("fail_some"), block(first, stride, out), total, parallel)
    if first >= total:
        assert failure is None and out.all()
    else:
        assert (failure.code, failure.site, failure.thread, failure.a, failure.b) == (2, 17, first, first, 5)
        assert failure.step == -1
        assert out[:first].all(), "every thread below the failing one has run"


def test_lanes_that_fail_in_any_order_give_the_lowest(entry, block):
    failure = _native.launch(entry("fail_lanes"), b"", 8, False)
    assert (failure.code, failure.site, failure.thread) == (3, 0, 0)
    assert repr(failure) == "Failure(code=3, site=0, thread=0, a=0, b=0, step=-1)"


def test_a_failure_is_forgotten_by_the_next_launch(entry, block):
    for total, parallel in ((64, False), (100_000, True)):
        out = np.zeros(total, dtype=np.int64)
        assert _native.launch(entry("fail_some"), block(total // 2, 1, out), total, parallel)
        fresh = np.zeros(total, dtype=np.int8)
        assert _native.launch(entry("is_fresh"), block(fresh), total, parallel) is None
        assert fresh.all()


@pytest.mark.skipif("x86" not in __import__("platform").machine(), reason="sets a register of x86")
def test_all_threads_compute_in_the_mode_of_the_caller(entry, block):
    y = np.ones(20_000, dtype=np.float32)
    _native.launch(entry("denormal"), block(y), len(y), True)
    assert (y != 0).all()
    _native.launch(entry("flush_denormals"), block(1), 1, False)
    try:
        _native.launch(entry("denormal"), block(y), len(y), True)
    finally:
        _native.launch(entry("flush_denormals"), block(0), 1, False)
    assert (y == 0).all()


def test_what_cannot_be_opened_is_an_os_error(entry, library):
    with pytest.raises(OSError, match="no_such_library"):
        _native.open_library("/no_such_library.so")
    with pytest.raises(OSError, match="no_such_kernel"):
        _native.symbol(_native.open_library(str(library)), "no_such_kernel")


def test_bad_arguments_are_refused(entry):
    nothing = entry("nothing")
    for arguments in ((), (nothing, b""), (nothing, "text", 1, True), (nothing, b"", 1.5, True), ("x", b"", 1, True)):
        with pytest.raises(TypeError):
            _native.launch(*arguments)
    for arguments in ((0, b"", 1, True), (nothing, b"123", 1, True), (nothing, memoryview(b"x" * 17)[1:], 1, True)):
        with pytest.raises(ValueError, match=r"null|words"):
            _native.launch(*arguments)
    with pytest.raises(ValueError, match="threads"):
        _native.set_threads(-1)
    with pytest.raises(ValueError, match="limit"):
        _native.set_tape_limit(-1)


def test_a_block_may_be_any_buffer(entry, block):
    x, y = np.ones(5, dtype=np.float32), np.zeros(5, dtype=np.float32)
    words = block(y, x)
    for buffer in (words, bytearray(words), memoryview(words), np.frombuffer(words, dtype=np.int64)):
        assert _native.launch(entry("twice"), buffer, 5, False) is None
    assert (y == 8).all()


def test_the_header_is_of_this_abi():
    assert _native.abi() == ABI
