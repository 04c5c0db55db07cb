"""Sums over shared elements run in strips: on one core or several, recorded or not, the bits are the same."""

import numpy as np

import kernelc as kc

N, M = 20_000, 1_000


@kc.kernel
def pull(x: kc.Array[kc.float3], pairs: kc.Array[int, 2], k: kc.Array[float], f: kc.Array[kc.float3]):
    s = kc.tid()
    a, b = pairs[s, 0], pairs[s, 1]
    force = (x[b] - x[a]) * (k[s] * kc.length_sq(x[b] - x[a]))
    kc.atomic_add(f, a, force)
    kc.atomic_sub(f, b, force)


def run(threads, real=np.float32, recorded=True):
    kc.config.threads = threads
    r = np.random.default_rng(3)
    x = kc.array(r.normal(size=(M, 3)).astype(real), dtype=kc.float3, requires_grad=True)
    k = kc.array(r.normal(size=N).astype(real), requires_grad=True)
    pairs = kc.array(r.integers(0, M, (N, 2)).astype(np.int32))
    f = kc.array(np.ones((M, 3), real), dtype=kc.float3)
    seed = r.normal(size=(M, 3)).astype(real)
    if not recorded:
        kc.launch(pull, N, [x, pairs, k], [f])
        return [f.numpy().copy()]
    with kc.Tape() as tape:
        kc.launch(pull, N, [x, pairs, k], [f])
    first = f.numpy().copy()
    tape.backward(grads={f: seed})
    f.assign(np.ones((M, 3), real))
    tape.replay()
    assert f.numpy().tobytes() == first.tobytes()
    return [first, x.grad.numpy().copy(), k.grad.numpy().copy()]


def test_one_and_two_threads_give_the_same_bits():
    try:
        one, two = run(1), run(2)
        for a, b in zip(one, two, strict=True):
            assert a.tobytes() == b.tobytes()
        assert run(2, recorded=False)[0].tobytes() == one[0].tobytes()
    finally:
        kc.config.threads = 0


def test_strips_add_up_to_the_sum():
    try:
        got = run(2, np.float64)
    finally:
        kc.config.threads = 0
    r = np.random.default_rng(3)
    x, k = r.normal(size=(M, 3)), r.normal(size=N)
    pairs, seed = r.integers(0, M, (N, 2)), r.normal(size=(M, 3))
    d = x[pairs[:, 1]] - x[pairs[:, 0]]
    force = d * (k * (d * d).sum(1))[:, None]
    f = np.ones((M, 3))
    np.add.at(f, pairs[:, 0], force)
    np.add.at(f, pairs[:, 1], -force)
    np.testing.assert_allclose(got[0], f, rtol=1e-11, atol=1e-11)
    g = seed[pairs[:, 0]] - seed[pairs[:, 1]]
    np.testing.assert_allclose(got[2], (g * d).sum(1) * (d * d).sum(1), rtol=1e-10, atol=1e-10)
    d_adj = g * (k * (d * d).sum(1))[:, None] + 2 * d * ((g * d).sum(1) * k)[:, None]
    want = np.zeros((M, 3))
    np.add.at(want, pairs[:, 1], d_adj)
    np.add.at(want, pairs[:, 0], -d_adj)
    np.testing.assert_allclose(got[1], want, rtol=1e-10, atol=1e-10)
