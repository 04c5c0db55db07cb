"""Additions to elements of others happen in the order of the threads, whichever threads form a group."""

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def springs(x: kc.Array[kc.float2], ends: kc.Array[kc.int3], own: kc.Array[float], f: kc.Array[kc.float2]):
    """Several additions per thread to the same array, one of them to the thread's own element."""
    i = kc.tid()
    e = ends[i]
    d = x[e.y] - x[e.x]
    force = d * (own[i] * kc.length(d))
    kc.atomic_add(f, e.x, force)
    kc.atomic_add(f, i, force * own[i])
    kc.atomic_add(f, e.y, -force)
    kc.atomic_add(f, e.z, force * 0.3)


def forces(x, ends, own, dp, parts=1):
    """f, and the gradients of x and own for the weights `dp`."""
    x, own = (kc.array(v, dtype=t, requires_grad=True) for v, t in ((x, kc.float2), (own, None)))
    f = kc.array(np.zeros(x.shape + (2,), np.float32), dtype=kc.float2)
    with kc.Tape() as tape:
        kc.launch(springs, len(ends), [x, kc.array(ends, dtype=kc.int3), own, f], parts=parts)
    tape.backward(grads={f: dp})
    return [f.numpy(), x.grad.numpy(), own.grad.numpy()]


@pytest.mark.parametrize(("n", "copies", "parts"), [(3, 7, 1), (16, 7, 1), (37, 7, 1), (100, 7, 1),
                                                    (3, 4000, 4000), (37, 400, 400), (100, 120, 120), (1500, 7, 7),
                                                    (8192, 2, 2), (9001, 3, 3)])  # fmt: skip
def test_many_copies_side_by_side_have_the_bits_of_each_alone(n, copies, parts):
    """Small ones anyway; from 8192 threads on, where a launch is cut into strips, if it says how many parts it has."""
    r = np.random.default_rng(n)
    x, dp = (r.normal(size=(copies, n, 2)).astype(np.float32) for _ in range(2))
    own = r.normal(size=(copies, n)).astype(np.float32)
    ends = r.integers(0, n, (copies, n, 3)).astype(np.int32)
    shifted = ends + n * np.arange(copies, dtype=np.int32)[:, None, None]
    together = forces(x.reshape(-1, 2), shifted.reshape(-1, 3), own.reshape(-1), dp.reshape(-1, 2), parts)
    for k in range(min(copies, 20)):
        alone = forces(x[k], ends[k], own[k], dp[k])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a, b.reshape(copies, *a.shape)[k])


def test_parts_are_the_same_on_one_and_two_threads_and_outside_of_a_tape():
    n, copies = 9001, 3
    r = np.random.default_rng(0)
    x, own = r.normal(size=(copies * n, 2)).astype(np.float32), r.normal(size=copies * n).astype(np.float32)
    ends = r.integers(0, n, (copies, n, 3)).astype(np.int32) + n * np.arange(copies, dtype=np.int32)[:, None, None]
    ends = ends.reshape(-1, 3)
    try:
        found = []
        for kc.config.threads in (1, 2):
            found.append(forces(x, ends, own, x, parts=copies))
        for one, two in zip(*found, strict=True):
            np.testing.assert_array_equal(one, two)
        f = kc.array(np.zeros_like(x), dtype=kc.float2)
        given = [kc.array(x, dtype=kc.float2), kc.array(ends, dtype=kc.int3), kc.array(own)]
        kc.launch(springs, copies * n, given, [f], parts=copies)
        np.testing.assert_array_equal(f.numpy(), found[0][0])
    finally:
        kc.config.threads = 0


@pytest.mark.parametrize("parts", [3, 0, -1, 2.0, "two"])
def test_parts_divide_the_threads(parts):
    r = np.random.default_rng(0)
    x, own, ends = r.normal(size=(8, 2)), r.normal(size=8), np.zeros((8, 3), np.int32)
    for _ in range(2):  # planned for the first time, and again
        with pytest.raises(kc.WrongDim, match="the 8 threads fall"):
            forces(x.astype(np.float32), ends, own.astype(np.float32), x, parts=parts)
