"""kernelc imports and runs where torch and JAX are not installed, and imports nothing that it does not need."""

import subprocess
import sys
import textwrap

SCRIPT = """
    import sys

    class Refuse:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in ("torch", "jax", "jaxlib", "scipy", "hypothesis"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Refuse())
"""


def run(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT) + textwrap.dedent(text))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_kernels_and_gradients_run_without_torch(tmp_path):
    out = run(tmp_path, """
        import numpy as np
        import kernelc as kc

        @kc.kernel
        def square(x: kc.Array[float], y: kc.Array[float]):
            i = kc.tid()
            y[i] = x[i] * x[i]

        x = kc.array(np.array([1.0, 2.0, 3.0]), requires_grad=True)
        y = kc.zeros(3, real=kc.float64)
        with kc.Tape() as tape:
            kc.launch(square, 3, [x], [y])
        tape.backward(grads={y: np.ones(3)})
        print(y.numpy().tolist(), x.grad.numpy().tolist())
        kc.launch(square, 3, [[1.0, 2.0, 3.0]], [np.zeros(3, np.float32)])
    """)  # fmt: skip
    assert out == ["[1.0, 4.0, 9.0] [2.0, 4.0, 6.0]"]


def test_kc_torch_and_kc_jax_say_what_is_missing(tmp_path):
    out = run(tmp_path, """
        import kernelc as kc
        for ask in (lambda: kc.torch, lambda: kc.zeros(3).torch(), lambda: kc.jax):
            try:
                ask()
            except ModuleNotFoundError as error:
                print(error.name)
        print(hasattr(kc, "nonsense"))
    """)  # fmt: skip
    assert out == ["torch", "torch", "jax", "False"]


def test_import_takes_nothing_heavy():
    code = "import kernelc, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    taken = set(done.stdout.split())
    heavy = {"torch", "jax", "scipy", "hypothesis", "pandas", "matplotlib", "cmake", "pytest"}
    assert "numpy" in taken and not taken & heavy
