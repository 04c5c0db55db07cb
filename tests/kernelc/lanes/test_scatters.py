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


def forces(x, ends, own, dp):
    """f, and the gradients of x and own for the weights `dp`."""
    x, own = (kc.array(v, dtype=t, requires_grad=True) for v, t in ((x, kc.float2), (own, None)))
    f = kc.array(np.zeros(x.shape + (2,), np.float32), dtype=kc.float2)
    with kc.Tape() as tape:
        kc.launch(springs, len(ends), [x, kc.array(ends, dtype=kc.int3), own, f])
    tape.backward(grads={f: dp})
    return [f.numpy(), x.grad.numpy(), own.grad.numpy()]


@pytest.mark.parametrize("n", [3, 16, 37, 100])
def test_many_copies_side_by_side_have_the_bits_of_each_alone(n):
    r, copies = np.random.default_rng(n), 7
    x, dp = (r.normal(size=(copies, n, 2)).astype(np.float32) for _ in range(2))
    own = r.normal(size=(copies, n)).astype(np.float32)
    ends = r.integers(0, n, (copies, n, 3)).astype(np.int32)
    shifted = ends + n * np.arange(copies, dtype=np.int32)[:, None, None]
    together = forces(x.reshape(-1, 2), shifted.reshape(-1, 3), own.reshape(-1), dp.reshape(-1, 2))
    for k in range(copies):
        alone = forces(x[k], ends[k], own[k], dp[k])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a, b.reshape(copies, *a.shape)[k])
