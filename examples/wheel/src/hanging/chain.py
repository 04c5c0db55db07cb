"""The energy of a chain, and where it hangs."""

import numpy as np

import kernelc as kc
from hanging.kernels import link_energies, weights


def energy(x, rest, k=1e3, mass=0.1):
    """Energy (J) and its gradient by the points x (n, 2) of a chain with links of lengths rest (n - 1)."""
    points, e = kc.array(x, dtype=kc.float2, requires_grad=True), kc.array(np.zeros(1, x.dtype))
    with kc.Tape() as tape:
        kc.launch(link_energies, len(rest), [points, rest, k], [e])
        kc.launch(weights, len(x), [points, mass], [e])
    tape.backward(e)
    return float(e.numpy()[0]), points.grad.numpy().copy()


def settle(x, rest, steps=4000, rate=4e-4):
    """The points after going downhill, with both ends held."""
    x = x.copy()
    for _ in range(steps):
        x[1:-1] -= rate * energy(x, rest)[1][1:-1]
    return x
