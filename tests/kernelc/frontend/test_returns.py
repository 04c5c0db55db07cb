"""What a function returns, whatever its expression does on the way."""

import numpy as np

import kernelc as kc


@kc.func
def safe_inverse(x: float):
    return 1.0 / (x if x > 0.0 else kc.exp(x))


@kc.func
def first_positive(a: float, b: float):
    return (a if a > 0.0 else kc.sin(a)) + (b if b > 0.0 else kc.sin(b))


@kc.kernel
def both(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = safe_inverse(x[i]) + first_positive(x[i], -x[i])


def test_a_returned_expression_may_hold_conditionals():
    x = np.array([-1.5, 0.25, 2.0])
    y = kc.zeros(3, real=kc.float64)
    kc.launch(both, dim=3, inputs=[x], outputs=[y], device="python")
    inverse = 1 / np.where(x > 0, x, np.exp(x))
    positive = np.where(x > 0, x, np.sin(x)) + np.where(-x > 0, -x, np.sin(-x))
    np.testing.assert_allclose(y.numpy(), inverse + positive)
