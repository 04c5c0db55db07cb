"""What may run in parallel, and what must keep the order of the threads."""

import numpy as np

import kernelc as kc
from kernelc.codegen import is_parallel


@kc.kernel
def symmetrise(x: kc.Array[float, 2], y: kc.Array[float, 2]):
    i, j = kc.tid()
    y[i, j] = x[i, j] * x[j, i]


@kc.kernel
def neighbour(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i + 1]


@kc.kernel
def own(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


def adjoint_is_parallel(kernel):
    return is_parallel(kernel.variant(kc.float32).adjoint({0, 1}).kernel)


def test_an_adjoint_is_parallel_only_on_elements_of_its_own():
    assert adjoint_is_parallel(own)
    assert not adjoint_is_parallel(neighbour)
    assert not adjoint_is_parallel(symmetrise), "thread (1, 2) and thread (2, 1) add to the same two elements"
    assert all(is_parallel(k.variant(kc.float32).kernel) for k in (own, neighbour, symmetrise))


def test_a_symmetric_gradient_is_right_on_many_threads():
    n = 400
    data = np.random.default_rng(0).normal(size=(n, n))
    x, y = kc.array(data.copy(), requires_grad=True), kc.array(np.zeros((n, n)))
    with kc.Tape() as tape:
        kc.launch(symmetrise, (n, n), [x], [y])
    tape.backward(grads={y: np.ones((n, n))})
    np.testing.assert_allclose(x.grad.numpy(), 2 * data.T, rtol=1e-13)
