"""Arrays of 2**31 numbers and more: every element is found, or the launch is refused.

Their memory is never touched but at a few places, so the system does not give it out.
"""

import numpy as np
import pytest

import kernelc as kc

THREADS = 35
WIDTHS = [0, 2, 4, 8, 16]
LONG = 716_000_000  # of float3: 2,148,000,000 numbers


@kc.kernel
def picked(x: kc.Array[kc.float3], at: kc.Array[int], out: kc.Array[kc.float3]):
    i = kc.tid()
    out[i] = 2.0 * x[at[i]]


@kc.kernel
def put(x: kc.Array[kc.float3], at: kc.Array[int], out: kc.Array[kc.float3]):
    i = kc.tid()
    out[at[i]] += x[i]


@kc.kernel
def cell(m: kc.Array[float, 2], out: kc.Array[float]):
    i = kc.tid()
    out[i] = m[i, m.shape[1] - 1]
    m[i, m.shape[1] - 2] = 7.0


@pytest.fixture(scope="module")
def long_array():
    """Beyond 2**31 numbers, with something in its last elements."""
    made = np.zeros((LONG, 3), np.float32)
    made[-THREADS:] = np.arange(3 * THREADS).reshape(-1, 3)
    return made


AT = np.arange(LONG - THREADS, LONG, dtype=np.int32)


@pytest.mark.parametrize("width", WIDTHS)
def test_elements_beyond_32_bits_are_found(long_array, width, monkeypatch):
    monkeypatch.setattr(kc.config, "lanes", width)
    out = np.zeros((THREADS, 3), np.float32)
    kc.launch(picked, THREADS, [long_array, AT], [out])
    assert np.array_equal(out, 2 * long_array[-THREADS:])


@pytest.mark.parametrize("width", WIDTHS)
def test_elements_beyond_32_bits_are_written(width, monkeypatch):
    monkeypatch.setattr(kc.config, "lanes", width)
    x, out = np.random.default_rng(0).normal(size=(THREADS, 3)).astype(np.float32), np.zeros((LONG, 3), np.float32)
    kc.launch(put, THREADS, [x, AT], [out])
    assert np.array_equal(out[-THREADS:], x)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("step", [1, -1])
def test_rows_beyond_32_bits_are_found(width, step, monkeypatch):
    """Each row begins 2**26 numbers after the one before, or before it."""
    monkeypatch.setattr(kc.config, "lanes", width)
    m, out = np.zeros((THREADS, 2**26), np.float32)[::step], np.zeros(THREADS, np.float32)
    m[:, -1] = np.arange(THREADS)
    kc.launch(cell, THREADS, [m], [out])
    assert np.array_equal(out, np.arange(THREADS)) and (m[:, -2] == 7).all()


@kc.kernel
def size_of(m: kc.Array[bool], out: kc.Array[int]):
    out[kc.tid()] = m.shape[0]


@kc.kernel
def last_of(m: kc.Array[bool], n: kc.int64, out: kc.Array[bool]):
    i = kc.tid()
    out[i] = m[n - 1 - i]


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_a_size_that_does_not_fit_an_int_is_refused(device):
    long = np.zeros(2**31 + 5, bool)
    short, out = np.zeros(2**31 - 1, bool), np.zeros(1, np.int32)
    kc.launch(size_of, 1, [short], [out], device=device)
    assert out[0] == 2**31 - 1
    for array in (long, long[::-1]):
        with pytest.raises(kc.KernelError, match=r"size_of asks for m.shape\[0\].*2147483653 does not fit") as error:
            kc.launch(size_of, 1, [array], [out], device=device)
        assert "kc.int64" in error.value.advice


@pytest.mark.parametrize("width", WIDTHS)
def test_an_index_of_64_bits_goes_everywhere(width, monkeypatch):
    monkeypatch.setattr(kc.config, "lanes", width)
    m, out = np.zeros(2**31 + 40, bool), np.zeros(THREADS, bool)
    m[-1:-THREADS:-3] = True
    kc.launch(last_of, THREADS, [m, m.size], [out])
    assert np.array_equal(out, np.arange(THREADS) % 3 == 0)


@kc.kernel
def last_thread(out: kc.Array[int]):
    i, j = kc.tid()
    if i == 65535 and j > 65500:
        out[j - 65501] = j


@pytest.mark.nightly
def test_a_grid_of_more_than_32_bits_runs_to_its_end(monkeypatch):
    monkeypatch.setattr(kc.config, "threads", 1)
    out = np.zeros(THREADS, np.int32)
    kc.launch(last_thread, (65536, 65536), [out])
    assert np.array_equal(out, np.arange(65501, 65536))
