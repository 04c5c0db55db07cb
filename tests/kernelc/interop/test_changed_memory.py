"""What is done to NumPy arrays and tensors after they were handed over, and memory that is not what it seems."""

import threading

import numpy as np
import pytest
import torch

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def whole(n: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    y[i] = float(n[i])


@kc.kernel
def one_whole(n: int, y: kc.Array[float]):
    y[0] = float(n)


@kc.kernel
def cube(y: kc.Array[float]):
    i, j, k = kc.tid()
    y[0] = float(i + j + k)


def changed_shape(m):
    m.shape = (2, 3)


def changed_type(m):
    m.dtype = np.int64


def changed_strides(m):
    m.strides = (0,)


def locked(m):
    m.flags.writeable = False


CHANGES = [changed_shape, changed_type, changed_strides, locked]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("whose", ["ours", "the user's"])
def test_an_array_stays_what_it_was_whatever_is_done_to_the_object(change, whose):
    """NumPy changes shape, type, strides and flags of an object in place; the memory is the same."""
    m = np.arange(6.0)
    a = kc.array(m, requires_grad=True)
    change(m if whose == "the user's" else a.numpy())
    assert a.shape == a.numpy().shape == (6,) and a.numpy().dtype == np.float64 and a.numpy().flags.writeable
    np.testing.assert_array_equal(a.numpy(), np.arange(6.0))
    y = kc.zeros(6, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(square, 6, [a], [y])
    tape.backward(grads={y: np.ones(6)})
    np.testing.assert_array_equal(a.grad.numpy(), 2 * np.arange(6.0))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_a_tape_goes_back_through_arguments_as_they_were_passed(change):
    x, middle, y = kc.array(np.arange(6.0), requires_grad=True), np.zeros(6), kc.zeros(6, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(square, 6, [x], [middle])
        kc.launch(square, 6, [middle], [y])
    change(middle)
    tape.replay()
    tape.backward(grads={y: np.ones(6)})
    np.testing.assert_array_equal(x.grad.numpy(), 4 * np.arange(6.0) ** 3)


def test_tensors_without_memory_are_refused():
    """Of a freed storage NumPy shows whatever lies there; tensors of torch's transforms stand for others."""
    freed, short, half = torch.ones(6), torch.ones(6), torch.ones(6, dtype=torch.bfloat16)
    start, end, every = short[:2], short[3:], short[::2]
    freed.untyped_storage().resize_(0)
    short.untyped_storage().resize_(8)
    half.untyped_storage().resize_(0)
    for t in (freed, short, half, end, every):
        for use in (kc.array, kc.from_torch, kc.from_dlpack, lambda t: kc.launch(square, 3, [t], [kc.zeros(3)])):
            with pytest.raises(kc.WrongDtype, match="has no memory for all of its elements"):
                use(t)
    np.testing.assert_array_equal(kc.array(start).numpy(), 1.0)
    op, function = kc.torch.op(square, 3, outputs=[(3,)]), kc.torch.function(lambda x: x)
    for call in (op, function):
        call(torch.ones(3))  # of a kind that is known
        for leaf in (False, True):
            with pytest.raises(kc.WrongDtype, match="has no memory"):
                call(freed.detach().requires_grad_(leaf))

    def launched(t):
        kc.launch(square, 3, [t], [kc.zeros(3)])
        return t

    with pytest.raises(kc.WrongDtype, match="has no memory"):
        torch.func.functionalize(launched)(torch.ones(3))
    with pytest.raises(kc.WrongDtype, match="cannot be used"):
        launched(torch.nested.nested_tensor([torch.ones(3), torch.ones(2)]))


def test_a_lazily_negated_tensor_is_refused_by_every_way():
    t = torch._neg_view(torch.ones(3))
    for use in (kc.array, kc.from_torch, kc.from_dlpack, kc.zeros(3).assign):
        with pytest.raises(kc.WrongDtype, match="resolve_neg"):
            use(t)


@pytest.mark.parametrize("data", [
    np.ones(3, ">f8"), np.array(["a"]), np.ones(3, np.longdouble), np.zeros(3, [("a", int)]), np.zeros(3, "M8[s]"),
], ids=["big-endian", "text", "long double", "structured", "dates"])  # fmt: skip
def test_what_dlpack_cannot_say_is_an_error_of_ours(data):
    with pytest.raises(kc.WrongDtype, match="cannot be shared by DLPack"):
        kc.from_dlpack(data)


@pytest.mark.parametrize("dtype", [int, float, bool, kc.uint8, kc.bfloat16])
def test_structured_data_is_no_array_of_numbers(dtype):
    with pytest.raises(kc.WrongDtype, match="one of its fields"):
        kc.array(np.zeros(3, [("a", int), ("b", float)]), dtype=dtype)


STORED = [int, kc.int64, kc.uint32, kc.uint64, bool, kc.uint8, kc.int8, kc.uint16, kc.int16]


@pytest.mark.parametrize("content", [1.5, -1.0, float("nan"), 1e30])
@pytest.mark.parametrize("kind", STORED, ids=str)
def test_reals_without_a_precision_never_become_whole_numbers(kind, content):
    """A list takes the precision of its launch: float32 or float64. 1.5 was 1 for a kernel of integers."""

    @kc.kernel
    def read(n: kc.Array[kind], y: kc.Array[float]):
        i = kc.tid()
        y[i] = float(n[i])

    kept = kc.array([content], requires_grad=True)
    for given in ([content], kept, kc.scalar(content)):
        with pytest.raises(kc.WrongDtype, match="argument 'n' must be an array of"):
            kc.launch(read, 1, [given], [kc.zeros(1)])
    assert kept.real is kc.float32 and kept.requires_grad  # a failed launch leaves it as it was
    np.testing.assert_array_equal(kept.numpy(), np.float32([content]))


def test_a_number_without_a_precision_is_no_whole_number():
    y = kc.zeros(1)
    with pytest.raises(kc.WrongDtype, match="argument 'n'"):
        kc.launch(one_whole, 1, [kc.scalar(2.5)], [y])
    kc.launch(whole, 1, [[2]], [y])
    assert y.item() == 2


def test_a_grid_that_cannot_be_counted_is_refused():
    for tape in (None, kc.Tape()):
        if tape is not None:
            tape.__enter__()
        try:
            with pytest.raises(kc.WrongDim, match="more than can be counted"):
                kc.launch(cube, (2**30, 2**30, 2**30), [kc.zeros(1)])
        finally:
            if tape is not None:
                tape.__exit__(None, None, None)
    kc.launch(cube, (2**30, 2**30, 0), [kc.zeros(1)])


def test_numpy_counts_spans_of_time_among_integers():
    for span in (np.timedelta64(3, "s"), np.timedelta64(3)):
        with pytest.raises(kc.WrongDtype, match="must be int32, not timedelta64"):
            kc.launch(one_whole, 1, [span], [kc.zeros(1)])


def test_threads_that_share_a_tape_take_turns():
    """Each tells the sweep where its weights are: another's must not come between that and the run."""
    x, y = kc.array(np.arange(1.0, 2001.0), requires_grad=True), kc.zeros(2000, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(square, 2000, [x], [y])
    errors = []

    def work(weight):
        try:
            for _ in range(40):
                tape.backward(grads={y: np.full(2000, weight)})
                tape.replay()
                tape.jvp({x: np.ones(2000)}, [y])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(float(2**n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    np.testing.assert_array_equal(x.grad.numpy(), 40 * 15 * 2 * np.arange(1.0, 2001.0))


def test_an_operation_that_runs_its_own_tape_is_told_so():
    x, y = kc.array(np.ones(3), requires_grad=True), kc.zeros(3, real=kc.float64)
    tape = kc.Tape()
    with tape:
        kc.launch(square, 3, [x], [y])
        tape.record(lambda: None, reads=[x], writes=[y], forward=lambda: tape.replay())
    with pytest.raises(kc.TapeError, match="asked to run by an operation that it runs"):
        tape.replay()


@pytest.mark.parametrize("direction", [np.ones(3) * 1j, np.array(["1", "2", "3"]), np.zeros(3, "M8[s]")], ids=str)
def test_directions_are_numbers(direction):
    """Of complex numbers NumPy leaves out the imaginary part with a warning, and it reads texts."""
    x, y = kc.array(np.ones(3), requires_grad=True), kc.zeros(3, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(square, 3, [x], [y])
    for push in (tape.jvp, lambda d: kc.jvp(square, 3, [x], [y], tangents=d)):
        with pytest.raises(kc.KernelError, match=r"numbers|not supported"):
            push({x: direction})


@pytest.mark.parametrize(("steps", "every"), [(-1, None), (2.5, None), (4, 0), (4, -2), (4, 1.5), ("4", None)])
def test_checkpoints_are_counted(steps, every):
    """A negative `every` kept no state."""
    x = kc.array(np.ones(3), requires_grad=True)
    for tape in (kc.Tape(), None):
        with pytest.raises(kc.WrongChoice, match="cannot be"):
            if tape is None:
                kc.checkpoint(lambda k: None, [x], steps, every=every)
            else:
                with tape:
                    kc.checkpoint(lambda k: None, [x], steps, every=every)
