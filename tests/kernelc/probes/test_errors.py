"""Probes: refusals. Each names file and line where it points at source, and is a kc.KernelError always."""

# ruff: noqa: F821, F842  (what is wrong is the subject)

import numpy as np
import pytest
from probes.harness import DEVICES, array64, names_line, refused, zeros64

import kernelc as kc


# -- the program is refused
def test_unknown_name_with_a_suggestion():
    @kc.kernel
    def typo(values: kc.Array[float], out: kc.Array[float]):
        out[0] = valeus[0]  # here

    error = refused(typo, "KC101")
    assert "values" in error.advice

    @kc.kernel
    def attribute(x: kc.Array[float]):
        x[0] = kc.sine(x[0])  # here

    assert "sin" in refused(attribute, "KC101").advice


def test_missing_annotation():
    @kc.kernel
    def bare(x: kc.Array[float], n):  # here
        x[0] = float(n)

    refused(bare, "KC108")

    @kc.kernel
    def strange(x: dict):  # here
        pass

    refused(strange, "KC108")


def test_wrong_index_count():
    @kc.kernel
    def few(x: kc.Array[float, 2], out: kc.Array[float]):
        out[0] = x[0, 1, 2]  # here

    refused(few, "KC109")

    @kc.kernel
    def many(x: kc.Array[float], out: kc.Array[float]):
        out[0] = x[0, 1]  # here

    refused(many, "KC109")

    @kc.kernel
    def component(v: kc.Array[kc.float3], out: kc.Array[float]):
        out[0] = v[0][3]  # here

    refused(component)

    @kc.kernel
    def store(x: kc.Array[float, 2]):
        x[0] = 1.0  # here

    refused(store, "KC109")


def test_missing_return():
    @kc.func
    def half(x: float) -> float:  # here
        if x > 0.0:
            return x

    @kc.kernel
    def call(x: kc.Array[float]):
        x[0] = half(x[0])

    refused(call, "KC110", at=half.source.function)


def test_no_overload_lists_candidates():
    @kc.kernel
    def crossed(a: kc.Array[kc.float3], b: kc.Array[kc.float2], out: kc.Array[float]):
        out[0] = kc.length(kc.cross(a[0], b[0]))  # here

    error = refused(crossed, "KC107")
    assert "vec3" in error.advice or "float3" in error.advice

    @kc.kernel
    def product(a: kc.Array[kc.float3], out: kc.Array[kc.float3]):
        out[0] = a[0] * a[0]  # here

    assert "kc.dot" in refused(product, "KC107").advice


def test_a_tuple_is_no_number():
    @kc.kernel
    def tuples(x: kc.Array[float]):
        x[0] = (1.0, 2.0)  # here

    refused(tuples)


UNSUPPORTED = {}


def unsupported(function):
    UNSUPPORTED[function.__name__] = kc.kernel(function)
    return function


@unsupported
def list_comprehension(x: kc.Array[float]):
    y = [x[i] for i in range(3)]  # here


@unsupported
def dictionary(x: kc.Array[float]):
    y = {1: 2}  # here


@unsupported
def lambda_expression(x: kc.Array[float]):
    f = lambda a: a  # here # noqa: E731


@unsupported
def try_statement(x: kc.Array[float]):
    try:  # here
        x[0] = 1.0
    finally:
        x[0] = 2.0


@unsupported
def with_statement(x: kc.Array[float]):
    with open("a"):  # here
        pass


@unsupported
def walrus(x: kc.Array[float]):
    if (y := x[0]) > 0.0:  # here
        x[0] = y


@unsupported
def slices(x: kc.Array[float]):
    x[0:2] = 1.0  # here


@unsupported
def strings(x: kc.Array[float]):
    s = "hello"  # here


@unsupported
def none_value(x: kc.Array[float]):
    s = None  # here


@unsupported
def for_over_array(x: kc.Array[float]):
    for v in x:  # here
        pass


@unsupported
def return_value(x: kc.Array[float]):
    return x[0]  # here


@unsupported
def yields(x: kc.Array[float]):
    yield x[0]  # here


@unsupported
def delete(x: kc.Array[float]):
    a = x[0]
    del a  # here


@unsupported
def raising(x: kc.Array[float]):
    raise ValueError  # here


@unsupported
def imports(x: kc.Array[float]):
    import math  # noqa: F401  # here


@unsupported
def inner_function(x: kc.Array[float]):
    def f():  # here
        pass


@unsupported
def global_statement(x: kc.Array[float]):
    global UNSUPPORTED  # here


@unsupported
def membership(x: kc.Array[float]):
    if x[0] in (1.0, 2.0):  # here
        x[0] = 1.0


@unsupported
def starred(x: kc.Array[float]):
    a, *b = x[0], x[1], x[2]  # here


@unsupported
def fstring(x: kc.Array[float]):
    print(f"{x[0]}")  # here


@unsupported
def complex_number(x: kc.Array[float]):
    y = 1j  # here


@unsupported
def negative_literal(x: kc.Array[float]):
    x[0] = x[-1]  # here


@unsupported
def integer_power(n: kc.Array[int]):
    n[0] = n[0] ** n[1]  # here


@unsupported
def int_gets_float(n: kc.Array[int]):
    n[0] = 1.5  # here


@unsupported
def int_gets_real(n: kc.Array[int], x: kc.Array[float]):
    n[0] = x[0]  # here


@unsupported
def real_index(x: kc.Array[float]):
    x[0] = x[x[0]]  # here


@unsupported
def kernel_call(x: kc.Array[float]):
    real_index(x)  # here


@unsupported
def assign_constant(x: kc.Array[float]):
    kc.pi = 3.0  # here


@unsupported
def two_grids(x: kc.Array[float]):
    i = kc.tid()
    a, b = kc.tid()  # here


@unsupported
def unpack_too_few(x: kc.Array[float]):
    a, b = x[0], x[1], x[2]  # here


@unsupported
def bad_arity(x: kc.Array[float]):
    x[0] = kc.sin(x[0], x[1])  # here


@unsupported
def condition_vector(v: kc.Array[kc.float3]):
    if v[0]:  # here
        v[0] = kc.float3()


@unsupported
def compare_vectors(v: kc.Array[kc.float3]):
    if v[0] == v[1]:  # here
        v[0] = kc.float3()


@unsupported
def array_as_value(x: kc.Array[float]):
    y = x + 1.0  # here


@unsupported
def rebinding_arrays(x: kc.Array[float], y: kc.Array[float]):
    if x[0] > 0.0:  # here
        z = x
    else:
        z = y
    z[0] = 1.0


@unsupported
def string_annotation_of_nothing(x: kc.Array[float]):
    y: float  # here


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_python_that_is_not_part_of_the_language_is_refused_at_its_line(name):
    refused(UNSUPPORTED[name])


def test_a_kernel_that_returns_nothing_may_still_return():
    @kc.kernel
    def stop(x: kc.Array[float]):
        if x[0] > 0.0:
            return None
        x[0] = 1.0

    x = kc.array([-1.0])
    kc.launch(stop, 1, [x])
    assert x.numpy()[0] == 1.0


# -- a launch is refused
@kc.kernel
def copy(x: kc.Array[float], n: int, out: kc.Array[float]):
    i = kc.tid()
    out[i] = x[i] * float(n)


def test_a_launch_that_does_not_fit_is_a_kernel_error():
    x, out = zeros64(4), zeros64(4)
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    bad = [
        lambda: kc.launch(copy, 4, [x], [out]),
        lambda: kc.launch(copy, 4, [x, 1, 2], [out]),
        lambda: kc.launch(copy, 4, [x, 1.5], [out]),
        lambda: kc.launch(copy, 4, [x, "a"], [out]),
        lambda: kc.launch(copy, 4, [x, None], [out]),
        lambda: kc.launch(copy, 4, [None, 1], [out]),
        lambda: kc.launch(copy, 4, ["abcd", 1], [out]),
        lambda: kc.launch(copy, 4, [3.0, 1], [out]),
        lambda: kc.launch(copy, 4, [zeros64((2, 2)), 1], [out]),
        lambda: kc.launch(copy, 4, [kc.zeros(4, dtype=int), 1], [out]),
        lambda: kc.launch(copy, 4, [kc.zeros(4, dtype=kc.float3), 1], [out]),
        lambda: kc.launch(copy, 4, [kc.zeros(4), 1], [out]),
        lambda: kc.launch(copy, 4, [x, 1], [x]),
        lambda: kc.launch(copy, 3, [x[0:3], 1], [x[1:4]]),
        lambda: kc.launch(copy, 4, [x, 1], [frozen]),
        lambda: kc.launch(copy, (2, 2), [x, 1], [out]),
        lambda: kc.launch(copy, -1, [x, 1], [out]),
        lambda: kc.launch(copy, 2.5, [x, 1], [out]),
        lambda: kc.launch(copy, "4", [x, 1], [out]),
        lambda: kc.launch(copy, (), [x, 1], [out]),
        lambda: kc.launch(copy, (1, 1, 1, 1, 1), [x, 1], [out]),
        lambda: kc.launch(copy, 4, [x, 1], [out], device="tpu"),
        lambda: kc.launch(copy, 4, [x, 1], [out], device="cuda"),
        lambda: kc.launch(copy, 4, [x, 1], [[0.0, 0.0, 0.0, 0.0]]),
        lambda: kc.launch(copy, 4, [[object()], 1], [out]),
        lambda: kc.launch(copy, 4, [{"a": 1}, 1], [out]),
        lambda: kc.launch(copy, 4, [np.zeros(4, complex), 1], [out]),
        lambda: kc.launch(copy, 4, [np.zeros(4, np.float16), 1], [out]),
        lambda: kc.launch(copy, 4, [x, 2**40], [out]),
    ]
    kinds = []
    for n, launch in enumerate(bad):
        try:
            launch()
        except kc.KernelError:
            continue
        except Exception as error:
            kinds.append((n, type(error).__name__, str(error)))
        else:
            kinds.append((n, "nothing raised", ""))
    # A list as output would be written into a copy that nobody sees; the compiler may refuse it.
    assert not kinds


def test_overlap_of_torch_tensors_is_seen():
    torch = pytest.importorskip("torch")
    t = torch.ones(4, dtype=torch.float64)
    with pytest.raises(kc.KernelError):
        kc.launch(copy, 4, [t, 1], [t])
    with pytest.raises(kc.KernelError):
        kc.launch(copy, 3, [t[:3], 1], [t[1:]])
    with pytest.raises(kc.KernelError):
        kc.launch(copy, 4, [t, 1], [t.numpy()])


def test_the_launch_of_something_else_is_an_error():
    @kc.func
    def f(x: float) -> float:
        return x

    for thing in (f, lambda: None, None, 3):
        with pytest.raises((kc.KernelError, TypeError)):
            kc.launch(thing, 1, [], [])
    with pytest.raises((kc.KernelError, TypeError)):
        copy(1, 2, 3)


def test_every_exception_of_ours_is_a_kernel_error():
    x, out = array64([1.0, 2.0]), zeros64(2)
    with kc.Tape() as tape:
        kc.launch(copy, 2, [x, 3], [out])
    bad = [
        lambda: kc.array(["a", "b"]),
        lambda: kc.array([[1.0], [1.0, 2.0]]),
        lambda: kc.array(np.zeros(3, complex)),
        lambda: kc.array([1, 2], requires_grad=True),
        lambda: kc.array(np.zeros((4, 2)), dtype=kc.float3),
        lambda: kc.array([1.0], dtype="nonsense"),
        lambda: kc.zeros(-1),
        lambda: kc.zeros("3"),
        lambda: kc.zeros(3, dtype=kc.Array[float]),
        lambda: kc.zeros(3).assign([1.0, 2.0]),
        lambda: kc.zeros(3).reshape(5),
        lambda: kc.zeros(3)[0, 0],
        lambda: kc.zeros(3)["a"],
        lambda: kc.Tape(on_overwrite="maybe"),
        lambda: tape.backward(out),
        lambda: tape.backward(grads={out: [1.0]}),
        lambda: tape.backward(out, {out: [1.0, 1.0]}),
        lambda: tape.backward(np.zeros(1)),
        lambda: tape.backward(grads={"a": 1}),
        lambda: tape.backward(grads={out: ["a", "b"]}),
        lambda: kc.kernel(lambda: None, loop_tape="some"),
        lambda: kc.inspect(copy, "poem"),
        lambda: kc.checkpoint(lambda k: None, [], -1),
        lambda: kc.jvp(copy, 2, [x, 3], [out], tangents={}),
        lambda: kc.jvp(copy, 2, [x, 3], [out], tangents={x: [1.0, 2.0, 3.0]}),
        lambda: copy(x, 3, out),
        lambda: setattr(kc.config, "singular", "never"),
        lambda: setattr(kc.config, "device", "tpu"),
        lambda: setattr(kc.config, "speed", 9),
        lambda: kc.Array[float, 7],
        lambda: kc.Array["float"],
        lambda: float(out),
    ]
    wrong = []
    for n, call in enumerate(bad):
        try:
            call()
        except kc.KernelError:
            continue
        except Exception as error:
            wrong.append(f"{n}: {type(error).__name__}: {str(error)[:70]}")
        else:
            wrong.append(f"{n}: nothing raised")
    assert not wrong, "\n".join(wrong)


# -- a kernel fails while it runs
@pytest.mark.parametrize("device", DEVICES)
def test_a_failed_assert_is_an_exception_with_its_line(device):
    @kc.kernel
    def positive(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        assert x[i] > 0.0, "must be positive"  # here
        out[i] = kc.sqrt(x[i])

    x, out = kc.array([1.0, 2.0, -1.0, -2.0]), kc.zeros(4)
    with pytest.raises(kc.KernelError) as caught:
        kc.launch(positive, 4, [x], [out], device=device)
    assert names_line(caught.value, positive) and "must be positive" in str(caught.value)
    assert "2" in str(caught.value) and "positive" in str(caught.value)
    kc.launch(positive, 2, [x], [out], device=device)
    x = array64([1.0, -2.0])
    with pytest.raises(kc.KernelError), kc.Tape():
        kc.launch(positive, 2, [x], [zeros64(2)], device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_a_failed_assert_in_replay(device):
    @kc.kernel
    def positive(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        assert x[i] > 0.0  # here
        out[i] = kc.sqrt(x[i])

    x, out = array64([1.0, 2.0]), zeros64(2)
    with kc.Tape() as tape:
        kc.launch(positive, 2, [x], [out], device=device)
    tape.backward(grads={out: [1, 1]})
    x.assign([1.0, -2.0])
    with pytest.raises(kc.KernelError) as caught:
        tape.replay()
    assert names_line(caught.value, positive) and "x[i] > 0.0" in str(caught.value)


@pytest.mark.parametrize("device", DEVICES)
def test_prints_come_in_thread_order_and_once(device, capsys):
    @kc.kernel
    def talk(x: kc.Array[float], v: kc.Array[kc.float3], n: int, out: kc.Array[float]):
        i = kc.tid()
        print("thread", i, "has", x[i], n, x[i] > 1.0)
        if i == 1:
            print(v[0])
        out[i] = x[i]

    x, out = array64([0.5, 1.5, 2.5]), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(talk, 3, [x, np.array([[1.0, 2.0, 3.0]]), 7], [out], device=device)
    tape.backward(grads={out: [1, 1, 1]})
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "thread 0 has 0.5 7 False",
        "thread 1 has 1.5 7 True",
        "(1.0, 2.0, 3.0)",
        "thread 2 has 2.5 7 True",
    ]
    tape.replay()
    assert capsys.readouterr().out.splitlines() == lines


# -- what backward refuses
def test_a_loss_that_is_no_number_is_refused():
    x, out = array64([1.0, 2.0]), zeros64(2)
    with kc.Tape() as tape:
        kc.launch(copy, 2, [x, 3], [out])
    with pytest.raises(kc.KernelError) as caught:
        tape.backward(out)
    assert caught.value.code.startswith("KC")


def test_a_path_that_is_cut_by_an_operation_is_refused_or_zero_as_declared():
    """Nothing but a floor leads to the loss: the user learns it."""

    @kc.kernel
    def flat(x: kc.Array[float], out: kc.Array[float]):
        out[0] = kc.floor(x[0])

    x, out = array64([1.5]), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(flat, 1, [x], [out])
    with pytest.raises(kc.KernelError):
        tape.backward(out)


def test_errors_have_codes_and_places():
    @kc.kernel
    def typo(out: kc.Array[float]):
        out[0] = nothing  # here

    error = refused(typo)
    assert (
        error.code == "KC101" and error.lineno and error.filename.endswith("test_errors.py") and "nothing" in error.text
    )
    assert isinstance(error, SyntaxError)


# -- errors of launches and of backward point at source, too: at the kernel, or at its parameter
@kc.kernel
def scale_rows(x: kc.Array[float, 2], k: float, out: kc.Array[float, 2]):
    i, j = kc.tid()
    out[i, j] = x[i, j] * k * x[i, j]


def launch_errors():
    x, out = zeros64((2, 2)), zeros64((2, 2))
    frozen = np.zeros((2, 2))
    frozen.flags.writeable = False
    return {
        "arity": lambda: kc.launch(scale_rows, (2, 2), [x], [out]),
        "dtype": lambda: kc.launch(scale_rows, (2, 2), [kc.zeros((2, 2), dtype=int), 1.0], [out]),
        "value": lambda: kc.launch(scale_rows, (2, 2), [x, "a"], [out]),
        "rank": lambda: kc.launch(scale_rows, (2, 2), [zeros64(4), 1.0], [out]),
        "overlap": lambda: kc.launch(scale_rows, (2, 2), [x, 1.0], [x]),
        "read-only": lambda: kc.launch(scale_rows, (2, 2), [x, 1.0], [frozen]),
        "precision": lambda: kc.launch(scale_rows, (2, 2), [x, 1.0], [kc.zeros((2, 2))]),
        "grid": lambda: kc.launch(scale_rows, 4, [x, 1.0], [out]),
    }


@pytest.mark.parametrize("what", launch_errors())
def test_an_error_of_a_launch_names_kernel_file_and_line(what):
    with pytest.raises(kc.KernelError) as caught:
        launch_errors()[what]()
    assert "scale_rows" in str(caught.value)
    assert names_line(caught.value, scale_rows), caught.value


def test_an_overwritten_array_at_backward_names_the_launch_that_needs_it():
    x, out = array64([[1.0, 2.0]]), zeros64((1, 2))
    with kc.Tape() as tape:
        kc.launch(scale_rows, (1, 2), [x, 2.0], [out])
    x.assign([[3.0, 4.0]])
    with pytest.raises(kc.KernelError) as caught:
        tape.backward(grads={out: [[1.0, 1.0]]})
    assert "scale_rows" in str(caught.value) and names_line(caught.value, scale_rows), caught.value


def test_on_overwrite_error_names_the_lines():
    x, y, out = array64([[1.0, 2.0]]), zeros64((1, 2)), zeros64((1, 2))
    with pytest.raises(kc.KernelError) as caught, kc.Tape(on_overwrite="error"):
        kc.launch(scale_rows, (1, 2), [x, 2.0], [y])
        kc.launch(scale_rows, (1, 2), [y, 2.0], [out])
        kc.launch(scale_rows, (1, 2), [x, 3.0], [y])
    assert names_line(caught.value, scale_rows), caught.value


def test_a_cut_path_names_the_line_that_cuts():
    @kc.kernel
    def flat(x: kc.Array[float], out: kc.Array[float]):
        out[0] = kc.floor(x[0])  # here

    x, out = array64([1.5]), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(flat, 1, [x], [out])
    with pytest.raises(kc.KernelError) as caught:
        tape.backward(out)
    assert names_line(caught.value, flat), caught.value
