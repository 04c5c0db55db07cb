"""Component-wise built-ins of integers, vectors and matrices; keyword arguments."""

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def forms(v: kc.Array[kc.int3], x: kc.Array[kc.float3], ints: kc.Array[kc.int3, 2], reals: kc.Array[kc.float3, 2]):
    i = kc.tid()
    w = kc.int3(2, -3, 4)
    ints[i, 0] = kc.cw_mul(v[i], w)
    ints[i, 1] = kc.clamp(v[i], low=-2, high=w + kc.int3(5, 5, 5))
    ints[i, 2] = kc.int3(kc.dot(v[i], w))
    reals[i, 0] = kc.cw_div(v[i], w)
    reals[i, 1] = kc.smoothstep(low=0.0, high=kc.float3(1.0, 2.0, 3.0), x=x[i])
    reals[i, 2] = kc.lerp(x[i], kc.float3(1.0, 2.0, 3.0), kc.float3(0.0, 0.5, 1.0))


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_integers_and_components_have_their_forms(device):
    random = np.random.default_rng(0)
    v, x = random.integers(-9, 9, (20, 3)).astype(np.int32), random.uniform(-1, 4, (20, 3))
    ints, reals = np.zeros((20, 3, 3), np.int32), np.zeros((20, 3, 3))
    kc.launch(forms, 20, [v, x], [ints, reals], device=device)
    w, high = np.array([2, -3, 4]), np.array([1.0, 2.0, 3.0])
    assert np.array_equal(ints[:, 0], v * w)
    assert np.array_equal(ints[:, 1], np.clip(v, -2, w + 5))
    assert np.array_equal(ints[:, 2], np.tile((v @ w)[:, None], 3))
    assert np.allclose(reals[:, 0], v / w)
    s = np.clip(x / high, 0, 1)
    assert np.allclose(reals[:, 1], s * s * (3 - 2 * s))
    assert np.allclose(reals[:, 2], x + (high - x) * np.array([0.0, 0.5, 1.0]))
    kc.testing.gradcheck(forms, 20, [v, x], [ints, reals], wrt=["x"])
