"""Programs that a machine wrote: sums of thousands of terms, hundreds of `elif`. Length is no depth."""

import importlib.util
import sys

import numpy as np
import pytest

import kernelc as kc


def kernel_of(body, path, depth=None):
    """A kernel with these lines, in a module of its own."""
    path.write_text("import kernelc as kc\n\n\n@kc.kernel\ndef f(x: kc.Array[float], y: kc.Array[float]):\n"
                    "    i = kc.tid()\n    v = x[i]\n" + "".join(f"    {line}\n" for line in body))  # fmt: skip
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth or limit)  # Python itself compiles some thousand terms with its default
    try:
        spec.loader.exec_module(module)
    finally:
        sys.setrecursionlimit(limit)
    return module.f


def value_and_gradient(kernel, x, device):
    x, y = kc.array(np.array(x), requires_grad=True), kc.zeros(len(x), real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(kernel, len(x), [x], [y], device=device)
    tape.backward(grads={y: np.ones(len(x))})
    return y.numpy(), x.grad.numpy()


@pytest.mark.parametrize(("terms", "device"), [(1000, "cpu"), (1000, "python"), (10000, "python")])
def test_a_sum_of_many_terms(terms, device, tmp_path):
    text = " + ".join(f"v * {k}.0" for k in range(terms))
    kernel = kernel_of([f"y[i] = {text}"], tmp_path / "long_sum.py", depth=100_000)
    total = terms * (terms - 1) / 2
    y, slope = value_and_gradient(kernel, [1.0, 2.0], device)
    assert y.tolist() == [total, 2.0 * total] and slope.tolist() == [total, total]


def chain(arms):
    yield "if v < 0.5:"
    yield "    s = 0.0"
    for k in range(1, arms):
        yield f"elif v < {k}.5:"
        yield f"    s = v * {k}.0"
    yield "else:"
    yield "    s = -v"
    yield "y[i] = s"


def test_many_arms(tmp_path):
    kernel = kernel_of(chain(500), tmp_path / "many_arms.py")
    x = np.array([0.0, 1.0, 23.0, 24.0, 25.0, 26.0, 48.0, 49.0, 250.0, 499.0, 500.0, 1000.0])
    y, slope = value_and_gradient(kernel, x, "python")
    assert y.tolist() == np.where(x < 500, x * x, -x).tolist()
    assert slope.tolist() == np.where(x < 500, x, -1.0).tolist()


def test_many_arms_compile(tmp_path):
    kernel = kernel_of(chain(100), tmp_path / "arms.py")
    x = np.arange(0.0, 120.0, 1.0)
    y, slope = value_and_gradient(kernel, x, "cpu")
    assert y.tolist() == np.where(x < 100, x * x, -x).tolist()
    assert slope.tolist() == np.where(x < 100, x, -1.0).tolist()


def test_a_name_that_one_of_many_arms_does_not_set_is_refused(tmp_path):
    lines = [line.replace("s = v * 40.0", "r = v") for line in chain(60)]
    with pytest.raises(kc.KernelError, match="'s' may have no value here"):
        kc.inspect(kernel_of(lines, tmp_path / "unset.py"), "ir")


def test_many_arms_that_return(tmp_path):
    lines = [line.replace("s = ", "y[i] = ") + ("\n        return" if "s = " in line else "") for line in chain(60)]
    kernel = kernel_of([*lines[:-3], "y[i] = -v"], tmp_path / "returns.py")
    x = np.array([0.0, 1.0, 24.0, 25.0, 26.0, 59.0, 60.0, 61.0])
    y, slope = value_and_gradient(kernel, x, "python")
    assert y.tolist() == np.where(x < 60, x * x, -x).tolist() and slope.tolist() == np.where(x < 60, x, -1.0).tolist()
