"""Run by test_everywhere.py with KERNELC_TEST_DEVICE=cuda: a launch on the CPU is one of the stand-in."""

import numpy as np
from gpu import standin

import kernelc as kc


@kc.kernel
def tripled(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 3.0 * x[i]


def test_a_launch_on_the_cpu_is_one_of_the_stand_in():
    driver = standin.StandIn(standin.driver_library())
    driver.calls()
    x, y = kc.array(np.ones(2), requires_grad=True), kc.array(np.zeros(2))
    with kc.Tape() as tape:
        kc.launch(tripled, 2, [x], [y], device="cpu")
    tape.backward(grads={y: np.ones(2)})
    assert x.grad.numpy().tolist() == [3, 3]
    launched = [call for call in driver.calls() if call.startswith("cuLaunchKernel")]
    assert any("kc_tripled," in call for call in launched)
    assert any("kc_tripled_adjoint," in call for call in launched)
