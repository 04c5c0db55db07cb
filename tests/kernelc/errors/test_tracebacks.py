"""Tracebacks of our errors show lines of the user alone; `help` reads as documentation."""

import io
import pickle
import pydoc
import re
import subprocess
import sys
import traceback

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def one(x: kc.Array[float]):
    x[kc.tid()] = 1.0


@kc.kernel
def untyped(x):
    pass


@kc.struct
class Numbers:
    x: kc.Array[float]


@kc.func
def doubled(x):
    return 2.0 * x


def local_func():
    @kc.func
    def hidden(x):
        return x

    return hidden


def recorded():
    with kc.Tape() as tape:
        kc.launch(one, 3, [kc.zeros(3)])
    return tape


def empty_struct():
    @kc.struct
    class Nothing:
        pass


MISUSES = {
    "a launch with the wrong type": lambda: kc.launch(one, 3, [kc.zeros(3, int)]),
    "a launch over no grid": lambda: kc.launch(one, 3.5, [kc.zeros(3)]),
    "a kernel that does not compile": lambda: kc.launch(untyped, 3, [kc.zeros(3)]),
    "a kernel that is called": lambda: one(3),
    "an intrinsic that is called": lambda: kc.atomic_add(kc.zeros(3), 0, 1.0),
    "a shape that does not fit": lambda: kc.zeros(3).reshape(7),
    "an index out of bounds": lambda: kc.zeros(3)[5],
    "data that is none": lambda: kc.array("abc"),
    "a negative size": lambda: kc.zeros(-1),
    "an assignment of another shape": lambda: kc.zeros(3).assign([1.0]),
    "a comparison": lambda: kc.zeros(3) == 3,
    "a truth value": lambda: bool(kc.zeros(3)),
    "many numbers as one": lambda: kc.zeros(3).item(),
    "a scan of two dimensions": lambda: kc.scan(kc.zeros((2, 2))),
    "a loss that nothing wrote": lambda: recorded().backward(kc.zeros(1)),
    "a struct without fields": empty_struct,
    "a bundle without its array": lambda: Numbers(),
    "a member that a bundle has not": lambda: setattr(Numbers(x=kc.zeros(1)), "y", 1),
    "a vector of too few numbers": lambda: kc.float3(1.0, 2.0),
    "a type that there is not": lambda: kc.Array["float"],
    "a number that may be absent": lambda: kc.float3 | None,
    "a func of a number": lambda: kc.func(3),
    "an adjoint of a number": lambda: doubled.adjoint(3),
    "a kernel of a number": lambda: kc.kernel(3),
    "a kernel that nobody finds": lambda: pickle.dumps(local_func()),
    "a setting that there is not": lambda: setattr(kc.config, "speed", 1),
    "an operation that is none": lambda: kc.Tape().record(3),
    "a tape of another kind": lambda: kc.Tape(on_overwrite="forget"),
    "an operation of torch on a number": lambda: kc.torch.op(3, 1, outputs=[1]),
    "a text of no kind": lambda: kc.inspect(one, "fortran"),
    "a failed check of a gradient": lambda: kc.testing.gradcheck(one, 3, [np.zeros(3), np.zeros(3)]),
}


@pytest.mark.parametrize("what", MISUSES)
def test_tracebacks_have_no_frame_of_ours(what):
    with pytest.raises(kc.KernelError) as caught:
        MISUSES[what]()
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}


def test_what_python_prints_ends_at_the_line_of_the_user(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import kernelc as kc\n\nkc.zeros(3).reshape(7)\n")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert re.findall(r'File "(.*?)", line (\d+)', run.stderr) == [(str(script), "3")]


@pytest.mark.parametrize(("name", "lines"), [
    ("normalize", ["normalize(v)", "v / length(v); the zero vector stays zero, with derivative 0", "vec n -> vec n"]),
    ("clamp", ["clamp(x, low, high)", "x moved into [low, high]"]),
    ("atomic_cas", ["atomic_cas(a, i, …, expected, new): store an integer"]),
    ("tid", ["index of this thread in the launch grid"]),
    ("launch", ["Run a kernel over a grid of `dim` threads."]),
])  # fmt: skip
def test_help_reads_as_documentation(name, lines):
    text = pydoc.plain(pydoc.render_doc(getattr(kc, name)))
    for line in lines:
        assert line in text
    assert "Methods defined here" not in text
    assert len(text.splitlines()) < 20


def test_help_of_a_kernel_is_its_own_documentation():
    @kc.kernel
    def documented(x: kc.Array[float]):
        """Doubles x."""
        x[kc.tid()] *= 2.0

    out = io.StringIO()
    pydoc.Helper(output=out)(documented)
    assert "Doubles x." in out.getvalue()


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert kc.__version__ == version("kernelc")
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", kc.__version__)
