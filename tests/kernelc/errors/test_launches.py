"""Launches that do not fit their kernel: each error names the kernel, the argument, and what to do."""

import traceback

import numpy as np
import pytest
import torch
from messages import shown

import kernelc as kc
from kernelc.config import Config


@kc.struct
class Ball:
    radius: float
    tag: int


@kc.struct
class Box:
    size: float


@kc.kernel
def scale(x: kc.Array[float], s: float, n: int, flag: bool, y: kc.Array[float]):
    i = kc.tid()
    if flag:
        y[i] = s * x[i] + n


@kc.kernel
def vectors(v: kc.Array[kc.float3], m: kc.Array[float, 2], out: kc.Array[kc.float3]):
    i = kc.tid()
    out[i] = v[i] * m[i, 0]


@kc.kernel
def fill(a: kc.Array[float, 2]):
    i, j = kc.tid()
    a[i, j] = 1.0


@kc.kernel
def structs(b: Ball, v: kc.float3, balls: kc.Array[Ball], out: kc.Array[float]):
    out[kc.tid()] = b.radius + v.x + balls[0].radius


@kc.kernel
def integers(a: kc.Array[int], u: kc.Array[kc.uint32], b: kc.Array[kc.int64]):
    i = kc.tid()
    a[i] = kc.int32(u[i]) + kc.int32(b[i])


def frozen():
    data = np.zeros(3, np.float32)
    data.flags.writeable = False
    return data


def run(kernel, *args, dim=3, device="python"):
    return lambda: kc.launch(kernel, dim, list(args), device=device)


f, line = kc.zeros(3), np.zeros(10, np.float32)
CASES = {
    "too few arguments": (run(scale, f, 1.0), kc.WrongArity,
        "scale takes 5 arguments (x, s, n, flag, y), but got 2", kc.WrongArity.hint),
    "too many arguments": (run(fill, f, f), kc.WrongArity,
        "fill takes 1 argument (a), but got 2", kc.WrongArity.hint),
    # -- element types
    "an array of integers": (run(scale, np.zeros(3, np.int32), 1.0, 2, True, f), kc.WrongDtype,
        "scale: argument 'x' must be an array of float32, but holds int32 in shape (3,)", kc.WrongDtype.hint),
    "NumPy's integers where they are written": (run(integers, np.zeros(1, int), np.zeros(1, "u4"), np.zeros(1, int)),
        kc.WrongDtype, "integers: argument 'a' must be an array of int32, but holds int64 in shape (1,)",
        "make it int32: kc.array(data, dtype=int)"),
    "signed where unsigned is asked for": (run(integers, np.zeros(1, "i4"), np.zeros(1, "i4"), np.zeros(1, int)),
        kc.WrongDtype, "integers: argument 'u' must be an array of uint32, but holds int32 in shape (1,)",
        kc.WrongDtype.hint),
    "vectors of four": (run(vectors, kc.zeros((3, 4)), kc.zeros((3, 3)), kc.zeros(3, dtype=kc.float3)), kc.WrongDtype,
        "vectors: argument 'v' must be an array of float3 (float32), but holds float32 in shape (3, 4)",
        "an array of shape (…, 3) fits, too"),
    "components column by column": (
        run(vectors, kc.array(np.zeros((3, 3), "f4", order="F")), kc.zeros((3, 3)), kc.zeros(3, dtype=kc.float3)),
        kc.WrongDtype, "vectors: argument 'v' must be an array of float3 (float32), but holds float32 in shape (3, 3)",
        "the components of an element must lie side by side in memory: kc.array(np.ascontiguousarray(data))"),
    "a text": (run(scale, "text", 1.0, 2, True, f), kc.WrongDtype,
        "scale: argument 'x' must be an array, not str", kc.WrongDtype.hint),
    "nothing": (run(scale, None, 1.0, 2, True, f), kc.WrongDtype,
        "scale: argument 'x' must be an array, not NoneType", kc.WrongDtype.hint),
    "an array of another struct": (run(structs, Ball(), (1, 2, 3), kc.zeros(1, dtype=Box), f), kc.WrongDtype,
        "structs: argument 'balls' must be an array of Ball, but holds Box in shape (1,)", kc.WrongDtype.hint),
    # -- numbers
    "a real for an integer": (run(scale, f, 1.0, 2.5, True, kc.zeros(3)), kc.WrongDtype,
        "scale: argument 'n' must be int32, not float", "convert it: int(...)"),
    "a text for a real": (run(scale, f, "1", 2, True, kc.zeros(3)), kc.WrongDtype,
        "scale: argument 's' must be float32, not str", "convert it: float(...)"),
    "a complex number": (run(scale, f, np.complex128(1j), 2, True, kc.zeros(3)), kc.WrongDtype,
        "scale: argument 's' must be float32, not complex128", "convert it: float(...)"),
    "an integer for a bool": (run(scale, f, 1.0, 2, 1, kc.zeros(3)), kc.WrongDtype,
        "scale: argument 'flag' must be bool, not int", "convert it: bool(...)"),
    "a large integer": (run(scale, f, 1.0, 2**40, True, kc.zeros(3)), kc.WrongDtype,
        "scale: argument 'n' is 1099511627776, which does not fit int32",
        "annotate the parameter with a wider type: kc.int64, kc.float64"),
    "a number for a struct": (run(structs, 1.0, (1, 2, 3), kc.zeros(1, dtype=Ball), f), kc.WrongDtype,
        "structs: argument 'b' must be Ball, not float", kc.WrongDtype.hint),
    "another struct": (run(structs, Box(), (1, 2, 3), kc.zeros(1, dtype=Ball), f), kc.WrongDtype,
        "structs: argument 'b' must be Ball, not Box", kc.WrongDtype.hint),
    "a short vector": (run(structs, Ball(), (1, 2), kc.zeros(1, dtype=Ball), f), kc.WrongDtype,
        "structs: argument 'v' must be float3 (float32), not of shape (2,)", kc.WrongDtype.hint),
    "a text for a vector": (run(structs, Ball(), "abc", kc.zeros(1, dtype=Ball), f), kc.WrongDtype,
        "structs: argument 'v' must be float3 (float32), not str", "convert it: kc.float3(...)"),
    # -- dimensions
    "two dimensions": (run(scale, kc.zeros((3, 2)), 1.0, 2, True, f), kc.WrongRank,
        "scale: argument 'x' must have 1 dimension, but has shape (3, 2)", kc.WrongRank.hint),
    "one dimension": (run(fill, kc.zeros(3)), kc.WrongRank,
        "fill: argument 'a' must have 2 dimensions, but has shape (3,)", kc.WrongRank.hint),
    "a number for an array": (run(scale, 1.0, 1.0, 2, True, f), kc.WrongRank,
        "scale: argument 'x' must be an array of float32, not a number", "wrap it: kc.array([value])"),
    # -- precisions
    "two precisions": (run(scale, f, 1.0, 2, True, kc.zeros(3, real=kc.float64)), kc.MixedLaunch,
        "scale: 'x' is float32, but 'y' is float64", kc.MixedLaunch.hint),
    "two precisions of NumPy": (run(scale, np.zeros(3), 1.0, 2, True, np.zeros(3, np.float32)), kc.MixedLaunch,
        "scale: 'x' is float64, but 'y' is float32", kc.MixedLaunch.hint),
    # -- memory
    "one array twice": (run(scale, f, 1.0, 2, True, f), kc.Overlap,
        "scale: 'y' is written, and shares memory with 'x'", kc.Overlap.hint),
    "two views": (run(scale, line[:5], 1.0, 2, True, line[2:7]), kc.Overlap,
        "scale: 'y' is written, and shares memory with 'x'", kc.Overlap.hint),
    "read-only memory": (run(scale, f, 1.0, 2, True, frozen()), kc.ReadOnly,
        "scale: argument 'y' is written, but its memory is read-only", kc.ReadOnly.hint),
    "a list that is written": (run(scale, f, 1.0, 2, True, [0.0, 0.0, 0.0]), kc.ReadOnly,
        "scale: argument 'y' is written, but only a copy of it could be",
        "pass an array: kc.zeros, or a NumPy array of native, aligned numbers"),
    # -- the grid
    "a real dim": (run(scale, f, 1.0, 2, True, kc.zeros(3), dim=3.0), kc.WrongDim,
        "dim is a whole number or a tuple of them, not 3.0", kc.WrongDim.hint),
    "a negative dim": (run(scale, f, 1.0, 2, True, kc.zeros(3), dim=-3), kc.WrongDim,
        "scale: dim is one to four whole numbers below 2**31, not -3", kc.WrongDim.hint),
    "five dims": (run(scale, f, 1.0, 2, True, kc.zeros(3), dim=(1,) * 5), kc.WrongDim,
        "scale: dim is one to four whole numbers below 2**31, not (1, 1, 1, 1, 1)", kc.WrongDim.hint),
    "no dims": (run(scale, f, 1.0, 2, True, kc.zeros(3), dim=()), kc.WrongDim,
        "scale: dim is one to four whole numbers below 2**31, not ()", kc.WrongDim.hint),
    "a dim that is too large": (run(scale, f, 1.0, 2, True, kc.zeros(3), dim=2**31), kc.WrongDim,
        "scale: dim is one to four whole numbers below 2**31, not 2147483648", kc.WrongDim.hint),
    "one dim for two indices": (run(fill, kc.zeros((3, 2)), dim=6), kc.WrongDim,
        "fill takes 2 indices from kc.tid(), but is launched over 1 dimension", "launch it with dim=(n, m)"),
    "two dims for one index": (run(scale, f, 1.0, 2, True, kc.zeros(3), dim=(3, 1)), kc.WrongDim,
        "scale takes 1 index from kc.tid(), but is launched over 2 dimensions", "launch it with dim=n"),
    # -- devices
    "an unknown device": (run(scale, f, 1.0, 2, True, kc.zeros(3), device="gpu"), kc.WrongDevice,
        "unknown device 'gpu'", 'use "cpu", "cuda" or "python"'),
    "a tensor elsewhere": (run(scale, torch.zeros(3, device="meta"), 1.0, 2, True, f), kc.WrongDevice,
        "a tensor on meta cannot be used on the CPU", "move it with .cpu()"),
    # -- what is no launch
    "a function for a kernel": (lambda: kc.launch(print, 3), kc.WrongUse,
        "kc.launch runs a kernel, not <built-in function print>", "decorate the function with @kc.kernel"),
    "an array for the inputs": (lambda: kc.launch(fill, (1, 1), kc.zeros((1, 1))), kc.WrongUse,
        "inputs is a list of arguments, not Array", "write inputs=[…]"),
    "nothing for the outputs": (lambda: kc.launch(fill, (1, 1), [], None), kc.WrongUse,
        "outputs is a list of arguments, not NoneType", "write outputs=[…]"),
    "a call": (lambda: scale(f), kc.WrongUse,
        "scale is a kernel: it is launched, not called", "write kc.launch(scale, dim, inputs=[…], outputs=[…])"),
}  # fmt: skip


@pytest.mark.parametrize(("launch", "kind", "says", "advice"), CASES.values(), ids=CASES)
def test_what_does_not_fit_is_explained(launch, kind, says, advice):
    with pytest.raises(kc.KernelError) as caught:
        launch()
    error = caught.value
    assert shown(error).endswith(f"kernelc.errors.{kind.__name__}: [{kind.code}] {says}\nhelp: {advice}\n")
    assert (type(error), error.code, error.advice, error.message) == (kind, kind.code, advice, says)


@pytest.mark.parametrize(("launch", "kind", "says", "advice"), CASES.values(), ids=CASES)
def test_our_own_frames_stay_out_of_the_traceback(launch, kind, says, advice):
    with pytest.raises(kc.KernelError) as caught:
        launch()
    frames = [f.name for f in traceback.extract_tb(caught.value.__traceback__) if "kernelc/src" in f.filename]
    assert len(frames) <= 1, frames


def test_a_known_launch_is_checked_again():
    """The second launch of a kind takes a shorter way, which must refuse the same."""
    x, y = kc.ones(3), kc.zeros(3)
    for _ in range(2):
        kc.launch(scale, 3, [x, 1.0, 2, True], [y])
    for args, kind in (([x, 1.0, 2**40, True, y], kc.WrongDtype), ([x, "1", 2, True, y], kc.WrongDtype),
                       ([x, 1.0, 2, True, x], kc.Overlap), ([x, 1.0, 2, True], kc.WrongArity)):  # fmt: skip
        with pytest.raises(kind):
            kc.launch(scale, 3, args)
    for dim in (-1, 2**31, 1.0, (3, 1)):
        with pytest.raises(kc.WrongDim):
            kc.launch(scale, dim, [x, 1.0, 2, True, y])
    np.testing.assert_array_equal(y.numpy(), 3.0)


def test_an_error_leads_to_the_line_of_the_kernel():
    @kc.kernel
    def wrong(x: kc.Array[float]):
        x[kc.tid()] = speed  # noqa: F821

    with pytest.raises(kc.UnknownName) as caught:
        kc.launch(wrong, 1, [kc.zeros(1)])
    text = "".join(traceback.format_exception(caught.value))
    assert "    x[kc.tid()] = speed" in text
    assert "frontend" not in text
    assert f"{__file__}:{caught.value.lineno}" in str(caught.value)


# -- arrays, types, settings
OTHERS = {
    "an element type": (lambda: kc.zeros(3, dtype=list), kc.WrongType, "list is no type of the kernel language",
        kc.WrongType.hint),
    "a precision": (lambda: kc.zeros(3, real=int), kc.WrongChoice, "real cannot be int32",
        "choose one of kc.float32, kc.float64"),
    "a shape": (lambda: kc.zeros(2.5), kc.WrongShape, "a shape is made of whole numbers, not 2.5", kc.WrongShape.hint),
    "complex data": (lambda: kc.array(np.zeros(3, complex)), kc.WrongDtype,
        "an array of complex128 is not supported; use integers, bool, float32 or float64", kc.WrongDtype.hint),
    "a gradient of integers": (lambda: kc.zeros(3, dtype=int, requires_grad=True), kc.WrongDtype,
        "only real arrays can require a gradient, not int32", kc.WrongDtype.hint),
    "a shape that does not fit": (lambda: f.assign(np.zeros(4)), kc.WrongShape,
        "assign: shape (4,) does not fit (3,)", kc.WrongShape.hint),
    "one number of three": (lambda: float(f), kc.WrongShape, "an array of shape (3,) is not one number",
        kc.WrongShape.hint),
    "a vector of numbers": (lambda: kc.float3(1.0, 2.0), kc.WrongUse, "float3 is made of 3 numbers, not of (1.0, 2.0)",
        "give 3 numbers, or none for zeros"),
    "a vector of vectors": (lambda: kc.vec(3, kc.float3), kc.WrongType, "a vector is made of numbers, not of float3",
        "use kc.mat(r, c), or a @kc.struct"),
    "a vector of none": (lambda: kc.vec(0), kc.WrongType, "a vector has 1 to 256 components, not 0",
        "use an array for more"),
    "an array of five dimensions": (lambda: kc.Array[float, 5], kc.WrongType,
        "kc.Array[T, ndim] has 1 to 4 dimensions, not 5", "write kc.Array[float] or kc.Array[float, 2]"),
    "a field": (lambda: Ball(mass=1.0), kc.WrongUse, "Ball has the fields radius, tag, not mass",
        "write Ball(radius=…, tag=…)"),
    "tid outside": (lambda: kc.tid(), kc.WrongUse, "kc.tid() is for use inside kernels",
        "call it in a @kc.kernel, and run that with kc.launch(...)"),
    "local outside": (lambda: kc.local(3, float), kc.WrongUse, "kc.local(n, T) is for use inside kernels",
        "use kc.zeros(n, dtype=T) outside"),
    "a setting": (lambda: setattr(kc.config, "debg", True), kc.UnknownSetting, "kc.config has no setting 'debg'",
        "it has cache_dir, debug, device, lanes, singular, tape_limit, threads"),
    "a choice": (lambda: setattr(kc.config, "device", "gpu"), kc.WrongChoice, "kc.config.device cannot be 'gpu'",
        "choose one of 'cpu', 'cuda', 'python'"),
    "a number of threads": (lambda: setattr(kc.config, "threads", -1), kc.WrongChoice,
        "kc.config.threads cannot be -1", "it is a whole number, zero or more"),
    "a loop tape": (lambda: kc.kernel(loop_tape="none"), kc.WrongChoice, "loop_tape cannot be 'none'",
        'choose one of "all", "sqrt"'),
    "no function for a kernel": (lambda: kc.kernel(3), kc.WrongUse,
        "@kc.kernel makes a kernel of a function, not of 3", "write it above a `def`"),
    "no function for a func": (lambda: kc.func(3), kc.WrongUse, "@kc.func takes a function, not 3",
        "write it above a `def`"),
    "a way to overwrite": (lambda: kc.Tape(on_overwrite="x"), kc.WrongChoice, "on_overwrite cannot be 'x'",
        'choose one of "copy", "error"'),
    "a view of a kernel": (lambda: kc.inspect(scale, "asm"), kc.WrongChoice, "kc.inspect cannot show 'asm'",
        'choose one of "ir", "adjoint", "tangent", "cpp", "cuda"'),
    "no kernel": (lambda: kc.explain(3), kc.WrongUse, "3 is no kernel", "decorate the function with @kc.kernel"),
}  # fmt: skip


@pytest.mark.parametrize(("use", "kind", "says", "advice"), OTHERS.values(), ids=OTHERS)
def test_other_misuse_is_explained(use, kind, says, advice):
    test_what_does_not_fit_is_explained(use, kind, says, advice)


def test_errors_are_what_python_would_raise_as_well():
    assert issubclass(kc.WrongUse, TypeError)
    assert issubclass(kc.WrongType, TypeError)
    assert issubclass(kc.WrongChoice, ValueError)
    assert issubclass(kc.UnknownSetting, AttributeError)
    assert issubclass(kc.WrongIndex, IndexError)


def test_a_setting_in_the_environment_is_checked(monkeypatch):
    monkeypatch.setenv("KERNELC_THREADS", "many")
    with pytest.raises(kc.WrongChoice, match="KERNELC_THREADS=many in the environment is no whole number"):
        Config()


def test_codes_are_unique_and_every_error_says_what_to_do():
    kinds = [e for e in vars(kc).values() if isinstance(e, type) and issubclass(e, kc.KernelError)]
    assert len({e.code for e in kinds}) == len(kinds)
    assert all(e.code[:2] == "KC" and e.__doc__ for e in kinds)


def raised_errors():
    """Every place in the package where an error of ours is made: file, line, class, whether it gets advice."""
    import ast
    from pathlib import Path

    kinds = {n: e for n, e in vars(kc).items() if isinstance(e, type) and issubclass(e, kc.KernelError)}
    for path in Path(kc.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and not isinstance(node.func, ast.Subscript):
                called = ast.unparse(node.func)
                name = called if called in kinds else ""
                if called == "self.fail" and node.args and isinstance(node.args[0], ast.Name):
                    name = node.args[0].id
                if name in kinds:
                    yield f"{path.name}:{node.lineno}", kinds[name], any(k.arg == "advice" for k in node.keywords)


def test_every_error_ends_with_a_next_step():
    silent = [f"{place} {kind.__name__}" for place, kind, advised in raised_errors() if not (advised or kind.hint)]
    assert not silent, "\n".join(silent)
