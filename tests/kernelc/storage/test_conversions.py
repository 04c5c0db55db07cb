"""Loads widen, stores round: every half, and what lies between them, as NumPy and torch convert it, in every mode."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc

HALVES = {"float16": (kc.float16, torch.float16), "bfloat16": (kc.bfloat16, torch.bfloat16)}
WIDTHS = [0, 2, 4, 8, 16]
DEVICES = ["cpu", "python"]


@kc.kernel
def widen16(a: kc.Array[kc.float16], out: kc.Array[float]):
    i = kc.tid()
    out[i] = a[i]


@kc.kernel
def widen_b16(a: kc.Array[kc.bfloat16], out: kc.Array[float]):
    i = kc.tid()
    out[i] = a[i]


@kc.kernel
def narrow16(x: kc.Array[float], out: kc.Array[kc.float16]):
    i = kc.tid()
    out[i] = x[i]


@kc.kernel
def narrow_b16(x: kc.Array[float], out: kc.Array[kc.bfloat16]):
    i = kc.tid()
    out[i] = x[i]


WIDEN, NARROW = {"float16": widen16, "bfloat16": widen_b16}, {"float16": narrow16, "bfloat16": narrow_b16}


@pytest.fixture
def lanes():
    before = kc.config.lanes
    yield lambda width: setattr(kc.config, "lanes", width)
    kc.config.lanes = before


def every_half(kind):
    return torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(HALVES[kind][1])


def crossings(kind, real):
    """Numbers at, and next to, where rounding changes: the middle between every two halves; and others of all sizes."""
    halves = every_half(kind).double()
    known = np.unique(halves[torch.isfinite(halves)].numpy())
    middle = (known[1:] + known[:-1]) / 2
    largest = known[-1] + (known[-1] - known[-2]) / 2  # from here on: infinity
    wide = np.concatenate([known, middle, [largest, -largest, np.inf, -np.inf, np.nan, -0.0, 1e-300, 1e300]])
    with np.errstate(over="ignore"):
        found = wide.astype(real)
    return np.concatenate([found, np.nextafter(found, np.inf, dtype=real), np.nextafter(found, -np.inf, dtype=real)])


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    known = ~np.isnan(a)  # a NaN has no sign that anybody could rely on
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a[known]), np.signbit(b[known]))


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_half_is_read_as_torch_reads_it(kind, width, real, lanes):
    lanes(width)
    halves = every_half(kind)
    out = np.zeros(len(halves), real)
    kc.launch(WIDEN[kind], len(halves), [halves], [out])
    known = torch.isnan(halves).logical_not().numpy()
    assert same(out[known], halves.double().numpy()[known])
    assert np.isnan(out[~known]).all()


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("width", WIDTHS)
def test_stores_round_to_the_nearest_half_ties_to_even(kind, width, real, lanes):
    lanes(width)
    numbers = crossings(kind, real)
    out = torch.zeros(len(numbers), dtype=HALVES[kind][1])
    with np.errstate(all="ignore"):
        kc.launch(NARROW[kind], len(numbers), [numbers], [out])
    assert same(out.double().numpy(), nearest(kind, numbers))


def nearest(kind, numbers):
    """By searching among all halves, in double precision: torch rounds doubles twice on their way to bfloat16."""
    halves = every_half(kind).double()
    known = np.unique(np.abs(halves[torch.isfinite(halves)].numpy()))
    step = known[-1] - known[-2]
    ladder = np.append(known, known[-1] + step)  # what rounds to the next one overflows
    size = np.minimum(np.abs(numbers.astype(np.float64)), ladder[-1])
    at = np.clip(np.searchsorted(ladder, size, side="right") - 1, 0, len(ladder) - 2)
    below, above = size - ladder[at], ladder[at + 1] - size
    up = (above < below) | ((above == below) & (at % 2 == 1))
    found = np.where(up, ladder[at + 1], ladder[at])
    found = np.where(found == ladder[-1], np.inf, found)
    return np.copysign(np.where(np.isnan(numbers), np.nan, found), np.where(np.isnan(numbers), 1.0, numbers))


def test_the_witness_agrees_with_numpy_and_torch():
    numbers = crossings("float16", np.float64)
    with np.errstate(all="ignore"):
        assert same(nearest("float16", numbers), numbers.astype(np.float16).astype(np.float64))
    numbers = crossings("bfloat16", np.float32)
    theirs = torch.from_numpy(numbers).bfloat16().double().numpy()
    assert same(nearest("bfloat16", numbers), np.where(np.isnan(numbers), np.nan, theirs))


@pytest.mark.parametrize("kind", HALVES)
def test_the_interpreter_converts_alike(kind):
    numbers = crossings(kind, np.float64)[::97]
    out = torch.zeros(len(numbers), dtype=HALVES[kind][1])
    kc.launch(NARROW[kind], len(numbers), [numbers], [out], device="python")
    assert same(out.double().numpy(), nearest(kind, numbers))
    halves = every_half(kind)[::97]
    back = np.zeros(len(halves))
    kc.launch(WIDEN[kind], len(halves), [halves], [back], device="python")
    known = ~np.isnan(back)
    assert same(back[known], halves.double().numpy()[known])


@given(st.lists(st.floats(width=64), min_size=1, max_size=40))
def test_kc_array_rounds_as_kernels_do(numbers):
    data = np.array(numbers)
    with np.errstate(over="ignore"):
        assert same(kc.array(data, dtype=kc.float16).numpy(), nearest("float16", data))
        assert same(kc.array(data, dtype=kc.bfloat16).numpy(), nearest("bfloat16", data))


# -- small integers
SMALL = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16}


def keeper(kind):
    @kc.kernel
    def keep(x: kc.Array[int], a: kc.Array[kind], out: kc.Array[int]):
        i = kc.tid()
        out[i] = a[i]
        a[i] = x[i]

    return keep


KEEP = {name: keeper(getattr(kc, name)) for name in SMALL}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("width", [0, 4, 16])
@pytest.mark.parametrize("kind", SMALL)
def test_small_integers_are_read_as_they_are_and_wrap_when_stored(kind, width, device, lanes):
    lanes(width)
    n = 71
    random = np.random.default_rng(1)
    limits = np.iinfo(SMALL[kind])
    held = random.integers(limits.min, limits.max, n, SMALL[kind], endpoint=True)
    held[:2] = limits.min, limits.max
    stored, out = held.copy(), np.zeros(n, np.int32)
    x = random.integers(-(2**31), 2**31, n).astype(np.int32)
    kc.launch(KEEP[kind], n, [x, stored], [out], device=device)
    assert np.array_equal(out, held)
    assert np.array_equal(stored, x.astype(SMALL[kind]))


@kc.kernel
def update(a: kc.Array[kc.uint8], h: kc.Array[kc.float16], i8: kc.Array[kc.int8, 2], x: kc.Array[float]):
    i = kc.tid()
    a[i] += 3
    a[i % 2] -= 1
    h[i] *= 1.001
    h[i] += x[i] * 0.1
    h[0] += 0.25
    i8[i // 3, i % 3] |= 5
    kc.atomic_max(i8, i // 3, i % 3, i)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_updates_round_each_time_in_every_mode(real, lanes):
    def run(width, device):
        lanes(width)
        a = np.arange(200, 236, dtype=np.uint8)
        h, i8 = np.linspace(0, 2, 36).astype(np.float16), np.arange(-18, 18, dtype=np.int8).reshape(12, 3)
        kc.launch(update, 36, [a, h, i8, np.linspace(-1, 1, 36).astype(real)], device=device)
        return a, h, i8

    slow = run(0, "python")
    for width in (0, 4, 16):
        for x, y in zip(run(width, "cpu"), slow, strict=True):
            assert np.array_equal(x, y), width


# -- uint64: a type that kernels compute with
@kc.kernel
def mix(x: kc.Array[kc.uint64], out: kc.Array[kc.uint64, 2], real: kc.Array[kc.float64], small: kc.Array[int]):
    i = kc.tid()
    z = x[i] + 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    out[i, 0] = z ^ (z >> 31)
    out[i, 1] = kc.max(x[i] // 3, x[i] % 1000)
    out[i, 2] = kc.uint64(real[i]) + kc.uint64(small[i] > 0)
    out[i, 3] = kc.where(x[i] > 9223372036854775808, kc.uint64(1), kc.uint64(0))
    real[i] = kc.float64(x[i])
    small[i] = int(x[i] & 255)


@pytest.mark.parametrize(("width", "device"), [(0, "cpu"), (4, "cpu"), (8, "cpu"), (0, "python")])
def test_uint64_computes_with_all_of_its_bits(width, device, lanes):
    lanes(width)
    x = np.random.default_rng(2).integers(0, 2**64 - 1, 37, np.uint64, endpoint=True)
    out, real = np.zeros((37, 4), np.uint64), np.linspace(-2, 1.8e19, 37)
    small = np.arange(37, dtype=np.int32) % 2
    wanted = (np.clip(real, 0, None).astype(np.uint64) + small.astype(np.uint64)).copy()
    kc.launch(mix, 37, [x], [out, real, small], device=device)
    with np.errstate(over="ignore"):
        z = x + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    assert np.array_equal(out[:, 0], z ^ (z >> np.uint64(31)))
    assert np.array_equal(out[:, 1], np.maximum(x // 3, x % 1000))
    assert np.array_equal(out[:, 2], wanted)
    assert np.array_equal(out[:, 3], (x > 2**63).astype(np.uint64))
    assert np.array_equal(real, x.astype(np.float64))
    assert np.array_equal(small, (x & np.uint64(255)).astype(np.int32))


@kc.kernel
def more_of_64(x: kc.Array[kc.uint64], y: kc.Array[kc.uint64], out: kc.Array[kc.uint64, 2], real: kc.Array[float]):
    i = kc.tid()
    a, b = x[i], y[i]
    out[i, 0] = a - b
    out[i, 1] = a << (b % 70)
    out[i, 2] = kc.abs(a) + kc.sign(b)
    out[i, 3] = kc.clamp(a, kc.min(b, 5), 1 << 60)
    out[i, 4] = ~a | (b & 3)
    out[i, 5] = a**2 if a < b else b
    out[i, 6] = kc.uint64(float(b))
    out[i, 7] = a // b
    out[i, 0] += 5
    real[i] = a / b


@pytest.mark.parametrize("width", [0, 2, 4, 16])
def test_operators_of_uint64_mean_the_same_in_lanes_and_interpreted(width, lanes):
    random = np.random.default_rng(5)
    x = random.integers(0, 2**64 - 1, 35, np.uint64, endpoint=True)
    y = random.integers(0, 9, 35, np.uint64)
    results = []
    for device in ("cpu", "python"):
        lanes(width)
        out, real = np.zeros((35, 8), np.uint64), np.zeros(35)
        kc.launch(more_of_64, 35, [x, y], [out, real], device=device)
        results.append((out, real))
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(results[0][1], results[1][1], equal_nan=True)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", HALVES)
def test_halves_with_gaps_between_them_are_read_in_lanes(kind, width, lanes):
    # Nothing but gathers reads such arrays, so nothing else asks for what converts halves.
    lanes(width)
    halves = torch.linspace(-3, 3, 99, dtype=HALVES[kind][1])[::3]
    out = kc.zeros(33)
    kc.launch(WIDEN[kind], 33, [halves], [out])
    assert np.array_equal(out.numpy(), halves.float().numpy())
