"""The loop tape and the undo log give back what was put on them, grow up to the limit that is set, and never leave
their memory, full or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelc import _native

TAPE_FULL = 7


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("total", "rounds"), [(1, 1), (3, 100_000), (2000, 50), (5000, 0)])
def test_values_come_back_in_reverse(entry, block, total, rounds, threads):
    _native.set_threads(threads)
    bad = np.zeros(1, dtype=np.int64)
    assert _native.launch(entry("push_pop"), block(rounds, bad), total, True) is None
    assert bad[0] == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    limit=st.integers(0, 20_000),
    frame=st.integers(1, 3_000),
    count=st.integers(1, 60),
    before=st.integers(1, 3_000),
)
def test_the_limit_is_exact_whatever_ran_before(entry, block, limit, frame, count, before):
    sink = np.zeros(1, dtype=np.int8)
    _native.set_tape_limit(2 << 30)
    _native.launch(entry("overfull"), block(before, 40, sink), 1, False)
    _native.set_tape_limit(limit)
    failure = _native.launch(entry("overfull"), block(frame, count, sink), 3, False)
    assert (failure is not None) == (frame * count > limit)
    if failure:
        fits = limit // frame
        assert (failure.code, failure.site, failure.thread) == (TAPE_FULL, -1, 0)
        assert (failure.a, failure.b) == (frame * (fits + 1), limit)


def test_a_full_tape_is_usable_again(entry, block):
    bad = np.zeros(1, dtype=np.int64)
    _native.set_tape_limit(1000)
    for total in (1, 5000):
        assert _native.launch(entry("push_pop"), block(1000, bad), total, True).code == TAPE_FULL
        assert _native.launch(entry("push_pop"), block(2, bad), total, True) is None
    assert bad[0] == 0


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("total", "rounds"), [(1, 1), (2, 20_000), (3000, 20)])
def test_overwritten_elements_are_restored(entry, block, total, rounds, threads):
    _native.set_threads(threads)
    a = np.random.default_rng(0).integers(0, 256, 16 * total, dtype=np.uint8)
    before = a.copy()
    assert _native.launch(entry("overwrite"), block(a, rounds, -1), total, True) is None
    assert np.array_equal(a, before)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(total=st.integers(1, 500), rounds=st.integers(1, 50), failing=st.integers(0, 500))
def test_a_thread_that_fails_leaves_the_arrays_as_they_were(entry, block, total, rounds, failing):
    a = np.random.default_rng(0).integers(0, 256, 16 * total, dtype=np.uint8)
    before = a.copy()
    failure = _native.launch(entry("overwrite"), block(a, rounds, failing), total, True)
    assert (failure is not None) == (failing < total)
    assert np.array_equal(a, before)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(limit=st.integers(0, 40_000), rounds=st.integers(1, 600))
def test_tape_and_undo_log_share_the_limit(entry, block, limit, rounds):
    a = np.zeros(16, dtype=np.uint8)
    _native.set_tape_limit(limit)
    failure = _native.launch(entry("overwrite"), block(a, rounds, -1), 1, False)
    needed = rounds * (3 * 24 + 8)
    assert (failure is not None) == (needed > limit)
    if failure:
        assert failure.code == TAPE_FULL and failure.a > failure.b == limit
