"""The adjoint divides once by a divisor, unless the last bit of a quotient matters."""

import numpy as np
import pytest

import kernelc as kc
from kernelc.runtime.kernels import Kernel


def divisions(kernel: Kernel) -> int:
    return kc.inspect(kernel, "adjoint").count("= div ")


@kc.kernel
def ratio(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = 3.0 * (a[i] / b[i]) + b[i]


@kc.kernel
def inverse_is_there(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    by = b[i]
    whole = 1.0 / by
    out[i] = a[i] / by + kc.max(whole, 0.5)


@kc.kernel
def decides(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    q = a[i] / b[i]
    out[i] = kc.max(q, 0.1) + q * b[i]


@kc.kernel
def goes_on(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    q = a[i] / b[i]
    out[i] = kc.sin(q * 2.0)


@kc.kernel
def carried(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    p = a[i]
    for _ in range(3):
        p = p / b[i]
    out[i] = p * p


@pytest.mark.parametrize(("kernel", "count"), [(ratio, 1), (inverse_is_there, 1), (decides, 2), (goes_on, 2)])
def test_one_division_serves_where_the_last_bit_decides_nothing(kernel: Kernel, count: int) -> None:
    assert divisions(kernel) == count, kc.inspect(kernel, "adjoint")


@pytest.mark.parametrize("kernel", [ratio, inverse_is_there, decides, goes_on, carried])
@pytest.mark.parametrize("device", ["cpu", "python"])
def test_the_gradient_of_quotients(kernel: Kernel, device: str) -> None:
    random = np.random.default_rng(1)
    a, b = (kc.array(random.uniform(0.6, 1.9, 21), requires_grad=True) for _ in range(2))
    out = kc.zeros(21, real=kc.float64)
    kc.testing.gradcheck(kernel, dim=21, inputs=[a, b], outputs=[out], device=device)


def test_who_won_a_maximum_is_the_same_in_the_adjoint() -> None:
    """A quotient that equals the other side wins; as a product with the reciprocal it would be just below, and lose."""
    b = np.arange(1, 2000, dtype=np.float32)
    a = b * np.float32(0.1)
    ties = (a / b == np.float32(0.1)) & (a * (np.float32(1) / b) < np.float32(0.1))
    assert ties.any()
    x, out = kc.array(a, requires_grad=True), kc.zeros(len(a))
    with kc.Tape() as tape:
        kc.launch(decides, len(a), [x, b, out])
    tape.backward(grads={out: np.ones_like(a)})
    np.testing.assert_allclose(x.grad.numpy()[ties], 1 / b[ties] + 1, rtol=1e-5)
