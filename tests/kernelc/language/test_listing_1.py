"""The paper's Listing 1 compiles as it is printed, and its gradient is right."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import kernelc as kc

DT = 0.05


def listing():
    path = Path(__file__).with_name("listing_1.py")
    spec = importlib.util.spec_from_file_location("listing_1", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.integrate_particles


@pytest.mark.parametrize("n", [4, 100])
@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_values_and_all_five_gradients(real, device, n):
    r = np.random.default_rng(1)
    X, V, F, GX, GV = r.normal(size=(5, n, 3))
    W, G = r.uniform(0.3, 2.0, n), np.array([[0.0, 9.81, 0.3]])
    W[2] = 0.0  # a fixed particle: gravity does not act on it
    s = (W > 0)[:, None]

    def vectors(data, leaf=True):
        return kc.array(data.astype(real), dtype=kc.float3, requires_grad=leaf)

    x, v, f, g = vectors(X), vectors(V), vectors(F), vectors(G)
    w = kc.array(W.astype(real), requires_grad=True)
    x_new, v_new = vectors(np.zeros((n, 3)), False), vectors(np.zeros((n, 3)), False)
    with kc.Tape() as tape:
        kc.launch(listing(), dim=n, inputs=[x, v, f, w, g, DT], outputs=[x_new, v_new], device=device)
    tape.backward(grads={x_new: GX, v_new: GV})

    v1 = V + (F * W[:, None] - G * s) * DT
    adjoint = GV + GX * DT
    wanted = {
        "v_new": (v_new, v1), "x_new": (x_new, X + v1 * DT), "x": (x.grad, GX), "v": (v.grad, adjoint),
        "f": (f.grad, adjoint * W[:, None] * DT), "w": (w.grad, (adjoint * F).sum(1) * DT),
        "gravity": (g.grad, -(adjoint * s).sum(0)[None] * DT),
    }  # fmt: skip
    tolerance = 1e-12 if real == np.float64 else 2e-5
    for name, (got, want) in wanted.items():
        np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=10 * tolerance, err_msg=name)
