"""Debug mode: an exception with kernel, thread, array, index and source line, and the process goes on."""

import linecache

import numpy as np
import pytest
from messages import shown

import kernelc as kc
from kernelc.runtime import compile as compiling

CASES = {}


def found(kind, text, *, thread, array="", index=(), args, dim=4, devices=("cpu", "python")):
    """A kernel that debug mode must stop on its line with `# here`."""

    def add(kernel):
        CASES[kernel.name] = (kernel, kind, text, thread, array, index, args, dim, devices)
        return kernel

    return add


def reals(*numbers):
    return lambda: kc.array(np.array(numbers or [1, 2, 3, 4], np.float64))


def ints(*numbers):
    return lambda: kc.array(np.array(numbers, np.int32))


def empty(n=4, dtype=float):
    return lambda: kc.empty(n, dtype=dtype, real=kc.float64)


def zeros(shape=4, dtype=float):
    return lambda: kc.zeros(shape, dtype=dtype, real=kc.float64)


# -- bounds
@found(kc.OutOfBounds, "index 4 is out of bounds for x, whose size is 4", thread=3, array="x", index=(4,),
       args=[reals(), zeros()])  # fmt: skip
@kc.kernel
def read_past_the_end(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i + 1]  # here


@found(kc.OutOfBounds, "index -1 is out of bounds for y, whose size is 4", thread=0, array="y", index=(-1,),
       args=[reals(), zeros()])  # fmt: skip
@kc.kernel
def write_before_the_beginning(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i - 1] = x[i]  # here


@found(kc.OutOfBounds, "index 3 is out of bounds along axis 1 of x, whose size is 3", thread=1, array="x", index=(3,),
       args=[zeros((2, 3))], dim=2)  # fmt: skip
@kc.kernel
def add_past_a_row(x: kc.Array[float, 2]):
    i = kc.tid()
    x[i, i * 3] += 1.0  # here


@found(kc.OutOfBounds, "index 3 is out of bounds for v, whose size is 3", thread=3, array="v", index=(3,),
       args=[reals()])  # fmt: skip
@kc.kernel
def component_past_the_end(x: kc.Array[float]):
    i = kc.tid()
    v = kc.float3(x[i])
    x[i] = v[i]  # here


@found(kc.OutOfBounds, "index -1 is out of bounds for a, whose size is 5", thread=0, array="a", index=(-1,),
       args=[reals()])  # fmt: skip
@kc.kernel
def local_before_the_beginning(x: kc.Array[float]):
    i = kc.tid()
    a = kc.local(5, float)
    a[i - 1] = x[i]  # here
    x[i] = a[0]


@found(kc.OutOfBounds, "index 2 is out of bounds for m, whose size is 2", thread=2, array="m", index=(2,),
       args=[reals()])  # fmt: skip
@kc.kernel
def matrix_past_the_end(x: kc.Array[float]):
    i = kc.tid()
    m = kc.mat22(1.0, 2.0, 3.0, 4.0)
    m[1, i] += x[i]  # here
    x[i] = m[1, 0]


@found(kc.OutOfBounds, "index 3 is out of bounds for v, whose size is 3", thread=3, array="v", index=(3,),
       args=[zeros(dtype=kc.float3)])  # fmt: skip
@kc.kernel
def part_of_an_element_past_the_end(v: kc.Array[kc.float3]):
    i = kc.tid()
    v[i][i] = 1.0  # here


# -- NaN
@found(kc.NotANumber, "kc.sqrt() gave a NaN", thread=2, args=[reals(1, 0, -1, 4), zeros()])
@kc.kernel
def root_of_a_negative(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.sqrt(x[i])  # here


@found(kc.NotANumber, "`-` gave a NaN", thread=1, args=[reals(1, np.inf, 2, 4), zeros()])
@kc.kernel
def infinity_minus_itself(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] - x[i]  # here


@found(kc.NotANumber, "a NaN is stored in y[2]", thread=2, array="y", index=(2,),
       args=[reals(1, 0, np.nan, 4), zeros()])  # fmt: skip
@kc.kernel
def store_a_nan(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 2.0 * x[i]  # here


@found(kc.NotANumber, "a NaN is stored in y[1, 0]", thread=2, array="y", index=(1, 0),
       args=[reals(1, 0, np.nan, 4), zeros((2, 2))])  # fmt: skip
@kc.kernel
def add_a_nan(x: kc.Array[float], y: kc.Array[float, 2]):
    i = kc.tid()
    y[i // 2, i % 2] += x[i]  # here


# -- division by zero
@found(kc.DivisionByZero, "division by zero in `/`", thread=1, args=[reals(1, 0, 2, 4), zeros()])
@kc.kernel
def divide(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = 1.0 / x[i]  # here


@found(kc.DivisionByZero, "division by zero in `//`", thread=1, args=[ints(1, 0, 2, 4), ints(0, 0, 0, 0)])
@kc.kernel
def divide_integers(x: kc.Array[int], y: kc.Array[int]):
    i = kc.tid()
    y[i] = 7 // x[i]  # here


@found(kc.DivisionByZero, "division by zero in `%`", thread=3, args=[ints(1, 2, 2, 0), ints(0, 0, 0, 0)])
@kc.kernel
def remainder(x: kc.Array[int], y: kc.Array[int]):
    i = kc.tid()
    y[i] = 7 % x[i]  # here


# -- uninitialised
@found(kc.Uninitialised, "x[0] is read before it was written", thread=0, array="x", index=(0,),
       args=[empty(), zeros()])  # fmt: skip
@kc.kernel
def read_empty(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i]  # here


@found(kc.Uninitialised, "x[0] is read before it was written", thread=0, array="x", index=(0,),
       args=[empty()])  # fmt: skip
@kc.kernel
def add_to_empty(x: kc.Array[float]):
    x[kc.tid()] += 1.0  # here


@found(kc.Uninitialised, "x[1, 2] is read before it was written", thread=0, array="x", index=(1, 2), dim=1,
       args=[empty((2, 3), int)])  # fmt: skip
@kc.kernel
def read_empty_integers(x: kc.Array[int, 2]):
    i = kc.tid()
    x[1, 1] = 3
    x[0, 0] = x[1, 1]
    x[0, 1] = x[1, 2]  # here


# -- races
@found(kc.StoreRace, "y[0] is touched by thread 0, too, and one of them changes it", thread=1, array="y", index=(0,),
       args=[reals(), zeros()])  # fmt: skip
@kc.kernel
def all_store(x: kc.Array[float], y: kc.Array[float]):
    y[0] = x[kc.tid()]  # here


@found(kc.StoreRace, "x[0] is touched by thread 0, too, and one of them changes it", thread=1, array="x", index=(0,),
       args=[reals()])  # fmt: skip
@kc.kernel
def read_what_another_stored(x: kc.Array[float]):
    i = kc.tid()
    x[i] = x[max(i - 1, 0)]  # here


@found(kc.StoreRace, "x[1] is touched by thread 0, too, and one of them changes it", thread=1, array="x", index=(1,),
       args=[reals()])  # fmt: skip
@kc.kernel
def store_what_another_read(x: kc.Array[float]):
    i = kc.tid()
    x[i] = x[(i + 1) % 4]  # here


@found(kc.StoreRace, "x[0, 1] is touched by other threads, too, and one of them changes it", thread=3, array="x",
       index=(0, 1), args=[zeros((2, 2))])  # fmt: skip
@kc.kernel
def store_where_others_added(x: kc.Array[float, 2]):
    i = kc.tid()
    x[0, 1] += 1.0
    if i == 3:
        x[0, 1] = 0.0  # here


@found(
    kc.StoreRace,
    "x[0] is touched by other threads, too, and one of them changes it",
    thread=1,
    array="x",
    index=(0,),
    args=[reals()],
)
@kc.kernel
def read_what_others_add_to(x: kc.Array[float]):
    i = kc.tid()
    x[0] += 1.0
    if i == 1 and x[0] > 1.0:  # here
        x[1] += 1.0


@found(
    kc.StoreRace,
    "x[1, 0, 1] is touched by other threads, too, and one of them changes it",
    thread=2,
    array="x",
    index=(1, 0, 1),
    args=[zeros((2, 2, 2))],
)
@kc.kernel
def race_in_three_dimensions(x: kc.Array[float, 3]):
    i = kc.tid()
    x[(i + 1) // 2 % 2, 0, 1] = 1.0  # here


# -- asserts and steps, which are always checked
@found(kc.AssertFailed, "assertion failed: the mass is positive", thread=2, args=[reals(1, 2, -3, 4)])
@kc.kernel
def assert_with_a_message(x: kc.Array[float]):
    i = kc.tid()
    assert x[i] > 0.0, "the mass is positive"  # here


@found(kc.AssertFailed, "assertion failed: x[i] > 0.0 and i < 9", thread=2, args=[reals(1, 2, -3, 4)])
@kc.kernel
def assert_without_a_message(x: kc.Array[float]):
    i = kc.tid()
    assert x[i] > 0.0 and i < 9  # here


@kc.func
def checked(a):
    assert a > 0.0  # here
    return a


@checked.adjoint
def _(a, g):
    return g


@found(kc.AssertFailed, "assertion failed: a > 0.0", thread=2, args=[reals(1, 2, -3, 4)])
@kc.kernel
def assert_in_a_function_with_a_rule(x: kc.Array[float]):
    i = kc.tid()
    x[i] = x[int(checked(x[i])) - 1]


@found(kc.ZeroStep, "the step of range() is 0", thread=1, args=[ints(1, 0, 2, 4)])
@kc.kernel
def step_of_zero(x: kc.Array[int]):
    i = kc.tid()
    for k in range(0, 3, x[i]):  # here
        x[i] += k


@pytest.fixture(scope="module", autouse=True)
def debug():
    kc.config.debug = True
    jobs = [
        (kernel.variant(kc.float64), "forward", frozenset(), frozenset(range(len(args))))
        for kernel, *_, args, _, _ in CASES.values()
    ]
    compiling.prebuild(jobs)
    yield
    kc.config.debug = False


PAIRS = [(name, device) for name, case in CASES.items() for device in case[-1]]


@pytest.mark.parametrize(("name", "device"), PAIRS, ids=[f"{n}-{d}" for n, d in PAIRS])
def test_what_goes_wrong_is_found(name, device):
    kernel, kind, text, thread, array, index, args, dim, _ = CASES[name]
    with pytest.raises(kc.KernelError) as caught:
        kc.launch(kernel, dim, [make() for make in args], device=device)
    error = caught.value
    assert type(error) is kind
    assert error.message == f"{kernel.name}, thread {thread}: {text}"
    assert (error.kernel, error.thread, error.array, error.index) == (kernel.name, thread, array, index)
    assert error.filename == __file__
    assert linecache.getline(__file__, error.lineno).rstrip().endswith("# here"), error.text
    assert f"{__file__}:{error.lineno}" in str(error)
    assert f"help: {error.advice}" in shown(error)
    assert error.advice


# -- while going back
@kc.kernel
def log_of(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.log(x[i])  # here


@kc.kernel
def sum_up(y: kc.Array[float], total: kc.Array[float]):
    total[0] += y[kc.tid()]


def record(*launches):
    with kc.Tape() as tape:
        for kernel, dim, args in launches:
            kc.launch(kernel, dim, args)
    return tape


def test_a_nan_in_a_gradient_is_found():
    x, y = kc.array(np.array([1.0, 2.0]), requires_grad=True), kc.zeros(2, real=kc.float64)
    tape = record((log_of, 2, [x, y]))
    with pytest.raises(kc.NotANumber) as caught:
        tape.backward(grads={y: np.array([1.0, np.nan])})
    error = caught.value
    assert error.message == "the adjoint of log_of, thread 1: a NaN is stored in x.grad[1]"
    assert (error.kernel, error.thread, error.array, error.index) == ("log_of", 1, "x.grad", (1,))
    assert linecache.getline(__file__, error.lineno).rstrip().endswith("# here")


@kc.kernel
def gather(x: kc.Array[float], at: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[at[i]] * x[at[i]]  # here


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_an_index_that_went_wrong_after_recording_is_found_while_going_back(device):
    x, y = kc.array(np.array([1.0, 2.0]), requires_grad=True), kc.zeros(2, real=kc.float64)
    at = kc.array(np.array([0, 1], np.int32))
    with kc.Tape() as tape:
        kc.launch(gather, 2, [x, at, y], device=device)
    at.numpy()[1] = 7  # behind our back
    with pytest.raises(kc.OutOfBounds, match="index 7 is out of bounds for x, whose size is 2") as caught:
        tape.backward(grads={y: np.ones(2)})
    assert (caught.value.kernel, caught.value.thread) == ("gather", 1)
    assert linecache.getline(__file__, caught.value.lineno).rstrip().endswith("# here")


def test_replay_is_checked_too():
    x, y = kc.array(np.array([1.0, 2.0])), kc.zeros(2, real=kc.float64)
    at = kc.array(np.array([0, 1], np.int32))
    tape = record((gather, 2, [x, at, y]))
    at.numpy()[0] = -1
    with pytest.raises(kc.OutOfBounds, match="gather, thread 0: index -1 is out of bounds for x"):
        tape.replay()


@kc.kernel
def singular(x: kc.Array[float], y: kc.Array[kc.float3]):
    i = kc.tid()
    v = kc.float3(x[i])
    y[i] = kc.normalize(v) * kc.sqrt(x[i]) + v * kc.length(v)


def test_singular_points_are_no_errors():
    x = kc.array(np.array([0.0, 1.0]), requires_grad=True)
    y = kc.zeros(2, dtype=kc.float3, real=kc.float64)
    tape = record((singular, 2, [x, y]))
    tape.backward(grads={y: np.ones((2, 3))})
    assert np.isfinite(x.grad.numpy()).all()


# -- what is right is not reported
@kc.kernel
def harmless(x: kc.Array[float], v: kc.Array[kc.float3], count: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    v[i // 3][i % 3] = x[i]
    kc.atomic_max(count, 0, i)
    count[1] += 1
    slot = kc.atomic_add(count, 2, 1)
    if x[i] != 0.0 and 1.0 / x[i] > 0.0:
        out[slot] = kc.sqrt(x[i])
    big = x[i] <= 0.0 or x[i] * kc.static(float("inf")) > 0.0
    out[slot] += kc.where(x[i] > 0.0, kc.log(x[i] if x[i] > 0.0 else 1.0), -1.0) + (1.0 if big else 2.0)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_a_correct_kernel_runs_as_ever(device):
    def run():
        x = np.array([0.5, 0.0, 2.0, -1.0, 4.0, 3.0])
        v, count = kc.zeros(2, dtype=kc.float3, real=kc.float64), kc.array(np.zeros(3, np.int32))
        out = kc.zeros(6, real=kc.float64)
        kc.launch(harmless, 6, [x, v, count, out], device=device)
        return np.concatenate([v.numpy().ravel(), count.numpy(), out.numpy()])

    checked = run()
    kc.config.debug = False
    try:
        np.testing.assert_array_equal(run(), checked)
    finally:
        kc.config.debug = True


def test_each_setting_has_its_own_machine_code():
    def outside():
        kc.launch(component_past_the_end, 4, [kc.ones(4)])

    for _ in range(2):
        with pytest.raises(kc.OutOfBounds):
            outside()
        kc.config.debug = False
        try:
            outside()
        finally:
            kc.config.debug = True


def test_an_error_does_not_hide_what_was_stored_before():
    y = kc.zeros(4, real=kc.float64)
    with pytest.raises(kc.DivisionByZero):
        kc.launch(divide, 4, [np.array([1.0, 2.0, 0.0, 4.0]), y])
    np.testing.assert_array_equal(y.numpy(), [1.0, 0.5, 0.0, 0.0])
    kc.launch(divide, 4, [np.array([1.0, 2.0, 4.0, 8.0]), y])
    np.testing.assert_array_equal(y.numpy(), [1.0, 0.5, 0.25, 0.125])
