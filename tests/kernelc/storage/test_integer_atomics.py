"""Atomics of integers alone: exchange, compare-and-swap, and, or, xor. Each returns the old content."""

import numpy as np
import pytest

import kernelc as kc

KINDS = {"int": np.int32, "int64": np.int64, "uint32": np.uint32, "uint64": np.uint64, "uint8": np.uint8,
         "int16": np.int16}  # fmt: skip


def kernels(kind):
    @kc.kernel
    def bits(v: kc.Array[kind], a: kc.Array[kind, 2]):
        i = kc.tid()
        kc.atomic_and(a, 0, i % 3, v[i])
        kc.atomic_or(a, 1, i % 3, v[i])

    @kc.kernel
    def toggled(v: kc.Array[kind], a: kc.Array[kind]):
        i = kc.tid()
        kc.atomic_xor(a, i % 3, v[i])
        kc.atomic_xor(a, i, v[i])

    @kc.kernel
    def chain(v: kc.Array[kind], a: kc.Array[kind], before: kc.Array[kind, 2]):
        i = kc.tid()
        before[i, 0] = kc.atomic_exchange(a, 0, v[i])
        before[i, 1] = kc.atomic_cas(a, 1, v[0], v[i])
        before[i, 2] = kc.atomic_xor(a, 2, v[i])
        before[i, 3] = kc.atomic_and(a, 3, v[i])
        before[i, 4] = kc.atomic_or(a, 4, v[i])

    return bits, toggled, chain


KERNELS = {name: kernels({"int": int}.get(name) or getattr(kc, name)) for name in KINDS}


def numbers(kind, n):
    limits = np.iinfo(kind)
    return np.random.default_rng(3).integers(limits.min, limits.max, n, kind, endpoint=True)


@pytest.fixture
def lanes():
    before = kc.config.lanes
    yield lambda width: setattr(kc.config, "lanes", width)
    kc.config.lanes = before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "device"), [(0, "cpu"), (4, "cpu"), (16, "cpu"), (0, "python")])
def test_bits_are_changed_in_every_mode(kind, width, device, lanes):
    lanes(width)
    bits, toggled, _ = KERNELS[kind]
    n = 53
    v, a, b = numbers(KINDS[kind], n), numbers(KINDS[kind], 6).reshape(2, 3), numbers(KINDS[kind], n)
    start, begin = a.copy(), b.copy()
    kc.launch(bits, n, [v], [a], device=device)
    for k in range(3):
        assert a[0, k] == np.bitwise_and.reduce(v[k::3]) & start[0, k]
        assert a[1, k] == np.bitwise_or.reduce(v[k::3]) | start[1, k]
    kc.launch(toggled, n, [v], [b], device=device)
    begin ^= v
    for k in range(3):
        begin[k] ^= np.bitwise_xor.reduce(v[k::3])
    assert np.array_equal(b, begin)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", ["cpu", "python"])
def test_the_old_content_comes_back_in_the_order_of_the_threads(kind, device):
    chain, n = KERNELS[kind][2], 21
    v, a, before = numbers(KINDS[kind], n), numbers(KINDS[kind], 5), np.zeros((n, 5), KINDS[kind])
    a[1] = v[0]
    seen = [a.copy()]
    for x in v:
        old = seen[-1]
        seen.append(np.array([x, x if old[1] == v[0] else old[1], old[2] ^ x, old[3] & x, old[4] | x]))
    kc.launch(chain, n, [v], [a, before], device=device)
    assert np.array_equal(before, seen[:-1])
    assert np.array_equal(a, seen[-1])


@kc.kernel
def claim(owner: kc.Array[int], x: kc.Array[float], out: kc.Array[float]):
    """Each slot goes to the first thread that asks; the others do without."""
    i = kc.tid()
    before = kc.atomic_cas(owner, i % 4, -1, i)
    if before == -1:
        out[i % 4] = x[i] * x[i]
    else:
        kc.atomic_add(out, 4, 0.5 * x[i] * float(before))


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_gradients_follow_what_the_swaps_returned(device):
    x = kc.array(np.linspace(1, 2, 9), requires_grad=True)
    owner, out = kc.full(4, -1, int), kc.zeros(5, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(claim, 9, [owner, x], [out], device=device)
    assert owner.tolist() == [0, 1, 2, 3]
    tape.backward(grads={out: [1, 1, 1, 1, 10]})
    wanted = np.concatenate([2 * x.numpy()[:4], 5.0 * (np.arange(4, 9) % 4)])
    assert np.allclose(x.grad.numpy(), wanted)


@kc.kernel
def build(key: kc.Array[int], head: kc.Array[int], next_: kc.Array[int]):
    """Linked lists, one for each key: what exchange is for."""
    i = kc.tid()
    next_[i] = kc.atomic_exchange(head, key[i], i)


def test_exchange_builds_linked_lists():
    key = np.random.default_rng(0).integers(0, 5, 40).astype(np.int32)
    head, next_ = np.full(5, -1, np.int32), np.zeros(40, np.int32)
    kc.launch(build, 40, [key], [head, next_])
    for k in range(5):
        found, at = [], head[k]
        while at >= 0:
            found.append(at)
            at = next_[at]
        assert sorted(found) == list(np.flatnonzero(key == k))
