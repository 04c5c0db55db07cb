"""A record gives each thread the values that it put, at random access, and zero outside."""

from __future__ import annotations

import numpy as np

from kernelc import _native


def expected(thread: int, seq: int, threads: int) -> int:
    return 100 * thread + seq if 0 <= thread < threads and 0 <= seq < thread % 4 else 0


def read(entry, block, record, pairs, parallel=True):
    threads, seqs = (np.array(column, dtype=np.int64) for column in zip(*pairs))
    out = np.full(len(pairs), -1, dtype=np.int64)
    _native.launch(entry("get"), block(record.pointer, threads, seqs, out), len(pairs), parallel)
    return out


def test_values_are_found_by_thread_and_number(entry, block):
    record = _native.Record()
    _native.launch(entry("put"), block(record.pointer), 1000, False)
    assert len(record) == sum(i % 4 for i in range(1000))
    pairs = [(thread, seq) for thread in range(-2, 1005) for seq in range(-1, 5)]
    np.random.default_rng(0).shuffle(pairs)
    assert read(entry, block, record, pairs).tolist() == [expected(t, s, 1000) for t, s in pairs]


def test_a_program_clears_it_before_its_step(entry, block):
    record = _native.Record()
    program = _native.Program()
    program.add_launch(entry("put"), block(record.pointer), 8, False, record)
    for _ in range(3):
        program.run()
        assert len(record) == 12
    pairs = [(thread, seq) for thread in range(8) for seq in range(4)]
    assert read(entry, block, record, pairs).tolist() == [expected(t, s, 8) for t, s in pairs]
    record.clear()
    assert len(record) == 0
    assert not read(entry, block, record, pairs).any()


def test_a_program_keeps_its_record_alive(entry, block):
    program = _native.Program()
    record = _native.Record()
    words = block(record.pointer)
    program.add_launch(entry("put"), words, 8, False, record)
    del record
    assert program.run() is None
