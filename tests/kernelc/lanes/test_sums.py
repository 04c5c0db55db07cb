"""Additions of all lanes to one element: one number, three or four side by side, and mixtures of them."""

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def into_few(x: kc.Array[float], w: kc.Array[float], v3: kc.Array[kc.float3], v4: kc.Array[kc.float4],
             v2: kc.Array[kc.float2], n: int):  # fmt: skip
    i = kc.tid()
    for j in range(n):
        a = x[i] * float(j + 1)
        kc.atomic_add(w, j, a)
        kc.atomic_add(v3, j, kc.float3(a, 2.0 * a, a * a))
        kc.atomic_add(v2, j, kc.float2(a, -a))
        kc.atomic_add(v4, j, kc.float4(a, 2.0 * a, 3.0 * a, 4.0 * a))
        kc.atomic_add(v3, j, kc.float3(a, a, a))


@pytest.mark.parametrize("lanes", [0, 2, 4, 8, 16, "auto"])
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_every_sum_arrives_at_its_place(lanes, real):
    before, kc.config.lanes = kc.config.lanes, lanes
    try:
        n, count = 3, 37
        x = kc.array(np.random.default_rng(0).normal(size=count).astype(real), requires_grad=True)
        w, v3, v4, v2 = (kc.array(np.ones((n, k)[: 1 + (k > 1)], real), dtype=t, requires_grad=True)
                         for k, t in ((1, None), (3, kc.float3), (4, kc.float4), (2, kc.float2)))  # fmt: skip
        with kc.Tape() as tape:
            kc.launch(into_few, count, [x, w, v3, v4, v2, n])
        a = x.numpy().astype(np.float64)[:, None] * np.arange(1, n + 1)
        s, q, tolerance = a.sum(0), (a * a).sum(0), 1e-5 if real is np.float32 else 1e-13
        near = {"rtol": tolerance, "atol": tolerance * 100}
        np.testing.assert_allclose(w.numpy(), 1 + s, **near)
        np.testing.assert_allclose(v3.numpy(), 1 + np.stack([2 * s, 3 * s, q + s], 1), **near)
        np.testing.assert_allclose(v4.numpy(), 1 + np.outer(s, [1, 2, 3, 4]), **near)
        np.testing.assert_allclose(v2.numpy(), 1 + np.outer(s, [1, -1]), **near)
        tape.backward(grads={v3: np.ones((n, 3), real)})
        expected = (np.arange(1, n + 1) * (6 + 2 * a)).sum(1)
        np.testing.assert_allclose(x.grad.numpy(), expected, **near)
    finally:
        kc.config.lanes = before
